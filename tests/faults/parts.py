"""What the tests of faults share: an index of three documents, and one question."""

from __future__ import annotations

from collections.abc import Callable

from crag_core.app.workbench import Choice, Workbench
from crag_core.base.types.steps import Step, StepState
from crag_core.evaluators.policies import known_card, suit
from crag_core.pipeline.run import Listener, Run, WebMode
from crag_core.trace.trace import Trace
from tests.stand_ins.ollama_server import MODEL

WRITER = f"ollama/{MODEL}"
QUESTION = "What does a yacht of nine metres pay for a night?"
DOCUMENTS = {
    "harbour-dues.md": "A yacht of up to ten metres pays 14 pounds a night. Longer yachts pay 21 pounds.",
    "crane.txt": "The crane lifts at most 6 tonnes. It is inspected every March by an outside firm.",
    "berths.csv": "berth,length,depth\nA1,12 m,2.1 m\nB4,18 m,3.0 m\n",
}


def fill(workbench: Workbench) -> None:
    workbench.store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])


def judged(workbench: Workbench, web: WebMode = WebMode.OFF) -> Choice:
    """Graded by the model, one call a passage; answered by it."""
    return Choice(suit(workbench.policies["worst-chunk"], "llm"), "llm", WRITER, web)


def searching(workbench: Workbench, web: WebMode = WebMode.AUTO) -> Choice:
    """Always AMBIGUOUS: what was retrieved is refined and the web is asked. Needs no model."""
    policy = suit(workbench.policies["paper"], "embedding")
    return Choice(policy.with_thresholds(0.0, 1.0), "embedding", web=web)


def quoting(workbench: Workbench, evaluator: str = "embedding") -> Choice:
    """Needs neither a model nor the web."""
    assert not known_card(evaluator).calls_model
    return Choice(suit(workbench.policies["paper"], evaluator), evaluator)


def step(trace: Trace, name: str) -> Step:
    return next(step for step in trace.steps if step.name == name)


def broken_at(trace: Trace) -> str:
    """The step that a run broke off at; "": it did not."""
    failed = [step.name for step in trace.steps if step.state is StepState.FAILED]
    return failed[0] if failed else ""


def no_time_runs_backwards(trace: Trace) -> bool:
    return all(step.seconds >= 0 for step in trace.steps) and all(grade.seconds >= 0 for grade in trace.grades or ())


class At(Listener):
    """Does something once, at the beginning of a step, in the thread that runs it."""

    def __init__(self, name: str, what: Callable[[], object]) -> None:
        self._name = name
        self._what = what
        self._is_done = False

    def started(self, name: str) -> None:
        if name == self._name and not self._is_done:
            self._is_done = True
            self._what()


def at(name: str, what: Callable[[], object]) -> Run:
    return Run(At(name, what))
