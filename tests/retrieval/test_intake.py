"""Archives among the files that are added: each file in them is a document of its own."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import Page
from crag_core.retrieval.upload import each_file
from tests.retrieval.fakes import WordEmbedder


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def ingest(folder: Path, *files: tuple[str, bytes | Path]) -> dict[str, str]:
    store = PassageStore(folder, WordEmbedder())
    return {one.name: str(one.outcome) for one in store.ingest(files)}


def test_files_of_an_archive_are_documents_below_its_name_and_a_bad_one_stops_nobody(tmp_path: Path) -> None:
    archive = zipped({"readme.md": b"One.", "notes/deep.txt": b"Two.", "x.png": b"\x89PNG", "__MACOSX/a.txt": b"J"})
    (tmp_path / "there.zip").write_bytes(zipped({"readme.md": b"Three."}))
    given = ("first.zip", archive), ("bad.zip", b"no archive"), ("there.zip", tmp_path / "there.zip")
    assert ingest(tmp_path / "index", *given, ("gone.zip", tmp_path / "gone.zip"), ("alone.txt", b"Four.")) == {
        **dict.fromkeys(("first/readme.md", "first/notes/deep.txt", "there/readme.md", "alone.txt"), "indexed"),
        **dict.fromkeys(("first/x.png", "bad.zip", "gone.zip"), "refused"),
    }
    again = ingest(tmp_path / "index", ("first.zip", zipped({"readme.md": b"One, again."})))
    assert again == {"first/readme.md": "replaced the older version"}


def test_a_folder_on_the_disk_and_one_from_a_browser_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("a.md", "One."), ("sub/a.md", "Two."), (".hidden", "x"), ("sub/~$b.docx", "lock")):
        (tmp_path / name).write_text(text)
    assert [name for name, _ in each_file([(tmp_path.name, tmp_path)])] == ["a.md", "sub/a.md"]
    sent = [(f"top/{name}", b"x") for name in ("a.md", "sub/a.md", ".hidden", "sub/~$b.docx")]
    assert [name for name, _ in each_file(sent)] == ["top/a.md", "top/sub/a.md"]
    assert [name for name, _ in each_file([(".env.md", b"x")])] == [".env.md"], "chosen by hand it is meant"


def test_what_a_document_lacks_is_told_when_it_is_added_and_stays_in_the_list(tmp_path: Path) -> None:
    pages = (Page("Seen.", 1), Page("", 2, "no text"))
    store = PassageStore(tmp_path, WordEmbedder(), lambda content, name, cut, cancel: cut_document(pages, name, cut))
    (done,) = store.ingest([("a.pdf", b"any")])
    assert (done.outcome, done.left_out) == ("indexed", "Left out: page 2: no text.")
    assert [row.message for row in store.listing()] == [done.left_out]
