"""The alarm is false as rarely as stated however often one looks, and comes where the promise is broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crag_core.base.types import Action
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.statistics.monitoring import binned, drift, watch_rate
from crag_core.experiments.thresholds.guarantee import Limits
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset
from crag_core.experiments.thresholds.watch import watch
from crag_core.trace.feedback import About, Label, Mark
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace
from tests import builders

MADE = Conditions("cross-encoder", "9", "", "", "minilm", 6, "corpus")
PRESET = TunedPreset(
    "mine", "two-signal", 0.3, 0.7, 0.1, MADE, created="2026-01-01", promise=Limits(0.1, 0.6), scores=binned([0.5] * 60)
)


def label(number: int, action: Action, mark: Mark = Mark.RIGHT, expected: Action | None = None) -> Label:
    return Label(
        f"run-{number}", About.ROUTE, "", mark, f"Question {number}?", "", "two-signal", 0.3, 0.7, "cross-encoder", "9",
        f"2026-02-{number // 24 + 1:02}T{number % 24:02}", action, expected,
    )  # fmt: skip


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.3])
def test_looking_after_every_label_gives_a_false_alarm_in_1_of_20_at_most(limit: float) -> None:
    random = np.random.default_rng(5)
    false = sum(watch_rate(list(random.random(500) < limit), limit).is_raised for _ in range(400))
    assert false <= 20


def test_a_rate_above_the_limit_raises_the_alarm() -> None:
    random = np.random.default_rng(6)
    raised = sum(watch_rate(list(random.random(150) < 0.3), 0.1).is_raised for _ in range(100))
    assert raised >= 95


def test_an_alarm_stays_and_no_label_says_nothing() -> None:
    assert watch_rate([True] * 10 + [False] * 500, 0.1).is_raised
    assert not watch_rate([], 0.1).is_raised
    with pytest.raises(ValueError, match="between 0 and 1"):
        watch_rate([], 0.0)


def test_drift_is_told_of_enough_scores_only_and_seldom_without_cause() -> None:
    random = np.random.default_rng(7)
    assert drift(binned(random.random(49)), binned(random.random(500))) is None
    same = [drift(binned(random.random(100)), binned(random.random(200))) for _ in range(300)]
    assert sum(one is not None and one.is_beyond_chance for one in same) <= 15
    moved = drift(binned(random.random(100)), binned(random.random(200) ** 2))
    assert moved is not None and moved.is_beyond_chance


def test_labels_of_unanswerable_questions_since_the_preset_are_counted_and_no_others() -> None:
    counted = [label(0, Action.CORRECT, Mark.WRONG), label(1, Action.AMBIGUOUS), label(2, Action.INCORRECT)]
    others = [
        label(3, Action.CORRECT),
        label(4, Action.AMBIGUOUS, Mark.WRONG, Action.CORRECT),
        label(5, Action.AMBIGUOUS, Mark.WRONG),
        replace(label(6, Action.CORRECT, Mark.WRONG), upper=0.8),
        replace(label(7, Action.CORRECT, Mark.WRONG), evaluator_version="8"),
        replace(label(8, Action.CORRECT, Mark.WRONG), created="2025-12-31"),
    ]
    alarm = watch(PRESET, [*others, *counted], ()).alarm
    assert alarm is not None and (alarm.hits, alarm.count) == (1, 3)


def test_what_is_watched_is_told_in_numbers() -> None:
    broken = watch(PRESET, [label(n, Action.CORRECT, Mark.WRONG) for n in range(10)], ())
    assert not broken.is_well and broken.drift is None
    assert broken.lines == (
        "Promise broken: 10 of 10 unanswerable questions (by feedback) were CORRECT, at most 10.0% was promised.",
    )
    assert watch(replace(PRESET, promise=None), [label(0, Action.CORRECT, Mark.WRONG)], ()).lines == ()


def asked(number: int, best: float, **settings: Any) -> Trace:
    """A run with the web off; INCORRECT and AMBIGUOUS call for a search all the same."""
    found, grades = builders.graded(best)
    policy = builders.policy("two-signal").with_thresholds(0.3, 0.7)
    made = replace(builders.settings(policy), evaluator=replace(builders.CARD, name="cross-encoder", version="9"))
    run = builders.trace(
        policy, settings=replace(made, **settings), passages=found, grades=grades, question=f"Question {number}?",
        created=f"2026-02-{number // 24 + 1:02}T{number % 24:02}",
    )  # fmt: skip
    return replace(run, decision=decision_path_of(run, policy).decision)


def test_web_searches_of_runs_since_the_preset_are_counted_once_a_question_and_raise_the_alarm() -> None:
    other = builders.policy("two-signal").with_thresholds(0.3, 0.8)
    aside = [
        asked(50, 0.5, policy=other),
        asked(51, 0.5, policy=builders.policy("paper").with_thresholds(0.3, 0.7)),
        asked(52, 0.5, evaluator=replace(builders.CARD, name="cross-encoder", version="8")),
        replace(asked(53, 0.5), created="2025-12-31"),
        replace(asked(3, 0.9), created="2026-03-01"),
    ]
    newest_first = [asked(number, 0.9 if number % 4 == 0 else 0.5) for number in range(8)][::-1]
    kept = watch(PRESET, (), [*aside, *newest_first])
    assert kept.web is not None and (kept.web.hits, kept.web.count, kept.is_well) == (6, 8, True)
    assert kept.lines == (
        "No alarm: 6 of 8 questions of the last runs called for the web, at most 60.0% was promised.",
    )
    broken = watch(PRESET, (), [asked(number, 0.5) for number in range(20)])
    assert not broken.is_well and broken.lines[0].startswith("Promise broken: 20 of 20 questions of the last runs")
    no_limit = watch(replace(PRESET, promise=Limits(0.1)), (), newest_first)
    assert no_limit.web is None and no_limit.lines == ()


def test_a_promise_is_kept_with_its_preset() -> None:
    assert parse_preset(PRESET.to_toml(), "mine") == PRESET
    older = replace(PRESET, promise=None, scores=())
    assert "promise" not in older.to_toml() and "scores" not in older.to_toml()
    assert parse_preset(older.to_toml(), "mine") == older
