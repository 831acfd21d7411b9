"""Grading a labelled set: cost, progress and errors."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.evaluators.policies import known_card
from ui.run.job_progress import draw_stop
from ui.session import access, app_state
from ui.session.fragments import ticking
from ui.session.labelled_sets import SetJob, SetWork
from ui.shell.text import plain
from ui.tune import tune_state
from ui.tune.tune_state import Seen


def draw_grading(seen: Seen) -> None:
    where = app_state.choice().collection
    there = f" in {plain(where)}" if where else ""
    calls = seen.missing * -(-seen.conditions.top_k // known_card(app_state.evaluator()).batch)
    draw_to_grade(
        tune_state.grading(),
        tune_state.start_grading,
        f"Retrieves each question{there} and grades it once",
        "question",
        graded=len(seen.graded),
        missing=seen.missing,
        calls=calls,
        is_away=bool(seen.labelled.elsewhere(where)),
    )


def draw_to_grade(
    work: SetWork,
    start: Callable[[], None],
    message: str,
    noun: str,
    *,
    graded: int,
    missing: int,
    calls: int,
    is_away: bool = False,
) -> None:
    """How far it is; else what is missing, with the button that grades it; nothing where all is graded.

    `calls` are those of an evaluator that asks a language model. `is_away`: labels speak of other documents.
    """
    if work.job is not None:
        draw_job(work, "Grading", "graded")
        return
    if not missing:
        return
    card = known_card(app_state.evaluator())
    told = [f"{message}, with {plain(card.title.lower())}."]
    told += [f"{graded} are graded already."] if graded else []
    told += [f"About {counted(calls, 'LLM call')}."] if card.calls_model else []
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(" ".join(told), width="stretch")
        if access.is_administrator():  # the top of the page says why not
            st.button(
                f"Grade {counted(missing, noun)}{' all the same' if is_away else ''}", on_click=start,
                type="secondary" if is_away else "primary", icon=":material/grading:", key=f"{work.name}_start",
            )  # fmt: skip


def draw_ended(job: SetJob, again: str = "grade", done: str = "graded", title: str = "The grading broke off") -> None:
    """What kept an ended job from doing all questions of a set; what it had done before is kept."""
    if job.bug:
        raise job.bug
    if job.error:
        message = f"{plain(str(job.error))} What was {done} is kept; {again} again to continue."
        st.error(message, icon=":material/error:", title=title)
    elif job.progress and job.progress.failed:
        failed = counted(job.progress.failed, "question")
        message = f"{failed} could not be {done}. {again.capitalize()} again to try once more."
        st.warning(message, icon=":material/warning:")


@ticking()
def draw_job(work: SetWork, doing: str, done: str) -> None:
    """The progress of a job over a labelled set, with a stop for who may; the page anew at its end."""
    job = work.job
    if job is None or not job.is_running:
        st.rerun()
        return
    batch = job.progress
    with st.container(border=True):
        if batch is None:
            st.progress(0.0, ":shimmer[Waiting for the documents …]")
        else:
            count = batch.done + batch.failed
            failed = f", {batch.failed} failed" if batch.failed else ""
            now = f":shimmer[{doing}] {count} of {batch.total}{_format_left(batch.left)}{failed}"
            st.progress(count / max(batch.total, 1), now)
        if not access.is_administrator():
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            draw_stop(job, f"{work.name}_stop")
            st.caption(f"What is {done} is kept, whatever happens.")


def _format_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 90:
        return f", about {max(round(seconds), 1)} s left"
    return f", about {round(seconds / 60)} min left" if seconds < 5400 else f", about {seconds / 3600:.1f} h left"
