"""Reading development sets: which passages a question gets, and how both are labelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nearest import RememberingEmbedder
from benchmarks.readers import READERS, TOP
from benchmarks.sets import Source, Task, open_source
from tests.word_embedder import WordEmbedder

FERRY = "The ferry to Vennick leaves at nine. It carries forty cars."
HARBOUR = "The harbour of Vennick has a café. Its owner sings on Sundays."
BREAD = "Knead the dough for ten minutes. Let it rest for an hour."
CORPUS = [{"doc_id": name, "title": name, "text": text} for name, text in (("f", FERRY), ("h", HARBOUR), ("b", BREAD))]


def ask(number: int, query: str, **fields: Any) -> dict[str, Any]:
    return {"query_id": f"q{number}", "query": query, "answers": [], "answerable": True} | fields


def write_set(folder: Path, queries: list[dict[str, Any]], **files: Any) -> Path:
    folder.mkdir(parents=True)
    for name, rows in {"corpus": CORPUS, "queries": queries, **files}.items():
        if name != "qrels":
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text(text, "utf-8")
    judged = "".join(f"{question}\t{document}\t{grade}\n" for question, document, grade in files.get("qrels", ()))
    (folder / "qrels.tsv").write_text(f"query_id\tdoc_id\tgrade\n{judged}", "utf-8")
    return folder


def read(name: str, folder: Path, limit: int = 100) -> list[Task]:
    return READERS[name](Source(folder, limit, RememberingEmbedder(WordEmbedder())))


def texts(task: Task, place: int = 0) -> list[tuple[str, str]]:
    question = task.questions[place]
    return [(passage.text, label) for passage, label in zip(question.passages, question.labels, strict=True)]


def test_routes_bring_the_nearest_passages_of_the_whole_corpus_with_their_cosines(tmp_path: Path) -> None:
    corpus = [*CORPUS, *({"doc_id": f"d{n}", "title": "", "text": f"Text number {n}."} for n in range(9))]
    queries = [ask(1, "the ferry to vennick leaves at nine", route="correct"), ask(2, "dough", route="incorrect")]
    [task] = read("route_dev", write_set(tmp_path / "set", queries, corpus=corpus))
    first = task.questions[0]
    assert task.is_routing and [question.label for question in task.questions] == ["correct", "incorrect"]
    assert len(first.passages) == TOP and first.passages[0].text == FERRY
    cosines = [passage.score("cosine") for passage in first.passages]
    assert None not in cosines and cosines == sorted(cosines, key=lambda cosine: -(cosine or 0.0))


def test_squad_gives_the_paragraph_a_question_was_written_against_and_the_strips_of_answered_ones(
    tmp_path: Path,
) -> None:
    queries = [ask(1, "How many cars?", answers=["Forty cars"]), ask(2, "How many bikes?", answerable=False)]
    pairs, strips = read("squad2_dev", write_set(tmp_path / "set", queries, qrels=[("q1", "f", 2), ("q2", "f", 0)]))
    assert texts(pairs) == [(FERRY, "answered")] and texts(pairs, 1) == [(FERRY, "adversarial")]
    assert strips.is_strips and len(strips.questions) == 1
    assert texts(strips) == [(FERRY.split(". ")[0] + ".", ""), ("It carries forty cars.", "answer")]


def test_candidates_keep_their_labels_and_the_question_its_own(tmp_path: Path) -> None:
    brought = [{"query_id": "q1", "passages": [{"text": FERRY, "label": None}, {"text": BREAD, "label": 0}]}]
    queries = [ask(1, "When?", answerable=False), ask(2, "Nothing came for this one")]
    [task] = read("nomiracl_en_dev", write_set(tmp_path / "set", queries, candidates=brought))
    assert texts(task) == [(FERRY, "None"), (BREAD, "0")] and len(task.questions) == 1
    assert task.questions[0].label == "False" and task.comparisons[0].by_best


# --- the real sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READERS)
def test_every_shared_set_is_read(shared_data: Path, name: str) -> None:
    source = open_source(shared_data / "dev", name, 30, RememberingEmbedder(WordEmbedder()))
    assert source is not None
    for task in READERS[name](source):
        assert task.questions and (task.comparisons or task.is_strips or task.is_routing)
        for question in task.questions:
            assert len(question.passages) == len(question.labels) > 0
        labels = {label for question in task.questions for label in (question.label, *question.labels)}
        for told in task.comparisons:
            assert labels & {*told.positive, *told.negative}, told.title
        if task.is_strips:
            assert labels == {"answer", ""}
