"""Figures of many runs: shares, times, costs, and the spans that they fall into."""

from __future__ import annotations

from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.observability import trends
from crag_core.observability.trends import Share, Times, figures, over_time
from crag_core.trace.summary import Ending, Measured


def run(action: Action | None = Action.CORRECT, **fields: Any) -> Measured:
    known: dict[str, Any] = {
        "at": 0.0, "ending": Ending.DONE, "action": action, "policy": "paper", "strategy": "none", "score": 0.9,
        "decided_ms": 40.0, "retrieval_ms": 50.0, "provider_ms": 0.0, "total_ms": 60.0, "searched": False,
        "improved": None, "graded": 6, "ungraded": 0, "cached": 0, "calls": 0, "prompt_tokens": 0,
        "completion_tokens": 0,
    }  # fmt: skip
    return Measured(**known | fields)


def test_the_targets_are_those_of_description_000() -> None:
    shares = trends.CORRECT_TARGET, trends.CORRECTED_TARGET, trends.SEARCHED_TARGET, trends.IMPROVED_TARGET
    assert shares == (0.70, 0.30, 0.10, 0.80)
    assert (trends.FAST_TARGET, trends.SLOW_TARGET) == (70.0, 450.0)


def test_nothing_comes_to_nothing() -> None:
    found = figures(())
    assert found.runs == 0 and all(share == Share(0, 0) for _, share in found.actions)
    assert found.searched.value is found.improved.value is found.cached.value is None
    assert found.fast == found.slow == Times(None, None, 0)


def test_shares_are_of_the_runs_that_were_decided() -> None:
    undecided = run(None, ending=Ending.FAILED, retrieval_ms=None, provider_ms=None, graded=0)
    found = figures([run(), run(Action.AMBIGUOUS, searched=True), run(Action.INCORRECT), run(), undecided])
    assert found.runs == 5
    assert [share for _, share in found.actions] == [Share(2, 4), Share(1, 4), Share(1, 4)]
    assert found.of(Action.AMBIGUOUS).value == 0.25
    assert (found.searched, found.failed) == (Share(1, 4), Share(1, 5))


def test_times_are_of_their_own_path_and_without_the_provider() -> None:
    slow = [run(Action.AMBIGUOUS, retrieval_ms=1000.0, provider_ms=700.0), run(Action.INCORRECT, retrieval_ms=500.0)]
    found = figures([run(decided_ms=40.0), run(decided_ms=80.0), *slow])
    assert found.fast == Times(60.0, 78.0, 2)
    assert found.slow.p50 == 400.0 and found.slow.count == 2


def test_a_run_belongs_to_the_span_that_it_begins() -> None:
    found = over_time([run(at=10.0), run(at=19.9), run(at=20.0), run(at=30.0), run(at=9.9)], [10.0, 20.0, 30.0])
    assert [one.runs for one in found] == [2, 1]
