"""What a model made of the evidence and of its own knowledge, for whoever shows it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import clean
from crag_core.trace.consolidation import conflict_lines, sources_in_words
from crag_core.view.answer.answer_blocks import Source, sources_of
from crag_core.view.run_view import RunView

NO_EVIDENCE = "Written from memory before any chunk was read. No evidence: it is not graded, counted or cited."
KNOWS_NOTHING = "The model says that it does not know."


@dataclass(frozen=True)
class Group:
    """Statements that agree, with their `sources` in words; the excerpts among them as links."""

    text: str
    sources: str
    cited: tuple[Source, ...]
    in_memory: bool
    in_evidence: bool


@dataclass(frozen=True)
class ConsolidatedView:
    """`asked`: the model was asked for what it knows itself; `own` is that, () where it knows nothing."""

    asked: bool
    own: tuple[str, ...]
    groups: tuple[Group, ...]
    conflicts: tuple[str, ...]

    @property
    def title(self) -> str:
        return "The model's own knowledge" if self.asked else "Consolidated evidence"

    @property
    def from_memory_alone(self) -> tuple[str, ...]:
        return tuple(one.text for one in self.groups if not one.in_evidence)


def consolidated_view(view: RunView) -> ConsolidatedView | None:
    """None where nothing was consolidated under this policy from this evidence."""
    found = view.routed.knowledge.consolidation
    if found is None:
        return None
    sources = dict(enumerate(sources_of(view), start=1))
    groups = (
        Group(
            clean(one.text),
            sources_in_words(one, view.excerpt_numbers),
            tuple(sources[place] for place in one.excerpts if place in sources),
            bool(one.memory),
            bool(one.excerpts),
        )
        for one in found.pieces
    )
    return ConsolidatedView(
        found.most > 0,
        tuple(map(clean, found.own)),
        tuple(groups),
        conflict_lines(found, view.excerpt_numbers),
    )
