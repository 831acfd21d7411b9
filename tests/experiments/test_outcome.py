"""What a run came to, worked out by hand on small runs that a real pipeline made with parts that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Backing, Cancel, Piece
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.base.types.steps import Usage
from crag_core.experiments.comparison.outcome import Evidence, Outcome, outcome_of
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.citation_check import SUPPORTED, WEAK
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import QUESTION, USEFUL, USELESS, Bench, FakeModel, by_id, passage

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected
HARBOUR = "The harbour of Vennick is old."
ANSWERED = LabelledQuestion(QUESTION, CORRECT, ("nine",), "document-1.txt")


def label(*answers: str, expected: Expected = CORRECT, document: str = "") -> LabelledQuestion:
    return LabelledQuestion(QUESTION, expected, answers, document)


def run(policy: str = "paper", **options: Any) -> Trace:
    return Bench(policy, **{"model": FakeModel()} | options).pipeline.run(QUESTION)


def three() -> tuple[Passage, ...]:
    """Two passages of the first document and one of the second; 27, 8 and 27 tokens."""
    return passage(1), passage(2, HARBOUR, source="document-1.txt"), passage(3, source="document-3.txt")


# --- questions that are answered ------------------------------------------------------------------------------------


def test_a_run_that_answers() -> None:
    trace = run(best=0.9)
    assert outcome_of(trace, ANSWERED) == Outcome(
        key=ANSWERED.key,
        run_id=trace.id,
        action=Action.CORRECT,
        before=Evidence((2, 0, 0), 3 * 27, 2 * 27),  # 21 words of each passage, times 1.3
        after=Evidence((2,), 13, 0),  # the useful sentence, once
        score_before=0.9,
        score_after=0.9,
        is_answered=True,
        contains=1.0,
        seconds=trace.seconds,
        usage=Usage(1, 30, 7),
    )
    assert trace.seconds > 0


def test_a_document_counts_once_where_its_first_passage_stands() -> None:
    found = outcome_of(run(found=three()), ANSWERED)
    assert found.before == Evidence((2, 0), 27 + 7 + 27, 27), "a chunk on the subject is not irrelevant"
    turned = outcome_of(run(found=three()[::-1]), ANSWERED)
    assert turned.before is not None and turned.before.ranked == (0, 2)


def test_judged_files_have_their_grades() -> None:
    judged = {"document-3.txt": 1, "document-1.txt": 2, "document-9.txt": 2, "document-8.txt": 0}
    found = outcome_of(run(found=three()), ANSWERED, judged)
    assert found.before == Evidence((2, 1), 61, 0)


def test_without_a_document_passages_are_ranked_by_their_text() -> None:
    found = outcome_of(run(found=three()), label("nine"))
    assert found.before == Evidence((2, 0, 2), 61, 7)


@pytest.mark.parametrize("answers", [(), ("yes",), ("word " * 13,)])
def test_without_a_document_or_an_answer_to_look_for_nothing_is_told(answers: tuple[str, ...]) -> None:
    found = outcome_of(run(), label(*answers))
    assert found.before == found.after == Evidence(None, 0, 0)
    assert (found.contains is None) == (not answers)


# --- answers that are not given -------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["nine", "%"])
def test_a_question_without_an_answer_scores_nothing(known: str) -> None:
    """Even one whose known answer has no words, as the text of no answer has none."""
    trace = run(best=0.1, web=WebMode.OFF)
    found = outcome_of(trace, label(known, document="document-1.txt"))
    assert trace.answer is not None and trace.answer.state is AnswerState.CANNOT_ANSWER
    assert not found.is_answered and found.contains == 0.0
    assert found.after == Evidence((), 0, 0) and found.score_after is None
    assert (found.action, found.web, found.failed) == (Action.INCORRECT, "off", "")


def test_a_model_that_declines_has_not_answered() -> None:
    found = outcome_of(run(model=FakeModel(answer="CANNOT ANSWER. Nine is not mentioned.")), ANSWERED)
    assert not found.is_answered and found.contains == 0.0
    assert found.after == Evidence((2,), 13, 0), "the context was there all the same"


@pytest.mark.parametrize("expected", [AMBIGUOUS, INCORRECT, UNANSWERABLE])
def test_what_the_documents_do_not_answer_may_be_answered_from_elsewhere(expected: Expected) -> None:
    found = outcome_of(run(), label("nine", expected=expected, document="document-1.txt"))
    assert found.is_answered and found.contains == 1.0
    unknown = outcome_of(run(), label(expected=expected))
    assert unknown.is_answered and unknown.contains is None
    assert found.before == Evidence((1, 0, 0), 81, 54), "related at most"


# --- runs that broke off --------------------------------------------------------------------------------------------


def test_a_failed_run_says_only_why() -> None:
    trace = run(model=FakeModel(answer=ModelUnavailable("Ollama went away.", hint="Start it.")))
    assert outcome_of(trace, ANSWERED) == Outcome(ANSWERED.key, trace.id, None, failed="answer: Ollama went away.")


# --- the web --------------------------------------------------------------------------------------------------------


def test_pages_of_the_web_count_by_their_text_beside_the_known_documents() -> None:
    bench = Bench(best=None, scoring=by_id(p1=0.5, p2=0.1, p3=0.2, **{"web-1": 0.7}), model=FakeModel())
    found = outcome_of(bench.pipeline.run(QUESTION), ANSWERED)
    assert (found.action, found.web) == (Action.AMBIGUOUS, "used")
    # The useful sentence of the corpus and the one of the web (10 words); the second page says the same.
    assert found.after == Evidence((2, 2), 13 + 13, 0)
    assert (found.score_before, found.score_after) == (0.5, 0.7)
    assert found.usage == Usage(2, 50, 12)


# --- scores ---------------------------------------------------------------------------------------------------------


def test_the_best_score_before_is_that_of_the_first_retrieval() -> None:
    bench = Bench(scoring=by_id(p1=0.7, p2=0.9, p3=None), policy="rank-weighted", model=FakeModel())
    found = outcome_of(bench.pipeline.run(QUESTION), ANSWERED)
    assert found.score_before == 0.9


def test_the_score_is_the_part_that_decides_where_two_signals_do() -> None:
    def twice(one: Passage) -> Grade:
        return Grade(one.id, 0.5, parts=((ANSWERING, 0.8), (TOPICAL, 0.2)))

    assert outcome_of(run("two-signal", best=None, scoring=twice), ANSWERED).score_before == 0.8
    assert outcome_of(run("paper", best=None, scoring=twice), ANSWERED).score_before == 0.5


def test_what_a_later_round_found_counts_afterwards_only() -> None:
    others = (passage(7, "Fact seven.", source="document-7.txt"), passage(8, source="document-1.txt"))
    calls: list[str] = []

    def find(query: str, engine: object) -> Sequence[Passage]:
        calls.append(query)
        return others[:1] if len(calls) == 1 else others[1:]

    bench = Bench("agentic", scoring=by_id(p7=0.1, p8=0.9), finding=find, model=FakeModel())
    loop = replace(bench.pipeline.settings.policy, skip=())
    found = outcome_of(bench.under(policy=loop).run(QUESTION), ANSWERED)
    assert len(calls) == 2 and found.action is Action.CORRECT
    assert found.before == Evidence((0,), 2, 2) and found.after == Evidence((2,), 27, 0)
    assert (found.score_before, found.score_after) == (0.1, 0.9)


# --- grounding ------------------------------------------------------------------------------------------------------


@dataclass
class Meter:
    """Gives these scores, one a sentence."""

    scores: Sequence[float | None]

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        return tuple(Backing(score) for score, _ in zip(self.scores, sentences, strict=True))


@pytest.mark.parametrize(
    ("scores", "counts"),
    [
        ((SUPPORTED, WEAK, 0.0, None), (3, 1, 1)),
        ((1.0, 1.0, 1.0, 1.0), (4, 4, 0)),
        ((None, None, None, None), (0, 0, 0)),
        ((0.0, WEAK - 0.01, SUPPORTED - 0.01, SUPPORTED), (4, 1, 2)),
    ],
)
def test_sentences_are_counted_by_how_they_stand(
    scores: tuple[float | None, ...], counts: tuple[int, int, int]
) -> None:
    said = "It leaves at nine [1]. Bring a coat [1]. Bring a book [1]. It is far [1]."
    bench = Bench(model=FakeModel(answer=said))
    found = outcome_of(bench.under(parts={"support": Meter(scores)}).run(QUESTION), ANSWERED)
    assert (found.sentences, found.grounded, found.ungrounded) == counts


# --- the record -----------------------------------------------------------------------------------------------------


def test_an_answer_to_other_evidence_is_read_from_the_record_as_it_stands() -> None:
    """The record is measured as it was taken."""
    trace = builders.trace(
        builders.policy("paper"),
        passages=(passage(1, USEFUL), passage(2, USELESS)),
        grades=(Grade("p1", 0.9), Grade("p2", 0.3)),
        strips=builders.strips_of(passage(1, USEFUL), (USEFUL, 0.9)),
        answer=Answer("At nine [1].", AnswerState.COMPLETE, "extractive", "another"),
    )
    found = outcome_of(trace, ANSWERED)
    assert found.is_answered and found.contains == 1.0
    assert found.after == Evidence((2,), 13, 0) and found.before == Evidence((2, 0), 13 + 14, 14)
