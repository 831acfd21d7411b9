"""Files that are not what they should be: refused with the file's name, what is wrong and what to do."""

from __future__ import annotations

import io
import os
from pathlib import Path

import docx
import pytest
from fpdf import FPDF
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import READERS, load_content, packages, read_document

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 64


def refuse(content: bytes | Path, name: str) -> str:
    with pytest.raises(DocumentRefused) as refusal:
        read_document(content, name)
    assert refusal.value.message.startswith(f"{name}: "), "the file is named"
    assert refusal.value.hint, "it says what to do"
    return refusal.value.message


def make_encrypted() -> bytes:
    pdf = FPDF()
    pdf.set_encryption(owner_password="owner", user_password="user")
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="secret")
    return bytes(pdf.output())


def make_picture_only(tmp_path: Path) -> bytes:
    from PIL import Image

    Image.new("RGB", (40, 40), "red").save(tmp_path / "red.png")
    pdf = FPDF()
    pdf.add_page()
    pdf.image(str(tmp_path / "red.png"), w=100)
    return bytes(pdf.output())


def make_blank() -> bytes:
    pdf = FPDF()
    pdf.add_page()
    return bytes(pdf.output())


def test_an_unknown_extension_names_those_that_are_known_best() -> None:
    message = refuse(b"x", "song.mp3")
    assert ".mp3" in message and ".docx" in message and f"one of {len(READERS) - 11} other formats" in message
    assert "no extension" in refuse(b"x", "Makefile")


@pytest.mark.parametrize("name", [f"a{extension}" for extension in READERS])
def test_nothing_in_it(name: str) -> None:
    assert "empty" in refuse(b"", name)


@pytest.mark.parametrize(
    ("content", "name", "expected", "found"),
    [
        (PNG, "scan.pdf", "a PDF", "PNG"),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "paper.pdf", "a PDF", "HTML"),
        (b"just some words", "paper.pdf", "a PDF", "text"),
        (PNG, "notes.txt", "text", "PNG"),
        (b"abc\x00\x01\x02def\x00", "notes.txt", "text", "binary data"),
        (b"%PDF-1.7 ...", "notes.md", "text", "a PDF"),
        (b"PK\x03\x04rest", "letter.docx", "a Word document", "a ZIP archive"),
        (b"%PDF-1.7 ...", "letter.docx", "a Word document", "a PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "letter.docx", "a Word document", "older Office"),
    ],
)
def test_content_that_is_not_what_the_name_says(content: bytes, name: str, expected: str, found: str) -> None:
    message = refuse(content, name)
    assert f"expected {expected}" in message and found in message.partition("found")[2]


def test_each_bad_pdf_has_its_own_reason(tmp_path: Path) -> None:
    reasons = [
        refuse(make_encrypted(), "a.pdf"),
        refuse(b"%PDF-1.7\nrubbish", "a.pdf"),
        refuse(make_picture_only(tmp_path), "a.pdf"),
        refuse(make_blank(), "a.pdf"),
    ]
    for reason, words in zip(reasons, ["password", "damaged", "only images", "blank pages"], strict=True):
        assert words in reason


def test_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as stream:
        stream.truncate(10**12)
    assert "over the limit" in refuse(huge, "huge.txt")


def test_a_device_and_a_pipe_are_refused_before_anything_is_read_of_them(tmp_path: Path) -> None:
    (device := tmp_path / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(pipe := tmp_path / "pipe.txt")
    for path in (device, pipe):
        with pytest.raises(DocumentRefused, match="a device or a pipe"):
            load_content(path, path.name)


def test_zip_bomb_in_a_word_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("a" * 100_000)
    document.save(stream)
    monkeypatch.setattr(packages, "MAX_UNPACKED", 50_000)
    assert "unpacks to" in refuse(stream.getvalue(), "bomb.docx")


def test_a_reader_that_breaks_refuses_only_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(content: bytes, name: str) -> tuple[()]:
        raise KeyError("deep inside a parser")

    monkeypatch.setitem(READERS, ".txt", explode)
    assert "KeyError" in refuse(b"text", "a.txt")


@given(
    content=st.one_of(st.binary(min_size=1, max_size=400), st.text(min_size=1, max_size=200).map(str.encode)),
    extension=st.sampled_from(sorted(READERS)),
    start=st.sampled_from([b"", b"%PDF-1.4\n", b"PK\x03\x04word/", b"<html>", b"\xff\xfe", b"a,b\n"]),
)
def test_any_bytes_are_read_or_refused(content: bytes, extension: str, start: bytes) -> None:
    try:
        pages = read_document(start + content, f"fuzz{extension}")
    except DocumentRefused:
        return
    assert all(page.text.strip() for page in pages)
    # LanceDB stores UTF-8: half a surrogate pair would stop the whole document later.
    assert all(page.text.encode() for page in pages)


def test_shared_hostile_documents_are_read_or_refused(shared_documents: Path) -> None:
    refused = set()
    for path in sorted((shared_documents / "hostile").iterdir()):
        try:
            assert any(page.text.strip() for page in read_document(path)), path.name
        except DocumentRefused as refusal:
            assert path.name in refusal.message and refusal.hint, path.name
            refused.add(path.name)
    assert {"empty.pdf", "password-example.pdf", "loremipsum-flat.pdf", "made-html-named.pdf", "DA-1p.png"} <= refused
    assert {"empty.xlsx", "password_protected.xlsx", "simple.zip"} <= refused
    assert "umlauts-non-utf8.md" not in refused and "made .._weird name '\"$(x).md" not in refused
