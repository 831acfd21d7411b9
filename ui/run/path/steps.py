"""The steps of a run with time and cost."""

from __future__ import annotations

import streamlit as st

from crag_core.base.serialization import to_plain
from crag_core.base.types import Step, StepState
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from ui.run.path.rounds import draw_corrections
from ui.text import plain, versioned

_ICONS = {
    StepState.DONE: ":green[:material/check_circle:]",
    StepState.SKIPPED: ":gray[:material/do_not_disturb_on:]",
    StepState.FAILED: ":red[:material/error:]",
    StepState.STOPPED: ":orange[:material/stop_circle:]",
    StepState.WAITING: ":orange[:material/hourglass_top:]",
}


def step_line(step: Step) -> str:
    cost = [f"{step.seconds * 1000:.0f} ms" if step.seconds < 10 else f"{step.seconds:.0f} s"]
    if step.usage.calls:
        tokens = step.usage.prompt_tokens + step.usage.completion_tokens
        cost.append(f"{step.usage.calls} model {'call' if step.usage.calls == 1 else 'calls'}, {tokens} tokens")
    if step.taken_over:
        cost.append("taken over from an earlier run")
    return f"{_ICONS[step.state]} **{plain(step.name)}** {plain(step.summary)} :gray[:small[{' · '.join(cost)}]]"


def draw_steps(steps: tuple[Step, ...]) -> None:
    st.markdown("  \n".join(step_line(step) for step in steps))


def _draw_summary(trace: Trace) -> None:
    """The run in one flat record, as `Response.metadata["crag_summary"]` has it."""
    with st.popover("Summary of this run", icon=":material/summarize:"):
        rows = [{"field": name, "value": _shown(value)} for name, value in to_plain(summarize(trace)).items()]
        st.dataframe(rows, hide_index=True, alt="Summary of the run")


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def draw_record(trace: Trace) -> None:
    """The steps, the settings and the whole record for download."""
    draw_steps(trace.steps)
    if trace.corrections:
        draw_corrections(trace.corrections)
        _draw_summary(trace)
    settings = trace.settings
    message = (
        f"Run {trace.id}, {trace.created} · policy {settings.policy.name} · "
        f"evaluator {versioned(settings.evaluator.name, settings.evaluator.version)} · "
        f"sentences scored by {versioned(settings.strip_evaluator.name, settings.strip_evaluator.version)} · "
        f"embedding {settings.embedding} · answer by {versioned(settings.writer, settings.writer_version)} · "
        f"web {settings.web_mode} · settings {trace.fingerprint}"
    )
    st.caption(plain(message))
