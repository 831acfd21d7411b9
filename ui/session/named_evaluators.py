"""Evaluators of others in this session: those that it added, and the calibrations under way."""

from __future__ import annotations

from crag_core.app.background_jobs import Job
from crag_core.app.calibration import calibrate
from crag_core.base.errors import CragError
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.cascade import parse_cascade
from crag_core.evaluators.named.names import is_named, parse_name
from crag_core.evaluators.policies import known_card
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.labelled.questions import LabelledSet
from ui.session import access, app_state, background, run_job
from ui.session.app_state import NamedEvaluators
from ui.session.keys import kept

CalibrationJob = Job[str | SetProgress, KeptEvaluator]


def usable() -> tuple[EvaluatorCard, ...]:
    """Those that a run can be started with, or may be once a model is chosen."""
    calibrated = app_state.workbench().experiments.evaluators()
    return tuple(card for name, card in app_state.evaluators().items() if not is_named(name) or name in calibrated)


def add(text: str) -> None:
    """For a callback: offer an evaluator by name, and choose it; it is offered to all once it is calibrated.

    Raises `CragError` for what is no such name.
    """
    access.require_administrator()
    name = text.strip()
    name = known_card(name).name if parse_cascade(name) else str(parse_name(name))
    own = kept(NamedEvaluators)
    own.added = tuple(dict.fromkeys((*own.added, name)))
    app_state.choose_evaluator(name)


def why_not(name: str) -> str:
    """Why no run can be started with an evaluator by name, "" where one can."""
    try:
        app_state.workbench().named(name)
    except CragError as error:
        return error.message
    return ""


def job(name: str) -> CalibrationJob | None:
    """The calibration of an evaluator under way, in whatever session, or ended since somebody looked."""
    return background.job(f"calibration_{name}", str(app_state.settings().home))


@app_state.reporting()
def start(name: str, labelled: LabelledSet | None) -> None:
    """For a callback: calibrate in the background, on a set over the indexed documents; None: on the sample."""
    access.require_administrator()
    kept(NamedEvaluators).failed = ("", "")
    workbench, turns = app_state.workbench(), run_job.turns()

    def work(job: CalibrationJob) -> KeptEvaluator:
        return calibrate(
            workbench, name, labelled, controls=job.controls, on_progress=job.tell, tell=job.tell, take_turn=turns
        )

    starting: str | SetProgress = "Starting"
    background.start(f"calibration_{name}", work, starting, str(app_state.settings().home))


def take_ended(name: str) -> None:
    """Before anything is drawn of it: one that has ended sets the sliders, or leaves what went wrong (`failure`)."""
    ended = background.take_ended(f"calibration_{name}", str(app_state.settings().home))
    if ended is None:
        return
    if ended.bug:
        raise ended.bug
    if ended.error:
        kept(NamedEvaluators).failed = name, str(ended.error)
    elif app_state.evaluator() == name:
        app_state.start_thresholds()


def failure(name: str) -> str:
    """Why its last calibration in this session gave nothing; "": nothing went wrong."""
    whose, why = kept(NamedEvaluators).failed
    return why if whose == name else ""
