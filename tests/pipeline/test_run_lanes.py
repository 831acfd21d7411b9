"""Passages are refined while the web is searched; what breaks in one of the two lanes costs the other nothing."""

import threading
from collections.abc import Callable

import pytest

from crag_core.base.errors import CragError, EmbeddingUnavailable
from crag_core.base.types.steps import StepState
from crag_core.base.types.web import WebOutcome
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import Run, WebMode
from crag_core.pipeline.web_stages import approve, is_waiting
from crag_core.trace.trace import Trace
from tests.fakes import ANSWER, QUESTION, WEB_QUERY, Bench, Diary, FakeModel
from tests.stand_ins.local_server import wait_until

AWAY = EmbeddingUnavailable("The embedding model cannot be loaded.", hint="Install it.")


def both(**options: object) -> Bench:
    """AMBIGUOUS under worst-chunk: extracts sentences and searches the web."""
    return Bench("worst-chunk", best=0.5, model=FakeModel(), **options)  # type: ignore[arg-type]


def raising(error: CragError, wait: Callable[[], object] = lambda: None) -> Callable[..., None]:
    """Fails the first time it is asked, after `wait`."""
    left = [error]

    def fail(*_: object) -> None:
        wait()
        if left:
            raise left.pop()

    return fail


def after(diary: Diary, name: str) -> Callable[..., None]:
    """Waits until the step of that name has finished, in whichever lane."""

    def wait(*_: object) -> None:
        assert wait_until(lambda: name in [step.name for step in diary.done], 60), f"{name} does not come to its end"

    return wait


def states(trace: Trace) -> dict[str, StepState]:
    return {step.name: step.state for step in trace.steps}


# --- at the same time -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["paper", "worst-chunk", "signals"])
def test_strips_are_scored_while_the_web_is_searched(policy: str) -> None:
    bench, meeting = Bench(policy, best=0.5, model=FakeModel()), threading.Barrier(2, timeout=5.0)
    waits = [True]  # the strips of the web results are scored later, and alone

    def meet(*_: object) -> None:
        if waits:
            meeting.wait()

    bench.strip_evaluator.before = bench.searcher.before = meet
    trace = bench.pipeline.correct(bench.pipeline.begin(QUESTION), Run(Diary(search=waits.clear)))
    assert trace.failure is None and not meeting.broken
    assert trace.strips and trace.web is not None and trace.web.outcome is WebOutcome.USED


# --- one lane breaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("web_is_first", [True, False])
def test_refining_that_fails_does_not_cost_the_search(web_is_first: bool) -> None:
    bench, diary = both(), Diary()
    wait = after(diary, "search") if web_is_first else lambda: None
    bench.strip_evaluator.before = raising(AWAY, wait)
    broken = bench.pipeline.run(QUESTION, Run(diary))
    assert broken.failure is not None and (broken.failure.name, broken.failure.hint) == ("score strips", "Install it.")
    assert broken.web is not None and broken.web.outcome is WebOutcome.USED and len(broken.web.passages) == 2
    assert (broken.strips, broken.web.strips, broken.context, broken.answer) == (None, None, None, None)
    assert bench.counts["extract"] == 0, "the lane ended where it failed"
    with pytest.raises(EmbeddingUnavailable, match="cannot be loaded"):
        raise_failure(broken)
    bench.forget_counts()
    done = bench.pipeline.resume(Trace.from_json(broken.to_json()))
    assert bench.counts == {"strips": 6 + 2, "extract": 3, "grade": 2, "answer": 1}
    assert done.failure is None and done.answer is not None and done.answer.text == ANSWER


# --- a word on the query --------------------------------------------------------------------------------------------


def test_passages_are_refined_while_the_query_waits_for_a_word() -> None:
    bench = both(web=WebMode.ASK)
    waiting = bench.pipeline.run(QUESTION)
    assert is_waiting(waiting) and waiting.failure is None
    assert waiting.strips and waiting.extractions and waiting.context is None
    assert states(waiting)["rewrite"] is StepState.WAITING
    bench.forget_counts()
    done = bench.pipeline.resume(approve(waiting, WEB_QUERY))
    assert bench.counts == {"search": 1, "grade": 2, "strips": 2, "answer": 1}
    assert done.failure is None and done.answer is not None and done.answer.text == ANSWER
