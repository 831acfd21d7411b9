"""How each development set is read, and which of its groups are to be told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.nearest import Nearest
from benchmarks.routing import ROUTES
from benchmarks.sets import Comparison, Question, Source, Task, UploadsSource, make_question
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import as_passage, decompose
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.index.store import PassageStore

TOP = 6
"""Passages retrieved for a question that is routed, as the application does."""


def read_routes(source: Source) -> list[Task]:
    answered, on_topic, off_corpus = ("correct",), ("ambiguous_or_incorrect",), ("incorrect",)
    comparisons = (
        Comparison("answered from on topic", answered, on_topic, by_best=True),
        Comparison("answered from off corpus", answered, off_corpus, by_best=True),
        Comparison("on topic from off corpus", on_topic, off_corpus, by_best=True),
    )
    return [Task(_retrieved(source, "route"), comparisons, is_routing=True)]


def read_everyday(source: Source) -> list[Task]:
    """As `read_routes`, and by kind of wording and of what is missing."""
    return _by_route_and_kind(source, lambda field: _retrieved(source, field))


def read_uploads(source: Source) -> list[Task]:
    """As `read_everyday`, indexed and searched as by the application."""
    assert isinstance(source, UploadsSource)
    with TemporaryDirectory() as folder:
        for document in source.documents():
            name = document.file + (".csv" if "csv" in document.file else ".md")
            (Path(folder) / name).write_text(document.text, "utf-8")
        store = PassageStore(Path(folder) / "index", source.embedder)
        store.ingest((path.name, path) for path in sorted(Path(folder).iterdir()) if path.is_file())
        retriever = HybridRetriever(store)
        found = {row["query"]: retriever.retrieve(row["query"], TOP).passages for row in source.rows}

    def questions(field: str) -> tuple[Question, ...]:
        return tuple(
            Question(row["query"], found[row["query"]], ("",) * len(found[row["query"]]), row[field])
            for row in source.rows
        )

    return _by_route_and_kind(source, questions)


def _by_route_and_kind(source: Source, labelled_by: Callable[[str], tuple[Question, ...]]) -> list[Task]:
    kinds = {route: sorted({row["kind"] for row in source.rows if row["route"] == route}) for route in ROUTES}
    answered, on_topic, off_corpus = (tuple(kinds[route]) for route in ROUTES)
    comparisons = (
        Comparison("answered from on topic", answered, on_topic, by_best=True),
        Comparison("on the subject from off it", answered + on_topic, off_corpus, by_best=True),
        *(Comparison(f"answered, {kind}, from on topic", (kind,), on_topic, by_best=True) for kind in answered),
        *(Comparison(f"answered from on topic, {kind}", answered, (kind,), by_best=True) for kind in on_topic),
    )
    return [Task(labelled_by("route"), (), is_routing=True), Task(labelled_by("kind"), comparisons)]


def read_pairs(source: Source) -> list[Task]:
    """Each source by itself: what answers from what does not."""
    labels = {1: "{} answers", 0: "{} does not"}
    questions = tuple(
        make_question(row, [(row["passage"], "")], labels[row["label"]].format(row["from"])) for row in source.rows
    )
    names = sorted({row["from"] for row in source.rows})
    comparisons = tuple(
        Comparison(name, (labels[1].format(name),), (labels[0].format(name),), by_best=True) for name in names
    )
    return [Task(questions, comparisons)]


def _retrieved(source: Source, field: str) -> tuple[Question, ...]:
    """Questions, labelled by `field`, with what the embedder finds nearest in the corpus; cosines as in a run."""
    documents = list(source.corpus)
    nearest = Nearest([source.text(document) for document in documents], source.embedder)
    source.embedder.remember(row["query"] for row in source.rows)
    questions = []
    for row in source.rows:
        found = nearest.find(row["query"])[:TOP]
        passages = tuple(source.passage(documents[place], scores=(("cosine", cosine),)) for place, cosine in found)
        questions.append(Question(row["query"], passages, ("",) * len(passages), row[field]))
    return tuple(questions)


def read_squad(source: Source) -> list[Task]:
    """Each question with the paragraph that it was written against; and the sentences of those that answer."""
    names = {2: "answered", 0: "adversarial"}
    pairs, strips = [], []
    for row in source.rows:
        judged = source.judged[row["query_id"]].items()
        pairs.append(make_question(row, [(source.text(document), names[grade]) for document, grade in judged]))
        strips += [_sentences(row, source.text(document)) for document, grade in judged if grade == 2]
    told = Comparison("answered from adversarial paragraph", ("answered",), ("adversarial",))
    return [Task(tuple(pairs), (told,)), Task(tuple(strips), is_strips=True)]


def _sentences(row: dict[str, Any], text: str) -> Question:
    passage = Passage("p", text, "source")
    strips = decompose(passage)
    labels = tuple("answer" if _holds_answer(strip.text, row) else "" for strip in strips)
    return Question(row["query"], tuple(as_passage(strip, passage) for strip in strips), labels)


def read_selqa(source: Source) -> list[Task]:
    """The sentences of a section, labelled by people."""
    names = {1: "answer", 0: ""}
    questions = [
        make_question(row, [(one["text"], names[one["label"]]) for one in source.candidates[row["query_id"]]])
        for row in source.rows
    ]
    return [Task(tuple(questions), is_strips=True)]


def read_candidates(source: Source) -> list[Task]:
    """Questions with the passages that they bring; without any they are left out."""
    told = Comparison("answerable from unanswerable question", ("True",), ("False",), by_best=True)
    questions = []
    for row in source.rows:
        brought = [(one["text"], str(one["label"])) for one in source.candidates.get(row["query_id"], [])]
        questions += [make_question(row, brought, str(row["answerable"]))] if brought else []
    return [Task(tuple(questions), (told,))]


def _holds_answer(text: str, row: dict[str, Any]) -> bool:
    return any(answer.strip() and answer.casefold() in text.casefold() for answer in row["answers"])


READERS: dict[str, Callable[[Source], list[Task]]] = {
    "route_dev": read_routes,
    "everyday": read_everyday,
    "uploads": read_uploads,
    "squad2_dev": read_squad,
    "pairs": read_pairs,
    "nomiracl_en_dev": read_candidates,
    "selqa_dev": read_selqa,
}
"""How each set is read, in the order of the report."""

USUAL_LIMIT = 800
LIMITS = {"route_dev": 1446, "squad2_dev": 2502, "pairs": 4000}
"""Questions drawn from a set, so that the whole report takes minutes; the usual limit for those not named."""
