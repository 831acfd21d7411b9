"""The offline web: what is found and in which order, what a long page shows, and every file that is refused."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import load
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import BadRecord
from crag_core.base.protocols import WebReply
from crag_core.base.text.words import words
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import suit
from crag_core.pipeline.run import WebMode
from crag_core.trace.trace import Trace
from crag_core.websearch.snapshot import Snapshot
from tests.word_embedder import WordEmbedder

Page = dict[str, Any]


def page(number: int, text: str, title: str = "") -> Page:
    return {"url": f"https://example.org/{number}", "title": title or f"Page {number}", "text": text}


HARBOUR = [
    page(1, "Gulls and terns nest on the cliffs.", "Birds"),
    page(2, "The ferry to Vennick leaves at nine. A bus meets the ferry.", "Ferry times"),
    page(3, "The ferry leaves the harbour every day of the week."),
    page(4, "A yacht pays 14 pounds a night.", "Harbour dues"),
    page(5, "Cliffs of chalk line the coast."),
]


@pytest.fixture
def web(tmp_path: Path) -> Callable[..., Snapshot]:
    """Makes an offline web of pages, or of lines as they are given."""

    def made(*lines: Page | bytes) -> Snapshot:
        written = [line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode() for line in lines]
        (tmp_path / "web.jsonl").write_bytes(b"\n".join(written))
        return Snapshot(str(tmp_path))

    return made


Web = Callable[..., Snapshot]


def search(searcher: Snapshot, query: str, limit: int = 5) -> WebReply:
    return searcher.search(query, limit, threading.Event())


def found(searcher: Snapshot, query: str, limit: int = 5) -> list[int]:
    """The numbers of the pages, best first."""
    return [int(passage.url.rpartition("/")[2]) for passage in search(searcher, query, limit).passages]


# --- what is found --------------------------------------------------------------------------------------------------


def test_results_become_web_passages(web: Web) -> None:
    reply = search(web(*HARBOUR), "ferry vennick")
    assert (reply.outcome, reply.provider, reply.message) == (WebOutcome.USED, "Offline web", "")
    first = reply.passages[0]
    assert (first.source, first.url, first.text) == ("Ferry times", "https://example.org/2", HARBOUR[1]["text"])
    assert (first.origin, first.found_by) == (Origin.WEB, ("web",))
    assert first.id == first.document_id


@pytest.mark.parametrize(
    ("query", "pages"),
    [("When does the ferry leave for Vennick?", [2, 3, 1, 5]), ("harbour", [4, 3]), ("birds", [1]), ("bird", [])],
)
def test_pages_come_by_relevance_of_title_and_text(web: Web, query: str, pages: list[int]) -> None:
    assert found(web(*HARBOUR), query) == pages


@pytest.mark.parametrize(
    ("query", "pages"), [("渡し船の運賃", [1]), ("博物館", [2]), ("η άδεια", [4]), ("e-mail", [5]), ("mail", [])]
)
def test_words_are_those_of_the_project_in_every_script(web: Web, query: str, pages: list[int]) -> None:
    searcher = web(
        page(1, "渡し船の運賃は大人五百円です。", "運賃"),
        page(2, "港の博物館は月曜日が休みです。"),
        page(4, "Η άδεια λήγει τον Μάρτιο."),
        page(5, "Send an e-mail. We don’t answer letters."),
    )
    assert found(searcher, query, 1) == pages


# --- the query ------------------------------------------------------------------------------------------------------

SYNTAX = [
    'ferry"', '"ferry', '""ferry""', "ferry*", "ferry:", "words:ferry", "(ferry", "ferry)", "ferry AND", "OR ferry",
    "NOT ferry", "NEAR(ferry crane, 2)", "^ferry", "+ferry -crane", "{ferry}", "ferry'; DROP TABLE pages; --",
    "ferry\x00crane", "ferry \ud800",
]  # fmt: skip


@pytest.mark.parametrize("query", SYNTAX, ids=ascii)
def test_nothing_in_a_query_is_syntax(web: Web, query: str) -> None:
    assert 2 in found(web(*HARBOUR), query)


# --- the same again -------------------------------------------------------------------------------------------------


def test_fingerprint_is_that_of_the_bytes(web: Web, tmp_path: Path) -> None:
    first, again, other = web(*HARBOUR), web(*HARBOUR), web(*HARBOUR[1:])
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert other.fingerprint == hashlib.sha256((tmp_path / "web.jsonl").read_bytes()).hexdigest()[:16]


# --- what a result shows --------------------------------------------------------------------------------------------

FILLER = "Number {n} of the quay walls was painted white in the spring of that year."
ANSWER = "The night boat to Vennick costs 31 pounds."


def story(sentence: str, at: int) -> str:
    """A long page about other things, with one sentence of interest."""
    return " ".join(sentence if n == at else FILLER.format(n=n) for n in range(100))


@pytest.mark.parametrize("at", [0, 1, 30, 50, 98, 99])
def test_long_page_shows_whole_sentences_around_the_answering_one(web: Web, at: int) -> None:
    text = story(ANSWER, at)
    (passage,) = search(web(page(1, text)), "What does the night boat cost, of the quay to Vennick?").passages
    assert ANSWER in passage.text and passage.text in text
    assert 250 <= len(words(passage.text)) <= 300
    assert passage.text[0] in "NT" and passage.text.endswith(".")


# --- the file -------------------------------------------------------------------------------------------------------

GOOD = json.dumps(page(1, "The ferry leaves at nine.")).encode()
WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"The ferry leaves at nine.", "expected a JSON object, found no valid JSON"),
    "cut short": (GOOD[:30], "expected a JSON object, found no valid JSON"),
    "deep": (b"[" * 100_000, "expected a JSON object, found no valid JSON"),
    "a number too long": (b'{"url": ' + b"9" * 5000 + b"}", "expected a JSON object, found no valid JSON"),
    "no UTF-8": (GOOD.replace(b"nine", b"n\xe9uf"), "expected UTF-8, found other bytes"),
    "a list": (b"[1, 2]", "expected a JSON object, found list"),
    "no address": (b'{"title": "T", "text": "x"}', "expected a text as 'url', found nothing"),
    "a script": (
        GOOD.replace(b"https://example.org/1", b"javascript:alert(1)"),
        "expected an address with http or https as 'url', found 'javascript:alert(1)'",
    ),
    "no text": (GOOD.replace(b'"text"', b'"content"'), "expected a text as 'text', found nothing"),
}


@pytest.mark.parametrize(("line", "told"), WRONG.values(), ids=WRONG)
def test_line_that_is_no_page_is_refused_with_file_and_number(web: Web, tmp_path: Path, line: bytes, told: str) -> None:
    with pytest.raises(BadRecord) as refused:
        web(page(1, "First."), b"", line, page(2, "Last."))
    assert refused.value.message == f"{tmp_path / 'web.jsonl'}, line 3: {told}."
    assert refused.value.hint == "Correct the line, or remove it."


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \r\n"])
def test_file_without_a_page_is_refused(web: Web, content: bytes) -> None:
    with pytest.raises(BadRecord, match=r"web\.jsonl: expected one page a line, found none\. Put pages into it\."):
        web(content)


@pytest.mark.parametrize("place", ["", "nowhere", "nowhere/web.jsonl", "~nobody-of-that-name/web", "a\x00b"])
def test_missing_file_is_refused_and_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BadRecord, match=r"expected a folder with web\.jsonl, or such a file, found none at "
    ) as refused:
        Snapshot(place)
    assert refused.value.hint == "Set CRAG_WEB_SNAPSHOT to where it is."


# --- in a run -------------------------------------------------------------------------------------------------------


def run(home: Path, place: Path, question: str) -> Trace:
    environment = {"CRAG_HOME": str(home), "CRAG_WEB_PROVIDERS": "snapshot", "CRAG_WEB_SNAPSHOT": str(place)}
    workbench = Workbench(load(environment))
    workbench.store.ingest([("crane.txt", b"The crane lifts at most 6 tonnes.")])
    policy = suit(workbench.policies["paper"], "embedding").with_thresholds(1.0, 1.0)
    return workbench.engine(Choice(policy, "embedding", web=WebMode.AUTO)).run(question)


def test_run_answers_from_the_offline_web(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    web(*HARBOUR, page(6, story(ANSWER, 60), "Night boats"))
    first, again = (run(tmp_path / name, tmp_path, "What does the night boat to Vennick cost?") for name in ("a", "b"))
    assert first.failure is None and first.decision is not None and first.decision.action is Action.INCORRECT
    assert first.web is not None and (first.web.outcome, first.web.provider) == (WebOutcome.USED, "Offline web")
    assert "Night boats" in {one.source for one in first.web.passages} and first.web.message == ""
    assert first.answer is not None and first.answer.state is AnswerState.COMPLETE
    assert ANSWER in first.answer.text
    assert again.web is not None and again.answer is not None
    assert (again.web.passages, again.answer.text) == (first.web.passages, first.answer.text)
