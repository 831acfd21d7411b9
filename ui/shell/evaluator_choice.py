"""Who grades, in the sidebar: the choice, an evaluator of somebody else by name, and its calibration."""

from __future__ import annotations

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.app.calibration import calibrate, sample_questions
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.decision.policy import Policy
from crag_core.evaluators.cascade import SHOWN_FORM, parse_cascade
from crag_core.evaluators.named.names import SHOWN_FORMS, is_named, parse_name
from crag_core.evaluators.policies import known_card
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.labelled.questions import LabelledSet
from ui.session import access, app_state, background, labelled_sets
from ui.session.fragments import ticking
from ui.session.keys import hand, take
from ui.shell.text import plain

CalibrationJob = Job[str | SetProgress, KeptEvaluator]
_TYPED = "evaluator_by_name"
_REFUSED = "evaluator_refused"


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
        st.button("Add", on_click=_add_typed, key="evaluator_add")
        if refused := take(_REFUSED):  # told here, since the popover lies over where the page tells it
            st.error(plain(refused), icon=":material/error:")


def _add_typed() -> None:
    try:
        add(st.session_state[_TYPED])
    except CragError as error:
        hand(_REFUSED, str(error))


def add(text: str) -> None:
    """For a callback: offer an evaluator by name, and choose it; it is offered to all once it is calibrated.

    Raises `CragError` for what is no such name.
    """
    access.require_administrator()
    name = text.strip()
    name = known_card(name).name if parse_cascade(name) else str(parse_name(name))
    st.session_state["added_evaluators"] = tuple(dict.fromkeys((*app_state.added_evaluators(), name)))
    app_state.choose_evaluator(name)


def _draw_calibration(name: str) -> bool:
    """Whether it is calibrated, and none is under way."""
    job = _calibration(name)
    if job is not None and job.is_running:
        _draw_running(name)
        return False
    if job is not None and job.bug:
        raise job.bug
    if job is not None and job.error:  # which stays until the next one
        st.error(plain(str(job.error)), icon=":material/error:")
    elif job is not None:
        background.take_ended(*_job(name))
        if app_state.evaluator() == name:
            app_state.start_thresholds()
    found = app_state.workbench().experiments.evaluators().get(name)
    why = _unusable_reason(name) if found else ""
    if found is None or why:
        raw = "Not calibrated:] its raw scores fit no threshold, so no run is started."
        st.caption(f":orange[:material/warning:] {plain(why)}" if why else f":orange[:material/warning: {raw}")
        _draw_start(name, is_first=True)
        return False
    on = f"{counted(found.curve.questions, 'question')} of {plain(found.labelled)}"
    remark = " :orange[:material/warning:] None of them reaches CORRECT." if found.remark else ""
    auroc = f"{found.apart.value:.2f} ({found.apart.low:.2f}–{found.apart.high:.2f})"
    told = f"Calibrated on {on}: AUROC {auroc}, {found.seconds * 1000:.0f} ms a chunk.{remark}"
    st.caption(told, help=plain(found.remark) or None)
    return True


def _unusable_reason(name: str) -> str:
    """Why no run can be started with an evaluator by name, "" where one can."""
    try:
        app_state.workbench().named(name)
    except CragError as error:
        return error.message
    return ""


def _job(name: str) -> tuple[str, str]:
    return f"calibration_{name}", str(app_state.settings().home)


def _calibration(name: str) -> CalibrationJob | None:
    """Under way, in whatever session, or how the last one ended."""
    return background.job(*_job(name))


def _draw_start(name: str, is_first: bool) -> None:
    if not access.is_administrator():
        st.caption(f":material/lock: {plain(access.refusal('grade labelled sets and keep presets'))}")
        return
    labelled, size = labelled_sets.in_use(), len(sample_questions().questions)
    st.button(
        "Calibrate on the sample", on_click=start, args=(name, None), type="primary" if is_first else "secondary",
        icon=":material/tune:", key="calibrate_sample", width="stretch",
    )  # fmt: skip
    st.caption(f"{_cost(size)} It has an index of its own; yours is not touched.")
    if labelled is not None and labelled.name != labelled_sets.SAMPLE:
        st.button(
            f"Calibrate on {plain(labelled.name)}", on_click=start, args=(name, labelled), icon=":material/tune:",
            key="calibrate_own", width="stretch",
        )  # fmt: skip
        st.caption(f"{_cost(len(labelled.questions))} The set of the Tune page, over your documents.")


def _cost(questions: int) -> str:
    return f"{counted(questions, 'question')}, {questions * app_state.settings().top_k} chunks."


@app_state.reporting()
def start(name: str, labelled: LabelledSet | None) -> None:
    """For a callback: calibrate in the background, on a set over the indexed documents; None: on the sample."""
    access.require_administrator()
    workbench, turns = app_state.workbench(), background.turns()

    def work(job: CalibrationJob) -> KeptEvaluator:
        return calibrate(
            workbench, name, labelled, cancel=job.cancel, on_progress=job.tell, tell=job.tell, take_turn=turns
        )

    starting: str | SetProgress = "Starting"
    key, home = _job(name)
    background.start(key, work, starting, home)


@ticking()
def _draw_running(name: str) -> None:
    """Goes on by itself; the page is drawn anew when it has ended."""
    job = _calibration(name)
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
    label = "Stopping…" if job.is_stopping else "Stop"
    st.button(label, on_click=job.stop, disabled=job.is_stopping, key="calibrate_stop", icon=":material/stop_circle:")


def _rounded(seconds: float) -> str:
    return f"{max(round(seconds), 1)} s" if seconds < 90 else f"{round(seconds / 60)} min"
