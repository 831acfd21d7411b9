"""The confusion table of routes, down to single questions."""

from __future__ import annotations

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, shortened
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.thresholds.rates import confusion, macro_f1
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Array, Board
from ui.run.verdict import COLOURS, ICONS
from ui.session import app_state, current_run
from ui.session.tune_state import Seen
from ui.text import plain


def draw_routes(seen: Seen, board: Board, actions: Array) -> None:
    table = confusion(board, actions)
    score = macro_f1(table)
    f1 = "" if score is None else f" Macro-F1 over the three routes: **{score:.3f}**."
    st.markdown(f"Rows say what was expected, columns what became of it. Choose a number to see its questions.{f1}")
    head = st.columns(4)
    head[0].caption("expected ↓  taken →")
    for column, name in zip(head[1:], ACTIONS, strict=True):
        column.markdown(f":{COLOURS[name]}[:material/{ICONS[name]}: **{name}**]")
    for place, expected in enumerate(Expected):
        if table[place].any():
            _draw_row(place, expected, table[place])
    cell = st.session_state.get("tune_cell")
    if cell is not None:
        _draw_questions(seen, board, actions, *cell)


def _draw_row(place: int, expected: Expected, counts: Array) -> None:
    columns = st.columns(4, vertical_alignment="center")
    columns[0].markdown(f"**{expected}**")
    for taken, (column, count) in enumerate(zip(columns[1:], counts, strict=True)):
        is_right = ACTIONS[taken] in expected.actions
        questions = f"{counted(int(count), 'question')} expected {expected}, taken {ACTIONS[taken]}"
        column.button(
            f"{count} · {count / max(counts.sum(), 1):.0%}", key=f"tune_cell_{place}_{taken}", on_click=_choose,
            args=(place, taken), icon=":material/check:" if is_right else None, disabled=not count,
            type="primary" if st.session_state.get("tune_cell") == (place, taken) else "secondary",
            help=f"{questions}{': right' if is_right else ''}", width="stretch",
        )  # fmt: skip


def _choose(place: int, taken: int) -> None:
    """A cell that is chosen again closes."""
    st.session_state["tune_cell"] = None if st.session_state.get("tune_cell") == (place, taken) else (place, taken)
    current_run.redraw()


def _draw_questions(seen: Seen, board: Board, actions: Array, place: int, taken: int) -> None:
    chosen = [at for at in range(len(board)) if board.expected[at] == place and actions[at] == taken]
    if not chosen:
        st.caption("No question is there any more.")
        return
    known = board.deciding(app_state.policy().lower)
    picked = st.dataframe(
        {
            "question": [board.cases[at].asked.question for at in chosen],
            "score for upper": known.upper[chosen],
            "score for lower": known.lower[chosen],
            "note": [board.cases[at].asked.note for at in chosen],
        },
        hide_index=True, on_select="rerun", selection_mode="single-row", key=f"tune_rows_{place}_{taken}",
        height=min(38 * len(chosen) + 40, 320),
        column_config={
            "question": st.column_config.TextColumn(width="large"),
            "score for upper": st.column_config.NumberColumn(format="%.3f"),
            "score for lower": st.column_config.NumberColumn(format="%.3f"),
        },
        alt=f"Questions expected {list(Expected)[place]} and taken {ACTIONS[taken]}",
    )  # fmt: skip
    selected = [row for row in picked.selection.rows if row < len(chosen)]
    if not selected:
        st.caption("Select a question to open its run.")
        return
    case = board.cases[chosen[selected[0]]]
    label = f"Open “{plain(shortened(case.asked.question, 70))}” on the Ask page"
    if st.button(label, icon=":material/open_in_new:", key="tune_open"):
        try:
            found = app_state.workbench().experiments.scores(seen.conditions).record(case.asked.key)
        except CragError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        if found is not None:
            current_run.open_run(found, own_settings=False)
            st.switch_page("pages/ask.py")
