"""Runs a labelled set under the configurations, and draws the table of metrics."""

from __future__ import annotations

import html
import json

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import clean, counted
from crag_core.experiments.comparison.setups import listed
from crag_core.experiments.comparison.table import Cell, Row, Table, to_csv, to_data
from crag_core.experiments.labelled.questions import LabelledSet
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
from ui.compare import compare_state, set_results
from ui.compare.set_results import Compared, draw_beside, draw_earlier_results
from ui.compare.side_by_side import LETTERS
from ui.session import app_state, tune_state
from ui.session.fragments import ticking
from ui.shell.page import is_allowed
from ui.shell.text import plain
from ui.tune.grading_progress import draw_elsewhere, draw_job
from ui.tune.question_sets import draw_sources

_CSS = (PARTS / "versus.css").read_text("utf-8")
_COLOURS = ("#1f77b4", "#d1781e", "#7a5fc7", "#2c9a63", "#c2477f", "#94841f", "#3d8f9e")


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
    earlier = set_results.earlier(questions)
    found = set_results.compared(questions, set_results.beside(earlier))
    if found.missing:
        _draw_start(labelled, found.missing)
    if found.table.questions:
        _draw_table(labelled, found)
    elif found.beside:
        st.markdown("No question has results under all of these. Untick an earlier result.")
    if earlier or found.table.questions:
        draw_earlier_results(earlier, questions)


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


# The measures


def _draw_table(labelled: LabelledSet, found: Compared) -> None:
    table = found.table
    st.header("Results by measure", anchor=False)
    st.markdown(_heading(found))
    draw_beside(found)
    if len(table.names) > 1:
        _draw_gains(found)
    st.html(f"<style>{_CSS}</style>{table_html(table, found.letters)}")
    _draw_paths(found)
    name = "".join(sign if sign.isalnum() else "-" for sign in labelled.name)[:60]
    data = to_data(table) | ({"earlier": listed(found.beside)} if found.beside else {})
    with st.container(horizontal=True, gap="small"):
        for kind, ending, mime, icon, content in (
            ("Figures (CSV)", "csv", "text/csv", "table", to_csv(table)),
            ("Figures (JSON)", "json", "application/json", "data_object", json.dumps(data, indent=1)),
            ("Report (HTML)", "html", "text/html", "description", set_results.page(labelled, found)),
        ):
            st.download_button(
                kind, content, f"{name}.{ending}", mime, icon=f":material/{icon}:", on_click="ignore",
                key=f"versus_{ending}",
            )  # fmt: skip


def _heading(found: Compared) -> str:
    table = found.table
    message = f"{counted(len(table.questions), 'question')}, 95% intervals."
    if found.beside and table.left_out:
        message = f"The {counted(len(table.questions), 'question')} that all have run, 95% intervals."
    if len(table.names) == len(found.beside):
        message = f"Earlier results only: no question has been run under all present configurations. {message}"
    if len(table.names) == 1:
        return message
    return (
        f"{message} Below a value: its gain over **{found.letters[0]} · {plain(table.names[0])}** on the same "
        "questions, where certain; shares in points."
    )


def _draw_gains(found: Compared) -> None:
    """Gains over the first configuration, of the measures that are shares; earlier results with open signs."""
    table = found.table
    rows = drawn_rows(table)
    if not rows:
        st.markdown("No share differs.")
        return
    chart, now = go.Figure(), len(table.names) - len(found.beside)
    for place in range(1, len(table.names)):
        letter, (symbol, line) = found.letters[place], ("circle", 0) if place < now else ("diamond-open", 2)
        shown = [(row, gain) for row in rows if (gain := row.cells[place].gain)]
        chart.add_scatter(
            x=[100 * gain.value for _, gain in shown],
            y=[_axis_name(row) for row, _ in shown],
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.5,
                "array": [100 * (gain.high - gain.value) for _, gain in shown],
                "arrayminus": [100 * (gain.value - gain.low) for _, gain in shown],
            },
            mode="markers",
            orientation="h",  # beside each other, not on each other
            marker={"size": 10, "color": _COLOURS[LETTERS.index(letter)], "symbol": symbol, "line": {"width": line}},
            name=f"{letter} · {clean(table.names[place])}".replace("<", "‹"),
        )  # fmt: skip
    chart.add_vline(0, line_width=1.5, line_color="gray")
    chart.update_yaxes(autorange="reversed", fixedrange=True)
    title = f"percentage points over {found.letters[0]}"
    chart.update_xaxes(title=title, ticksuffix=" ", fixedrange=True, zeroline=False)
    chart.update_layout(
        height=46 * len(rows) + 130, margin={"l": 8, "r": 8, "t": 40, "b": 48}, showlegend=True, scattermode="group",
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    alt = "Gains over the first configuration with their intervals; the table below has the same numbers."
    st.plotly_chart(chart, config={"displayModeBar": False}, key="versus_gains", alt=alt)


def _axis_name(row: Row) -> str:
    return f"{title_of(row.measure)}<br><i>{DIRECTIONS[row.measure.better]}</i>"


def table_html(table: Table, letters: str = LETTERS) -> str:
    """Every measure of every configuration; every text is escaped."""
    heads = "".join(
        f'<th scope="col">{letter} · {html.escape(clean(name))}</th>'
        for letter, name in zip(letters, table.names, strict=False)
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


def _draw_paths(found: Compared) -> None:
    table = found.table
    st.subheader("Time and calls by route", anchor=False)
    rows = [
        {
            "configuration": f"{letter} · {clean(name)}",
            "route": clean(path.label),
            "questions": path.count,
            "p50, s": path.p50.value if path.p50 else None,
            "p95, s": path.p95.value if path.p95 else None,
            "LLM calls": path.calls,
        }
        for letter, name in zip(found.letters, table.names, strict=True)
        for path in table.paths(name)
    ]
    alt = "Seconds and LLM calls by configuration and route"
    seconds = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        rows, hide_index=True, height="content", key="versus_paths", alt=alt,
        column_config={"p50, s": seconds, "p95, s": seconds, "LLM calls": seconds},
    )  # fmt: skip
