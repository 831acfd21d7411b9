"""Chunks and web snippets of a run as cards: their scores, what becomes of them, and their sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Knowledge, StripVerdict
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Round
from crag_core.decision.decide import chunk_action, set_aside
from crag_core.trace.injection_scan import warnings
from crag_core.view.run_view import Label, RunView
from crag_core.view.score_words import (
    Number,
    decides_by_chunks,
    deciding_text,
    edit_text,
    numbers_of,
    own_reason,
    signals_of,
)
from crag_core.view.sentences import SentenceList, deciding_cutoff, list_sentences

_RETRIEVERS = {"keyword": "keyword (BM25)", "rrf": "rank fusion", "provider": "the provider's own score"}
_DIGITS = {"rrf": 4}  # 1 / (60 + rank), which two decimals would make equal


@dataclass(frozen=True)
class ChunkCard:
    """A chunk, or a snippet of the web.

    `grade` is its own, `counted` the one that counts, another where it was pinned. `compared` are its scores that the
    thresholds are held against, `scores` all that are shown; both are empty where it was not graded.
    `action` is what its own score stands for, None where the policy compares no single chunk with its thresholds, and
    for snippets, which decide nothing. `chips` are (kind, words). `edit` is what the user did to it. `is_used`: some
    of it went into the answer, None: nothing is decided yet.
    `is_asked_for`: the policy looks at it. `is_aside`: its grade is on another scale than those that decide.
    """

    passage: Passage
    label: Label
    grade: Grade | None
    counted: Grade | None
    compared: tuple[Number, ...]
    scores: tuple[Number, ...]
    action: Action | None
    chips: tuple[tuple[str, str], ...]
    decides: str
    edit: str
    is_dropped: bool
    is_pinned: bool
    is_asked_for: bool
    is_aside: bool
    is_used: bool | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    verdicts: tuple[StripVerdict, ...]
    cutoff: float | None
    kept_then: frozenset[str] | None

    @property
    def reason(self) -> str:
        return own_reason(self.grade) if self.grade and self.grade.score is not None else ""

    @property
    def use(self) -> str:
        if not self.is_used:
            return "" if self.is_used is None else "not used"
        kept = sum(verdict.kept for verdict in self.verdicts)
        is_whole = kept == len(self.verdicts)
        return "used whole" if is_whole else f"used {kept} of {counted(len(self.verdicts), 'sentence')}"

    @property
    def ungraded(self) -> str:
        if self.grade is None:
            return "Not graded"
        return f"Not graded: {self.grade.cause}" if self.grade.score is None else ""

    @property
    def found(self) -> str:
        """Where it stands in its document, and who found it with what score, a web provider's own among them."""
        scores = (
            f"{_RETRIEVERS.get(name, name)} {value:.{_DIGITS.get(name, 2)}f}" for name, value in self.passage.scores
        )
        by, section = self.passage.found_by, self.passage.section
        parts = (f"under {section}" if section else "", *scores, f"found by {', '.join(by)}" if by else "")
        return " · ".join(filter(None, parts))

    @cached_property
    def sentences(self) -> SentenceList:
        return list_sentences(self.passage, self.verdicts, self.cutoff, self.kept_then)


def chunk_cards(view: RunView) -> tuple[ChunkCard, ...]:
    """Of every corpus passage of the record, in the order of finding; what is new since `view.was` is marked."""
    return _made_once(view, "chunks", view.trace.all_passages)


def opened_first(view: RunView, cards: Sequence[ChunkCard]) -> str:
    """The id of the one chunk that is open at first: the first that decided, else the first in the list.

    It follows the run as taken, not the thresholds as they stand now: a slider that moves must open and fold nothing.
    """
    shown = [card.passage.id for card in cards if card.is_asked_for]
    decided = (view.was or view.routed).decision.deciding if view.is_decided else ()
    return next((id_ for id_ in decided if id_ in shown), shown[0] if shown else "")


def snippet_cards(view: RunView) -> tuple[ChunkCard, ...]:
    """Of every web passage of the record: snippets, and chunks of their pages behind them."""
    return _made_once(view, "snippets", view.trace.web_passages)


def _made_once(view: RunView, what: str, passages: Iterable[Passage]) -> tuple[ChunkCard, ...]:
    if what not in view.made:
        view.made[what] = tuple(_cards(view, passages))
    cards: tuple[ChunkCard, ...] = view.made[what]
    return cards


