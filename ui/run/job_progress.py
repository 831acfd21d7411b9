"""Live progress of a background job: a run, or the first start."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from crag_core.app.background_jobs import Job, RunJob
from crag_core.base.documents import Progress
from crag_core.base.text.display import counted
from crag_core.base.types.steps import StepName
from crag_core.view.record import step_title
from crag_core.view.run_view import view_run
from ui.run.path import draw_path
from ui.run.verdict import draw_verdict, verdict_row
from ui.session import access, app_state, run_job, startup
from ui.session.fragments import EVERY, ticking
from ui.shell.text import paragraphs, plain

_VERDICT = 48
"""Pixels, the height of a verdict with its reason: the path stays where it is when that comes."""
_LONGEST = 1.5
"""Seconds between two looks at a run that many are before: each look takes as long as a part of theirs."""


def draw_running() -> None:
    """The answer as it is written, the verdict as soon as it stands, and the steps as they happen."""
    job = run_job.job()
    before = (job.ticket.before if job and job.ticket else None) or 0
    ticking(min(EVERY * (1 + before), _LONGEST))(_draw_running)(before > 0)


def _draw_running(has_others_before: bool) -> None:
    """`has_others_before`: as it was when the page was drawn."""
    job = run_job.job()
    if job is None:
        st.rerun()  # it was put away by a script that was interrupted before it could redraw the page
    if not job.is_running:
        run_job.finish(job)
        st.rerun()
    if has_others_before and job.ticket and job.ticket.before is None:
        st.rerun()  # its turn has come: from here on a look every `EVERY` seconds
    run = job.progress
    with st.container(border=True, gap="small", key="answer_coming"):
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="answer_head"
        ):
            st.markdown(f":shimmer[{plain(_doing(job))}]")
            draw_stop(job, "ask_stop")
        st.markdown(paragraphs(view_run(run.trace).cited(run.text)) if run.text else "")
    if job.ticket and job.ticket.before is not None:
        return  # nothing has happened yet, and many may wait here
    view = view_run(run.trace)
    if run.trace.decision is not None:
        with verdict_row():
            draw_verdict(view)
    else:
        st.space(_VERDICT)
    draw_path(view, key="path_running", running=run.step, progress=run.counted)


def draw_warming(key: str = "") -> None:
    """The first start, or what the last one left undone, while it lasts, and what went wrong; `key` as below."""
    warming = startup.warm_up()
    if warming.is_running:
        draw_indexing_live(warming, key)
    elif warming.bug:
        raise warming.bug


@ticking()
def draw_indexing_live(
    job: Job[Progress | None, Any],
    key: str = "",
    hint: str = "",
    what: str = "Indexing",
    idle: str = "Reading the index",
) -> None:
    """Documents on their way, with a button of this key to stop it, "": without one; at their end the page anew."""
    if not job.is_running:
        st.rerun()
    with st.container(border=bool(key), horizontal=bool(key), vertical_alignment="center"):
        _draw_progress(job, what, idle)
        if key and access.is_administrator():
            draw_stop(job, key, hint)


def draw_stop(job: Job[Any, Any], key: str, hint: str | None = None) -> None:
    label = "Stopping…" if job.is_stopping else "Stop"
    st.button(label, key, hint, job.stop, disabled=job.is_stopping, icon=":material/stop_circle:", width="content")


def _draw_progress(job: Job[Progress | None, Any], what: str, idle: str) -> None:
    progress = job.progress
    if progress is None:
        st.progress(0.0, f":shimmer[{idle} …]")
        return
    part = progress.embedded / progress.passages if progress.passages else 0.0
    done = (progress.position - 1 + part) / progress.total
    page = f"page {progress.page} of {progress.pages}" if progress.page else ""
    told = f"reading {page}".strip()
    if progress.passages and not progress.embedded and startup.model_loading().is_running:
        told = "loading the embedding model"  # nearly all of what a first upload takes
    elif progress.passages:
        told = f"{progress.embedded:,} of {counted(progress.passages, 'chunk')} embedded"
        told += f", searchable up to {page}" if page else ""
    place = f" ({progress.position} of {progress.total})" if progress.total > 1 else ""
    st.progress(min(done, 1.0), f"{what} {plain(progress.name)}{place}: {told}")


def waiting_for(job: Job[Any, Any]) -> str:
    """Where a run stands in line; "": it is under way."""
    runs = job.ticket.before if job.ticket else None
    if runs is None:
        return ""
    return f"In line: {counted(runs, 'run')} before yours" if runs else "In line: yours is next"


def _doing(job: RunJob) -> str:
    seconds = time.monotonic() - job.started_at
    now = job.progress
    progress = f", {now.counted[0]} of {now.counted[1]}" if now.counted else ""
    workbench = app_state.workbench()
    waits = "" if (line := waiting_for(job)) else workbench.servers.waits_for(job.cancel)
    if now.step == StepName.RETRIEVE and workbench.own_engine is None and startup.model_loading().is_running:
        waits = "the embedding model is being loaded"
    return f"{line or step_title(now.step) + progress + (f': {waits}' if waits else '')} … {seconds:.0f} s"
