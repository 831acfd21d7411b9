"""From bytes to text when nobody says which encoding it is."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MULTIBYTE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]+")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
# Below this many bytes that are not ASCII, statistics guess wildly ("ä" as Mac Turkish); cp1252 is right more often.
_ENOUGH_TO_GUESS = 24
# Encodings that write other letters as ASCII after an escape: as UTF-8 they are sound, and nonsense.
_ESCAPING = ("iso-2022", "utf-7", "hz")


def decode_text(content: bytes, declared: str = "") -> str:
    """Never fails: byte-order mark, UTF-8, UTF-16 without a mark, `declared`, a statistical guess, then cp1252."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace")
    guessed = _guess_utf16(content)
    if guessed:
        return content.decode(guessed, errors="replace")
    for encoding in (declared, "utf-8") if declared.lower().startswith(_ESCAPING) else ("utf-8", declared):
        try:
            return content.decode(encoding)
        except (LookupError, UnicodeError):
            continue
    if _is_damaged_utf8(content):
        return content.decode("utf-8", errors="replace")
    return _decode_legacy(content)


def looks_like_utf16(content: bytes) -> bool:
    """Also true for UTF-32, which a byte-order mark must announce."""
    return content.startswith(tuple(mark for mark, _ in _BOMS[1:])) or _guess_utf16(content) is not None


def _guess_utf16(content: bytes) -> str | None:
    """Latin text in UTF-16 has a zero in every other place, and nothing but text when decoded."""
    sample = content[: min(len(content), 4096) // 2 * 2]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 5 < len(sample) * 2 or min(even, odd) or not sample:
        return None
    encoding = "utf-16-le" if odd else "utf-16-be"
    try:
        text = content[: len(content) // 2 * 2].decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else encoding


def _is_damaged_utf8(content: bytes) -> bool:
    """One broken byte must not turn every umlaut of a UTF-8 file into two wrong letters."""
    sound = len(_MULTIBYTE.findall(content))
    broken = content.decode("utf-8", errors="replace").count("\ufffd")
    return sound >= 10 * broken


def _decode_legacy(content: bytes) -> str:
    if sum(byte > 127 for byte in content[:20_000]) >= _ENOUGH_TO_GUESS:
        from charset_normalizer import from_bytes

        best = from_bytes(content[:200_000]).best()
        if best is not None:
            return content.decode(best.encoding, errors="replace")
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return content.decode("latin-1")