def _cards(view: RunView, passages: Iterable[Passage]) -> Iterator[ChunkCard]:
    trace, policy, was, path = view.trace, view.policy, view.was, view.routed.decision_path
    decision, edits = path.decision, trace.edits
    looked_at = {one.id for one in path.looked_at}
    aside = set_aside(policy, path.looked_at, view.changed.grades)
    if trace.web:
        results = trace.web.evidence(policy.web.pages)
        looked_at |= {one.id for one in results}
        aside |= set_aside(policy, results, trace.web_grades)
    knowledge = Knowledge((), (), ()) if view.not_graded_by else view.routed.knowledge
    verdicts = defaultdict[str, list[StripVerdict]](list)
    for verdict in sorted(knowledge.verdicts, key=lambda one: one.strip.start):
        verdicts[verdict.strip.passage_id].append(verdict)
    used = {excerpt.passage.id for excerpt in knowledge.excerpts}
    used_then = {excerpt.passage.id for excerpt in was.knowledge.excerpts} if was else used
    kept_then = frozenset(one.strip.id for one in was.knowledge.verdicts if one.kept) if was else None
    suspicious = {one.passage_id for one in trace.suspicions or ()}
    is_two = decision.topical is not None
    is_by_chunks = view.is_decided and decides_by_chunks(policy, decision)
    for passage in passages:
        id_, grade, counting = passage.id, trace.grade_of(passage.id), view.changed.grade_of(passage.id)
        is_dropped, is_pinned, is_web = id_ in edits.dropped, id_ in edits.pinned, passage in trace.web_passages
        decides = _decides(decision, id_, counting) if is_by_chunks else ""
        compared = numbers_of(grade, policy, has_two=is_two)
        is_used = id_ in used if view.is_decided else None
        change = "new" if is_used else "gone"
        chips = (
            ("decides", "decides", bool(decides)),
            ("pinned", "pinned by you", is_pinned),
            ("dropped", "dropped by you", is_dropped),
            ("gone", "possible prompt injection", id_ in suspicious),
            (change, change, is_used not in (id_ in used_then, None)),
        )
        yield ChunkCard(
            passage=passage,
            label=view.labels[id_],
            grade=grade,
            counted=counting or grade,
            compared=compared,
            scores=compared if is_two or not grade else (*compared, *signals_of(grade)),
            action=None if is_web or is_dropped else chunk_action(policy, passage, counting, aside),
            chips=tuple((kind, words) for kind, words, is_there in chips if is_there),
            decides=decides,
            edit=edit_text("dropped" if is_dropped else "pinned" if is_pinned else "", compared),
            is_dropped=is_dropped,
            is_pinned=is_pinned,
            is_asked_for=is_dropped or id_ in looked_at,
            is_aside=id_ in aside,
            is_used=is_used,
            notes=() if is_dropped else tuple(_web_notes(view, id_) if is_web else _notes(view, id_)),
            warnings=warnings(trace, passage),
            verdicts=tuple(verdicts.get(id_, ())),
            cutoff=deciding_cutoff(view, passage.origin),
            kept_then=kept_then,
        )


def _decides(decision: Decision, id_: str, grade: Grade | None) -> str:
    """ "decides", or of two signals also what it is the best in: "decides: best answer"; "" where it does not."""
    if id_ not in decision.deciding or decision.verdict is None:
        return ""
    if decision.topical is None or grade is None:
        return "decides"
    of_topical = decision.action is not Action.CORRECT and grade.part(TOPICAL) == decision.topical
    best = [ANSWERING] * (grade.part(ANSWERING) == decision.score) + [TOPICAL] * of_topical
    return deciding_text(best, decision) or "decides"


def _notes(view: RunView, id_: str) -> Iterator[str]:
    path = view.routed.decision_path
    if id_ not in {one.id for one in view.trace.passages or ()}:
        found = next((one.path for one in view.trace.rounds if id_ in _ids(one)), ())
        yield from [f"found by a later retrieval: {' → '.join(found)}"] if found else []
    if id_ not in {one.id for one in path.looked_at}:
        yield "found by a retrieval that this policy does not ask for"
    elif id_ not in {one.id for one in path.evidence}:
        yield "looked at in an earlier iteration only"


def _web_notes(view: RunView, id_: str) -> Iterator[str]:
    web = view.trace.web
    if web and id_ not in {one.id for one in web.evidence(view.policy.web.pages)}:
        is_snippet = id_ in {one.id for one in web.results}
        yield "chunks of its page are used in its place" if is_snippet else "this policy does not read this page"


def _ids(found: Round) -> set[str]:
    return {passage.id for retrieval in found.retrievals for passage in retrieval.passages}
