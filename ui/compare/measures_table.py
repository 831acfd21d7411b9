"""Runs a labelled set under the configurations, and draws the table of metrics."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import clean, counted
from crag_core.experiments.comparison.outcome import Setup
from crag_core.experiments.comparison.table import Cell, Row, Table, to_csv, to_data
from crag_core.experiments.labelled.questions import LabelledQuestion, LabelledSet
from crag_core.pipeline.run import now
from crag_core.report.comparison.page import Comparison, described, render_comparison
from crag_core.report.comparison.view import (
    DIRECTIONS,
    VERDICTS,
    describe_found,
    describe_gain,
    drawn_rows,
    title_of,
    tone_of,
)
from ui import PARTS
from ui.compare import compare_state
from ui.compare.side_by_side import LETTERS
from ui.session import app_state, tune_state
from ui.session.fragments import ticking
from ui.session.keys import remembered
from ui.shell.page import is_allowed
from ui.shell.text import plain
from ui.tune.grading_progress import draw_elsewhere, draw_job
from ui.tune.question_sets import draw_sources

_CSS = (PARTS / "versus.css").read_text("utf-8")
_COLOURS = ("#1f77b4", "#d1781e", "#7a5fc7", "#2c9a63")


def draw_set() -> None:
    """The set, what is missing of it, and the measures of what all configurations have run."""
    labelled = tune_state.labelled()
    if labelled is None:
        draw_sources(False, False)
        return
    questions, busy = labelled.questions, compare_state.running() is not None
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
            all_the_same, kind = draw_elsewhere(labelled)
            st.button(
                f"Run {counted(missing, 'question')}{all_the_same}", on_click=compare_state.start_set, args=(labelled,),
                type=kind, icon=":material/play_arrow:", key="versus_run",
                disabled=compare_state.comparing() is not None,
            )  # fmt: skip


@ticking()
def draw_running() -> None:
    draw_job(compare_state.running(), "Running", "run", "versus_set")


# --- results ----------------------------------------------------------------------------------------------------------


def _compared(questions: Sequence[LabelledQuestion]) -> Table:
    """On the questions that all have run; computed once for the same results. Raises `CragError`."""
    experiments = app_state.workbench().experiments
    stores = {name: experiments.outcomes(setup) for name, setup in _setups(questions).items()}
    done = tuple((store.conditions.fingerprint, name, len(store.keys())) for name, store in stores.items())
    return remembered(
        "compared_table",
        (tuple(questions), done),
        lambda: Table(questions, {name: store.load() for name, store in stores.items()}),
    )


def _setups(questions: Sequence[LabelledQuestion]) -> dict[str, Setup]:
    workbench = app_state.workbench()
    corpus = tune_state.corpus_of(questions, app_state.choice().collection)
    return {one.name: workbench.setup(one.choice, corpus) for one in compare_state.configurations()}


def _draw_table(labelled: LabelledSet, table: Table) -> None:
    st.header("Results by measure", anchor=False)
    first = f"{LETTERS[0]} · {plain(table.names[0])}"
    gains = f" Below a value: its gain over **{first}** on the same questions, where certain; shares in points."
    asked = counted(len(table.questions), "question")
    st.markdown(f"{asked}, 95% intervals.{gains if len(table.names) > 1 else ''}")
    if len(table.names) > 1:
        _draw_gains(table)
    st.html(f"<style>{_CSS}</style>{table_html(table)}")
    _draw_paths(table)
    lines = {name: described(made.settings, made.web) for name, made in _setups(labelled.questions).items()}
    about = Comparison(labelled.name, now(), lines)
    name = "".join(sign if sign.isalnum() else "-" for sign in labelled.name)[:60]
    with st.container(horizontal=True, gap="small"):
        for kind, ending, mime, icon, content in (
            ("Figures (CSV)", "csv", "text/csv", "table", lambda: to_csv(table)),
            ("Figures (JSON)", "json", "application/json", "data_object", lambda: json.dumps(to_data(table), indent=1)),
            ("Report (HTML)", "html", "text/html", "description", lambda: render_comparison(table, about)),
        ):
            st.download_button(
                kind, content, f"{name}.{ending}", mime, icon=f":material/{icon}:", on_click="ignore",
                key=f"versus_{ending}",
            )  # fmt: skip


def _draw_gains(table: Table) -> None:
    """Gains over the first configuration, of the measures that are shares."""
    rows = drawn_rows(table)
    if not rows:
        st.markdown("No share differs.")
        return
    chart = go.Figure()
    for place in range(1, len(table.names)):
        shown = [(row, gain) for row in rows if (gain := row.cells[place].gain)]
        chart.add_scatter(
            x=[100 * gain.value for _, gain in shown],
            y=[f"{title_of(row.measure)}<br><i>{DIRECTIONS[row.measure.better]}</i>" for row, _ in shown],
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.5,
                "array": [100 * (gain.high - gain.value) for _, gain in shown],
                "arrayminus": [100 * (gain.value - gain.low) for _, gain in shown],
            },
            mode="markers",
            orientation="h",  # beside each other, not on each other
            marker={"size": 10, "color": _COLOURS[place]},
            name=f"{LETTERS[place]} · {clean(table.names[place])}".replace("<", "‹"),
        )  # fmt: skip
    chart.add_vline(0, line_width=1.5, line_color="gray")
    chart.update_yaxes(autorange="reversed", fixedrange=True)
    title = f"percentage points over {LETTERS[0]}"
    chart.update_xaxes(title=title, ticksuffix=" ", fixedrange=True, zeroline=False)
    chart.update_layout(
        height=46 * len(rows) + 130, margin={"l": 8, "r": 8, "t": 40, "b": 48}, showlegend=True, scattermode="group",
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    alt = "Gains over the first configuration with their intervals; the table below has the same numbers."
    st.plotly_chart(chart, config={"displayModeBar": False}, key="versus_gains", alt=alt)


def table_html(table: Table) -> str:
    """Every measure of every configuration; every text is escaped."""
    heads = "".join(
        f'<th scope="col">{letter} · {html.escape(clean(name))}</th>'
        for letter, name in zip(LETTERS, table.names, strict=False)
    )
    rows, group = [], ""
    for row in table.rows:
        if row.measure.group != group:
            group = row.measure.group
            rows.append(f'<tr class="source"><th scope="rowgroup" colspan="{len(table.names) + 1}">{group}</th></tr>')
        counts = {cell.counted for cell in row.cells}
        cells = "".join(_cell_html(row, cell, len(counts) > 1) for cell in row.cells)
        among = "" if len(counts) > 1 else f"; {counted(counts.pop(), 'question')}"
        title, message = html.escape(row.measure.title), html.escape(row.measure.description + among)
        rows.append(f'<tr><th scope="row">{title}<small>{message}</small></th>{cells}</tr>')
    return (
        '<div class="versus figures" role="region" aria-label="Measures" tabindex="0"><table>'
        f'<thead><tr><th scope="col">Measure</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell_html(row: Row, cell: Cell, says_count: bool) -> str:
    if cell.found is None:
        return "<td>–</td>"
    unit, gain = row.measure.unit, ""
    found = describe_found(cell.found, unit)
    if cell.is_certain:
        kind = VERDICTS[tone_of(row.measure, cell)]
        gain = f'<small class="{kind}">{describe_gain(cell, unit).value}</small>'
    among = f"<small>{counted(cell.counted, 'question')}</small>" if says_count else ""
    return f"<td><b>{found.value}</b> <span>{found.interval}</span>{among}{gain}</td>"


def _draw_paths(table: Table) -> None:
    st.subheader("Time and calls by route", anchor=False)
    rows = [
        {
            "configuration": f"{letter} · {clean(name)}",
            "route": clean(path.label),
            "questions": path.count,
            "p50, s": path.p50,
            "p95, s": path.p95,
            "LLM calls": path.calls,
        }
        for letter, name in zip(LETTERS, table.names, strict=False)
        for path in table.paths(name)
    ]
    seconds = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        rows, hide_index=True, height="content", key="versus_paths",
        alt="Seconds and LLM calls by configuration and route",
        column_config=dict.fromkeys(("p50, s", "p95, s", "LLM calls"), seconds),
    )  # fmt: skip
