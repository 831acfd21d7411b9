"""The record of a run: its rounds of retrieval, its steps with time and cost, and its settings."""

from __future__ import annotations

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.types import StepState
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.record import RoundRow, cost_of, round_rows, settings_of
from crag_core.view.run_view import RunView
from ui.run.verdict import headline
from ui.text import plain

_ICONS = {
    StepState.DONE: ":green[:material/check_circle:]",
    StepState.SKIPPED: ":gray[:material/do_not_disturb_on:]",
    StepState.FAILED: ":red[:material/error:]",
    StepState.STOPPED: ":orange[:material/stop_circle:]",
    StepState.WAITING: ":orange[:material/hourglass_top:]",
}


def draw_rounds(view: RunView) -> None:
    """Nothing for a run that retrieved once."""
    if rows := round_rows(view):
        with st.container(border=True):
            st.subheader(":material/replay: Looked again", anchor=False)
            st.markdown("\n\n".join(_round_line(number, row) for number, row in enumerate(rows, start=1)))


def _round_line(number: int, row: RoundRow) -> str:
    line = f"**{number if row.decision else '+'}** · {plain(row.how)} · {row.found}"
    return f"{line} → {headline(row.decision)}: {plain(row.decision.reason)}" if row.decision else line


def draw_record(trace: Trace) -> None:
    st.markdown(
        "  \n".join(
            f"{_ICONS[step.state]} **{plain(step.name)}** {plain(step.summary)} :gray[:small[{cost_of(step)}]]"
            for step in trace.steps
        )
    )
    if trace.corrections:
        _draw_corrections(trace)
        with st.popover("Summary of this run", icon=":material/summarize:"):
            rows = [{"field": name, "value": _shown(value)} for name, value in to_plain(summarize(trace)).items()]
            st.dataframe(rows, hide_index=True, alt="Summary of the run")
    st.markdown("  \n".join(f":gray[{name}] {plain(value)}" for name, value in settings_of(trace)))


def _draw_corrections(trace: Trace) -> None:
    """What was really carried out, with the query where there was one."""
    st.table(
        [
            {
                "Correction": f"**{plain(one.kind.value)}**",
                "Why": plain(one.reason),
                "Query": plain(one.query) or "–",
                "Chunk": plain(one.passage_id or "") or "all",
            }
            for one in trace.corrections or ()
        ],
        hide_index=True,
        border="horizontal",
        alt="Corrections that were carried out, in order",
    )


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
