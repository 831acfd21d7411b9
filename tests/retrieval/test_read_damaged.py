"""Packages made to do harm, and every format cut short or with bytes changed: text or a refusal, nothing else."""

from __future__ import annotations

import io
import struct
import time
import zipfile
from contextlib import suppress

import pytest

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import packages, page, read_document
from crag_core.retrieval.readers.file_kind import detect_kind
from crag_core.retrieval.readers.office import slides, workbook
from crag_core.retrieval.readers.packages import Package
from crag_core.retrieval.readers.pdf import document
from tests.retrieval.made_files import fill, make_open, make_slides, make_workbook, one_of_each, rezip
from tests.retrieval.printed import print_pages

SOUND = one_of_each()
PACKAGES = [".pptx", ".xlsx", ".odt", ".epub"]
MAIN = {
    ".pptx": "ppt/slides/slide1.xml",
    ".xlsx": "xl/workbook.xml",
    ".odt": "content.xml",
    ".epub": "OEBPS/content.opf",
}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600


def refuse(content: bytes, name: str) -> DocumentRefused:
    with pytest.raises(DocumentRefused) as refusal:
        read_document(content, name)
    assert refusal.value.message.startswith(f"{name}: ") and refusal.value.hint
    return refusal.value


def try_to_read(content: bytes, extension: str) -> None:
    try:
        pages = read_document(content, f"a{extension}")
    except DocumentRefused as refusal:
        assert refusal.message.startswith(f"a{extension}: ") and refusal.hint
    else:
        assert all(page.text.strip() and page.text.encode() for page in pages)


