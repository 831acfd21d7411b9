"""How thresholds were chosen, as a page of its own for somebody who has never heard of any."""

from __future__ import annotations

from crag_core.base.text.display import counted, moment
from crag_core.decision.policy import Aggregation, FastPath
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.rates import Prices
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Board
from crag_core.report import page, style_sheet
from crag_core.report.thresholds import charts, limits, rates, trust
from crag_core.report.thresholds.result import Outcome, Tuned, is_same
from crag_core.report.thresholds.trust import describe_interval, describe_pair
from crag_core.view.verdict_lines import Figure

_SCORES = {
    Aggregation.BEST: "the grade of the best of the chunks found for it",
    Aggregation.WORST: "the grade of the worst of the chunks found for it",
    Aggregation.RANK_WEIGHTED: "the mean grade of the chunks found for it, the first ones weighing most",
    Aggregation.SIGNALS: "a weighted sum of what was measured of the chunks found for it",
    Aggregation.MEAN_OF_KEPT: "the mean grade of those chunks found for it that reach the lower threshold",
    Aggregation.TWO_SIGNAL: "the grade of the best of the chunks found for it",
}


def render_thresholds(
    preset: TunedPreset, board: Board, found: Recommendation, objective: Objective, prices: Prices
) -> str:
    """The page as HTML: `preset` on the questions of `board`, beside what is recommended for them under `objective`.

    It needs no network and no script, and holds neither questions nor passages. Whatever comes from outside, such as a
    name, shows as text. The same arguments always give the same. `BadRecord`: `preset` is for another policy.
    """
    tuned = Tuned(preset, board, found, objective, prices)
    style, key = style_sheet()
    return (
        page()
        .environment.get_template("thresholds.html")
        .render(
            style=style,
            style_key=key,
            tuned=tuned,
            policy=tuned.policy,
            evaluator=_evaluator(tuned),
            created=moment(preset.created),
            figures=_headline(tuned),
            scores_text=_describe_scores(tuned),
            rules=_rules(tuned),
            notes=_notes(tuned),
            by_hand="" if tuned.is_recommended else _by_hand(tuned),
            waffles=charts.waffles(tuned),
            routes=rates.routes_of(tuned),
            web_text=rates.describe_web(tuned),
            rates=rates.rates_of(tuned),
            rates_text=rates.describe_rates(tuned),
            effort=rates.describe_effort(tuned),
            histograms=charts.histograms(tuned),
            trust=trust.lines_of(tuned),
            promise=trust.promise_of(tuned),
            is_same=is_same,
            describe_interval=describe_interval,
            labels=rates.LABELS,
            actions=ACTIONS,
            costs=trust.describe_costs(tuned),
            limits=limits.limits_of(tuned),
            conditions=limits.conditions_of(tuned),
        )
    )


# --- what was decided -----------------------------------------------------------------------------------------------


def _evaluator(tuned: Tuned) -> str:
    name, judge = tuned.preset.conditions.evaluator, tuned.board.judge
    return judge.title if name == judge.name else name


def _headline(tuned: Tuned) -> tuple[Figure, ...]:
    kinds = f"{tuned.answerable} answered by the documents, {tuned.unanswerable} not"
    return (
        Figure("Lower threshold", f"{tuned.preset.lower:.3f}"),
        Figure("Upper threshold", f"{tuned.preset.upper:.3f}"),
        Figure("Questions judged here", str(len(tuned.board)), hint=kinds),
    )


def _describe_scores(tuned: Tuned) -> str:
    text = f"A question gets a score from 0 to 1: {_SCORES[tuned.policy.aggregation]}."
    if tuned.has_two_scores:
        text = (
            "A question gets two scores from 0 to 1: how well the best chunk found for it answers it, and how near "
            "the best chunk is to its subject."
        )
    if tuned.policy.fast_path != FastPath():
        text += " Some questions are settled by a rule before any score."
    if tuned.policy.low_variance_promotes:
        text += " Where the grades agree, a score above 0.5 in between counts as one above the upper threshold."
    return text


def _rules(tuned: Tuned) -> tuple[tuple[Outcome, str], ...]:
    """Each way with when it is taken; none between two thresholds that are one."""
    policy = tuned.policy
    good, fair, bad = tuned.outcomes
    is_high = f"more than {policy.upper:.3f}" if policy.upper_is_exclusive else f"{policy.upper:.3f} or more"
    is_low = f"{policy.lower:.3f} or less" if policy.lower_is_inclusive else f"less than {policy.lower:.3f}"
    if tuned.has_two_scores:
        return (
            (good, f"The score for answering is {is_high}"),
            (bad, f"Otherwise, the score for the subject is {is_low}"),
            (fair, "Everything else"),
        )
    between = () if policy.lower == policy.upper else ((fair, "In between"),)
    return (good, f"The score is {is_high}"), *between, (bad, f"The score is {is_low}")


def _by_hand(tuned: Tuned) -> str:
    found = tuned.found
    own = f"The thresholds of this preset, {describe_pair(*tuned.own)}, were set by hand or chosen in another way"
    if found.why_not:
        return f"For these questions no thresholds can be recommended. {found.why_not} {own}."
    return (
        f"For these questions {describe_pair(found.lower, found.upper)} are recommended. {own}. Nothing on this page "
        "says that they are the best; what it says of choosing holds for the recommended ones."
    )


def _notes(tuned: Tuned) -> tuple[str, ...]:
    """What does not fit together in what the page was made from."""
    preset, board, found = tuned.preset, tuned.board, tuned.found
    notes = []
    if preset.questions != len(board):
        known = f"names {counted(preset.questions, 'question')}" if preset.questions else "does not say how many"
        notes.append(f"The preset {known}; the figures here are of {counted(len(board), 'question')}.")
    if preset.conditions.evaluator != board.judge.name:
        notes.append("The figures here are of grades by another evaluator than the one the preset was chosen for.")
    if not found.why_not and found.chosen_on + found.judged_on != len(board):
        count = counted(found.chosen_on + found.judged_on, "question")
        notes.append(f"The recommendation is of {count}, the figures here are of {len(board)}.")
    return tuple(notes)
