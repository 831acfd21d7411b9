"""How each development set is read, and which of its groups are to be told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.nearest import Nearest
from benchmarks.routing import ROUTES
from benchmarks.sets import Comparison, Question, Source, Task, make_question
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import as_passage, decompose

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
    kinds = {route: sorted({row["kind"] for row in source.rows if row["route"] == route}) for route in ROUTES}
    answered, on_topic, off_corpus = (tuple(kinds[route]) for route in ROUTES)
    comparisons = (
        Comparison("answered from on topic", answered, on_topic, by_best=True),
        Comparison("on the subject from off it", answered + on_topic, off_corpus, by_best=True),
        *(Comparison(f"answered, {kind}, from on topic", (kind,), on_topic, by_best=True) for kind in answered),
        *(Comparison(f"answered from on topic, {kind}", answered, (kind,), by_best=True) for kind in on_topic),
    )
    return [Task(_retrieved(source, "route"), (), is_routing=True), Task(_retrieved(source, "kind"), comparisons)]


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


def read_turns(source: Source) -> list[Task]:
    """The last turn of a talk, without the talk, as a run would see it; unanswerable ones bring no passages."""
    told = Comparison("answerable from unanswerable turn", ("ANSWERABLE",), ("UNANSWERABLE",), by_best=True)
    return [Task(_retrieved(source, "answerability"), (told,))]


def _retrieved(source: Source, field: str) -> tuple[Question, ...]:
    """Questions, labelled by `field`, with what the embedder finds nearest in the corpus; cosines as in a run."""
    documents = list(source.corpus)
    nearest = Nearest([source.text(document) for document in documents], source.embedder)
    source.embedder.remember(row["query"] for row in source.rows)
    questions = []
    for row in source.rows:
        found = nearest.by_meaning(row["query"])[:TOP]
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


def read_candidates(*comparisons: Comparison, field: str = "answerable") -> Callable[[Source], list[Task]]:
    """A reader of sets that bring passages, labelled by `field` of the question; without passages it is left out."""

    def read(source: Source) -> list[Task]:
        questions = []
        for row in source.rows:
            brought = [(one["text"], str(one["label"])) for one in source.candidates.get(row["query_id"], [])]
            questions += [make_question(row, brought, str(row[field]))] if brought else []
        return [Task(tuple(questions), comparisons)]

    return read


def read_graded(source: Source) -> list[Task]:
    """Pairs of question and judged document, labelled by their grade."""
    questions = [
        make_question(row, [(source.text(document), str(grade)) for document, grade in judged.items()])
        for row in source.rows
        if (judged := source.judged.get(row["query_id"]))
    ]
    excellent = Comparison("excellent from the rest", ("2",), ("1", "0"))
    return [Task(tuple(questions), (excellent, Comparison("related or better from incorrect", ("2", "1"), ("0",))))]


def read_found(source: Source) -> list[Task]:
    """Each answering passage, and the nearest others of the corpus, one by words and one by meaning.

    A passage in which an answer of the question stands word for word is no other. Languages are kept apart. The other
    by meaning is the one that cosine itself takes for best: read the figures of evaluators of cosine with that in mind.
    """
    homes: dict[str, list[str]] = {}
    for document, row in source.corpus.items():
        homes.setdefault(row.get("lang", ""), []).append(document)
    source.embedder.remember(row["query"] for row in source.rows)
    questions = []
    for language, documents in homes.items():
        nearest = Nearest([source.text(document) for document in documents], source.embedder)
        for row in (row for row in source.rows if row.get("lang", "") == language):
            golden = [document for document, grade in source.judged[row["query_id"]].items() if grade == 2]
            ranked = (nearest.by_words(row["query"]), nearest.by_meaning(row["query"]))
            others = [_first_other(source, row, golden, [documents[place] for place, _ in found]) for found in ranked]
            texts = [(source.text(document), f"{language}+") for document in golden]
            texts += [(source.text(document), f"{language}-") for document in dict.fromkeys(others) if document]
            questions.append(make_question(row, texts))
    comparisons = [
        Comparison(f"{language} answering from nearest others".strip(), (f"{language}+",), (f"{language}-",))
        for language in homes
    ]
    return [Task(tuple(questions), tuple(comparisons))]


def _first_other(source: Source, row: dict[str, Any], golden: list[str], ranked: list[str]) -> str | None:
    others = (document for document in ranked if document not in golden)
    return next((document for document in others if not _holds_answer(source.text(document), row)), None)


def _holds_answer(text: str, row: dict[str, Any]) -> bool:
    return any(answer.strip() and answer.casefold() in text.casefold() for answer in row["answers"])


_ANSWERABLE = read_candidates(Comparison("answerable from unanswerable question", ("True",), ("False",), by_best=True))
_SUPPORTING = read_candidates(Comparison("supporting from distracting", ("1",), ("0",)))

READERS: dict[str, Callable[[Source], list[Task]]] = {
    "route_dev": read_routes,
    "everyday": read_everyday,
    "squad2_dev": read_squad,
    "pairs": read_pairs,
    "nomiracl_en_dev": _ANSWERABLE,
    "nomiracl_de": _ANSWERABLE,
    "nomiracl_fr": _ANSWERABLE,
    "selqa_dev": read_selqa,
    "fitz_gov_dev": read_candidates(
        Comparison("trustworthy from abstain case", ("trustworthy",), ("abstain",), by_best=True),
        Comparison("sufficient from insufficient passage", ("sufficient",), ("insufficient",)),
        field="expected_mode",
    ),
    "mtrag_un": read_turns,
    "liveqa_med_dev": read_graded,
    "hotpotqa_sample": _SUPPORTING,
    "musique_sample": _SUPPORTING,
    "nq_dev": read_found,
    "halueval_dev": read_found,
    "medquad_dev": read_found,
    "xquad_dev": read_found,
}
"""How each set is read, in the order of the report."""

USUAL_LIMIT = 800
LIMITS = {
    "route_dev": 1446,
    "squad2_dev": 2502,
    "nomiracl_de": 200,
    "nomiracl_fr": 200,
    "medquad_dev": 400,
    "pairs": 4000,
}
"""Questions drawn from a set, so that the whole report takes minutes; the usual limit for those not named."""
