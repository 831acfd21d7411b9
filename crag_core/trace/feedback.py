"""Feedback on a run: relevance of passages, route and answer right or wrong."""

from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.serialization import fingerprint
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace


class About(StrEnum):
    PASSAGE = "passage"
    ROUTE = "route"
    ANSWER = "answer"


class Mark(StrEnum):
    RELEVANT = "relevant"
    NOT_RELEVANT = "not relevant"
    RIGHT = "right"
    WRONG = "wrong"


_OF_PASSAGES = (Mark.RELEVANT, Mark.NOT_RELEVANT)


@dataclass(frozen=True)
class Label:
    """What somebody said of one thing of a run.

    `target` is the id of the passage, "" for the run's route or answer. `text` is the fingerprint of the text that was
    judged, so that a label never passes to another text of the same id. `policy`, `lower` and `upper` are what decided
    when it was said, `evaluator` and its `evaluator_version` who had graded. `action` is the route that was judged,
    `expected` the one that a wrong route should have been, where that was said.
    """

    run_id: str
    about: About
    target: str
    mark: Mark
    question: str
    text: str
    policy: str
    lower: float
    upper: float
    evaluator: str
    evaluator_version: str
    created: str
    action: Action | None = None
    expected: Action | None = None

    def __post_init__(self) -> None:
        if (self.about is About.PASSAGE) != (self.mark in _OF_PASSAGES):
            raise ValueError(f"expected a mark that suits a {self.about}, found {self.mark}")
        if (self.about is About.PASSAGE) != bool(self.target):
            raise ValueError(f"expected a target for a chunk and for nothing else, found {self.target!r}")
        if (self.about is About.ROUTE) != (self.action is not None):
            raise ValueError("expected the action that was judged for a route, and for nothing else")
        if self.expected is not None and (self.mark is not Mark.WRONG or self.expected is self.action):
            raise ValueError("expected another action only for a wrong route")

    @property
    def key(self) -> str:
        """Equal for labels of the same thing, of which the last one holds."""
        return fingerprint((self.run_id, self.about, self.target))

    @property
    def wanted(self) -> Action | None:
        return self.action if self.mark is Mark.RIGHT else self.expected


def label_of(
    trace: Trace,
    policy: Policy,
    mark: Mark,
    created: str,
    *,
    target: str = "",
    action: Action | None = None,
    expected: Action | None = None,
) -> Label | None:
    """Of a passage with a `target`, of a route with an `action`, else of the answer; None where the run has no such."""
    judged: str | None = trace.answer.text if trace.answer else None
    if target:
        judged = next((one.text for one in trace.every_passage if one.id == target), None)
    if judged is None and action is None:
        return None
    return Label(
        run_id=trace.id,
        about=About.PASSAGE if target else About.ROUTE if action else About.ANSWER,
        target=target,
        mark=mark,
        question=trace.question,
        text="" if action or judged is None else fingerprint(judged),
        policy=policy.name,
        lower=policy.lower,
        upper=policy.upper,
        evaluator=trace.settings.evaluator.name,
        evaluator_version=trace.settings.evaluator.version,
        created=created,
        action=action,
        expected=expected,
    )
