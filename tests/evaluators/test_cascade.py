"""An evaluator made of two: who is asked about what, what its scores become, and what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

import pytest

from crag_core.base.errors import EvaluatorUnavailable, Stopped, UnknownName
from crag_core.base.protocols import Cancel
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.base.types.steps import StepName, Usage
from crag_core.decision.decide import set_aside
from crag_core.evaluators.cascade import Cascade, cascade_card, parse_cascade
from crag_core.evaluators.policies import default_evaluator, find_policy, known_card
from crag_core.llamaindex.parts import evaluator_of
from crag_core.llamaindex.query_engine import CRAGQueryEngine
from crag_core.pipeline.call_budget import budget
from crag_core.trace.trace import Trace
from tests.builders import CARD, passage, policy
from tests.fakes import QUESTION, Bench, FakeEvaluator, by_id, passages
from tests.fakes import card as fake_card

NAME = "cross-encoder+llm@0.4-0.8"
MODEL = replace(CARD, name="model", title="Model", lower=0.3, upper=0.7, calls_model=True)


class Judge:
    """Grades by the table; counts what it was asked."""

    def __init__(self, scores: dict[str, Grade | Exception], card: object = CARD) -> None:
        self.scores, self.card, self.asked = scores, card, list[str]()

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        self.asked += [one.id for one in passages]
        found = [self.scores[one.id] for one in passages]
        for one in found:
            if isinstance(one, Exception):
                raise one
        return tuple(one for one in found if isinstance(one, Grade))


def graded(first: float | None, second: float | Exception | None) -> tuple[Grade, Judge]:
    other = second if isinstance(second, Exception) else Grade("p1", second, "why", cause="" if second else "unread")
    judge = Judge({"p1": other}, MODEL)
    cascade = Cascade(CARD, Judge({"p1": Grade("p1", first, "first")}), judge, (0.4, 0.8))
    (found,) = cascade.grade("What?", [passage("p1")], Event())
    return found, judge


@pytest.mark.parametrize("first", [0.0, 0.39, 0.81, 1.0])
def test_outside_the_band_nobody_is_asked_again(first: float) -> None:
    found, judge = graded(first, 0.5)
    assert found == Grade("p1", first, "first") and judge.asked == []


@pytest.mark.parametrize(
    ("second", "becomes"), [(0.0, 0.0), (0.15, 0.2), (0.3, 0.4), (0.5, 0.6), (0.7, 0.8), (0.85, 0.9), (1.0, 1.0)]
)
@pytest.mark.parametrize("first", [0.4, 0.6, 0.8, None])
def test_the_ends_of_the_band_are_the_thresholds_of_the_second(
    first: float | None, second: float, becomes: float
) -> None:
    found, judge = graded(first, second)
    assert found.score == pytest.approx(becomes) and judge.asked == ["p1"]
    assert found.reason.startswith(
        f"Model: {second:.2f} (first score {'not graded' if first is None else f'{first:.2f}'})"
    )


@pytest.mark.parametrize(("coarse", "then"), [(True, False), (False, False), (None, None)])
def test_a_chunk_read_a_second_time_counts_as_on_the_finer_scale(coarse: bool | None, then: bool | None) -> None:
    first = {name: Grade(name, score, coarse=coarse) for name, score in (("p1", 0.6), ("p2", 0.9))}
    both = [passage("p1"), passage("p2")]
    cascade = Cascade(CARD, Judge(dict(first)), Judge({"p1": Grade("p1", 0.5)}, MODEL), (0.4, 0.8))
    again, alone = cascade.grade("What?", both, Event())
    assert again.coarse is then and alone == first["p2"]
    aside = set_aside(policy("paper"), tuple(both), (again, alone))
    assert aside == ({"p2"} if coarse else set()), "what stays on the coarse scale is not compared with it"


@pytest.mark.parametrize("second", [None, EvaluatorUnavailable("no server")])
def test_the_first_score_stays_where_the_second_fails(second: float | Exception | None) -> None:
    found, _ = graded(0.6, second)
    cause = "unread" if second is None else "no server"
    assert found.score == 0.6 and found.reason == f"first; not read again by Model: {cause}"


def test_a_stop_ends_both() -> None:
    with pytest.raises(Stopped):
        graded(0.6, Stopped("stopped"))


def test_of_two_signals_answering_is_read_again_and_topical_stays() -> None:
    both = Grade("p1", 0.7, parts=((ANSWERING, 0.5), (TOPICAL, 0.9)), usage=Usage(0))
    second = Judge({"p1": Grade("p1", 1.0, usage=Usage(1, 10, 2))}, MODEL)
    (found,) = Cascade(CARD, Judge({"p1": both}), second, (0.4, 0.6)).grade("What?", [passage("p1")], Event())
    assert found.two_signals == (1.0, 0.9) and found.usage == Usage(1, 10, 2)
    assert found.reason.startswith("Model: 1.00 (first score 0.50)"), "the score that the band was asked about"


@pytest.mark.parametrize(
    "name", ["cross-encoder+llm", "a+b@0.9-0.4", "a+b@x-1", "a+a@0.1-0.2", "a+b@0.5-1.5", "+b@0-1", "a+b@.-1"]
)
def test_a_name_of_two_that_cannot_be_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(UnknownName, match=r"such as cross-encoder\+llm@0.5-0.9"):
        parse_cascade(name)


def test_the_card_has_the_thresholds_of_the_first_and_the_calls_of_both() -> None:
    card, first = known_card(NAME), known_card("cross-encoder")
    assert (card.lower, card.upper, card.strip_cutoff) == (first.lower, first.upper, first.strip_cutoff)
    assert (
        card.calls_model and card.spares_calls and card.title == "Trained evaluator, then Language model at 0.4 to 0.8"
    )
    assert cascade_card("llm", known_card) is None
    with pytest.raises(UnknownName, match="'lm'"):
        known_card("cross-encoder+lm@0.1-0.2")
    suited = policy("two-signal").with_thresholds_for(card, first)
    assert (suited.lower, suited.upper) == (policy("two-signal").lower, policy("two-signal").upper)


def test_a_policy_may_name_two_and_falls_back_on_the_first_without_a_model() -> None:
    of = replace(find_policy("paper"), evaluator=NAME)
    assert default_evaluator(of, "ollama/x") == NAME and default_evaluator(of, "extractive") == "cross-encoder"
    assert default_evaluator(find_policy("worst-chunk"), "extractive") == "cross-encoder"
    assert isinstance(evaluator_of("embedding+heuristic@0.2-0.9", None), Cascade)


# --- in a run --------------------------------------------------------------------------------------------------------


def bench(second: FakeEvaluator, **scores: float | None) -> tuple[Bench, CRAGQueryEngine]:
    """Graded by a fake evaluator, and in the band from 0.3 to 0.7 by `second` too."""
    made = Bench(scoring=by_id(**scores), found=passages(max(3, len(scores))))
    both = replace(made.judge, calls_model=True, spares_calls=True, title="Fake, then Llm")
    return made, made.under(parts={"evaluator": Cascade(both, made.evaluator, second, (0.3, 0.7))}, evaluator=both)


def test_only_chunks_in_the_band_are_asked_about_and_every_call_is_counted_and_promised() -> None:
    second = FakeEvaluator(by_id(p1=0.9, p2=0.2), fake_card("llm", calls_model=True))
    made, engine = bench(second, p1=0.5, p2=0.3, p3=0.1)
    trace = engine.run(QUESTION)
    assert second.graded == ["p1", "p2"] and trace.decision is not None and trace.decision.action is Action.CORRECT
    step = next(step for step in trace.steps if step.name == StepName.GRADE)
    assert step.usage.calls == 2
    promised = budget(made.pipeline.settings.policy, trace.settings.evaluator, 3, writer=False, searches=True)
    assert promised[Action.CORRECT].least <= trace.usage.calls <= promised[Action.CORRECT].most == 3
    assert Trace.from_dict(trace.to_dict()) == trace
