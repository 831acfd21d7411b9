"""Whether a preset keeps what it promised: labels and web searches against its limits, scores against its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from crag_core.base.types import Action, CorrectionKind
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.statistics.monitoring import Alarm, Drift, binned, drift, watch_rate
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.trace.feedback import About, Label, Mark
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace

LAST_RUNS = 200
"""Runs that are looked at for web searches and drift."""


@dataclass(frozen=True)
class Watched:
    """`alarm` and `web` None: the preset promises no such limit. `drift` None: too few scores on either side."""

    alarm: Alarm | None
    web: Alarm | None
    drift: Drift | None

    @property
    def lines(self) -> tuple[str, ...]:
        """In words, with the numbers they rest on; nothing of what cannot be told yet."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        for alarm, what in (
            (self.alarm, "unanswerable questions (by feedback) were CORRECT"),
            (self.web, "questions of the last runs called for the web"),
        ):
            if alarm and alarm.count:
                seen = f"{alarm.hits} of {alarm.count} {what}, at most {alarm.limit:.1%} was promised"
                yield f"Promise broken: {seen}." if alarm.is_raised else f"No alarm: {seen}."
        if self.drift and self.drift.is_beyond_chance:
            yield (
                f"Scores have drifted: last {self.drift.now} runs against {self.drift.before} questions of the preset, "
                f"distance {self.drift.distance:.2f} (by chance up to {self.drift.chance:.2f})."
            )
        elif self.drift:
            yield f"No drift of scores in the last {self.drift.now} runs."

    @property
    def is_well(self) -> bool:
        is_broken = any(alarm.is_raised for alarm in (self.alarm, self.web) if alarm)
        return not is_broken and not (self.drift and self.drift.is_beyond_chance)


def watch(preset: TunedPreset, labels: Iterable[Label], runs: Iterable[Trace]) -> Watched:
    """`labels` in any order, `runs` newest first; what was said or run under something else is left aside."""
    promise, later = preset.promise, _later(preset, runs)
    alarm = watch_rate(list(_hits(preset, labels)), promise.wrong) if promise else None
    web = watch_rate(_searches(preset, later), promise.web) if promise and promise.web else None
    return Watched(alarm, web, drift(preset.scores, binned(_scores(later))) if preset.scores else None)


def _hits(preset: TunedPreset, labels: Iterable[Label]) -> Iterator[bool]:
    """Of every question said to be unanswerable since the preset was made, whether it was CORRECT; the oldest first."""
    for label in sorted(labels, key=lambda label: label.created):
        is_own = label.policy == preset.policy and _is_by(preset.conditions, label.evaluator, label.evaluator_version)
        is_at = _is_at(preset, label.lower, label.upper)
        if label.about is not About.ROUTE or not is_own or not is_at or label.created <= preset.created:
            continue
        if label.action is Action.CORRECT and label.mark is Mark.WRONG:
            yield True
        elif label.wanted not in (None, Action.CORRECT):
            yield False


def _later(preset: TunedPreset, runs: Iterable[Trace]) -> list[Trace]:
    """Of the last runs those since the preset was made, with its policy and evaluator, that came to a decision."""
    return [
        run
        for run in islice(runs, LAST_RUNS)
        if run.created > preset.created and run.decision and run.settings.policy.name == preset.policy
        if _is_by(preset.conditions, run.settings.evaluator.name, run.settings.evaluator.version)
    ]


def _searches(preset: TunedPreset, runs: Sequence[Trace]) -> list[bool]:
    """Whether the first decision on each question asks for a web search, at the preset's thresholds; oldest first.

    A question that was asked again counts once, as it was asked first.
    """
    firsts: dict[str, Trace] = {}
    for run in reversed(runs):
        if _is_at(preset, run.settings.policy.lower, run.settings.policy.upper):
            firsts.setdefault(run.question, run)
    paths = (decision_path_of(run, run.settings.policy) for run in firsts.values())
    return [path.iterations[0].decision.wants(CorrectionKind.WEB_SEARCH) for path in paths]


def _scores(runs: Iterable[Trace]) -> Sequence[float]:
    return [run.decision.score for run in runs if run.decision and run.decision.score is not None]


def _is_at(preset: TunedPreset, lower: float, upper: float) -> bool:
    return max(abs(lower - preset.lower), abs(upper - preset.upper)) < 1e-6


def _is_by(made: Conditions, evaluator: str, version: str) -> bool:
    return (made.evaluator, made.evaluator_version) == (evaluator, version)
