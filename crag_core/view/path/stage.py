"""One stage of a path: title, anchor of its evidence, and state. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.text.display import counted, duration
from crag_core.base.types import Action, Handling, Passage, Step, StepName, StepState, StripVerdict
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace


class StageState(StrEnum):
    """`WOULD_BE`: on the path under the present thresholds, and not carried out in this record."""

    TAKEN = "taken"
    NOT_TAKEN = "not taken"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"
    WOULD_BE = "would be taken"
    RUNNING = "running"
    TO_COME = "to come"


@dataclass(frozen=True)
class Stage:
    """`headline` says in a few words what came of it, or why it was not taken; `detail` says more.

    `anchor` is the part of the page with its evidence. `seconds` is None where nothing was carried out. Only "route"
    has an `action`, only "refine" a `handling`. `leads_on` is False where nothing of it goes further.
    """

    id: str
    title: str
    state: StageState
    headline: str
    detail: str = ""
    anchor: str = ""
    calls: int = 0
    seconds: float | None = None
    action: Action | None = None
    handling: Handling | None = None
    leads_on: bool = True

    @property
    def cost(self) -> str:
        """ "2 calls · 1.2 s"; "" where nothing was carried out."""
        if self.seconds is None:
            return ""
        time = duration(self.seconds)
        return f"{counted(self.calls, 'call')} · {time}" if self.calls else time


PLACES = {
    "retrieve": ("Retrieve", "passages", (StepName.RETRIEVE,)),
    "grade": ("Grade", "scores", (StepName.GRADE,)),
    "route": ("Route", "scores", (StepName.ROUTE,)),
    "again": ("Look again", "record", (StepName.RETRIEVE_AGAIN,)),
    "refine": ("Refine", "passages", (StepName.SCORE_STRIPS, StepName.EXTRACT)),
    "rewrite": ("Rewrite", "web", (StepName.REWRITE,)),
    "search": ("Search web", "web", (StepName.SEARCH,)),
    "grade_web": ("Grade web", "web", (StepName.GRADE_WEB,)),
    "assemble": ("Assemble", "answers", (StepName.ASSEMBLE,)),
    "answer": ("Answer", "answers", (StepName.ANSWER,)),
    "check": ("Check", "answers", (StepName.CHECK_ANSWER,)),
}
"""Of every stage by its id, in order: title, anchor, and the steps of the record that carry it out."""

BROKEN = {StepState.FAILED: StageState.FAILED, StepState.STOPPED: StageState.STOPPED}


def stage(name: str, state: StageState, headline: str = "", detail: str = "") -> Stage:
    """A stage without its cost."""
    title, anchor, _ = PLACES[name]
    return Stage(name, title, state, headline, detail, anchor)


def break_at(trace: Trace, name: str) -> Step | None:
    """The step at which this stage broke off, if it did."""
    steps = PLACES[name][2]
    return next((step for step in trace.steps if step.name in steps and step.state in BROKEN), None)


def is_skipped(trace: Trace, step_name: StepName) -> bool:
    return any(step.name == step_name and step.state is StepState.SKIPPED for step in trace.steps)


def why_not(routed: Reroute) -> str:
    """Why a stage is not on the path that the decision asks for."""
    action = routed.decision.action
    return f"not needed: {action}" if action is Action.CORRECT else f"not asked: {action}"


def kept(verdicts: tuple[StripVerdict, ...], passages: tuple[Passage, ...]) -> str:
    """How many sentences of these passages are kept."""
    ids = {passage.id for passage in passages}
    own = [verdict.kept for verdict in verdicts if verdict.strip.passage_id in ids]
    return f"{sum(own)} of {counted(len(own), 'sentence')}"
