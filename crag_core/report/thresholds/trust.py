"""How far chosen thresholds can be trusted: what they were chosen on, what would be as good, and others beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from crag_core.base.text.display import counted
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.plateau import Plateau
from crag_core.experiments.thresholds.risk_bound import Guarantee
from crag_core.report.thresholds.result import Tuned

_COSTS = {
    "wrong": "a question taken for answered that is not",
    "missed": "an answer set aside",
    "mixed_up": "doubt taken for a misfit, or a misfit for doubt",
    "web": "a web search",
    "call": "a model call",
    "second": "a second of waiting",
}


def lines_of(tuned: Tuned) -> tuple[str, ...]:
    """How the recommended thresholds came about, and how far others would do; () where there are none."""
    return () if tuned.found.why_not else tuple(_lines(tuned))


def _lines(tuned: Tuned) -> Iterator[str]:
    found = tuned.found
    pair = describe_pair(found.lower, found.upper)
    who = "These thresholds" if tuned.is_recommended else f"The recommended thresholds, {pair},"
    chosen, others = counted(found.chosen_on, "question"), counted(found.judged_on, "other question")
    if found.guaranteed:
        yield (
            f"{'The' if tuned.is_recommended else 'The recommended'} lower threshold, {found.lower:.3f}, was chosen on "
            f"{chosen}; the upper one, {found.upper:.3f}, is the lowest for which the promise below could be made. "
            f"They are judged on {others}, which had no part in choosing the lower one, but one in choosing the upper."
        )
    else:
        yield f"{who} were chosen on {chosen} and judged on {others}, which had no part in choosing."
    if found.plateau:
        yield _describe_plateau(tuned, found.plateau)
    if found.drawn:
        (low, high), (first, last) = found.drawn
        aside = ", the promise left aside," if found.guaranteed else ""
        yield (
            f"With other questions of the same kind the best thresholds{aside} could be others: in 95% of resampled "
            f"sets the best lower {_lies(low, high)}, and in 95% the best upper {_lies(first, last)}."
        )


def _describe_plateau(tuned: Tuned, plateau: Plateau) -> str:
    found, count = tuned.found, int(plateau.cells.sum())
    (low, high), (first, last) = ((float(found.grid[at]) for at in plateau.span(axis)) for axis in (0, 1))
    if count == len(found.grid) * (len(found.grid) + 1) // 2:
        return (
            "As far as the questions they were chosen on can tell, all thresholds do equally well: none is preferred."
        )
    if found.guaranteed:
        start = "The promise left aside, as far as the questions that the lower one was chosen on can tell,"
    elif count == 1:
        return "They are best alone: the questions they were chosen on tell them from all beside them."
    else:
        start = "They are the middle of a plateau: as far as the questions they were chosen on can tell,"
    sides = [end - begin + 1 for begin, end in (plateau.span(0), plateau.span(1))]
    every = "" if count == sides[0] * sides[1] else ", though not in every combination"
    return f"{start} all thresholds do as well with lower {_span(low, high)} and upper {_span(first, last)}{every}."


def _span(low: float, high: float) -> str:
    return f"of {low:.3f}" if low == high else f"from {low:.3f} to {high:.3f}"


def _lies(low: float, high: float) -> str:
    return f"is {low:.3f}" if low == high else f"lies between {low:.3f} and {high:.3f}"


def promise_of(tuned: Tuned) -> tuple[str, ...]:
    """The guarantee in its own words, and whether it holds for the thresholds of the preset."""
    promised = tuned.found.guaranteed
    if promised is None:
        return ("No limit on mistakes is promised: the shares on this page are what was seen, with their intervals.",)
    if promised.upper is None:
        return (promised.reason,)
    lines = [promised.reason, _plainly(promised)]
    if not _covers(tuned, promised):
        lines.append("This does not hold for the thresholds of this preset.")
    elif not tuned.is_recommended:
        lines.append("This holds for the thresholds of this preset, too.")
    return tuple(lines)


def _plainly(promised: Guarantee) -> str:
    fails = 1.0 - promised.confidence
    return (
        f"In plain words: of questions like these that the documents do not answer, no more than {promised.limit:.1%} "
        f"would be taken for answered. A promise of this kind is wrong at most {fails:.0%} of the times it is made."
    )


def _covers(tuned: Tuned, promised: Guarantee) -> bool:
    """A higher upper lets no more through; where `lower` has a part in what is CORRECT, it must be the one tested."""
    policy, (lower, upper) = tuned.policy, tuned.own
    has_part = tuned.board.depends_on_lower or policy.low_variance_promotes
    is_high = promised.upper is not None and upper >= promised.upper - 1e-6
    return is_high and (not has_part or abs(lower - promised.lower) < 1e-6)


def describe_costs(tuned: Tuned) -> str:
    """What the costs of the comparison are made of."""
    costs = tuned.objective.costs
    charged = {field.name: getattr(costs, field.name) for field in fields(costs)}
    parts = [f"{value:g} for {_COSTS[name]}" for name, value in charged.items() if value] or ["nothing"]
    limit = tuned.objective.most_wrong
    aim = (
        f"The thresholds to recommend were those with the fewest web searches that keep confident mistakes at "
        f"{limit:.1%} or fewer; costs are for comparison."
        if limit is not None
        else "The thresholds to recommend were those of the least cost."
    )
    return f"The cost is the mean of all questions, which are charged {', '.join(parts)}. {aim}"


def describe_interval(share: Estimate) -> str:
    return f"{100 * share.low:.1f}–{share.high:.1%}"


def describe_pair(lower: float, upper: float) -> str:
    return f"lower {lower:.3f} and upper {upper:.3f}"
