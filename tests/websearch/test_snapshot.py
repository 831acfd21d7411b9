"""The offline web: what is found and in which order, what a long page shows, and every file that is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import load
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import BadRecord, Stopped
from crag_core.base.protocols import WebReply
from crag_core.base.text.words import words
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Origin
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators.policies import suit
from crag_core.pipeline.run import WebMode
from crag_core.trace.trace import Trace
from crag_core.websearch import snapshot
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
    [
        ("When does the ferry leave for Vennick?", [2, 3, 1, 5]),
        ("VENNICK", [2]),
        ("harbour", [4, 3]),
        ("birds", [1]),
        ("bird", []),
    ],
)
def test_pages_come_by_relevance_of_title_and_text(web: Web, query: str, pages: list[int]) -> None:
    assert found(web(*HARBOUR), query) == pages


def test_rare_word_counts_more_than_a_common_one(web: Web) -> None:
    pages = [page(number, "The ferry sails today.") for number in range(1, 9)]
    assert found(web(*pages, page(9, "The crane lifts today.")), "ferry crane", 1) == [9]


def test_no_more_than_the_limit_comes(web: Web) -> None:
    assert len(found(web(*(page(n, f"ferry {n}") for n in range(30))), "ferry", 7)) == 7


def test_equal_pages_come_in_the_order_of_the_file(web: Web) -> None:
    numbers = [3, 1, 4, 5, 9, 2, 6]
    assert found(web(*(page(n, "The ferry leaves.", "Ferry") for n in numbers)), "ferry", 5) == numbers[:5]


def test_page_with_the_address_of_an_earlier_one_is_no_page(web: Web) -> None:
    first, second = page(1, "The ferry leaves at nine."), page(1, "The crane lifts six tonnes.")
    searcher = web(first, second, page(2, "The crane is red."))
    assert found(searcher, "crane") == [2]
    assert [passage.text for passage in search(searcher, "ferry").passages] == [first["text"]]


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("渡し船の運賃", [1]),
        ("博物館", [2]),
        ("ПАРОМ", [3]),
        ("η άδεια", [4]),
        ("e-mail", [5]),
        ("don’t", [5]),
        ("mail", []),
    ],
)
def test_words_are_those_of_the_project_in_every_script(web: Web, query: str, pages: list[int]) -> None:
    searcher = web(
        page(1, "渡し船の運賃は大人五百円です。", "運賃"),
        page(2, "港の博物館は月曜日が休みです。"),
        page(3, "Паром отходит в девять."),
        page(4, "Η άδεια λήγει τον Μάρτιο."),
        page(5, "Send an e-mail. We don’t answer letters."),
    )
    assert found(searcher, query, 1) == pages


# --- the query ------------------------------------------------------------------------------------------------------

SYNTAX = [
    'ferry"',
    '"ferry',
    '""ferry""',
    "ferry*",
    "ferry:",
    "words:ferry",
    "(ferry",
    "ferry)",
    "ferry AND",
    "OR ferry",
    "NOT ferry",
    "NEAR(ferry crane, 2)",
    "^ferry",
    "+ferry -crane",
    "{ferry}",
    "ferry'; DROP TABLE pages; --",
    "ferry\x00crane",
    "ferry \ud800",
]


@pytest.mark.parametrize("query", SYNTAX, ids=ascii)
def test_nothing_in_a_query_is_syntax(web: Web, query: str) -> None:
    assert 2 in found(web(*HARBOUR), query)


def test_words_of_query_syntax_are_words(web: Web) -> None:
    searcher = web(page(1, "Tea or coffee."), page(2, "Near the pier."), page(3, "Neither."))
    assert (found(searcher, "OR"), found(searcher, "NEAR")) == ([1], [2])


def test_very_long_query_is_searched(web: Web) -> None:
    assert found(web(*HARBOUR), " ".join(f"word{n}" for n in range(5000)) + " Vennick") == [2]


@pytest.mark.parametrize("query", ["", "  ", "?!", '"*"', "_"])
def test_query_without_a_word_finds_nothing(web: Web, query: str) -> None:
    reply = search(web(*HARBOUR), query)
    assert (reply.outcome, reply.passages) == (WebOutcome.EMPTY, ())


def test_nothing_found_is_empty_and_names_the_query(web: Web) -> None:
    reply = search(web(*HARBOUR), "alan turing")
    assert (reply.outcome, reply.passages) == (WebOutcome.EMPTY, ())
    assert reply.message == "Offline web found nothing for “alan turing”."


# --- the same again -------------------------------------------------------------------------------------------------

QUERIES = ["the ferry", "harbour night", "cliffs coast gulls", "a yacht", "when does the bus leave"]


def test_same_query_finds_the_same_in_another_process(web: Web, tmp_path: Path) -> None:
    searcher = web(*HARBOUR, page(6, story("The ferry to Vennick leaves at nine.", at=40)))
    here = [[passage.text for passage in search(searcher, query).passages] for query in QUERIES]
    program = (
        "import json, sys, threading; from crag_core.websearch.snapshot import Snapshot; "
        "web = Snapshot(sys.argv[1]); never = threading.Event(); "
        "print(json.dumps([[p.text for p in web.search(q, 5, never).passages] for q in sys.argv[2:]]))"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", program, str(tmp_path), *QUERIES]
    there = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(there.stdout) == here


def test_many_threads_get_their_own_answers(web: Web) -> None:
    searcher = web(*(page(n, f"The ferry {n} leaves berth{n}.") for n in range(50)))
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda n: found(searcher, f"berth{n % 50}"), range(400)))
    assert numbers == [[n % 50] for n in range(400)]


def test_fingerprint_is_that_of_the_bytes(web: Web, tmp_path: Path) -> None:
    first, again, other = web(*HARBOUR), web(*HARBOUR), web(*HARBOUR[1:])
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert other.fingerprint == hashlib.sha256((tmp_path / "web.jsonl").read_bytes()).hexdigest()[:16]


# --- what a result shows --------------------------------------------------------------------------------------------

FILLER = "Number {n} of the quay walls was painted white in the spring of that year."
ANSWER = "The night boat to Vennick costs 31 pounds."


def story(sentence: str, at: int, sentences: int = 100) -> str:
    """A long page about other things, with one sentence of interest."""
    return " ".join(sentence if n == at else FILLER.format(n=n) for n in range(sentences))


@pytest.mark.parametrize("at", [0, 1, 30, 50, 98, 99])
def test_long_page_shows_whole_sentences_around_the_answering_one(web: Web, at: int) -> None:
    text = story(ANSWER, at)
    (passage,) = search(web(page(1, text)), "What does the night boat cost, of the quay to Vennick?").passages
    assert ANSWER in passage.text and passage.text in text
    assert 250 <= len(words(passage.text)) <= 300
    assert passage.text[0] in "NT" and passage.text.endswith(".")


def test_sentence_with_all_the_words_is_shown_before_many_that_hold_one(web: Web) -> None:
    boats = " ".join(f"Boat {n} lies in the yard of the builder for repairs of hull and mast." for n in range(25))
    (passage,) = search(web(page(1, f"{boats} {story(ANSWER, 60)}")), "night boat vennick").passages
    assert ANSWER in passage.text


def test_answer_has_text_on_both_sides(web: Web) -> None:
    (passage,) = search(web(page(1, story(ANSWER, 50))), "night boat vennick").passages
    before, _, after = passage.text.partition(ANSWER)
    assert len(words(before)) > 100 and len(words(after)) > 100


@pytest.mark.parametrize("sentences", [1, 18])
def test_page_of_300_words_is_shown_whole(web: Web, sentences: int) -> None:
    text = story(ANSWER, 0, sentences)
    assert [passage.text for passage in search(web(page(1, text)), "vennick").passages] == [text]


def test_long_page_found_by_its_title_shows_its_beginning(web: Web) -> None:
    (passage,) = search(web(page(1, story(ANSWER, 0), "Prices")), "prices").passages
    assert passage.text.startswith(ANSWER) and len(words(passage.text)) <= 300


def test_long_page_without_spaces_shows_the_answering_sentence(web: Web) -> None:
    filler = "港の壁は毎年春に白く塗られ、職人たちは朝早くから働き始めます。"
    text = filler * 40 + "夜の渡し船の運賃は三十一ポンドです。" + filler * 40
    (passage,) = search(web(page(1, text)), "渡し船の運賃").passages
    assert "夜の渡し船の運賃は三十一ポンドです。" in passage.text
    assert len(passage.text) < 400 and passage.text.endswith("。")


def test_text_without_a_sentence_end_is_cut(web: Web) -> None:
    (passage,) = search(web(page(1, "ferry " * 2000)), "ferry").passages
    assert 0 < len(words(passage.text)) <= 300


def test_page_without_text_or_without_title_is_found_by_the_other(web: Web) -> None:
    searcher = web({**page(1, ""), "title": "Ferry times"}, {**page(2, "The crane lifts."), "title": ""}, page(3, "x"))
    (titled,), (told,) = search(searcher, "ferry").passages, search(searcher, "crane").passages
    assert (titled.text, told.source) == ("Ferry times", "example.org")


# --- the file -------------------------------------------------------------------------------------------------------

GOOD = json.dumps(page(1, "The ferry leaves at nine.")).encode()
WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"The ferry leaves at nine.", "expected a JSON object, found no valid JSON"),
    "cut short": (GOOD[:30], "expected a JSON object, found no valid JSON"),
    "two pages": (GOOD + GOOD, "expected a JSON object, found no valid JSON"),
    "deep": (b"[" * 100_000, "expected a JSON object, found no valid JSON"),
    "a number too long": (b'{"url": ' + b"9" * 5000 + b"}", "expected a JSON object, found no valid JSON"),
    "no UTF-8": (GOOD.replace(b"nine", b"n\xe9uf"), "expected UTF-8, found other bytes"),
    "a list": (b"[1, 2]", "expected a JSON object, found list"),
    "a text": (b'"https://example.org/"', "expected a JSON object, found str"),
    "null": (b"null", "expected a JSON object, found nothing"),
    "no address": (b'{"title": "T", "text": "x"}', "expected a text as 'url', found nothing"),
    "address of another kind": (GOOD.replace(b'"https://example.org/1"', b"7"), "expected a text as 'url', found int"),
    "a script": (
        GOOD.replace(b"https://example.org/1", b"javascript:alert(1)"),
        "expected an address with http or https as 'url', found 'javascript:alert(1)'",
    ),
    "no host": (
        GOOD.replace(b"example.org", b""),
        "expected an address with http or https as 'url', found 'https:///1'",
    ),
    "no title": (GOOD.replace(b"title", b"name"), "expected a text as 'title', found nothing"),
    "no text": (GOOD.replace(b'"text"', b'"content"'), "expected a text as 'text', found nothing"),
    "text of another kind": (GOOD.replace(b'"Page 1"', b"[]"), "expected a text as 'title', found list"),
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


def test_file_may_be_named_itself_and_may_come_from_any_editor(tmp_path: Path) -> None:
    lines = [json.dumps(one) for one in HARBOUR]
    file = tmp_path / "pages.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, "", ""]).encode())
    assert found(Snapshot(str(file)), "vennick") == [2]


def test_half_characters_do_not_come_through(web: Web) -> None:
    line = b'{"url": "https://example.org/\\ud800", "title": "T\\udfff", "text": "The ferry \\ud800."}'
    (passage,) = search(web(line), "ferry").passages
    assert (passage.url, passage.source, passage.text) == ("https://example.org/?", "T?", "The ferry ?.")


def test_file_that_changes_before_the_first_search_is_a_failure(web: Web, tmp_path: Path) -> None:
    searcher = web(*HARBOUR)
    for content in (GOOD, b"oops"):
        (tmp_path / "web.jsonl").write_bytes(content)
        assert search(searcher, "ferry").outcome is WebOutcome.FAILED
    (tmp_path / "web.jsonl").unlink()
    reply = search(searcher, "ferry")
    assert reply.outcome is WebOutcome.FAILED and "Offline web could not be searched (" in reply.message
    web(*HARBOUR)
    assert found(searcher, "vennick") == [2], "it is there again"
    (tmp_path / "web.jsonl").unlink()
    assert found(searcher, "vennick") == [2], "the index holds the pages"


# --- stopping -------------------------------------------------------------------------------------------------------


def test_set_flag_stops_before_anything_is_read(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher, cancel = web(*HARBOUR), threading.Event()
    monkeypatch.setattr(snapshot, "_index_of", lambda *_: pytest.fail("it was read"))
    cancel.set()
    with pytest.raises(Stopped):
        searcher.search("ferry", 5, cancel)


def test_who_stops_does_not_wait_for_the_index(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    searcher, cancel, leave = web(*HARBOUR), threading.Event(), threading.Event()
    made = snapshot._index_of

    def slow(*args: Any) -> Any:
        cancel.set()
        assert leave.wait(10.0)
        return made(*args)

    monkeypatch.setattr(snapshot, "_index_of", slow)
    began = time.monotonic()
    with pytest.raises(Stopped):
        searcher.search("ferry", 5, cancel)
    assert time.monotonic() - began < 5.0
    leave.set()
    assert found(searcher, "vennick") == [2], "the next search has the index"


# --- in a run -------------------------------------------------------------------------------------------------------


def test_provider_without_a_snapshot_is_refused() -> None:
    with pytest.raises(BadRecord, match="CRAG_WEB_PROVIDERS names snapshot, and CRAG_WEB_SNAPSHOT is not set"):
        load({"CRAG_WEB_PROVIDERS": "snapshot"})


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


def test_snapshot_of_other_settings_is_another_search(web: Web, tmp_path: Path) -> None:
    web(*HARBOUR)
    (tmp_path / "other.jsonl").write_bytes(GOOD)
    places = (tmp_path, tmp_path / "other.jsonl")
    environments = [{"CRAG_WEB_PROVIDERS": "snapshot", "CRAG_WEB_SNAPSHOT": str(place)} for place in places]
    one = Workbench(load({"CRAG_HOME": str(tmp_path / "home"), **environments[0]}))
    other = one.using(load({"CRAG_HOME": str(tmp_path / "home"), **environments[1]}))
    assert one.searcher is not other.searcher
    with pytest.raises(BadRecord, match="nowhere"):
        _ = one.using(
            load({"CRAG_HOME": str(tmp_path / "home"), **environments[0], "CRAG_WEB_SNAPSHOT": "nowhere"})
        ).searcher
