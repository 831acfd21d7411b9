"""Decodes an uploaded file, and removes characters that cannot be shown."""

from __future__ import annotations

import codecs
import re

from crag_core.base.errors import BadRecord

_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
_SAMPLED, _MOST_CONTROL = 8192, 0.05  # bytes, share
_CONTROL = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_LINE_END = re.compile("\r\n?")
_HALF = re.compile("[\ud800-\udfff]")


def decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, its lines ending in "\\n", and remarks on what had to be guessed.

    UTF-8, UTF-16 or UTF-32 by their marks, UTF-8 without one, else Windows-1252. Raises `BadRecord` for anything else.
    """
    encoding = next((name for mark, name in _ENCODINGS if content.startswith(mark)), None)
    sample = content[:_SAMPLED]
    if not encoding and len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > _MOST_CONTROL * len(sample):
        raise BadRecord(
            "This is not a text file.", hint="Save the questions as CSV (from Excel too) or JSONL, encoded as UTF-8."
        )
    remarks: tuple[str, ...] = ()
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        text, remarks = _decode_damaged(content, encoding)
    if not cleaned(text):
        raise BadRecord("This file is empty.", hint="Choose a CSV or JSONL file with one question a row.")
    return _LINE_END.sub("\n", text), remarks


def cleaned(text: str) -> str:
    """`text` without surrounding white space, control characters and byte order marks; lines end in "\\n".

    Half of a surrogate pair becomes the replacement character.
    """
    return _HALF.sub("\ufffd", _CONTROL.sub("", _LINE_END.sub("\n", text))).strip()


def _decode_damaged(content: bytes, encoding: str | None) -> tuple[str, tuple[str, ...]]:
    text = content.decode(encoding or "utf-8", "replace")
    line = text.count("\n", 0, text.find("\ufffd")) + 1
    damaged = text.count("\ufffd")
    others = len(text) - len(text.encode("ascii", "ignore")) - damaged
    if encoding or others > damaged:  # two bytes that are UTF-8 by chance are rare in any other encoding
        name = (encoding or "utf-8").removesuffix("-sig").upper()
        return text, (f"Line {line} is not valid {name}; what could not be read is shown as \ufffd.",)
    remark = f"The file is not UTF-8 (line {line}), so it was read as Windows-1252."
    hint = "If letters such as ä or é look wrong, save it as UTF-8 and upload it again."
    return content.decode("cp1252", "replace"), (f"{remark} {hint}",)
