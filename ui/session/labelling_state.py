"""State of labelling on the Tune page: questions without a label, and the round of those that are asked for one."""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.base.errors import CragError
from crag_core.base.types import ANSWERING, Passage
from crag_core.evaluators.policies import known_card
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import (
    Expected,
    LabelledQuestion,
    LabelledSet,
    Origin,
    UnlabelledQuestion,
)
from crag_core.experiments.thresholds.guarantee import Pair
from crag_core.experiments.thresholds.most_telling import most_telling
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.threshold_board import deciding_scores, settled_actions
from ui.session import access, app_state, run_job, tune_state
from ui.session.tune_state import SetJob

ROUND = 20
"""Questions that are asked for a label."""
MOST_GRADED = 400
_MOST_RUNS = 500


@dataclass(frozen=True)
class Round:
    """`asked` in their order, and the label of each that has one in the set `name`."""

    name: str
    asked: tuple[UnlabelledQuestion, ...]
    labels: tuple[Expected | None, ...]

    @property
    def done(self) -> int:
        return sum(label is not None for label in self.labels)

    @property
    def next(self) -> UnlabelledQuestion | None:
        return next((one for one, label in zip(self.asked, self.labels, strict=True) if label is None), None)

    @property
    def last(self) -> UnlabelledQuestion | None:
        """The one that was labelled last, if they are labelled in their order."""
        labelled = [one for one, label in zip(self.asked, self.labels, strict=True) if label is not None]
        return labelled[-1] if labelled else None


def target() -> str:
    """Name of the set that the labels go into: the chosen one, where it is kept, else one's own."""
    chosen = tune_state.labelled()
    is_kept = chosen is not None and chosen.name in app_state.workbench().experiments.set_names()
    return chosen.name if chosen is not None and is_kept else tune_state.own_name()


def current() -> Round | None:
    """The round of the target, also one that was begun in another session. Raises `CragError`."""
    name = target()
    asked = app_state.workbench().experiments.load_round(name)
    if not asked:
        return None
    labels = {question.key: question.expected for question in _kept(name).questions}
    return Round(name, asked, tuple(labels.get(one.key) for one in asked))


def _kept(name: str) -> LabelledSet:
    kept = app_state.workbench().experiments
    return LabelledSet(name, kept.load_set(name).questions if name in kept.set_names() else ())


def from_history() -> tuple[UnlabelledQuestion, ...]:
    """What was asked last, each once. Raises `CragError`, also to whoever may not see what others asked."""
    access.require_administrator()
    runs = app_state.workbench().history.search(limit=_MOST_RUNS)
    questions = dict.fromkeys(question for run in runs if (question := cleaned(run.question)))
    return tuple(map(UnlabelledQuestion, questions))


# --- for callbacks ----------------------------------------------------------------------------------------------------


@app_state.reporting()
def begin(questions: tuple[UnlabelledQuestion, ...], into: str = "") -> None:
    """Grade those that the set does not hold, in the background, to choose among them.

    `into` names the set, "": the target.
    """
    access.require_administrator()
    name = into or target()
    known = {question.key for question in _kept(name).questions}
    waiting = tuple(one for one in questions if one.key not in known)[:MOST_GRADED]
    if not waiting or ((running := grading()) and running.is_running):
        st.session_state["label_problem"] = "" if waiting else "All of these have a label already."
        return
    workbench, warming, turns = app_state.workbench(), app_state.warm_up(), run_job.turns()
    pipeline = workbench.engine(tune_state.chosen(), observed=False)

    def work(job: SetJob) -> SetProgress:
        while warming.is_running and not job.cancel.wait(0.1):
            pass
        book = workbench.experiments.scores(workbench.conditions(pipeline, waiting))
        job.progress = score(
            waiting, pipeline, book, time.monotonic, workers=workbench.scoring_workers, controls=job.controls,
            on_progress=job.tell, take_turn=turns, recorded=workbench.recorded(waiting),
        )  # fmt: skip
        return job.progress

    warming.start()
    st.session_state["label_pool"] = name, waiting
    st.session_state["label_grading"] = started = Job(work, None)
    started.start()


def grading() -> SetJob | None:
    found: SetJob | None = st.session_state.get("label_grading")
    return found


def take_graded() -> SetJob | None:
    """Where the grading has ended: choose the round from what was graded, and return the job."""
    done = grading()
    if done is None or done.is_running:
        return None
    st.session_state["label_grading"] = None
    tune_state.corpus.clear()  # documents may have come in meanwhile
    name, waiting = st.session_state.pop("label_pool")
    experiments, policy = app_state.workbench().experiments, app_state.policy()
    facts = experiments.scores(tune_state.conditions(waiting)).load()
    graded = [one for one in waiting if one.key in facts]
    scored = [facts[one.key] for one in graded]
    known = deciding_scores(policy, scored, policy.lower, settled_actions(policy, scored))
    experiments.save_round(name, [graded[at] for at in most_telling(known, _pairs(), ROUND)])
    return done


def _pairs() -> list[Pair]:
    """The present thresholds, and the recommended ones where the chosen set recommends any."""
    policy = app_state.policy()
    found = [(policy.lower, policy.upper)]
    seen = tune_state.seen()
    if seen is not None and seen.graded:
        advice = tune_state.advice(seen, Objective(), None)
        found.append((advice.lower, advice.upper))
    return found


@app_state.reporting()
def label(name: str, asked: UnlabelledQuestion, expected: Expected | None) -> None:
    """Keep the label of a question in the set `name` at once; None: take it back."""
    access.require_administrator()
    made = LabelledQuestion(
        asked.question, expected or Expected.CORRECT, origin=Origin.WRITTEN, log=asked.log, record=asked.record,
        collection="" if asked.log else app_state.choice().collection,
    )  # fmt: skip
    tune_state.use(
        app_state.workbench().experiments.change_set(
            name, lambda there: there.having(made) if expected else there.lacking(asked.key)
        )
    )


@app_state.reporting()
def skip(found: Round, asked: UnlabelledQuestion) -> None:
    """Ask it last."""
    others = [one for one in found.asked if one is not asked]
    app_state.workbench().experiments.save_round(found.name, [*others, asked])


@app_state.reporting()
def end(name: str) -> None:
    app_state.workbench().experiments.save_round(name, ())
    st.rerun()


# --- what is shown of a question --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Best:
    """The chunk with the highest score that `upper` is compared with."""

    passage: Passage
    score: float | None


def best_chunk(asked: UnlabelledQuestion) -> Best | None:
    """None where nothing was found, or it is not graded under the present conditions."""
    try:
        trace = app_state.workbench().experiments.scores(tune_state.conditions((asked,))).record(asked.key)
    except CragError:
        return None
    if trace is None or not trace.passages:
        return None
    scores = {grade.passage_id: _compared(dict(grade.parts), grade.score) for grade in trace.grades or ()}
    best = max(trace.passages, key=lambda passage: scores.get(passage.id) or 0.0)
    return Best(best, scores.get(best.id))


def _compared(parts: dict[str, float], score: float | None) -> float | None:
    """That for answering, where the policy compares two."""
    return parts.get(ANSWERING, score) if app_state.policy().compares_two_scores else score


def effort(count: int) -> str:
    """The LLM calls that grading so many takes; "" for none."""
    card = known_card(st.session_state["evaluator"])
    return f"About {count * -(-app_state.settings().top_k // card.batch)} LLM calls." if card.calls_model else ""
