"""How thresholds were chosen, as a page of its own for somebody who has never heard of any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from crag_core.base.text.display import counted, moment, readable
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.questions import LABELS, Origin
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Board, Prices
from crag_core.report import page, style_sheet
from crag_core.report.thresholds import view
from crag_core.report.thresholds.view import Outcome, Tuned, describe_pair, has_two_scores
from crag_core.view.verdict_lines import Figure

_SCORES = {
    "best": "the grade of the best of the chunks found for it",
    "worst": "the grade of the worst of the chunks found for it",
    "rank_weighted": "the mean grade of the chunks found for it, the first ones weighing most",
    "signals": "a weighted sum of what was measured of the chunks found for it",
    "mean_of_kept": "the mean grade of those chunks found for it that reach the lower threshold",
    "whole_context": "what a language model says of all chunks found for it together, 0 or 1",
    "two_signals": "the grade of the best of the chunks found for it",
}
_ORIGINS = {
    Origin.UPLOADED: "from a file",
    Origin.FEEDBACK: "from people's feedback on answers",
    Origin.DRAFTED: "drafted by the application",
    Origin.WRITTEN: "written by hand",
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
            routes=view.routes_of(tuned),
            web_text=view.describe_web(tuned),
            rates=view.rate_figures(board, tuned.rates),
            rates_text=view.describe_rates(tuned),
            effort=view.describe_effort(tuned.rates, prices),
            trust=view.recommendation_lines(found, tuned.is_recommended),
            promise=view.promise_of(tuned),
            heads=view.COMPARED,
            compared=[
                (row, view.is_same((one.lower, one.upper), tuned.own))
                for row, one in zip(view.compared_rows(found), found.compared, strict=True)
            ],
            compared_on=view.compared_on(found),
            labels=LABELS,
            actions=ACTIONS,
            costs=view.describe_costs(objective),
            limits=tuple(_limits(tuned)),
            conditions=_conditions(tuned),
            readable=readable,
        )
    )


# --- what was decided -----------------------------------------------------------------------------------------------


def _evaluator(tuned: Tuned) -> str:
    name, judge = tuned.preset.conditions.evaluator, tuned.board.judge
    return judge.title if name == judge.name else name


def _headline(tuned: Tuned) -> tuple[Figure, ...]:
    kinds = f"{tuned.answerable} answered by the documents, {tuned.unanswerable} not"
    return (
        Figure("Lower threshold", readable(tuned.preset.lower)[0]),
        Figure("Upper threshold", readable(tuned.preset.upper)[0]),
        Figure("Questions judged here", str(len(tuned.board)), hint=kinds),
    )


def _describe_scores(tuned: Tuned) -> str:
    text = f"A question gets a score from 0 to 1: {_SCORES[tuned.policy.score]}."
    if has_two_scores(tuned.board, tuned.preset.lower):
        text = (
            "A question gets two scores from 0 to 1: how well the best chunk found for it answers it, and how near "
            "the best chunk is to its subject."
        )
    if tuned.policy.skip:
        text += " Some questions are settled by a rule before any score."
    if tuned.policy.low_variance_promotes:
        text += " Where the grades agree, a score above 0.5 in between counts as one above the upper threshold."
    return text


def _rules(tuned: Tuned) -> tuple[tuple[Outcome, str], ...]:
    """Each way with when it is taken; none between two thresholds that are one."""
    policy = tuned.policy
    good, fair, bad = tuned.outcomes
    (upper,) = readable(policy.upper)
    is_high = f"more than {upper}" if policy.at_upper is Action.AMBIGUOUS else f"{upper} or more"
    has_two = has_two_scores(tuned.board, tuned.preset.lower)
    lower = policy.lower if has_two else min(policy.lower, policy.upper)
    (limit,) = readable(lower)
    is_low = f"{limit} or less" if policy.at_lower is Action.INCORRECT else f"less than {limit}"
    if has_two:
        return (
            (good, f"The score for answering is {is_high}"),
            (bad, f"Otherwise, the score for the subject is {is_low}"),
            (fair, "Everything else"),
        )
    between = () if lower == policy.upper else ((fair, "In between"),)
    return (good, f"The score is {is_high}"), *between, (bad, f"The score is {is_low}")


def _by_hand(tuned: Tuned) -> str:
    found = tuned.found
    own = f"The thresholds of this preset, {describe_pair(*tuned.own)}, were set by hand or chosen in another way"
    if found.why_not:
        return f"For these questions no thresholds can be recommended. {found.why_not} {own}."
    if found.keep:
        return f"For these questions: {view.recommendation_lines(found)[-1]} {own}."
    are = "come nearest to the limit" if found.misses else "are recommended"
    return (
        f"For these questions {describe_pair(found.lower, found.upper)} {are}. {own}. Nothing on this page "
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


def _limits(tuned: Tuned) -> Iterator[str]:
    cases = [case.asked for case in tuned.board.cases]
    origins = Counter(asked.origin for asked in cases)
    came = ", ".join(f"{origins[origin]} {source}" for origin, source in _ORIGINS.items() if origins[origin])
    if cases:
        yield (
            "Whether the documents answer a question is what its label says, and labels are the user's, not the "
            f"truth. Where questions and labels come from: {came}."
        )
    if origins[Origin.DRAFTED]:
        yield (
            "What the application drafted was made from the documents themselves. It may be easier or harder than what "
            "people ask, and its labels count as checked only if somebody has looked them through."
        )
    if apart := sum(bool(asked.without) for asked in cases):
        verb = "is not answered only because the chunks" if apart == 1 else "are not answered only because chunks"
        yield f"{counted(apart, 'question')} {verb} with the answer were left out on purpose."
    yield from _policy_limits(tuned.policy)
    yield (
        "Only the way that a question takes is judged, not whether the answer that is written in the end is right, nor "
        "what the web finds."
    )
    yield (
        f"The sentence cut-off, {readable(tuned.preset.cutoff)[0]}, is kept with the preset; nothing on this page says "
        "how good it is."
    )
    yield "The questions, their labels and the documents are not in this file."


def _policy_limits(policy: Policy) -> Iterator[str]:
    again = policy.has("expand", "again")
    more = " This policy may search again and decide again; what comes of that is not counted." if again else ""
    yield f"Only the first search for chunks counts.{more}"


def _conditions(tuned: Tuned) -> tuple[tuple[str, str], ...]:
    """What the thresholds hold for, in the words of `Conditions.changed`; and the set."""
    preset, made = tuned.preset, tuned.preset.conditions
    version = f", version {made.evaluator_version}" if made.evaluator_version else ""
    found = {
        "The documents": made.corpus and f"as they were with the fingerprint {made.corpus}",
        "The evaluator": f"{made.evaluator}{version}",
        "The language model that grades": made.writer or "none",
        "The prompts": made.prompts or "none",
        "The embedding model": made.embedding,
        "The number of chunks": str(made.top_k),
        "The labelled questions": f"{preset.labelled or '(no name)'}"
        + (f", with the fingerprint {preset.labels}" if preset.labels else ""),
    }
    return tuple((name, value or "not recorded") for name, value in found.items())
