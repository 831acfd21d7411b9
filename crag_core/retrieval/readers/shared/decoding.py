"""From bytes to text when nobody says which encoding it is."""

from __future__ import annotations

import codecs
import re
import unicodedata

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
# What is labelled so is read as its superset, as browsers do.
_WESTERN = ("ascii", "iso8859-1")
# Bytes that no text in an encoding of ASCII's family holds, and UTF-16 does in every script.
_UNUSUAL = re.compile(rb"[\x00-\x08]")
_USUAL = re.compile("[ \t\r\n0-9A-Za-z.,:;!?\u060c\u0964\u3000-\u3002\uff0c\uff1a\uff1f]")
_SEEN = 20_000  # characters
_FEWEST = 16  # bytes; anything may come of fewer


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
            text = content.decode(encoding if encoding == "utf-8" else _widen(encoding))
        except (LookupError, UnicodeError):
            continue
        if encoding == "utf-8" or _makes_sense(text[:_SEEN]):
            return text
    if _is_damaged_utf8(content):
        return content.decode("utf-8", errors="replace")
    return _decode_legacy(content)


def looks_like_utf16(content: bytes) -> bool:
    """Also true for UTF-32, which a byte-order mark must announce."""
    return content.startswith(tuple(mark for mark, _ in _BOMS[1:])) or _guess_utf16(content) is not None


def _guess_utf16(content: bytes) -> str | None:
    return _guess_latin_utf16(content) or _guess_other_utf16(content)


def _guess_other_utf16(content: bytes) -> str | None:
    """In one order of bytes nothing but text, with spaces and full stops, of which the other order has hardly any."""
    if len(content) < _FEWEST or not _UNUSUAL.search(content[:4096]):
        return None
    found: dict[str, int] = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = content[: len(content) // 2 * 2].decode(encoding)
        except UnicodeDecodeError:
            continue
        sample = text[:2048]
        if not _CONTROLS.search(text) and _is_assigned(sample) and sum(map(str.isalpha, sample)) * 2 > len(sample):
            found[encoding] = len(_USUAL.findall(sample))
    best = max(found, key=lambda encoding: found[encoding], default="")
    others = [count for encoding, count in found.items() if encoding != best]
    return best if best and found[best] > 4 * max(others, default=0) else None


def _guess_latin_utf16(content: bytes) -> str | None:
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


def _widen(declared: str) -> str:
    name = codecs.lookup(declared).name if declared else ""
    return "cp1252" if name in _WESTERN else declared


def _makes_sense(text: str) -> bool:
    """False where the label that it was decoded by is wrong: many encodings make letters out of anything.

    Told by characters that nobody writes, by words of two scripts, and by words of nothing but accented letters.
    """
    if _CONTROLS.search(text) or not _is_assigned(text):
        return False
    # Chinese, Japanese and Korean have words of others among their own without a gap.
    words = [word for word in re.findall(r"[^\W\d_\u2e80-\ud7ff\uf900-\ufaff]{3,}", text) if not word.isascii()]
    odd = 0
    for word in words:
        latin = [unicodedata.name(letter, "").startswith("LATIN") for letter in word]
        odd += any(latin) and (not all(latin) or not any(map(str.isascii, word)))
    return odd * 2 <= len(words)


def _is_assigned(text: str) -> bool:
    """No character that is reserved, private, half of a pair or, but for white space, a control."""
    return all(
        letter.isprintable() or unicodedata.category(letter) in ("Zs", "Zl", "Zp", "Cf") or letter.isspace()
        for letter in text
    )


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
