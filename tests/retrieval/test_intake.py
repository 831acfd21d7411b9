"""Files and folders that are added, and what is said of them."""

from __future__ import annotations

from pathlib import Path

from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import Page
from crag_core.retrieval.upload import each_file
from tests.retrieval.fakes import WordEmbedder


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
