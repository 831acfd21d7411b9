"""Bytes to text, in whatever encoding."""

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
# With fewer non-ASCII bytes statistics guess badly ("ä" as Mac Turkish); cp1252 is right more often.
_ENOUGH_TO_GUESS = 24
# Encodings that use ASCII escapes: their bytes are valid UTF-8, and make no sense as such.
_ESCAPING = ("iso-2022", "utf-7", "hz")
# Read as their superset cp1252, as browsers do.
_WESTERN = ("ascii", "iso8859-1")
# Bytes that occur in UTF-16 of every script, and in no encoding that extends ASCII.
_UNUSUAL = re.compile(rb"[\x00-\x08]")
# Not U+3000, which is "0" in the other byte order.
_USUAL = re.compile("[ \t\r\n0-9A-Za-z.,:;!?\u060c\u0964\u3001\u3002\uff0c\uff1a\uff1f]")
_SEEN = 20_000  # characters
_SHORT = 16  # bytes; any of them may be letters in UTF-16


def decode_text(content: bytes, declared: str = "") -> str:
    """Never fails: byte-order mark, UTF-8, UTF-16 without a mark, `declared`, a statistical guess, then cp1252."""
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            rest = content[len(mark) :]
            # A line in UTF-16 ends with a zero, which is no text of one byte a letter.
            is_wrong = rest.isascii() and b"\n" in rest and not _UNUSUAL.search(rest)
            return rest.decode() if is_wrong else content.decode(encoding, errors="replace")
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
    """The byte order that gives nothing but text, with letters and spaces; the other one gives hardly any."""
    if not _UNUSUAL.search(content[:4096]):
        return None
    usual: dict[str, int] = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = content[: len(content) // 2 * 2].decode(encoding)
        except UnicodeDecodeError:
            continue
        if not _CONTROLS.search(text) and _is_assigned(text[:2048]):
            usual[encoding] = len(_USUAL.findall(text[:2048]))
    best = max(usual, key=lambda encoding: usual[encoding], default="")
    others = sum(count for encoding, count in usual.items() if encoding != best)
    least = len(content) // 4 if len(content) < _SHORT else 0
    return best if best and usual[best] > max(4 * others, least) else None


def _widen(declared: str) -> str:
    name = codecs.lookup(declared).name if declared else ""
    return "cp1252" if name in _WESTERN else declared


def _makes_sense(text: str) -> bool:
    """False where the declared encoding is wrong: many encodings make letters of any bytes.

    Signs are unassigned characters, words of two scripts, and words of accented letters only.
    """
    if _CONTROLS.search(text) or not _is_assigned(text):
        return False
    # Chinese, Japanese and Korean mix in foreign words without a space.
    words = [word for word in re.findall(r"[^\W\d_\u2e80-\ud7ff\uf900-\ufaff]{3,}", text) if not word.isascii()]
    odd = 0
    for word in words:
        latin = [unicodedata.name(letter, "").startswith("LATIN") for letter in word]
        odd += any(latin) and (not all(latin) or not any(map(str.isascii, word)))
    return odd * 2 <= len(words)


def _is_assigned(text: str) -> bool:
    """No unassigned, private or control characters except white space, and no surrogates."""
    return all(
        letter.isprintable() or unicodedata.category(letter) in ("Zs", "Zl", "Zp", "Cf") or letter.isspace()
        for letter in text
    )


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
