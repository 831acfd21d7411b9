"""The plan of an action: the corrections it asks for, and the retrieval that comes next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from crag_core.base.text.display import against, readable
from crag_core.base.types import Action, Correction, CorrectionKind, Handling, Passage
from crag_core.decision.policy import Again, Policy, Route, Strategy, WebQuery, WebUse

EffectiveScores = dict[str, float | None]
"""What each passage counts as under one policy; None: it does not count."""

EXPAND, REFINE = "expand", Again.REFINE.value
"""Names of rounds, besides those of `Strategy`."""
NOT_COMPARABLE = "graded on the coarse scale, which cannot be compared with the other grades"
DOCUMENTS = Handling.DOCUMENTS.value
"""The round that reads the documents of the chunks whole."""
WIDENING = (EXPAND, DOCUMENTS)
"""Rounds that change the evidence after the decision, which stands."""


def query_form(policy: Policy) -> str:
    """What a language model is to write for the web under this policy; "": nothing, the question goes as it is."""
    return {
        WebQuery.QUESTION: "",
        WebQuery.REWRITTEN: f"a search query of about {policy.web_query_words} words",
        WebQuery.PHRASES: f"at most {policy.web_query_phrases} key phrases to search for",
    }[policy.web_query]


@dataclass(frozen=True)
class Planner:
    """What an action does here. `path` None: nothing could be measured, and then no more evidence is looked for.

    `left`: of how many passages refinement leaves something, None: not known yet. `is_last`: no round is to follow.
    `aside`: passages whose grades cannot be compared with the others.
    """

    policy: Policy
    action: Action
    passages: tuple[Passage, ...]
    scores: EffectiveScores
    path: tuple[str, ...] | None
    left: int | None = None
    is_last: bool = False
    aside: Collection[str] = ()

    @property
    def route(self) -> Route:
        return self.policy.route(self.action)

    @property
    def next_round(self) -> str | None:
        """The retrieval to be made before anything is answered."""
        if self.path is None or self.is_last:
            return None
        if self.route.passages is Handling.DOCUMENTS:
            return DOCUMENTS if self.passages else None
        if self.route.expand:
            return EXPAND if EXPAND not in self.path else None
        if not self.route.re_retrieve or self.rounds_left < 1:
            return None
        return REFINE if self.route.re_retrieve is Again.REFINE else self.next_strategy

    @property
    def rounds_left(self) -> int:
        return self.policy.loop.max_iterations - len(self.path or ()) - 1

    @property
    def next_strategy(self) -> Strategy | None:
        return next((way for way in self.policy.loop.strategies if way not in (self.path or ())), None)

    @property
    def is_out_of_rounds(self) -> bool:
        """Whether retrieving again is what the action does, and there is no other way left to do it."""
        return bool(self.route.re_retrieve) and self.path is not None and self.next_round is None

    @property
    def handling(self) -> Handling:
        is_last = self.is_out_of_rounds and self.route.passages is Handling.DISCARD
        is_unread = self.route.passages is Handling.DOCUMENTS and self.next_round is None
        return Handling.WHOLE if is_last or is_unread else self.route.passages

    @property
    def web_below(self) -> int | None:
        """The web is asked if refinement leaves something of fewer passages than this; None: that is settled."""
        route = self.route
        refines = self.handling in (Handling.REFINE, Handling.EXTRACT)
        if self.path is None or route.web is not WebUse.WHEN_FEW or not refines or self.left is not None:
            return None
        return route.web_below_results if self._remaining(self._discards()) >= route.web_below_results else None

    def plan(self) -> tuple[Correction, ...]:
        discards = self._discards()
        remaining = self._remaining(discards)
        plan = [*discards, *self._keeping(remaining), *self._searching(remaining), *self._retrieving()]
        return (*plan, Correction(CorrectionKind.GENERATE, "answer from what is kept"))

    def _remaining(self, discards: list[Correction]) -> int:
        return 0 if any(one.passage_id is None for one in discards) else len(self.passages) - len(discards)

    def _discards(self) -> list[Correction]:
        if self.handling is Handling.DISCARD:
            why = f"{self.action}: none of the {len(self.passages)} chunks is used"
            return [Correction(CorrectionKind.DISCARD, why)] if self.passages else []
        found = [
            Correction(CorrectionKind.DISCARD, NOT_COMPARABLE, one.id) for one in self.passages if one.id in self.aside
        ]
        least = self.policy.drops_below(self.action)
        if least is None or self.path is None or self.route.passages is not self.handling:
            return found  # without any measure nothing has been found out against a passage
        for place, passage in enumerate(self.passages):
            score = self.scores[passage.id]
            if passage.id in self.aside:
                continue
            if self.policy.grade_top is not None and place >= self.policy.grade_top:
                why = f"only the first {self.policy.grade_top} are judged"
                found.append(Correction(CorrectionKind.DISCARD, why, passage.id))
            elif score is None or score < least:
                why = "not graded" if score is None else "score {} < {}".format(*against(score, least))
                found.append(Correction(CorrectionKind.DISCARD, why, passage.id))
        return found

    def _keeping(self, remaining: int) -> list[Correction]:
        if not remaining or self.handling is Handling.DOCUMENTS:
            return []
        if self.handling is Handling.REFINE:
            why = f"keep the sentences of {remaining} chunks that score above {readable(self.policy.cutoff)[0]}"
            return [Correction(CorrectionKind.REFINE, why + self._on_condition)]
        if self.handling is Handling.EXTRACT:
            why = f"extract the relevant sentences of {remaining} chunks word for word"
            return [Correction(CorrectionKind.REFINE, why + self._on_condition)]
        why = f"use {remaining} chunks as they are"
        if self.is_out_of_rounds:
            done = len(self.path or ()) + 1
            why = f"iteration {done} of {self.policy.loop.max_iterations}, no more retrieval: {why}"
        return [Correction(CorrectionKind.KEEP, why)]

    @property
    def _on_condition(self) -> str:
        return "" if self.web_below is None else f"; the web is asked if fewer than {self.web_below} chunks are left"

    def _searching(self, remaining: int) -> list[Correction]:
        route = self.route
        left = remaining if self.left is None else min(remaining, self.left)
        few = route.web is WebUse.WHEN_FEW and left < route.web_below_results
        is_strategy = self.next_round == Strategy.WEB
        if self.path is None or not (route.web is WebUse.ALWAYS or few or is_strategy):
            return []
        why = f"{self.action} asks the web"
        if few:
            after = "remain" if left == remaining else "are left after refinement"
            why = f"only {left} of at least {route.web_below_results} chunks {after}"
        search = Correction(CorrectionKind.WEB_SEARCH, f"{why}, up to {self.policy.web_limit} results")
        rewrite = query_form(self.policy)
        return [Correction(CorrectionKind.REWRITE, rewrite), search] if rewrite else [search]

    def _retrieving(self) -> list[Correction]:
        following = self.next_round
        if following is None or following == Strategy.WEB:
            return []
        if following == DOCUMENTS:
            return [Correction(CorrectionKind.READ, "read the documents of these chunks whole")]
        if following == EXPAND:
            return [Correction(CorrectionKind.EXPAND, "partly relevant: retrieve again with an expanded question")]
        ways = {
            REFINE: "retrieve more with refined keywords",
            Strategy.KEYWORD: "retrieve by keywords alone",
            Strategy.REWRITTEN: "retrieve by meaning, with the question in other words",
            Strategy.EXPANDED: "retrieve with an expanded question",
        }
        at = f"iteration {len(self.path or ()) + 2} of {self.policy.loop.max_iterations}"
        return [Correction(CorrectionKind.RE_RETRIEVE, f"{self.action}: {ways[following]} ({at})")]
