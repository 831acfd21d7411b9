"""Bytes to text, in whatever encoding."""

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
# With fewer non-ASCII bytes statistics guess badly ("ä" as Mac Turkish); cp1252 is right more often.
_ENOUGH_TO_GUESS = 24
# Encodings that use ASCII escapes: their bytes are valid UTF-8, and make no sense as such.
_ESCAPING = ("iso-2022", "utf-7", "hz")
# Read as their superset cp1252, as browsers do.
_WESTERN = ("ascii", "iso8859-1")


def decode_text(content: bytes, declared: str = "") -> str:
    """Never fails: byte-order mark, UTF-8, UTF-16 without a mark, `declared`, a statistical guess, then cp1252."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace")
    if unmarked := _utf16_by_zeros(content):
        return content.decode(unmarked, errors="replace")
    for encoding in (declared, "utf-8") if declared.lower().startswith(_ESCAPING) else ("utf-8", declared):
        try:
            return content.decode(encoding if encoding == "utf-8" else _widen(encoding))
        except (LookupError, UnicodeError):
            continue
    if _is_damaged_utf8(content):
        return content.decode("utf-8", errors="replace")
    return _decode_legacy(content)


def looks_like_utf16(content: bytes) -> bool:
    """Also UTF-32, which a mark must announce."""
    return content.startswith(tuple(mark for mark, _ in _BOMS[1:])) or bool(_utf16_by_zeros(content))


def _utf16_by_zeros(content: bytes) -> str:
    """The byte order in which every other byte of Latin text is a zero, and hardly any of the others; "": none."""
    high, low = content[1:4096:2].count(0), content[:4096:2].count(0)
    if max(high, low) * 4 < len(content[:4096]) or min(high, low) * 20 > max(high, low):
        return ""
    return "utf-16-le" if high > low else "utf-16-be"


def _widen(declared: str) -> str:
    name = codecs.lookup(declared).name if declared else ""
    return "cp1252" if name in _WESTERN else declared


def _is_damaged_utf8(content: bytes) -> bool:
    """Mostly valid: one broken byte must not make two wrong letters of every umlaut."""
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
