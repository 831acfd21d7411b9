"""Whether a preset still keeps what it promised: labels from use against its limit, scores of runs against its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from crag_core.base.types import Action
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.statistics.monitoring import Alarm, Drift, binned, drift, watch_rate
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.trace.feedback import About, Label, Mark
from crag_core.trace.trace import Trace

LAST_RUNS = 200
"""Runs that are looked at for drift."""


@dataclass(frozen=True)
class Watched:
    """`alarm` None: the preset promises nothing. `drift` None: too few scores on either side."""

    alarm: Alarm | None
    drift: Drift | None

    @property
    def lines(self) -> tuple[str, ...]:
        """In words, with the numbers they rest on; nothing of what cannot be told yet."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.alarm and self.alarm.count:
            seen = (
                f"{self.alarm.hits} of {self.alarm.count} unanswerable questions labelled in use were CORRECT, "
                f"{self.alarm.limit:.1%} was promised"
            )
            yield f"Promise broken: {seen}." if self.alarm.is_raised else f"No alarm: {seen}."
        if self.drift and self.drift.is_beyond_chance:
            yield (
                f"Scores have drifted: the last {self.drift.now} runs differ from the {self.drift.before} questions "
                f"of the preset by {self.drift.distance:.2f} (by chance up to {self.drift.chance:.2f})."
            )
        elif self.drift:
            yield f"No drift of scores in the last {self.drift.now} runs."

    @property
    def is_well(self) -> bool:
        return not (self.alarm and self.alarm.is_raised) and not (self.drift and self.drift.is_beyond_chance)


def watch(preset: TunedPreset, labels: Iterable[Label], runs: Iterable[Trace]) -> Watched:
    """`labels` in any order, `runs` newest first; what was said or run under something else is left aside."""
    alarm = watch_rate(list(_hits(preset, labels)), preset.promise.wrong) if preset.promise else None
    return Watched(alarm, drift(preset.scores, binned(_scores(preset, runs))) if preset.scores else None)


def _hits(preset: TunedPreset, labels: Iterable[Label]) -> Iterator[bool]:
    """Of every question said to be unanswerable since the preset was made, whether it was CORRECT; the oldest first."""
    for label in sorted(labels, key=lambda label: label.created):
        is_own = label.policy == preset.policy and _is_by(preset.conditions, label.evaluator, label.evaluator_version)
        is_at = max(abs(label.lower - preset.lower), abs(label.upper - preset.upper)) < 1e-6
        if label.about is not About.ROUTE or not is_own or not is_at or label.created <= preset.created:
            continue
        if label.action is Action.CORRECT and label.mark is Mark.WRONG:
            yield True
        elif label.wanted not in (None, Action.CORRECT):
            yield False


def _scores(preset: TunedPreset, runs: Iterable[Trace]) -> Sequence[float]:
    later = (run for run in islice(runs, LAST_RUNS) if run.created > preset.created)
    judged = ((run.settings.evaluator, run.settings.policy.name, run.decision) for run in later)
    return [
        decision.score
        for judge, policy, decision in judged
        if decision and decision.score is not None and policy == preset.policy
        if _is_by(preset.conditions, judge.name, judge.version)
    ]


def _is_by(made: Conditions, evaluator: str, version: str) -> bool:
    return (made.evaluator, made.evaluator_version) == (evaluator, version)
