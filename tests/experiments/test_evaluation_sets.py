"""Public evaluation sets as labelled questions: what their labels are taken for, and which documents answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.public_sets import EvaluationSet, read_set
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet

SHARED = Path(os.environ.get("CRAG_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
ABSENT = pytest.param(Path(), marks=pytest.mark.skip("skipped: shared data not found"))
FOLDERS = [pytest.param(folder, id=folder.name) for folder in sorted(SHARED.glob("dev/sets/*/"))] or [ABSENT]
CORRECT, _, INCORRECT, UNANSWERABLE = Expected


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def ask(id_: str = "q1", query: str = "Where?", **fields: Any) -> dict[str, Any]:
    return {"query_id": id_, "query": query} | fields


def document(id_: str, text: Any = "Text.", title: str = "") -> dict[str, Any]:
    return {"doc_id": id_, "title": title, "text": text}


def judged(*rows: tuple[str, str, int]) -> bytes:
    return ("query_id\tdoc_id\tgrade\n" + "".join(f"{query}\t{doc}\t{grade}\n" for query, doc, grade in rows)).encode()


@pytest.mark.parametrize(
    ("fields", "grades", "expected"),
    [
        ({"route": "correct", "answerable": False}, (), CORRECT),
        ({"route": "ambiguous_or_incorrect", "answerable": True}, (2,), UNANSWERABLE),
        ({"route": "incorrect"}, (), INCORRECT),
        ({"expected_mode": "trustworthy"}, (), CORRECT),
        ({"expected_mode": "abstain", "answerable": True}, (), UNANSWERABLE),
        ({"answerable": True}, (0, 1), CORRECT),
        ({"answerable": False}, (2,), UNANSWERABLE),
        ({}, (0, 2, 1), CORRECT),
        ({}, (0, 1), UNANSWERABLE),
        ({"expected_mode": "disputed", "answerable": None}, (), "expected_mode disputed"),
        ({"answerable": None, "answerability": "PARTIAL"}, (1,), "answerability PARTIAL"),
        ({"answerable": None}, (1,), "not said whether answerable"),
        ({"query": " ", "answerable": True}, (), "no question"),
    ],
)
def test_what_labels_are_taken_for_and_what_is_left_out(
    fields: dict[str, Any], grades: tuple[int, ...], expected: Expected | str
) -> None:
    qrels = judged(*(("q1", f"d{place}", grade) for place, grade in enumerate(grades)))
    found = read_set(lines(ask(**fields)), qrels=qrels)
    if isinstance(expected, Expected):
        assert found.questions == (LabelledQuestion("Where?", expected, note="q1"),) and not found.remarks
    else:
        assert not found.questions and found.remarks == (f"1 left out: {expected}.",)


def test_repeated_questions_come_once() -> None:
    found = read_set(
        lines(
            ask("q1", answerable=True, answers=["here"]),
            ask("q2", " Where?", answerable=True, answers=[" there", ""]),
            ask("q3", "Who?", answerable=True),
            ask("q4", "Who?", answerable=False),
        )
    )
    assert found.questions == (LabelledQuestion("Where?", CORRECT, ("here", "there"), note="q1"),)
    assert found.remarks == (
        "1 repeat a question with the same label; each is kept once.",
        "2 left out: the same question has different labels.",
    )


def test_later_turns_of_a_conversation_are_told() -> None:
    said = [{"role": "user", "text": "Hello"}]
    found = read_set(lines(ask(answerable=True, history=said), ask("q2", "Who?", answerable=True, history=[])))
    assert found.remarks == ("1 are a later turn of a conversation and are asked without what was said before.",)


# --- documents ------------------------------------------------------------------------------------------------------


def test_documents_are_markdown_with_their_title_and_those_left_out_are_told() -> None:
    corpus = lines(document("a", "One.\r\nTwo.", " The\ntitle "), document("b", " Bare. "))
    found = read_set(b"", corpus + lines(document("a", "Other."), document("c", " ")))
    assert found.documents == (("a.md", "# The title\n\nOne.\nTwo.\n"), ("b.md", "Bare.\n"))
    assert found.remarks == ("1 documents left out: id of another one.", "1 documents left out: no text.")


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (("a#1", "a_1", "a/1", "A_1"), ("a_1.md", "a_1-2.md", "a_1-3.md", "A_1-4.md")),
        (("../../etc/passwd", "..", "", "."), ("_.._etc_passwd.md", "document.md", "document-2.md", "document-3.md")),
        (("Zürich 東京", "x" * 300, "a\x00b\ud800"), ("Zürich_東京.md", f"{'x' * 100}.md", "ab_.md")),
    ],
)
def test_file_names_are_safe_and_each_is_its_own(ids: tuple[str, ...], names: tuple[str, ...]) -> None:
    corpus = "\n".join(json.dumps(document(id_)) for id_ in ids).encode()
    assert tuple(name for name, _ in read_set(b"", corpus).documents) == names


def test_a_question_has_the_highest_grades_of_the_files_that_were_judged_for_it() -> None:
    corpus = lines(*(document(id_) for id_ in ("a#1", "a_1", "c")))
    queries = lines(*(ask(id_, answerable=True) for id_ in ("q1", "q2")), ask("q3", "Who?", answerable=True))
    qrels = judged(("q1", "a_1", 2), ("q1", "c", 0), ("q2", "a_1", 1), ("q2", "a#1", 1), ("q3", "gone", 2))
    found = read_set(queries, corpus, qrels)
    keys = [question.key for question in found.questions]
    assert found.graded == {keys[0]: {"a_1-2.md": 2, "c.md": 0, "a_1.md": 1}, keys[1]: {}}
    assert [question.document for question in found.questions] == ["a_1-2.md", ""]


# --- files that are not what they should be -------------------------------------------------------------------------

BAD = {
    "not JSON": (
        b'{"query_id": "q"\n',
        b"",
        b"",
        "queries.jsonl, line 1: This is not valid JSON: Expecting ',' delimiter",
    ),
    "a list": (lines(ask(answerable=True)) + b"\n[]", b"", b"", "queries.jsonl, line 3: Expected an object"),
    "a number as text": (b"", lines(document("a", 7)), b"", "corpus.jsonl, line 1: expected text as 'text'."),
    "a new route": (lines(ask(route="web")), b"", b"", "queries.jsonl, line 1: expected a route, found 'web'."),
    "one text as answers": (lines(ask(answerable=True, answers="x")), b"", b"", "expected a list of texts as"),
    "two cells": (b"", b"", b"query_id\tdoc_id\tgrade\nq1\td1\n", "qrels.tsv, line 2: expected query_id"),
    "a grade that is none": (b"", b"", b"q1\td1\thigh\n", "qrels.tsv, line 1: expected query_id"),
}


@pytest.mark.parametrize(("queries", "corpus", "qrels", "message"), BAD.values(), ids=BAD)
def test_a_broken_file_is_refused_by_its_line(queries: bytes, corpus: bytes, qrels: bytes, message: str) -> None:
    with pytest.raises(BadRecord) as raised:
        read_set(queries, corpus, qrels)
    assert message in str(raised.value) and raised.value.hint


def test_line_separators_of_other_kinds_break_no_line() -> None:
    found = read_set(lines(ask(query="a\u2028b\x85c", answerable=True)))
    assert [question.question for question in found.questions] == ["a\u2028bc"]


# --- the shared sets ------------------------------------------------------------------------------------------------


def read_folder(folder: Path) -> EvaluationSet:
    files = (folder / name for name in ("queries.jsonl", "corpus.jsonl", "qrels.tsv"))
    return read_set(*(file.read_bytes() if file.exists() else b"" for file in files))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_shared_set_loads(folder: Path) -> None:
    found = read_folder(folder)
    counts = json.loads((folder / "meta.json").read_text("utf-8"))["counts"]
    assert len(found.documents) == counts["docs"] == len({name for name, _ in found.documents})
    queries = counts.get("queries", 0)
    left = sum(int(remark.split()[0].replace(",", "")) for remark in found.remarks if "conversation" not in remark)
    assert len(found.questions) + left == queries  # nothing is lost untold
    LabelledSet(folder.name, found.questions)
    names = {name for name, _ in found.documents} | {""}
    assert {question.document for question in found.questions} <= names
    assert list(found.graded) == [question.key for question in found.questions]
    assert {name for files in found.graded.values() for name in files} <= names


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("route_dev", {CORRECT: 672, INCORRECT: 424, UNANSWERABLE: 350}),
        ("fitz_gov_dev", {CORRECT: 790, UNANSWERABLE: 346}),
        ("squad2_dev", {CORRECT: 1207, UNANSWERABLE: 1295}),
        ("nomiracl_en_dev", {CORRECT: 134, UNANSWERABLE: 125}),
        ("medquad_dev", {CORRECT: 1069}),
    ],
)
def test_the_labels_of_shared_sets(shared_data: Path, name: str, counts: dict[Expected, int]) -> None:
    found = read_folder(shared_data / "dev" / "sets" / name)
    assert LabelledSet(name, found.questions).counts == counts
