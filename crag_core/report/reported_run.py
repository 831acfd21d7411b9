"""What a report shows: a record, and what it comes to under one policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from crag_core.base.types import Edits, Origin, Passage
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.opinions import judged_by
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Name:
    """Where a passage is from. The two are kept apart, since a file name may run from right to left."""

    source: str
    page: str

    def __str__(self) -> str:
        return f"{self.source}, {self.page}" if self.page else self.source


@dataclass(frozen=True)
class Shown:
    """`trace` is the record as it came, `changed` the same with its edits carried out.

    `routed` holds under the policy of the report and the edits; `before` is the record without any edits and by the
    evaluator of its own time, and `taken` what came of it under the policy of the run.
    """

    trace: Trace
    changed: Trace
    policy: Policy
    routed: Reroute
    before: Trace
    taken: Reroute

    @property
    def is_decided(self) -> bool:
        """Whether the run came far enough for a decision to mean anything."""
        return self.trace.passages is not None and not (
            self.trace.decision is None and self.routed.decision_path.ungraded
        )

    @property
    def web_passages(self) -> tuple[Passage, ...]:
        return self.trace.web.passages if self.trace.web else ()

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The number under which each passage is shown, dropped ones too: "3", or "w3" for the third web result."""
        web = {passage.id: f"w{rank}" for rank, passage in enumerate(self.web_passages, start=1)}
        return web | {passage.id: str(rank) for rank, passage in enumerate(self.trace.all_passages, start=1)}

    def anchor(self, passage_id: str) -> str:
        """Where a passage stands in the page; made of numbers alone, since ids may hold anything."""
        return f"passage-{self.numbers[passage_id]}"


def look(trace: Trace, policy: Policy | None = None) -> Shown:
    """`policy` None: that of the run."""
    own = trace.settings.policy
    policy = policy or own
    before = _as_taken(trace)
    return Shown(trace, edited(trace), policy, reroute(trace, policy), before, reroute(before, own))


def _as_taken(trace: Trace) -> Trace:
    """The record without edits, by the evaluator whose grades give the decision that was taken."""
    plain = replace(trace, edits=Edits())
    others = (judged_by(plain, opinion.evaluator.name, opinion.writer) for opinion in trace.opinions)
    for one in (plain, *others):
        if one and reroute(one, one.settings.policy).decision == trace.decision:
            return one
    return plain


def name_of(passage: Passage) -> Name:
    page = f"page {passage.page}" if passage.page and passage.origin is Origin.CORPUS else ""
    return Name(passage.source.strip() or "(no name)", page)
