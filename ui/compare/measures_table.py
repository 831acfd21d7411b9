"""Runs a labelled set under the configurations, and draws the table of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import streamlit as st

from crag_core.base.text.display import clean, counted
from crag_core.experiments.comparison.outcome import Setup
from crag_core.experiments.comparison.table import Table, to_csv
from crag_core.experiments.labelled.questions import LabelledQuestion, LabelledSet
from crag_core.pipeline.run import now
from crag_core.report.comparison import (
    BETTER,
    DIFFERENT,
    UNCLEAR,
    WORSE,
    Comparison,
    described,
    measures,
    render_comparison,
)
from crag_core.report.tables import Cell, Grid
from ui.compare import compare_state
from ui.compare.side_by_side import LETTERS
from ui.session import app_state, labelled_sets
from ui.session.keys import remembered
from ui.shell.page import is_allowed
from ui.shell.text import plain
from ui.tune.grading_progress import draw_job
from ui.tune.question_sets import draw_sources

_COLOURS = {BETTER: "green", WORSE: "red", DIFFERENT: "orange", UNCLEAR: "gray"}


def draw_set() -> None:
    """The set, what is missing of it, and the measures of what all configurations have run."""
    labelled = labelled_sets.in_use()
    if labelled is None:
        draw_sources(False, False)
        return
    questions, busy = labelled.questions, compare_state.running().job is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(labelled.name)}**, {counted(len(questions), 'question')}", width="content")
        with st.popover("Other questions", icon=":material/playlist_add:", type="tertiary", disabled=busy):
            draw_sources(True, busy)
    if busy:
        draw_running()
        return
    table = _compared(questions)
    if table.left_out:
        _draw_start(labelled, table.left_out)
    if table.questions:
        _draw_table(labelled, table)


def _draw_start(labelled: LabelledSet, missing: int) -> None:
    if away := labelled.elsewhere(app_state.choice().collection):
        st.caption(f":orange[:material/warning: {plain(away)} Labels may not hold there.]")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "Runs every question under each configuration, from retrieval to answer. Results are kept.",
            width="stretch",
        )
        if is_allowed("grade labelled sets and keep presets"):
            st.button(
                f"Run {counted(missing, 'question')}{' all the same' if away else ''}", args=(labelled,),
                on_click=compare_state.start_set, type="secondary" if away else "primary", key="versus_run",
                icon=":material/play_arrow:", disabled=compare_state.comparing() is not None,
            )  # fmt: skip


def draw_running() -> None:
    draw_job(compare_state.running(), "Running", "run")


# --- results ----------------------------------------------------------------------------------------------------------


def _compared(questions: Sequence[LabelledQuestion]) -> Table:
    """On the questions that all have run; computed once for the same results. Raises `CragError`."""
    experiments = app_state.workbench().experiments
    stores = {name: experiments.outcomes(setup) for name, setup in _setups(questions).items()}
    done = tuple((store.conditions.fingerprint, name, store.state) for name, store in stores.items())
    return remembered(
        "compared_table",
        (tuple(questions), done),
        lambda: Table(questions, {name: store.load() for name, store in stores.items()}),
    )


def _setups(questions: Sequence[LabelledQuestion]) -> dict[str, Setup]:
    workbench = app_state.workbench()
    corpus = workbench.corpus_of(questions, app_state.choice().collection)
    return {one.name: workbench.setup(one.choice, corpus) for one in compare_state.configurations()}


def _draw_table(labelled: LabelledSet, table: Table) -> None:
    st.header("Results by measure", anchor=False)
    first = f"{LETTERS[0]} · {plain(table.names[0])}"
    gains = f" Below a value: its gain over **{first}** on the same questions; shares in points."
    asked = counted(len(table.questions), "question")
    st.markdown(f"{asked}, 95% intervals.{gains if len(table.names) > 1 else ''}")
    names = [f"{letter} · {clean(name)}" for letter, name in zip(LETTERS, table.names, strict=False)]
    st.table(table_rows(measures(table), names), hide_index=True, border="horizontal", alt="Measures")
    lines = {name: described(made.settings, made.web) for name, made in _setups(labelled.questions).items()}
    about = Comparison(labelled.name, now(), lines)
    name = "".join(sign if sign.isalnum() else "-" for sign in labelled.name)[:60]
    with st.container(horizontal=True, gap="small"):
        for kind, ending, mime, icon, content in (
            ("Figures (CSV)", "csv", "text/csv", "table", lambda: to_csv(table)),
            ("Report (HTML)", "html", "text/html", "description", lambda: render_comparison(table, about)),
        ):
            st.download_button(
                kind, content, f"{name}.{ending}", mime, icon=f":material/{icon}:", on_click="ignore",
                key=f"versus_{ending}",
            )  # fmt: skip


def table_rows(grid: Grid, names: Sequence[str]) -> list[dict[str, str]]:
    """The table of the report as Markdown, under the names of the configurations; every text is escaped."""
    heads = ("Measure", *map(plain, names))
    return [dict(zip_longest(heads, map(_cell, row), fillvalue="")) for row in grid.rows]


def _cell(cell: Cell) -> str:
    below = f":{_COLOURS[cell.tone]}[{plain(cell.gain)}]" if cell.gain else ""
    value = f"**{plain(cell.value)}**" + (f" :small[:gray[{plain(cell.fine)}]]" if cell.fine else "")
    return "  \n".join(filter(None, (value, below)))
