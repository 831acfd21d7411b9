"""Who grades, in the sidebar: the choice, an evaluator of somebody else by name, and its calibration."""

from __future__ import annotations

import streamlit as st

from crag_core.app.calibration import sample_questions
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.decision.policy import Policy
from crag_core.evaluators.cascade import SHOWN_FORM
from crag_core.evaluators.named.names import SHOWN_FORMS, is_named
from crag_core.experiments.batch import SetProgress
from ui.session import access, app_state, labelled_sets, named_evaluators
from ui.session.app_state import NamedEvaluators
from ui.session.fragments import ticking
from ui.session.keys import kept
from ui.shell.text import plain

_TYPED = "evaluator_by_name"


def draw(policy: Policy) -> None:
    known = app_state.evaluators()
    evaluator = st.selectbox(
        "Evaluator", list(known), format_func=lambda name: known[name].title if name in known else str(name),
        key="evaluator", bind="query-params", on_change=app_state.start_thresholds,
        help="Who grades each chunk against the question. Another evaluator grades at the next run.",
    )  # fmt: skip
    if known[evaluator].calls_model and not app_state.has_model():
        st.caption(":orange[:material/warning:] Needs a language model: choose one below.")
    elif not (policy if app_state.has_model() else policy.without_language_model()).reads_grades:
        st.caption("This policy scores the whole set; the grades of single chunks decide nothing.")
    is_calibrated = is_named(evaluator) and _draw_calibration(evaluator)
    with st.container(horizontal=True):
        if is_calibrated:
            with st.popover("Again", icon=":material/tune:", type="tertiary", help="Calibrate it again."):
                _draw_start(evaluator, is_first=False)
        if access.is_administrator():
            _draw_adding()


def _draw_adding() -> None:
    with st.popover("Another by name", icon=":material/add:", type="tertiary"):
        st.text_input("Model", key=_TYPED, placeholder="hf:BAAI/bge-reranker-base")
        st.caption(
            f"A reranker: {SHOWN_FORMS}. Safetensors only; none of its code is run. Or two evaluators: {SHOWN_FORM} "
            "asks the second about scores from 0.5 to 0.9."
        )
        st.button("Add", on_click=_add, key="evaluator_add")
        if refused := kept(NamedEvaluators).refused:
            st.error(plain(refused), icon=":material/error:")


def _add() -> None:
    """For a callback: a refusal is told here, since the popover lies over where the page tells it."""
    own = kept(NamedEvaluators)
    own.refused = ""
    try:
        named_evaluators.add(st.session_state[_TYPED])
    except CragError as error:
        own.refused = str(error)


def _draw_calibration(name: str) -> bool:
    """Whether it is calibrated, and none is under way."""
    named_evaluators.take_ended(name)
    if named_evaluators.job(name):
        _draw_running(name)
        return False
    if why := named_evaluators.failure(name):
        st.error(plain(why), icon=":material/error:")
    found = app_state.workbench().experiments.evaluators().get(name)
    if found is None:
        st.caption(":orange[:material/warning: Not calibrated:] its raw scores fit no threshold, so no run is started.")
        _draw_start(name, is_first=True)
    elif why := named_evaluators.why_not(name):
        st.caption(f":orange[:material/warning:] {plain(why)}")
        _draw_start(name, is_first=True)
    else:
        on = f"{counted(found.curve.questions, 'question')} of {plain(found.labelled)}"
        remark = " :orange[:material/warning:] None of them reaches CORRECT." if found.remark else ""
        auroc = f"{found.apart.value:.2f} ({found.apart.low:.2f}–{found.apart.high:.2f})"
        told = f"Calibrated on {on}: AUROC {auroc}, {found.seconds * 1000:.0f} ms a chunk.{remark}"
        st.caption(told, help=plain(found.remark) or None)
        return True
    return False


def _draw_start(name: str, is_first: bool) -> None:
    if not access.is_administrator():
        st.caption(f":material/lock: {plain(access.refusal('grade labelled sets and keep presets'))}")
        return
    labelled, size = labelled_sets.in_use(), len(sample_questions().questions)
    st.button(
        "Calibrate on the sample", on_click=named_evaluators.start, args=(name, None),
        type="primary" if is_first else "secondary", icon=":material/tune:", key="calibrate_sample", width="stretch",
    )  # fmt: skip
    st.caption(f"{_cost(size)} It has an index of its own; yours is not touched.")
    if labelled is not None and labelled.name != labelled_sets.SAMPLE:
        st.button(
            f"Calibrate on {plain(labelled.name)}", on_click=named_evaluators.start, args=(name, labelled),
            icon=":material/tune:", key="calibrate_own", width="stretch",
        )  # fmt: skip
        st.caption(f"{_cost(len(labelled.questions))} The set of the Tune page, over your documents.")


def _cost(questions: int) -> str:
    return f"{counted(questions, 'question')}, {questions * app_state.settings().top_k} chunks."


def _rounded(seconds: float) -> str:
    return f"{max(round(seconds), 1)} s" if seconds < 90 else f"{round(seconds / 60)} min"


@ticking()
def _draw_running(name: str) -> None:
    """Goes on by itself; the page is drawn anew when it has ended."""
    job = named_evaluators.job(name)
    if job is None or not job.is_running:
        st.rerun()
        return
    now = job.progress
    if isinstance(now, SetProgress):
        count = now.done + now.failed
        left = f", about {_rounded(now.left)} left" if now.left else ""
        st.progress(count / max(now.total, 1), f":shimmer[Calibrating] {count} of {now.total}{left}")
    else:
        st.progress(0.0, f":shimmer[{plain(now)} …]")
    st.button(
        "Stopping…" if job.is_stopping else "Stop", on_click=job.stop, disabled=job.is_stopping, key="calibrate_stop",
        icon=":material/stop_circle:",
    )  # fmt: skip
