"""The verdict of a run in words: the action, its reason in numbers, how far it is from another, what was changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crag_core.base.text.display import against, counted, limit_text, readable
from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.decision.policy import STAND_IN, Policy
from crag_core.decision.reasons import FIELD
from crag_core.decision.stability import flips, is_settled
from crag_core.trace.trace import Trace
from crag_core.view.run_view import RunView, evaluator_name
from crag_core.view.score_words import ALONE, CALLED, QUESTIONS, flip_text, threshold_names

MEANINGS = {
    Action.CORRECT: "The evidence holds up.",
    Action.AMBIGUOUS: "The evidence is on the subject, but may not be enough.",
    Action.INCORRECT: "The evidence does not fit the question.",
}
ONE_FOR_BOTH = "One score for both signals: it is compared with both thresholds, as in Paper."


@dataclass(frozen=True)
class Figure:
    """One number with its name. `against` says what one threshold makes of it, `hint` what else it means."""

    name: str
    value: str
    against: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Chip:
    """The verdict in one line: what it judges, and the reason in numbers."""

    title: str
    reason: str


def chip(decision: Decision, reason: str) -> Chip:
    """ "Retrieval: CORRECT", "Best chunk 0.86 ≥ upper 0.70"."""
    if decision.is_from_memory:
        return Chip(decision.label, "No document was read")
    if decision.verdict is None:
        return Chip(decision.label, "Chunks used as retrieved")
    return Chip(f"Retrieval: {headline(decision)}", f"{reason[:1].upper()}{reason[1:]}")


def headline(decision: Decision) -> str:
    """ "AMBIGUOUS", and the policy's own name for it where it has one; that name alone where nothing was judged."""
    if decision.verdict is None:
        return decision.label
    own = own_name(decision)
    return f"{decision.action} · {own}" if own else f"{decision.action}"


def own_name(decision: Decision) -> str:
    """What the policy calls the action, "stand-in" where a rule decided in place of a model; or that nobody judged."""
    is_unjudged = decision.score is None and decision.rule is None
    if is_unjudged and decision.action is Action.AMBIGUOUS:
        return "not judged"
    if decision.label.endswith(STAND_IN):
        return "" if is_unjudged else STAND_IN  # of nothing, no model would have been asked
    return "" if decision.label.upper() == decision.action else decision.label


def meaning(policy: Policy, decision: Decision) -> str:
    """Doubt without a score says nothing of the evidence, and plain RAG never does."""
    if decision.verdict is None:
        return "No document was read." if decision.is_from_memory else "Plain RAG."
    if policy.judges_together and decision.score is not None:
        return f"Read together, the chunks are {'' if decision.score == 1.0 else 'not '}enough to answer from."
    unknown = decision.action is Action.AMBIGUOUS and decision.score is None
    return "Nothing is known of the evidence." if unknown else MEANINGS[decision.action]


def figures(view: RunView) -> tuple[Figure, ...]:
    if view.routed.decision.is_from_memory:
        return ()
    if view.routed.decision.verdict is None:
        return (_used(view),)
    return *_scores(view.policy, view.routed.decision), _kept(view)


def _scores(policy: Policy, decision: Decision) -> Iterator[Figure]:
    sure = decision.confidence
    confidence = "Nothing to compare." if sure is None else f"Confidence in {decision.action}: {sure:.2f}."
    if decision.score is None or decision.topical is None:
        limits = (policy.lower, policy.upper)
        value, low, high = ("–", *readable(*limits)) if decision.score is None else against(decision.score, *limits)
        yield Figure("Overall score", value, hint=f"lower {low}, upper {high}. {confidence}")
        return
    for name, best, threshold, called, then in (
        (ANSWERING, decision.score, policy.upper, "upper", "CORRECT if it reaches its bar."),
        (TOPICAL, decision.topical, policy.lower, "lower", "If not CORRECT: INCORRECT if it is below its bar."),
    ):
        value, limit = against(best, threshold)
        side = "below" if best < threshold else "above" if best > threshold else "at"
        hint = f"Of all chunks: {QUESTIONS[name]} {then} {confidence}"
        yield Figure(f"Best {CALLED[name]}", value, f"{side} the {CALLED[called]} {limit}", hint)


def _kept(view: RunView) -> Figure:
    knowledge = view.routed.knowledge
    kept = sum(verdict.kept for verdict in knowledge.verdicts)
    excerpts = f"in {counted(len(knowledge.excerpts), 'excerpt')}"
    return Figure("Sentences kept", f"{kept} of {len(knowledge.verdicts)}", hint=excerpts)


