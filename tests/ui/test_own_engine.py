"""The pages over an engine of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.conftest import Start, ask, shown
from ui.session.startup import shared_workbench, warm_up

MODULE = """
import threading

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore

class MySearch(BaseRetriever):
    def _retrieve(self, query_bundle):
        node = TextNode(id_="1", text="The ferry to Vennick sails at nine.", metadata={"file_name": "ferry.pdf"})
        return [NodeWithScore(node=node, score=0.5)]

class MyVectors(SimpleVectorStore):
    stores_text: bool = True

def retriever():
    return MySearch()

released = threading.Event()

class Slow(MySearch):
    def _retrieve(self, query_bundle):
        released.wait(20)
        return super()._retrieve(query_bundle)

def slow():
    return Slow()

def away():
    raise ConnectionError("no route to postgresql://crag:s3cret@db/rag")

def vectors():
    return MyVectors()
"""


@pytest.fixture(autouse=True)
def my_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_pages.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_pages", None)


def test_a_question_is_asked_of_it_and_documents_says_where_they_are(start: Start, tmp_path: Path) -> None:
    app = start(CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:retriever")
    assert "The sample documents are not in your own engine" in shown(app)
    assert not app.multiselect, "no document is there to be pinned"
    ask(app, "When does the ferry to Vennick sail?")
    assert not app.exception and "ferry.pdf" in shown(app)
    app.run()
    assert "**Store** MySearch of CRAG_RETRIEVER (my_pages:retriever), read only" in shown(app)
    assert "**Embedding** that of your own engine" in shown(app)
    app.switch_page("pages/documents.py")
    app.run()
    app.run()
    assert not app.exception and not app.file_uploader
    assert "Questions are asked of **MySearch**, which `my_pages:retriever` returns" in shown(app)


@pytest.mark.parametrize("page", ["tune", "compare", "logs", "history"])
def test_every_page_opens(page: str, start: Start, tmp_path: Path) -> None:
    app = start(f"pages/{page}.py", CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:retriever")
    assert not app.exception and not app.error


def test_an_engine_that_is_away_is_named(start: Start, tmp_path: Path) -> None:
    app = ask(start(CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:away"), "When does the ferry sail?")
    app.run()
    problem = "CRAG_RETRIEVER (my_pages:away): the function failed: ConnectionError: no route to …@db/rag."
    assert not app.exception and f"**Store** {problem}" in shown(app) and shown(app).count(problem) > 1


def test_documents_and_sidebar_name_a_vector_store(start: Start, tmp_path: Path) -> None:
    app = start("pages/documents.py", CRAG_HOME=str(tmp_path / "home"), CRAG_VECTOR_STORE="my_pages:vectors")
    warm_up().wait()
    shared_workbench().store.ingest([("ferry.md", b"The ferry to Vennick sails at nine.")])
    app.run()
    assert not app.exception and app.file_uploader
    assert "Search: by `my_pages:vectors` (`CRAG_VECTOR_STORE`)." in shown(app)
    assert "**Store** 1 chunk, vectors in CRAG_VECTOR_STORE (my_pages:vectors)" in shown(app)
