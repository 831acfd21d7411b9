"""Rates, routes and curves of a graded set at the present thresholds."""

from __future__ import annotations

import numpy as np
import streamlit as st

from crag_core.base.text.display import counted
from crag_core.decision.policy import Aggregation
from crag_core.experiments.statistics import curves
from crag_core.experiments.statistics.auroc import auroc
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.statistics.reliability import brier, ece, reliability
from crag_core.experiments.thresholds.cutoff import KEPT, sentence_curve
from crag_core.experiments.thresholds.rates import Rates, always, rate
from crag_core.experiments.thresholds.threshold_board import AMBIGUOUS, CORRECT, INCORRECT, Board
from ui.session import app_state, current_run, tune_state
from ui.session.tune_state import Seen
from ui.text import plain
from ui.tune import charts
from ui.tune.confusion_table import draw_routes

SCORES, ROUTES, CURVES, TRUST, SENTENCES, POLICIES = (
    "Scores", "Routes", "Curves", "Can scores be trusted?", "Sentences", "All policies",
)  # fmt: skip
_SHOWN = {
    "confidently_wrong": (
        "Confidently wrong",
        "Of the questions that the documents do not answer: CORRECT all the same.",
    ),
    "needless_web": ("Needless web", "Of the questions that the documents answer: the web is searched all the same."),
    "missed_web": ("Missed web", "Of the questions that the documents do not answer: the web is not searched."),
    "discarded": (
        "Answer discarded",
        "Of the questions that the documents answer: INCORRECT, their evidence set aside.",
    ),
    "ungraded": ("Ungraded", "Of all questions: a chunk that counts could not be graded."),
    "web": ("Web rate", "Of all questions: the web is searched."),
}


@st.fragment(key=current_run.FIGURES)
def draw_figures(seen: Seen) -> None:
    """Everything here is worked out from what was graded; no model is called."""
    board, policy = tune_state.board(seen), app_state.policy()
    actions = board.actions(policy.lower, policy.upper)
    rates = rate(board, actions, tune_state.prices())
    _draw_separation(board)
    _draw_rates(rates)
    pictures = {
        SCORES: lambda: _draw_scores(board),
        ROUTES: lambda: draw_routes(seen, board, actions),
        CURVES: lambda: _draw_curves(board),
        TRUST: lambda: _draw_trust(board),
        SENTENCES: lambda: _draw_sentences(seen),
        POLICIES: lambda: _draw_policies(seen, rates),
    }
    chosen = st.segmented_control("What to look at", list(pictures), default=SCORES, required=True, key="tune_look")
    pictures[chosen]()


def _draw_separation(board: Board) -> None:
    """One plain sentence: can any threshold on this score tell the two kinds apart?"""
    found = auroc(board.deciding().upper, board.answerable)
    if found is None:
        st.warning(
            "All these questions are of one kind: thresholds need questions that the documents answer and others that "
            "they do not.",
            icon=":material/warning:",
        )
    elif found.low <= 0.5:
        st.warning(
            f"By these {len(board)} questions, this score cannot tell answerable questions from others: AUROC {found}, "
            "where 0.5 is guessing. No threshold on it can be trusted; more questions may show more.",
            icon=":material/warning:",
        )
    else:
        st.markdown(
            f":material/compare: Of an answerable and an unanswerable question, the answerable one has the higher "
            f"score in **{found.value:.0%}** of all pairs (AUROC, 95 % interval {found.low:.0%} to {found.high:.0%}). "
            f"{_verdict(found)}"
        )


def _verdict(found: Estimate) -> str:
    if found.low >= 0.9:
        return "They are told apart well."
    if found.low >= 0.75:
        return "They are told apart, with mistakes that any threshold only shifts from one side to the other."
    return "That is weak: whatever the thresholds, many questions will go the wrong way."


def _draw_rates(rates: Rates) -> None:
    with st.container(horizontal=True, key="tune_rates"):
        for name, (title, meaning) in _SHOWN.items():
            found: Estimate | None = getattr(rates, name)
            st.metric(
                title,
                "–" if found is None else f"{found.value:.1%}",
                "" if found is None else f"{found.low:.1%} to {found.high:.1%}",
                delta_color="off", delta_arrow="off", width="content",
                help=f"{meaning} Below it the 95 % interval (Wilson).",
            )  # fmt: skip
        st.metric(
            "Seconds, calls", f"{rates.seconds:.1f} s", f"{rates.calls:.1f} model calls", delta_color="off",
            delta_arrow="off", width="content",
            help="Expected for a question: retrieval and grading as measured, model calls and web searches as assumed "
            "under What a mistake costs.",
        )  # fmt: skip


