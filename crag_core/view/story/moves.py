"""The last step of a story: a bar that is moved, or another policy that reads the same scores; no model is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crag_core.base.text.display import clean, readable
from crag_core.decision.policy import Policy
from crag_core.decision.stability import flips
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_line import picture
from crag_core.view.story.scales import scales_of, shortened_scale, ungraded
from crag_core.view.story.steps import BarPicture, Outcome, PoliciesPicture, Reading, Scale, Stretch
from crag_core.view.story.words import decision_caption, outcome_of


@dataclass(frozen=True)
class Move:
    """A threshold, "lower" or "upper", and where it is put."""

    threshold: str
    to: float


def nearest_move(view: RunView) -> Move | None:
    """The least move of one threshold that changes the decision and is seen to pass the score; None: there is none."""
    for flip in flips(view.stability, view.policy):
        now = getattr(view.policy, flip.threshold)
        near = round(flip.at * 100, 9)
        is_down = flip.at < now
        first = math.floor(near) if is_down else math.ceil(near)
        shown = round(near)  # where two decimals of bar and score are the same
        for place in (one for one in (first, first - 1 if is_down else first + 1, first) if one != shown):
            policy = moved(view.policy, flip.threshold, place)
            if policy and view_run(view.trace, policy).routed.decision.action is flip.to:
                return Move(flip.threshold, place / 100)
    return None


def moved(policy: Policy, threshold: str, hundredths: int) -> Policy | None:
    """`policy` with this threshold there; None where it may not be."""
    value = hundredths / 100
    lower, upper = (value, policy.upper) if threshold == "lower" else (policy.lower, value)
    is_possible = 0.0 <= value <= 1.0 and policy.allows(lower, upper)
    return policy.with_thresholds(lower, upper) if is_possible else None


def bar_picture(view: RunView, move: Move) -> BarPicture | None:
    """Every hundredth that the bar may stand at, decided from the record; None where its scale has no such bar."""
    drawn = picture(view)
    scales = scales_of(view)
    at = next((n for n, line in enumerate(drawn.lines) if move.threshold in line.marks), None) if drawn else None
    if at is None:
        return None
    outcomes: list[Outcome] = [outcome_of(view)]
    stretches: list[Stretch] = []
    for place in range(101):
        policy = moved(view.policy, move.threshold, place)
        if policy is None:
            continue
        outcome = outcome_of(view_run(view.trace, policy))
        if outcome not in outcomes:
            outcomes.append(outcome)
        index = outcomes.index(outcome)
        if stretches and stretches[-1].outcome == index:
            stretches[-1] = Stretch(stretches[-1].first, place, index)
        else:
            stretches.append(Stretch(place, place, index))
    bar = next(bar for bar in scales[at].bars if bar.id == move.threshold)
    return BarPicture(
        bar.id, bar.name, shortened_scale(scales[at]), round(bar.value * 100), bar.text, round(move.to * 100),
        tuple(stretches), tuple(outcomes),
    )  # fmt: skip


def bar_caption(drawn: BarPicture) -> str:
    was = drawn.outcomes[0].verdict.action
    there = next((one for one in drawn.stretches if one.first <= drawn.goal <= one.last), None)
    then = drawn.outcomes[there.outcome].verdict.action if there else was
    result = f"the same scores then mean {then} instead of {was}" if then != was else f"the decision stays {was}"
    return (
        f"The {drawn.name} stands at {drawn.text}. Put it at {readable(drawn.goal / 100)[0]}: {result}. "
        "Nothing is searched or graded again."
    )


def policies_picture(view: RunView, other: Policy) -> PoliciesPicture | None:
    both = (view, view_run(view.trace, other))
    scales = [scales_of(one) for one in both]
    if not all(scales):
        return None
    return PoliciesPicture(
        tuple(
            Reading(clean(one.policy.title), _how(one, found[0]), shortened_scale(found[0]), outcome_of(one))
            for one, found in zip(both, scales, strict=True)
        )
    )


def policies_caption(drawn: PoliciesPicture) -> str:
    first, second = drawn.readings
    one, two = first.outcome.verdict.action, second.outcome.verdict.action
    result = f"one policy says {one}, the other {two}" if one != two else f"both policies say {one}"
    return f"The same scores, read twice: {result}."


def _how(view: RunView, scale: Scale) -> str:
    return decision_caption(view, len(scale.scores) - ungraded(scale))
