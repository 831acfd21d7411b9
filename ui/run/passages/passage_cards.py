"""What the cards of a run say of its passages: on the line that is always there, and in the card that it opens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from crag_core.base.text.display import clean, counted
from crag_core.base.types import ANSWERING, TOPICAL, Edits, Grade, Origin, Passage, Scores, StripVerdict
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from crag_core.view.score_words import QUESTIONS
from ui.run.passages.card_heads import Head
from ui.run.passages.sentences import deciding_cutoff
from ui.run.two_signals import describe_deciding
from ui.text import link, plain

_RETRIEVERS = {"cosine": "cosine", "keyword": "keyword (BM25)", "rrf": "rank fusion", "retriever": "retriever"}


@dataclass(frozen=True)
class Cards:
    """A run as its cards show it; `trace` holds the raw facts, `routed` is what its edits make of them."""

    trace: Trace
    routed: Reroute
    policy: Policy | None = None
    was: Reroute | None = None
    edits: Edits = Edits()

    @cached_property
    def counted(self) -> Trace:
        """The record as it is decided from."""
        return edited(replace(self.trace, edits=self.edits))

    @cached_property
    def verdicts(self) -> dict[str, list[StripVerdict]]:
        """The strips of each passage, in its order."""
        found: dict[str, list[StripVerdict]] = {}
        for verdict in self.routed.knowledge.verdicts:
            found.setdefault(verdict.strip.passage_id, []).append(verdict)
        return found

    @cached_property
    def cited(self) -> dict[str, list[int]]:
        """The numbers of the excerpts that each passage gave the answer."""
        found: dict[str, list[int]] = {}
        for number, excerpt in enumerate(self.routed.knowledge.excerpts, start=1):
            found.setdefault(excerpt.passage.id, []).append(number)
        return found

    @cached_property
    def then(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """(ids of the passages, ids of the strips) that the run as taken used; None: nothing to compare with."""
        if self.was is None:
            return None
        knowledge = self.was.knowledge
        used = frozenset(excerpt.passage.id for excerpt in knowledge.excerpts)
        return used, frozenset(verdict.strip.id for verdict in knowledge.verdicts if verdict.kept)

    def cutoff(self, origin: Origin) -> float | None:
        return None if self.policy is None else deciding_cutoff(self.trace, self.policy, self.routed, origin)


def head_of(cards: Cards, passage: Passage, rank: int, anchor: str) -> Head:
    """What the line of a passage says."""
    grade, verdicts = cards.trace.grade_of(passage.id), cards.verdicts.get(passage.id, [])
    is_used = passage.id in cards.cited
    chips = []
    if passage.id in cards.routed.decision.deciding:
        chips.append(("decides", "decides"))
    if passage.id in cards.edits.pinned:
        chips.append(("pinned", "pinned by you"))
    if any(one.passage_id == passage.id for one in cards.trace.suspicions or ()):
        chips.append(("gone", "speaks to a model"))
    if cards.then is not None and is_used != (passage.id in cards.then[0]):
        chips.append(("new", "new") if is_used else ("gone", "gone"))
    # What is compared with the thresholds stands on the line; the card says the rest.
    two = grade.two_signals if grade and cards.routed.decision.topical is not None else None
    scores = tuple(zip((ANSWERING, TOPICAL), two, strict=True)) if two else ()
    if grade and grade.score is not None and not two:
        scores = (("score", grade.score),)
    return Head(
        anchor=anchor,
        rank=rank,
        title=clean(title(passage)),
        scores=scores,
        ungraded=() if scores else ("not graded",),
        use=_use(verdicts) if is_used else "not used",
        used=is_used,
        chips=tuple(chips),
    )


def title(passage: Passage) -> str:
    return f"{passage.source}, page {passage.page}" if passage.page else passage.source


def _use(verdicts: list[StripVerdict]) -> str:
    kept = sum(verdict.kept for verdict in verdicts)
    return "used whole" if kept == len(verdicts) else f"used {kept} of {counted(len(verdicts), 'sentence')}"


def describe(cards: Cards, passage: Passage) -> str:
    """What the line above has no room for: the reason, what the scores mean, citations, where it was found."""
    decision, grade = cards.routed.decision, cards.trace.grade_of(passage.id)
    lines = [_told_grade(grade, is_compared=decision.topical is None)]
    if passage.url:
        lines.insert(0, f":material/open_in_new: {link(passage.url, passage.url)}")
    if passage.id in cards.edits.pinned:
        lines.insert(0, ":violet[:material/push_pin: **Pinned by you:** it counts as 1.00, whatever its grade.]")
    badges = []
    if passage.id in decision.deciding:
        badges.append(f":blue-badge[decides{describe_deciding(cards.counted.grade_of(passage.id), decision)}]")
    if numbers := cards.cited.get(passage.id):
        badges.append(f":gray-badge[source {plain(' '.join(f'[{number}]' for number in numbers))}]")
    found = f"found by {plain(', '.join(passage.found_by))}" if passage.found_by else ""
    section = f"under {plain(passage.section)}" if passage.section else ""
    where = " · ".join(filter(None, (section, _retrieval(passage.scores), found)))
    last = " ".join([*badges, f":small[:gray[{where}]]" if where else ""])
    return "  \n".join(filter(None, [*lines, last.strip()]))


def _told_grade(grade: Grade | None, is_compared: bool) -> str:
    """The score, and both signals where the grade has them; the score beside them only where it is what is compared."""
    if grade is None:
        return ":gray[:material/horizontal_rule: **Not graded** in this run]"
    if grade.score is None:
        return f":orange[:material/warning: **Not graded:** {plain(grade.cause)}]"
    both = grade.two_signals
    if not both:
        return f"**{grade.score:.2f}** score{f' · {plain(grade.reason)}' if grade.reason else ''}"
    message = [f"**{grade.score:.2f}** score"] * is_compared
    message += [f"**{value:.2f}** {name}: {QUESTIONS[name]}" for name, value in zip(QUESTIONS, both, strict=True)]
    # The trained evaluator says both numbers first.
    more = grade.reason.removeprefix("answering {:.2f}, topical {:.2f}".format(*both)).lstrip(", ")
    return " · ".join([*message, plain(more)] if more else message)


def _retrieval(scores: Scores) -> str:
    digits = {"rrf": 4, "keyword": 1}
    return " · ".join(f"{_RETRIEVERS.get(name, plain(name))} {value:.{digits.get(name, 2)}f}" for name, value in scores)
