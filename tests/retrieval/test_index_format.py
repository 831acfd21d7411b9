"""An index tells by which format it was made: an earlier one is opened, a later one refused before it is misread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.documents import INDEX_FORMAT, IndexVersion, Recipe
from crag_core.base.errors import StoreUnavailable
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose

USES: dict[str, Callable[[PassageStore], Any]] = {
    "documents": lambda store: store.documents(),
    "listing": lambda store: store.listing(),
    "search": lambda store: store.search_dense([0.1] * 64, 3),
    "words": lambda store: store.search_keyword("ropes", 3),
    "index_version": lambda store: store.index_version,
    "ingest": lambda store: store.ingest([("more.txt", write_prose("gulls"))]),
    "delete": lambda store: store.delete_all(["0" * 32]),
    "rebuild": lambda store: store.rebuild(Recipe("words-64", 60, 0)),
    "finish": lambda store: store.finish_interrupted(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PassageStore(tmp_path / "index", WordEmbedder()).ingest([("guide.txt", write_prose("ropes"))])
    return tmp_path / "index"


def note_format(folder: Path, found: int) -> None:
    backend = PassageStore(folder, WordEmbedder())._index_writer.backend
    backend.index_versions.put([replace(row, format=found) for row in backend.index_versions.rows()])


def test_a_new_index_has_the_format_of_now(folder: Path) -> None:
    store = PassageStore(folder, WordEmbedder())
    assert {row.format for row in store._index_writer.backend.index_versions.rows()} == {INDEX_FORMAT}
    store.rebuild(Recipe("words-64", 60, 0))
    assert {row.format for row in store._index_writer.backend.index_versions.rows()} == {INDEX_FORMAT}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_index_of_a_later_program_is_refused_and_stays_as_it_is(use: Callable[[Any], Any], folder: Path) -> None:
    note_format(folder, INDEX_FORMAT + 1)
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.lance") if path.is_file()}
    with pytest.raises(StoreUnavailable) as refused:
        use(PassageStore(folder, WordEmbedder()))
    assert "was made by a later version of this program: it has format 3, expected at most 2" in refused.value.message
    assert refused.value.hint == "Start that version, or set CRAG_HOME or CRAG_STORE to another place."
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.lance") if path.is_file()} == files


def test_an_index_whose_generations_tell_no_format_is_of_the_first(folder: Path) -> None:
    """As programs before this wrote them."""
    import lancedb

    lancedb.connect(folder).open_table("generations").drop_columns(["format"])
    store = PassageStore(folder, WordEmbedder())
    assert store.index_version.format == IndexVersion().format == 1 and len(store.documents()) == 1
    store.ingest([("more.txt", write_prose("gulls"))])
    store.rebuild(Recipe("words-64", 60, 0))
    assert [one.name for one in store.documents()] == ["guide.txt", "more.txt"]
