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
_KINDS = (
    (b"%PDF", "a PDF document", "Only CSV and JSONL files can be read."),
    (b"\xd0\xcf\x11\xe0", "an old Office file, perhaps an Excel workbook", "Open it and save it as CSV."),
    (b"\x1f\x8b", "a compressed file", "Unpack it first."),
    (b"PAR1", "a Parquet file", "Export it as CSV or JSONL."),
    (b"\x89PNG", "a picture", "Only CSV and JSONL files can be read."),
    (b"\xff\xd8\xff", "a picture", "Only CSV and JSONL files can be read."),
)
_PACKED = (
    (b"xl/workbook", "an Excel workbook", "Save it as CSV."),
    (b"opendocument.spreadsheet", "a spreadsheet", "Save it as CSV."),
    (b"word/document", "a Word document", "Only CSV and JSONL files can be read."),
    (b"", "a ZIP archive", "Unpack it first."),
)
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
_SIGNATURE_BYTES, _MOST_CONTROL = 8192, 0.05

STRANGE = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
"""Control characters but tabs and line ends, byte order marks, and halves of surrogate pairs."""

_LINE_END = re.compile("\r\n?")
_HALF = re.compile("[\ud800-\udfff]")


def decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, its lines ending in "\\n", and remarks on what had to be guessed.

    UTF-8, UTF-16 or UTF-32 by their marks, UTF-8 without one, else Windows-1252. Raises `BadRecord` for
    what is no text.
    """
    if not content.strip():
        raise BadRecord("This file is empty.", hint="Choose a CSV or JSONL file with one question a row.")
    encoding = next((name for mark, name in _ENCODINGS if content.startswith(mark)), None)
    if encoding is None:
        _check_kind(content)
    remarks: tuple[str, ...] = ()
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        text, remarks = _guessed(content, encoding, error)
    text = _LINE_END.sub("\n", text)
    if not cleaned(text):
        raise BadRecord("This file is empty.", hint="Choose a CSV or JSONL file with one question a row.")
    return text, remarks


def cleaned(text: str) -> str:
    """`text` without surrounding white space and without `STRANGE` characters; lines end in "\\n".

    Half of a surrogate pair becomes the replacement character. What is clean stays as it is.
    """
    text = _LINE_END.sub("\n", text)
    if STRANGE.search(text):
        text = STRANGE.sub("", _HALF.sub("\ufffd", text))
    return text.strip()


def _check_kind(content: bytes) -> None:
    kinds = _PACKED if content.startswith(b"PK\x03\x04") else _KINDS
    for mark, kind, hint in kinds:
        if mark in content if kinds is _PACKED else content.startswith(mark):
            raise BadRecord(f"This looks like {kind}.", hint=hint)
    head = content[:_SIGNATURE_BYTES]
    if len(head) - len(head.translate(None, _CONTROL_BYTES)) > _MOST_CONTROL * len(head):
        raise BadRecord("This is not a text file.", hint="Save the questions as CSV or JSONL, encoded as UTF-8.")


def _guessed(content: bytes, encoding: str | None, error: UnicodeDecodeError) -> tuple[str, tuple[str, ...]]:
    text = content.decode(encoding or "utf-8", "replace")
    place = f"line {text.count(chr(10), 0, text.find(chr(0xFFFD))) + 1}"
    damaged = text.count("\ufffd")
    others = len(text) - len(text.encode("ascii", "ignore")) - damaged
    if encoding or others > damaged:  # two bytes that are UTF-8 by chance are rare in any other encoding
        name = (encoding or "utf-8").removesuffix("-sig").upper()
        return text, (f"{place.capitalize()} is not valid {name}; what could not be read is shown as \ufffd.",)
    remark = f"The file is not UTF-8 ({place}), so it was read as Windows-1252."
    text = content.decode("cp1252", "replace")
    return text, (f"{remark} If letters such as ä or é look wrong, save it as UTF-8 and upload it again.",)
