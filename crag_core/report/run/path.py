"""The path of a run for a report: its stages in three groups, the two ways to evidence side by side."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted
from crag_core.report.text import duration, shortened
from crag_core.view.path.run_path import Stage, StageState, run_path
from crag_core.view.run_view import RunView
from crag_core.view.verdict_lines import headline

_GROUPS = (
    ("Find and grade", "", ("retrieve", "grade", "route", "again")),
    ("From the documents", "documents", ("refine",)),
    ("From the web", "web", ("rewrite", "search", "grade_web")),
    ("Answer", "", ("assemble", "answer", "check")),
)
_DETAIL = 90


@dataclass(frozen=True)
class Station:
    """One stage. `tone` is "taken", "faint" (not on this path) or "halted"; `state` is said where it is not taken."""

    title: str
    tone: str
    state: str
    headline: str
    detail: str
    cost: str
    anchor: str
    action: str


@dataclass(frozen=True)
class Group:
    title: str
    lane: str
    stations: tuple[Station, ...]


def path_of(view: RunView) -> tuple[Group, ...]:
    """Every stage, those that were not taken too."""
    stages = {stage.id: stage for stage in run_path(view.trace, view.routed).stages}
    return tuple(
        Group(title, lane, tuple(_station(stages[name]) for name in names if name in stages))
        for title, lane, names in _GROUPS
    )


def _station(stage: Stage) -> Station:
    is_taken = stage.state is StageState.TAKEN
    halted = (StageState.FAILED, StageState.STOPPED, StageState.WAITING)
    cost = [] if stage.seconds is None else [duration(stage.seconds)]
    cost += [counted(stage.calls, "model call")] if stage.calls else []
    return Station(
        title=stage.title,
        tone="taken" if is_taken else "halted" if stage.state in halted else "faint",
        state="" if is_taken else stage.state,
        headline=stage.headline,
        detail="" if stage.detail == stage.headline else shortened(stage.detail, _DETAIL),
        cost=", ".join(cost),
        anchor=stage.anchor,
        action=(stage.action or "").lower() if is_taken else "",
    )


def looks_of(view: RunView) -> tuple[str, ...]:
    """Each look at the evidence: how it was found, and what was decided by it; () for a single look."""
    found = {one.path: one for one in view.changed.rounds}
    looks = []
    for iteration in view.routed.decision_path.iterations:
        later = found.get(iteration.path)
        how = f"{iteration.path[-1]}, “{later.retrievals[-1].query}”" if later else "first retrieval"
        count = counted(len(iteration.passages), "chunk")
        looks.append(f"{how}: {count}; {headline(iteration.decision)}: {iteration.decision.reason}.")
    return tuple(looks) if len(looks) > 1 else ()