def _draw_scores(board: Board) -> None:
    deciding, policy = board.deciding(app_state.policy().lower), app_state.policy()
    two = policy.aggregation is Aggregation.TWO_SIGNAL and not np.array_equal(
        deciding.upper, deciding.lower, equal_nan=True
    )
    lines = [("lower", policy.lower), ("upper", policy.upper)]
    first = curves.histogram(deciding.upper, board.answerable)
    if two:
        left, right = st.columns(2)
        with left:
            _chart(charts.histogram(first, lines[1:], "best answering score, against upper"), "tune_hist_upper")
        with right:
            second = curves.histogram(deciding.lower, board.answerable)
            _chart(charts.histogram(second, lines[:1], "best topical score, against lower"), "tune_hist_lower")
    else:
        _chart(charts.histogram(first, lines, "overall score"), "tune_hist")
    settled = int((deciding.settled >= 0).sum())
    if settled:
        st.caption(f"{counted(settled, 'question')} without a score to compare: no threshold decides them.")
    st.caption(
        "Above the line questions that the documents answer, below it the others. Move the thresholds in the sidebar."
    )


def _draw_curves(board: Board) -> None:
    scores, yes = board.deciding().upper, board.answerable
    roc, both = curves.roc(scores, yes), curves.precision_recall(scores, yes)
    risk, average = curves.risk_coverage(scores, yes), curves.average_precision(scores, yes, seed=0, draws=500)
    if roc is None or both is None or risk is None:
        st.info("Curves need both kinds of questions.", icon=":material/info:")
        return
    good = board.actions(app_state.policy().lower, app_state.policy().upper) == CORRECT
    left, right = st.columns(2)
    with left:
        at = (float(good[~yes].mean()), float(good[yes].mean()))
        st.markdown(f"**ROC**, area {auroc(scores, yes)}")
        _chart(charts.roc(roc, at), "tune_roc")
    with right:
        st.markdown(f"**Precision and recall**, average precision {average}")
        _chart(charts.precision_recall(both, float(yes.mean())), "tune_pr")
    st.markdown(
        f"**Risk and coverage**, area {risk.area:.3f}: the more questions are answered from the documents, the more of "
        "these answers have nothing behind them."
    )
    wrong = float((~yes)[good].mean()) if good.any() else 0.0
    _chart(charts.risk_coverage(risk, (float(good.mean()), wrong)), "tune_risk")


def _draw_trust(board: Board) -> None:
    scores = board.deciding().upper
    seen = np.isfinite(scores)
    if not seen.any():
        st.info("No question has a score.", icon=":material/info:")
        return
    values, yes = scores[seen], board.answerable[seen]
    message, off = brier(values, yes), ece(values, yes)
    st.markdown(
        f"If a score is a probability, half of the questions scored 0.5 are answerable. Expected calibration error "
        f"**{off:.3f}**, Brier score **{message:.3f}** (0 is best; knowing nothing but the share gives "
        f"{float(yes.mean() * (1 - yes.mean())):.3f})."
    )
    _chart(charts.reliability(reliability(values, yes), "score that upper is compared with"), "tune_reliability")
    st.caption(
        "Points below the dotted line: the score promises more than it keeps. Larger points stand for more questions."
    )


def _draw_sentences(seen: Seen) -> None:
    found = sentence_curve(seen.graded)
    if found is None:
        st.info(
            "Sentences are judged where a labelled question brings its answer, and a chunk holds it word for word.",
            icon=":material/info:",
        )
        return
    now = app_state.policy().strips.cutoff
    at = int(np.abs(found.cutoffs - now).argmin())
    best = int(np.abs(found.cutoffs - found.best).argmin())
    st.markdown(
        f"Your cut-off **{now:.2f}** keeps {found.answers[at]:.0%} of the sentences that hold an answer and "
        f"{found.text[at]:.0%} of the text. The highest cut-off that keeps {KEPT:.0%} of these sentences is "
        f"**{found.best:.2f}**, with {found.text[best]:.0%} of the text ({found.sentences} sentences)."
    )
    _chart(charts.sentences(found.text, found.answers, found.cutoffs, now), "tune_sentences")


def _draw_policies(seen: Seen, now: Rates) -> None:
    """Every policy at the thresholds to start from, this one at the sidebar's, and always doing the same."""
    rows = []
    own = app_state.policy()
    for name, policy in app_state.policies().items():
        board = tune_state.board(seen, name)
        found = now if name == own.name else rate(board, board.actions(), tune_state.prices())
        if found.web and found.confidently_wrong:
            rows.append((policy.title, found.web.value, found.confidently_wrong.value))
    board = tune_state.board(seen)
    for title, action in (
        ("always CORRECT", CORRECT),
        ("always AMBIGUOUS", AMBIGUOUS),
        ("always INCORRECT", INCORRECT),
    ):
        found = rate(board, always(board, action), tune_state.prices())
        if found.web and found.confidently_wrong:
            rows.append((title, found.web.value, found.confidently_wrong.value))
    if not rows:
        st.info("This picture needs questions that the documents do not answer.", icon=":material/info:")
        return
    _chart(charts.trade_off(rows), "tune_policies")
    st.caption(
        f"Graded by {plain(seen.conditions.evaluator)}. {plain(own.title)} stands at the thresholds of the sidebar, "
        "the others at those that they start from; further left is better, for both. A policy that retrieves again is "
        "judged by its first decision."
    )


def _chart(figure: object, key: str) -> None:
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
