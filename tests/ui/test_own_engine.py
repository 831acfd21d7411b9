"""The pages over an engine of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.conftest import ask, shown

Start = Callable[..., AppTest]
MODULE = """
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

class MySearch(BaseRetriever):
    def _retrieve(self, query_bundle):
        node = TextNode(id_="1", text="The ferry to Vennick sails at nine.", metadata={"file_name": "ferry.pdf"})
        return [NodeWithScore(node=node, score=0.5)]

def retriever():
    return MySearch()
"""


@pytest.fixture(autouse=True)
def my_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_pages.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_pages", None)


def test_a_question_is_asked_of_it_and_documents_says_where_they_are(start: Start, tmp_path: Path) -> None:
    app = start(CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:retriever")
    ask(app, "When does the ferry to Vennick sail?")
    assert not app.exception and "ferry.pdf" in shown(app)
    app.switch_page("pages/documents.py")
    app.run()
    app.run()
    assert not app.exception and not app.file_uploader
    assert "Questions are asked of **MySearch**, which `my_pages:retriever` returns" in shown(app)


@pytest.mark.parametrize("page", ["tune", "compare", "logs", "history"])
def test_every_page_opens(page: str, start: Start, tmp_path: Path) -> None:
    app = start(f"pages/{page}.py", CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:retriever")
    assert not app.exception and not app.error


def test_an_engine_that_cannot_be_made_is_named(start: Start, tmp_path: Path) -> None:
    app = start("pages/documents.py", CRAG_HOME=str(tmp_path / "home"), CRAG_RETRIEVER="my_pages:other")
    assert not app.exception
    assert "CRAG_RETRIEVER (my_pages:other): cannot be imported: AttributeError: module 'my_pages'" in shown(app)
