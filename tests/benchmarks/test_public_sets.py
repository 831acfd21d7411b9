"""Evaluation sets as labelled questions: what their labels are taken for, and which documents answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.public_sets import EvaluationSet, read_set
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion

CORRECT, _, INCORRECT, UNANSWERABLE = Expected
Rows = list[dict[str, Any]]
Grades = list[tuple[str, str, int]]


def read(folder: Path, queries: Rows, corpus: Rows | None = None, grades: Grades | None = None) -> EvaluationSet:
    for name, rows in (("queries", queries), ("corpus", corpus or [])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    lines = ["query_id\tdoc_id\tgrade", *(f"{query}\t{doc}\t{grade}" for query, doc, grade in grades or [])]
    (folder / "qrels.tsv").write_text("\n".join(lines), "utf-8")
    return read_set(folder)


def ask(id_: str = "q1", query: str = "Where?", **fields: Any) -> dict[str, Any]:
    return {"query_id": id_, "query": query} | fields


def document(id_: str, text: str = "Text.", title: str = "") -> dict[str, Any]:
    return {"doc_id": id_, "title": title, "text": text}


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
        ({"expected_mode": "disputed", "answerable": None}, (), None),
        ({"answerable": None, "answerability": "PARTIAL"}, (1,), None),
        ({"answerable": None}, (1,), None),
        ({"query": " ", "answerable": True}, (), None),
    ],
)
def test_what_labels_are_taken_for_and_what_is_left_out(
    tmp_path: Path, fields: dict[str, Any], grades: tuple[int, ...], expected: Expected | None
) -> None:
    judged = [("q1", f"d{place}", grade) for place, grade in enumerate(grades)]
    wanted = (LabelledQuestion("Where?", expected, note="q1"),) if expected else ()
    assert read(tmp_path, [ask(**fields)], grades=judged).labelled.questions == wanted


def test_repeated_questions_come_once_and_contradictions_not_at_all(tmp_path: Path) -> None:
    queries = [
        ask("q1", answerable=True, answers=["here"]),
        ask("q2", " Where?", answerable=True, answers=[" there", ""]),
        ask("q3", "Who?", answerable=True),
        ask("q4", "Who?", answerable=False),
    ]
    wanted = (LabelledQuestion("Where?", CORRECT, ("here", "there"), note="q1"),)
    assert read(tmp_path, queries).labelled.questions == wanted


def test_documents_are_markdown_with_their_title_under_safe_names_of_their_own(tmp_path: Path) -> None:
    corpus = [
        document("a#1", "One.\nTwo.", " The\ntitle "),
        document("A_1", " Bare. "),
        document("../x"),
        document("e", " "),
    ]
    names, texts = zip(
        *read(tmp_path, [], [*corpus, document("e", " "), document("a#1", "Other.")]).documents, strict=True
    )
    assert texts == ("# The title\n\nOne.\nTwo.\n", "Bare.\n", "Text.\n")
    assert names[0] == "a_1.md" and len({name.casefold() for name in names}) == 3 and "/" not in "".join(names)


def test_a_question_has_the_highest_grades_of_the_files_that_were_judged_for_it(tmp_path: Path) -> None:
    queries = [ask("q1", answerable=True), ask("q2", answerable=True), ask("q3", "Who?", answerable=True)]
    grades = [("q1", "b", 2), ("q1", "c", 0), ("q2", "b", 1), ("q2", "a", 1), ("q3", "gone", 2)]
    found = read(tmp_path, queries, [document(id_) for id_ in "abc"], grades)
    first, second = found.labelled.questions
    assert found.judged == {first.key: {"b.md": 2, "c.md": 0, "a.md": 1}, second.key: {}}
    assert (first.document, second.document) == ("b.md", "")


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
    found = read_set(shared_data / "dev" / "sets" / name)
    assert found.labelled.counts == counts