def _used(view: RunView) -> Figure:
    used, found = len(view.routed.knowledge.internal), len(view.routed.decision_path.evidence)
    return Figure("Chunks used", f"{used} of {found}", hint="as they are, none graded")


def flip_lines(view: RunView) -> tuple[str, ...]:
    """Where a single threshold changes the action, nearest first: "AMBIGUOUS if upper > 0.86"; () where none does."""
    terms = FIELD if view.routed.decision.topical is None else ALONE
    return tuple(flip_text(flip, terms) for flip in flips(view.stability, view.policy))


def no_flip(view: RunView) -> str:
    if view.routed.decision.verdict is None:
        return "No threshold is looked at."
    settled = is_settled(view.policy, view.look)
    return "No threshold changes this." if settled else "Change both thresholds to flip this."


def not_graded(view: RunView) -> str:
    """ "2 of 6 chunks not graded: Ollama went away", of those that were asked about; "" where all are graded."""
    looked_at = () if view.policy.is_plain else view.routed.decision_path.looked_at  # which plain RAG has not graded
    missed = [one for chunk in looked_at if (one := view.changed.grade_of(chunk.id)) and one.score is None]
    return f"{len(missed)} of {counted(len(looked_at), 'chunk')} not graded: {missed[0].cause}" if missed else ""


def notes(view: RunView) -> tuple[str, ...]:
    one = (ONE_FOR_BOTH,) if is_one_for_both(view.policy, view.routed.decision) else ()
    said = view.routed.decision.is_from_memory  # the line says that no document was read
    return *one, *filter(None, [not_graded(view)]), *(() if said else view.routed.knowledge.notes)


def is_one_for_both(policy: Policy, decision: Decision) -> bool:
    """Whether a policy of two signals had but one number to decide by: the evaluator tells no parts."""
    is_compared = decision.score is not None and decision.rule is None
    return policy.score == "two_signals" and is_compared and decision.topical is None


# --- what differs from the run as taken -----------------------------------------------------------------------------


def changes(taken: Trace, trace: Trace, policy: Policy) -> tuple[str, ...]:
    then, message = taken.settings.policy, []
    if then.name != policy.name:
        message.append(f"policy {policy.title} instead of {then.title}")
    if trace.settings.judge != taken.settings.judge:
        message.append(f"evaluator {_evaluator(trace)} instead of {_evaluator(taken)}")
    is_plain = policy.is_plain or then.is_plain  # which looks at no threshold
    has_two = policy.compares_two_scores and then.compares_two_scores
    lower, upper = threshold_names(policy) if has_two else ("lower threshold", "upper threshold")
    message += [
        f"{name} {_instead(before, now)}"
        for name, before, now in (
            (lower, then.lower, policy.lower),
            (upper, then.upper, policy.upper),
            ("sentence cut-off", then.cutoff, policy.cutoff),
        )
        if before != now and not is_plain
    ]
    if then.refinement.top != policy.refinement.top and not is_plain:
        message.append(f"{limit_text(policy.refinement.top)} instead of {then.refinement.top or 'no limit'}")
    if then.doubtful is not policy.doubtful and not is_plain:
        message.append(f"doubtful ending “{policy.doubtful}” instead of “{then.doubtful}”")
    edits, before = trace.edits, taken.edits
    for what, back, ids, known in (
        ("dropped", "put back", edits.dropped, before.dropped),
        ("pinned", "no longer pinned", edits.pinned, before.pinned),
    ):
        message += [f"{named} {what}" for named in _named(taken, (id_ for id_ in ids if id_ not in known))]
        message += [f"{named} {back}" for named in _named(taken, (id_ for id_ in known if id_ not in ids))]
    return tuple(message)


def _evaluator(trace: Trace) -> str:
    card = trace.settings.evaluator
    return evaluator_name(card, trace.settings.writer).replace(card.title, card.title.lower(), 1)


def _instead(before: float, now: float) -> str:
    new, old = readable(now, before)
    return f"{new} instead of {old}"


def _named(trace: Trace, ids: Iterable[str]) -> list[str]:
    """ "chunks 2 and 5" of the corpus, "web result 7" of the web; ids that the record does not hold are left out."""
    chosen, numbers, message = set(ids), trace.numbers, []
    for noun, passages in (("chunk", trace.all_passages), ("web result", trace.web_passages)):
        ranks = [str(numbers[passage.id]) for passage in passages if passage.id in chosen]
        if ranks:
            listed = f"{', '.join(ranks[:-1])} and {ranks[-1]}" if len(ranks) > 1 else ranks[0]
            message.append(f"{noun if len(ranks) == 1 else f'{noun}s'} {listed}")
    return message
