"""What is decided: the action, and the corrections that are planned for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Action(StrEnum):
    CORRECT = "CORRECT"
    AMBIGUOUS = "AMBIGUOUS"
    INCORRECT = "INCORRECT"


class Handling(StrEnum):
    """What becomes of the retrieved passages; `documents`: their documents are read whole in their place."""

    KEEP = "keep"
    REFINE = "refine"
    EXTRACT = "extract"
    DISCARD = "discard"
    DOCUMENTS = "documents"


HANDLING_WORDS = {
    Handling.KEEP: ("Use whole", "use the chunks as they are"),
    Handling.REFINE: ("Refine", "keep the best sentences"),
    Handling.EXTRACT: ("Extract", "keep the best sentences"),
    Handling.DISCARD: ("Discard", "set the chunks aside"),
    Handling.DOCUMENTS: ("Read whole", "read their documents whole"),
}
"""As a title, and within a sentence."""


class CorrectionKind(StrEnum):
    KEEP = "keep"
    DISCARD = "discard"
    REFINE = "refine"
    REWRITE = "rewrite"
    WEB_SEARCH = "web_search"
    EXPAND = "expand"
    READ = "read"
    RE_RETRIEVE = "re_retrieve"
    GENERATE = "generate"


@dataclass(frozen=True)
class Correction:
    """One thing that the decision wants done, or that was done, and why.

    `passage_id` when it concerns one passage only. `query` is the text that was searched or refined with, once it is
    known.
    """

    kind: CorrectionKind
    reason: str
    passage_id: str | None = None
    query: str = ""


ALWAYS = "always"


NO_RETRIEVAL = "no_retrieval"


@dataclass(frozen=True)
class Decision:
    """Where the question goes.

    `score` is the overall score in 0..1 that was compared with the thresholds, None when there was nothing to compare.
    `deciding` holds the ids of the passages that made the score. `rule` names the fast-path rule that decided without
    any grading, if one did. `handling` is what becomes of the passages that are not discarded one by one. `next_round`
    names the retrieval that is asked for before anything is answered: "expand", "refine", or a re-retrieval strategy.
    `web_below`: the web is asked if refinement leaves something of fewer passages than this, which is not known yet.
    `topical`, where two signals decided: the best topical score, compared with `lower`; only `upper` was compared with
    `score` then, the best answering score. None wherever one number was compared with both.
    """

    action: Action
    label: str
    score: float | None
    reason: str
    plan: tuple[Correction, ...]
    deciding: tuple[str, ...] = ()
    rule: str | None = None
    handling: Handling = Handling.KEEP
    next_round: str | None = None
    topical: float | None = None
    web_below: int | None = None

    @property
    def may_search(self) -> bool:
        return self.web_below is not None or self.wants(CorrectionKind.WEB_SEARCH)

    @property
    def verdict(self) -> Action | None:
        """The action, where anything was judged; None for plain RAG, and where no document was read."""
        return None if self.rule in (ALWAYS, NO_RETRIEVAL) else self.action

    @property
    def is_from_memory(self) -> bool:
        return self.rule == NO_RETRIEVAL

    @property
    def confidence(self) -> float | None:
        """How sure the score makes the action (description 003): the score, or 1 - score when INCORRECT.

        Of two signals the one that made the action counts: `topical`, unless CORRECT.
        """
        score = self.score if self.topical is None or self.action is Action.CORRECT else self.topical
        return 1.0 - score if score is not None and self.action is Action.INCORRECT else score

    def wants(self, kind: CorrectionKind) -> bool:
        return any(correction.kind == kind for correction in self.plan)

    def decides_like(self, other: Decision) -> bool:
        """Whether both are one decision, in whatever words: those of a record may be an earlier version's."""
        one, two = (
            replace(each, label="", reason="", plan=tuple(replace(correction, reason="") for correction in each.plan))
            for each in (self, other)
        )
        return one == two