@pytest.mark.parametrize("extension", SOUND)
def test_every_cut(extension: str) -> None:
    content = SOUND[extension]
    started = time.process_time()
    for part in range(1, 41):
        try_to_read(content[: max(1, len(content) * part // 41)], extension)
    assert time.process_time() - started < 20


@pytest.mark.parametrize("extension", PACKAGES)
def test_a_package_without_its_main_file_says_that_it_is_damaged(extension: str) -> None:
    assert "found a damaged one" in refuse(rezip(SOUND[extension], {MAIN[extension]: None}), f"a{extension}").message


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(10))


@pytest.mark.parametrize("extension", PACKAGES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "entities", [LAUGHS, '<!ENTITY a9 SYSTEM "file:///etc/passwd">', '<!ENTITY % a9 SYSTEM "http://x/">']
)
def test_xml_may_not_define_entities(extension: str, encoding: str, entities: str) -> None:
    def laugh(xml: bytes) -> bytes:
        text = xml.decode().partition("?>")[2] or xml.decode()
        return f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [{entities}]>{text}'.encode(encoding)

    started = time.process_time()
    assert "XML entities" in refuse(rezip(SOUND[extension], {MAIN[extension]: laugh}), f"a{extension}").message
    assert time.process_time() - started < 20


def test_entities_that_slip_through_are_not_expanded() -> None:
    hidden = f'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE x [{LAUGHS}]><x>&a9;</x>'.replace(
        "<!E", "+ADwAIQ-E"
    )
    package = Package(rezip(SOUND[".odt"], {"content.xml": hidden}), "a.odt", "a text")
    with suppress(DocumentRefused):
        assert "ha" * 100 not in "".join(package.parse("content.xml").itertext())


@pytest.mark.parametrize("extension", PACKAGES)
def test_packages_that_unpack_to_too_much(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = rezip(SOUND[extension], {"extra.xml": b"<a>" + b" " * 30_000_000})
    assert len(bomb) < 100_000
    monkeypatch.setattr(packages, "MAX_UNPACKED", 20_000_000)
    assert "unpacks to 28 MB, over the limit of 19 MB" in refuse(bomb, f"a{extension}").message


def test_bytes_are_counted_when_the_archive_lies_about_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size that is too small ends the reading there, and the checksum tells; sizes are counted all the same."""
    honest = rezip(SOUND[".odt"], {"content.xml": lambda xml: xml + b" " * 3_000_000})
    size = len(zipfile.ZipFile(io.BytesIO(honest)).read("content.xml"))
    lying = honest.replace(struct.pack("<L", size), struct.pack("<L", 900))
    assert lying != honest
    assert refuse(lying, "a.odt").message.startswith("a.odt: expected an OpenDocument text (.odt), found a damaged one")
    package = Package(honest, "a.odt", "a text")
    monkeypatch.setattr(package, "_left", 1_000_000)
    with pytest.raises(DocumentRefused, match="unpacks to more than the limit"):
        package.read("content.xml")


def test_packages_with_a_password_or_too_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(SOUND[".pptx"])
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    assert "protected with a password" in refuse(bytes(content), "a.pptx").message
    monkeypatch.setattr(packages, "MAX_MEMBERS", 5)
    assert "more than 5 files in one archive" in refuse(SOUND[".pptx"], "a.pptx").message


def test_too_many_slides_sheets_or_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, content, what in (
        (slides, "a.pptx", make_slides(("a", "b", ""), ("c", "d", "")), "slides"),
        (workbook, "a.xlsx", make_workbook(fill(("a",)), fill(("b",))), "sheets"),
        (document, "a.pdf", print_pages("one", "two"), "pages"),
    ):
        monkeypatch.setattr(module, "MAX_PAGES" if what == "pages" else "MAX_PARTS", 1)
        assert refuse(content, name).message == f"{name}: more than 1 {what}, which is the limit."
    assert page.MAX_PARTS == 2_000 and page.MAX_PAGES == 5_000


@pytest.mark.parametrize("extension", SOUND)
def test_formats_under_the_name_of_another(extension: str) -> None:
    other = ".xlsx" if extension != ".xlsx" else ".pptx"
    refusal = refuse(SOUND[extension], f"a{other}")
    assert f"found {detect_kind(SOUND[extension])}" in refusal.message
    assert refusal.hint == f"If that is what it should be, rename it so that its name ends in {extension}."


@pytest.mark.parametrize(
    ("stream", "name", "found", "advice"),
    [
        ("__properties_version1.0", "a.eml", "an Outlook message (.msg)", "ends in .msg"),
        ("WordDocument", "a.docx", "an older Word document (.doc)", "ends in .doc"),
        ("Workbook", "a.xlsx", "an older Excel workbook (.xls)", "ends in .xls"),
        ("PowerPoint Document", "a.pptx", "an older PowerPoint presentation (.ppt)", "ends in .ppt"),
        ("EncryptedPackage", "a.xlsx", "an Office document protected with a password", "remove the password"),
    ],
)
def test_older_files_under_a_new_name(stream: str, name: str, found: str, advice: str) -> None:
    refusal = refuse(OLE + stream.encode("utf-16-le"), name)
    assert found in refusal.message and advice in refusal.hint


@pytest.mark.parametrize(
    ("name", "advice"), [("a.mobi", "EPUB"), ("a.MP3", "transcript"), ("a.jpg", "OCR"), ("a.zip", "Unpack")]
)
def test_formats_that_must_be_converted_first(name: str, advice: str) -> None:
    assert advice in refuse(b"anything", name).hint


def test_open_tables_that_repeat_without_end() -> None:
    row = '<table:table-row table:number-rows-repeated="{}"><table:table-cell table:number-columns-repeated="{}"><text:p>x</text:p></table:table-cell></table:table-row>'  # noqa: E501
    body = f"<table:table>{row.format(10**6, 10**9)}</table:table>"
    started = time.process_time()
    assert "more than 1,000,000 cells" in refuse(make_open("spreadsheet", body), "a.ods").message
    assert "found a damaged one" in refuse(make_open("spreadsheet", body.replace("1000000", "many")), "a.ods").message
    assert time.process_time() - started < 20


def test_names_that_lead_out_of_a_package_are_only_names() -> None:
    content = rezip(SOUND[".odt"], {"../../escaped.xml": "<a/>", "/absolute.xml": "<a/>", "C:\\drive.xml": "<a/>"})
    assert read_document(content, "a.odt") == read_document(SOUND[".odt"], "a.odt")


@pytest.mark.parametrize("extension", [".xml", ".epub"])
def test_plain_xml_and_chapters_may_not_define_entities_either(extension: str) -> None:
    content = f"<!DOCTYPE x [{LAUGHS}]><x>&a9;</x>".encode()
    content = rezip(SOUND[".epub"], {"OEBPS/a.xhtml": content}) if extension == ".epub" else content
    assert "XML entities" in refuse(content, f"a{extension}").message
