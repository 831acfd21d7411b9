"""Rates, routes and curves of a graded set at the present thresholds."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import counted, shortened
from crag_core.experiments.labelled.questions import Expected, word
from crag_core.experiments.statistics.curves import auroc
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.threshold_board import (
    ACTIONS,
    Array,
    Board,
    Rates,
    confusion,
    rate,
)
from crag_core.report.thresholds.view import compared_scores, describe_effort, rate_figures
from ui.run.verdict import COLOURS, ICONS
from ui.session import app_state, current_run
from ui.session.fragments import fragment
from ui.session.keys import kept
from ui.session.labelled_sets import SetInUse
from ui.shell.page import errors_drawn
from ui.shell.text import plain
from ui.tune import charts, tune_state
from ui.tune.tune_state import Seen

SCORES, ROUTES, POLICIES = "Scores", "Routes", "All policies"
_SHARES = {"answered": "answered", "confidently_wrong": "confidently wrong", "web": "web rate"}


def draw_routes(seen: Seen, board: Board, actions: Array) -> None:
    table = confusion(board, actions)
    st.markdown("Choose a number to see its questions.")
    head = st.columns(4)
    head[0].caption("label ↓  route →")
    for column, name in zip(head[1:], ACTIONS, strict=True):
        column.markdown(f":{COLOURS[name]}[:material/{ICONS[name]}: **{name}**]")
    for place, expected in enumerate(Expected):
        if table[place].any():
            _draw_row(place, expected, table[place])
    cell = kept(SetInUse).cell
    if cell is not None:
        _draw_questions(seen, board, actions, *cell)


def _draw_row(place: int, expected: Expected, counts: Array) -> None:
    columns = st.columns(4, vertical_alignment="center")
    columns[0].markdown(f"**{word(expected)}** {counts.sum()}")
    for taken, (column, count) in enumerate(zip(columns[1:], counts, strict=True)):
        is_right = ACTIONS[taken] in expected.actions
        questions = f"{counted(int(count), 'question')} labelled {word(expected)}, taken {ACTIONS[taken]}"
        column.button(
            f"{count} · {count / max(counts.sum(), 1):.0%}", key=f"tune_cell_{place}_{taken}",
            on_click=tune_state.choose_cell, args=(place, taken), disabled=not count,
            icon=":material/check:" if is_right else None,
            type="primary" if kept(SetInUse).cell == (place, taken) else "secondary",
            help=f"{questions}{': right' if is_right else ''}", width="stretch",
        )  # fmt: skip


def _draw_questions(seen: Seen, board: Board, actions: Array, place: int, taken: int) -> None:
    chosen = [at for at in range(len(board)) if board.expected[at] == place and actions[at] == taken]
    if not chosen:
        st.caption("No question is there any more.")
        return
    policy, asked = app_state.policy(), [board.cases[at].asked for at in chosen]
    scores = {title: values[chosen] for title, values, _ in compared_scores(board, policy.lower, policy.upper)}
    questions, notes = [one.question for one in asked], [one.note for one in asked]
    picked = st.dataframe(
        {"question": questions} | scores | {"note": notes}, hide_index=True, on_select="rerun",
        selection_mode="single-row", key=f"tune_rows_{place}_{taken}", height=min(38 * len(chosen) + 40, 320),
        column_config={"question": st.column_config.TextColumn(width="large")}
        | dict.fromkeys(scores, st.column_config.NumberColumn(format="%.2f")),
        alt=f"Questions labelled {word(list(Expected)[place])} and taken {ACTIONS[taken]}",
    )  # fmt: skip
    selected = [row for row in picked.selection.rows if row < len(chosen)]
    if not selected:
        st.caption("Select a question to open its run.")
        return
    key, question = asked[selected[0]].key, questions[selected[0]]
    label = f"Open “{plain(shortened(question, 70))}” on the Ask page"
    if st.button(label, icon=":material/open_in_new:", key="tune_open"):
        with errors_drawn():
            if found := app_state.workbench().experiments.scores(seen.conditions).record(key):
                current_run.open_run(found, own_settings=False)
                st.switch_page("pages/ask.py", query_params={})  # else the sidebar's would be in the way


# --- figures ----------------------------------------------------------------------------------------------------------


@fragment(current_run.FIGURES)
def draw_figures(seen: Seen) -> None:
    """Everything here is computed from the recorded grades; no model is called."""
    board, policy = tune_state.board(seen), app_state.policy()
    actions = board.actions(policy.lower, policy.upper)
    rates = rate(board, actions)
    _draw_separation(board)
    _draw_rates(board, rates)
    views = {
        SCORES: lambda: _draw_scores(board),
        ROUTES: lambda: draw_routes(seen, board, actions),
        POLICIES: lambda: _draw_policies(seen, rates),
    }
    chosen = st.segmented_control("What to look at", list(views), default=SCORES, required=True, key="tune_look")
    views[chosen]()


def _draw_separation(board: Board) -> None:
    """In one sentence: can any threshold on this score separate the two kinds?"""
    found = auroc(board.deciding().upper, board.answerable)
    if found is not None and found.low > 0.5:
        st.markdown(
            f":material/compare: Answerable questions score higher in **{found.value:.0%}** of pairs (AUROC, 95% "
            f"interval {found.low:.0%} to {found.high:.0%}). {_verdict(found)}"
        )
        return
    message = "Without scores of both kinds of questions nothing can be told apart. Are the documents indexed?"
    if found is not None:
        message = (
            f"By these {len(board)} questions the score cannot tell answerable questions from others (AUROC {found}, "
            "0.5 is guessing). Add questions before you trust any threshold."
        )
    elif len(set(board.answerable)) < 2:
        message = "All these questions are of one kind. Add some that the documents answer, and some that they do not."
    st.warning(message, icon=":material/warning:")


def _verdict(found: Estimate) -> str:
    if found.low >= 0.9:
        return "Well separated."
    if found.low >= 0.75:
        return "Separated, with mistakes at any threshold."
    if found.value >= 0.75:
        return "More questions would make this sure."
    return "Weak: many questions take the wrong route at any threshold."


def _draw_rates(board: Board, rates: Rates) -> None:
    with st.container(horizontal=True, key="tune_rates"):
        for one in rate_figures(board, rates):
            if one.name != "Ungraded" or board.ungraded.any():
                st.metric(
                    one.name, one.value or "–", one.interval, delta_color="off", delta_arrow="off", width="content",
                    help=one.meaning,
                )  # fmt: skip
    st.caption(f"Intervals of 95%. {describe_effort(rates)}")


def _draw_scores(board: Board) -> None:
    policy = app_state.policy()
    scores = compared_scores(board, policy.lower, policy.upper)
    for place, (column, (title, values, thresholds)) in enumerate(zip(st.columns(len(scores)), scores, strict=True)):
        with column:
            picture = charts.histogram(values, board.answerable, thresholds, title)
            st.plotly_chart(picture, key=f"tune_hist_{place}", config={"displayModeBar": False})
    settled = int((board.deciding(policy.lower).settled >= 0).sum())
    if settled:
        st.caption(f"{counted(settled, 'question')} without a score to compare: no threshold decides them.")
    st.caption("Above the line: answerable. Below: not answerable. Move the thresholds in the sidebar.")


def _draw_policies(seen: Seen, now: Rates) -> None:
    """Every policy at its starting thresholds, this one at the sidebar's."""
    own = app_state.policy()
    rows = []
    for name, policy in app_state.policies().items():
        start = tune_state.board(seen, name)
        rates = now if name == own.name else rate(start, start.actions())
        shares = {title: getattr(rates, field) for field, title in _SHARES.items()}
        rows.append({"policy": policy.title} | {title: share and share.value for title, share in shares.items()})
    bar = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    st.dataframe(
        rows, hide_index=True, height="content", key="tune_policies", alt="Rates of every policy",
        column_config=dict.fromkeys(_SHARES.values(), bar),
    )  # fmt: skip
    others = counted(now.among("confidently_wrong"), "other")
    st.caption(
        f"Of {counted(now.answerable, 'answerable question')} and {others}. {plain(own.title)} at your thresholds, the "
        "others at their defaults. Only the first retrieval counts."
    )
