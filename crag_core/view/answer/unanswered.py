"""Why a question was not answered from the evidence, and what would help. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.text.display import counted, readable
from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.knowledge import Knowledge
from crag_core.base.types.passages import Passage
from crag_core.base.types.web import WEB_WORDS
from crag_core.decision.stability import flips
from crag_core.trace.grounding.quoted_answer import with_headers
from crag_core.trace.reroute import reroute
from crag_core.view.path.stages import describe_web
from crag_core.view.run_view import RunView
from crag_core.view.score_words import CALLED

_MOST_NEAREST = 3
_SEARCH = "Let this route search the web: carry it out with the web switched on."


@dataclass(frozen=True)
class Nearest:
    """The best sentence that did not make it into an answer, its score, and what it failed at."""

    text: str
    passage: Passage
    score: float
    why: str


@dataclass(frozen=True)
class Unanswered:
    """What was looked for (words, and whose they are), where, the nearest miss, and what can be done."""

    asked: tuple[tuple[str, str], ...]
    where: tuple[str, ...]
    nearest: Nearest | None
    ways: tuple[str, ...]


def unanswered(view: RunView) -> Unanswered:
    """Of a run that gave no answer; every threshold that is named was tried on the record."""
    return Unanswered(tuple(_asked(view)), tuple(_where(view)), _nearest(view), tuple(_ways(view)))


def _asked(view: RunView) -> Iterator[tuple[str, str]]:
    trace, routed = view.trace, view.routed
    yield trace.question, "your question"
    known = {trace.question}
    path = routed.decision_path.iterations[-1].path
    made = [one for one in trace.rounds if one.retrievals and one.path == path[: len(one.path)]]
    found = [(one.retrievals[-1].query, one.query_by) for one in made]
    if trace.web and trace.web.query:
        found.append((trace.web.query, f"for the web, {trace.web.query_by}"))
    for query, by in found:
        if query not in known:
            known.add(query)
            yield query, by


def _where(view: RunView) -> Iterator[str]:
    trace, routed = view.trace, view.routed
    looked_at = routed.decision_path.looked_at
    sources = {passage.stems_from for passage in looked_at}
    rounds = len(routed.decision_path.iterations)
    message = f"{counted(len(looked_at), 'chunk')} of {counted(len(sources), 'document')}" if looked_at else "nothing"
    pinned = ", files that you pinned" if trace.settings.pinned else ""
    yield f"Your documents: {message} found{pinned}{f', in {rounds} rounds' if rounds > 1 else ''}"
    if routed.decision.wants(CorrectionKind.WEB_SEARCH) or trace.web:
        yield describe_web(trace, routed)


def nearest_sentences(view: RunView) -> tuple[Nearest, ...]:
    """Those with the best scores, whatever became of them; none of them is called an answer."""
    passages = {one.id: one for one in view.changed.every_passage}
    scored = [(one.strip.score, one) for one in view.routed.knowledge.verdicts if one.strip.score is not None]
    best = sorted(scored, key=lambda pair: -pair[0])[:_MOST_NEAREST]
    found = ((score, one, passages[one.strip.passage_id]) for score, one in best)
    return tuple(Nearest(with_headers(one.strip, passage), passage, score, one.reason) for score, one, passage in found)


def _nearest(view: RunView) -> Nearest | None:
    """Of the sentences that were struck out; of those that the writer had, if it was given any."""
    known, routed = view.changed, view.routed
    passages = {one.id: one for one in known.every_passage}
    given = bool(routed.knowledge.excerpts)
    scored = [
        (verdict.strip.score, verdict)
        for verdict in routed.knowledge.verdicts
        if verdict.strip.score is not None and verdict.kept is given
    ]
    if not scored:
        return None
    score, best = max(scored, key=lambda pair: pair[0])
    asked = "the policy abstains when in doubt" if view.abstains else "the writer had it, and found no answer in it"
    why = asked if best.kept else best.reason
    if not given and any(one.kind is CorrectionKind.DISCARD and one.passage_id is None for one in routed.decision.plan):
        why = "set aside with all others"
    passage = passages[best.strip.passage_id]
    return Nearest(with_headers(best.strip, passage), passage, score, why)


# --- what can be done -----------------------------------------------------------------------------------------------


def _ways(view: RunView) -> Iterator[str]:
    trace, routed = view.trace, view.routed
    if not routed.knowledge.excerpts and (moved := _by_threshold(view)):
        yield moved
    elif more := _by_cutoff(view):
        yield more
    advice = WEB_WORDS[trace.web.outcome].advice if trace.web else _SEARCH
    if routed.decision.wants(CorrectionKind.WEB_SEARCH) and advice:
        yield advice
    yield "Add documents that hold the answer, on the Documents page."
    if view.abstains:
        yield "Choose “Show nearest” in the sidebar to see the nearest sentences."
    elif routed.knowledge.excerpts:
        yield "Ask another model, or none: then the best sentences are quoted as they stand."


def _by_threshold(view: RunView) -> str:
    """The nearest move of one threshold after which there is something to answer from."""
    trace, policy, routed = view.trace, view.policy, view.routed
    for flip in flips(view.stability, policy):
        now = getattr(policy, flip.threshold)
        for value in _hundredths(flip.at, down=flip.at < now):
            lower, upper = (value, policy.upper) if flip.threshold == "lower" else (policy.lower, value)
            then = reroute(trace, policy.with_thresholds(lower, upper)) if policy.allows(lower, upper) else routed
            if then.decision.action is not routed.decision.action and (count := _pieces(then.knowledge)):
                message, there = readable(now, value)
                is_one = routed.decision.topical is None
                bar = f"{flip.threshold} threshold" if is_one else CALLED[flip.threshold]
                return (
                    f"Move the {bar} from {message} to {there}: the decision turns to "
                    f"{then.decision.action}, with {counted(count, 'piece')} of evidence."
                )
    return ""


def _by_cutoff(view: RunView) -> str:
    """The highest sentence cut-off, in hundredths, that lets more in."""
    trace, policy, routed = view.trace, view.policy, view.routed
    cutoff = policy.cutoff
    scores = [one.strip.score for one in routed.knowledge.verdicts if not one.kept and one.strip.score is not None]
    best = max((score for score in scores if score <= cutoff), default=0.0)
    for value in _hundredths(best, down=True):
        then = reroute(trace, policy.with_thresholds(cutoff=value)) if value >= 0 else routed
        if (more := _pieces(then.knowledge) - _pieces(routed.knowledge)) > 0:
            now, there = readable(cutoff, value)
            what = counted(more, "more sentence")
            return f"Lower the sentence cut-off from {now} to {there}: {what} would be evidence."
    return ""


def _hundredths(at: float, down: bool) -> tuple[float, float]:
    """The hundredth at or next to a score, and the one beyond it, for where the score itself is not enough."""
    near = round(at * 100, 9)
    first = math.floor(near) if down else math.ceil(near)
    return first / 100, (first + (-1 if down else 1)) / 100


def _pieces(knowledge: Knowledge) -> int:
    return sum(len(excerpt.strip_ids) or 1 for excerpt in knowledge.excerpts)
