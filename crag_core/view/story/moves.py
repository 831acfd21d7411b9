"""The last step of a story: a bar that is moved, or another policy that reads the same scores; no model is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

from crag_core.base.text.display import clean, readable
from crag_core.decision.policy import Policy
from crag_core.decision.stability import flips
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_line import picture
from crag_core.view.story.scales import graded, scales_of, shortened_scale
from crag_core.view.story.steps import Picture
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
        for place in (one for one in (first, first - 1 if is_down else first + 1) if one != shown):
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


def bar_picture(view: RunView, move: Move) -> Picture | None:
    """Every hundredth that the bar may stand at, decided from the record; None where its scale has no such bar.

    `start` is where the run had it and `goal` where the presenter is to move it, in hundredths. `outcomes` has that of
    the run first; each of the `stretches` has one of them, by index.
    """
    drawn = picture(view)
    at = next((n for n, line in enumerate(drawn.lines) if move.threshold in line.marks), None) if drawn else None
    if at is None:
        return None
    places = {place: policy for place in range(101) if (policy := moved(view.policy, move.threshold, place))}
    found = {place: outcome_of(view_run(view.trace, policy)) for place, policy in places.items()}
    outcomes = list(dict.fromkeys((outcome_of(view), *found.values())))
    stretches = []
    for outcome, same in groupby(found, key=found.__getitem__):
        first, *others = same
        stretches.append({"first": first, "last": others[-1] if others else first, "outcome": outcomes.index(outcome)})
    scale = scales_of(view)[at]
    bar = next(bar for bar in scale.bars if bar["id"] == move.threshold)
    return {
        "kind": "bar",
        "id": bar["id"],
        "name": bar["name"],
        "text": bar["text"],
        "scale": shortened_scale(scale),
        "start": round(bar["value"] * 100),
        "goal": round(move.to * 100),
        "stretches": stretches,
        "outcomes": outcomes,
    }


def bar_caption(drawn: Picture) -> str:
    was = drawn["outcomes"][0].verdict.action
    there = next((one for one in drawn["stretches"] if one["first"] <= drawn["goal"] <= one["last"]), None)
    then = drawn["outcomes"][there["outcome"]].verdict.action if there else was
    result = f"the same scores then mean {then} instead of {was}" if then != was else f"the decision stays {was}"
    return (
        f"The {drawn['name']} stands at {drawn['text']}. Put it at {readable(drawn['goal'] / 100)[0]}: {result}. "
        "Nothing is searched or graded again."
    )


def policies_picture(view: RunView, other: Policy) -> Picture | None:
    readings = []
    for one in (view, view_run(view.trace, other)):
        scales = scales_of(one)
        if not scales:
            return None
        how = decision_caption(one, len(graded(scales[0])))
        shown = {"scale": shortened_scale(scales[0]), "outcome": outcome_of(one)}
        readings.append({"policy": clean(one.policy.title), "how": how} | shown)
    return {"kind": "policies", "readings": readings}


def policies_caption(drawn: Picture) -> str:
    one, two = (reading["outcome"].verdict.action for reading in drawn["readings"])
    result = f"one policy says {one}, the other {two}" if one != two else f"both policies say {one}"
    return f"The same scores, read twice: {result}."
