"""State of labelling on the Tune page: questions without a label, and those nearest to the thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import clean, shortened
from crag_core.base.text.markdown import without_marks
from crag_core.base.types.passages import ANSWERING
from crag_core.decision.decide import evidence_of
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import (
    Expected,
    LabelledQuestion,
    LabelledSet,
    Origin,
    UnlabelledQuestion,
    word,
)
from crag_core.experiments.thresholds.threshold_board import deciding_scores, nearest
from ui.session import access, app_state, background, labelled_sets
from ui.session.keys import hand, kept
from ui.session.labelled_sets import SetJob, SetWork
from ui.tune import tune_state

ROUND = 20
"""Questions that are labelled at a time."""
_LONGEST_CHUNK = 900
MOST_GRADED = 400
_MOST_RUNS = 500
GRADING = SetWork("label_grading")


@dataclass
class Labelling:
    """Questions `waiting` to be chosen from for the set `name`; then those `asked`, the nearest to a threshold first,
    with their rows as drawn first."""

    name: str = ""
    waiting: tuple[UnlabelledQuestion, ...] = ()
    asked: tuple[UnlabelledQuestion, ...] = ()
    rows: list[dict[str, object]] = field(default_factory=list)


def target() -> str:
    """Name of the set that the labels go into: the chosen one, where it is kept, else one's own."""
    chosen = labelled_sets.in_use()
    is_kept = chosen is not None and chosen.name in app_state.workbench().experiments.set_names()
    return chosen.name if chosen is not None and is_kept else tune_state.own_name()


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
    known = {question.key for question in app_state.workbench().experiments.find_set(name).questions}
    waiting = tuple(one for one in questions if one.key not in known)[:MOST_GRADED]
    if not waiting:
        hand("label_problem", "All of these have a label already.")
    elif not background.is_busy(GRADING.name):
        GRADING.grade(waiting)
        own = kept(Labelling)
        own.name, own.waiting, own.asked = name, waiting, ()


def take_graded() -> SetJob | None:
    """Where the grading has ended: choose the questions from what was graded, and return the job."""
    done = GRADING.take_ended()
    if done is None:
        return None
    own, policy = kept(Labelling), app_state.policy()
    waiting = own.waiting
    facts = app_state.workbench().experiments.scores(labelled_sets.conditions(waiting)).load()
    graded = [one for one in waiting if one.key in facts]
    scored = [facts[one.key] for one in graded]
    seen = [evidence_of(policy, one.passages, one.grades, one.signals) for one in scored]
    known = deciding_scores(policy, seen, policy.lower)
    own.asked = tuple(graded[at] for at in nearest(known, policy.lower, policy.upper)[:ROUND])
    return done


@app_state.reporting()
def label(chosen: Mapping[int, Expected | None]) -> None:
    """Keep the labels of questions, by their places among those asked, at once; None: take it back."""
    access.require_administrator()
    found = kept(Labelling)

    def change(there: LabelledSet) -> LabelledSet:
        for at, expected in chosen.items():
            asked = found.asked[at]
            made = LabelledQuestion(
                asked.question, expected or Expected.CORRECT, origin=Origin.WRITTEN, log=asked.log, record=asked.record,
                collection="" if asked.log else app_state.choice().collection,
            )  # fmt: skip
            there = there.having(made) if expected else there.lacking(asked.key)
        return there

    labelled_sets.use(app_state.workbench().experiments.change_set(found.name, change))


def end() -> None:
    kept(Labelling).asked = ()


# --- what is shown of a question --------------------------------------------------------------------------------------


def rows(key: str) -> list[dict[str, object]]:
    """For the table of this key: as it was drawn first, since the browser adds what was changed since.

    Each question with its label then, and its chunk with the highest score that `upper` is compared with.
    """
    own = kept(Labelling)
    if key not in st.session_state:  # the table was not drawn before, or the page was left
        there = app_state.workbench().experiments.find_set(own.name)
        labels = {question.key: word(question.expected) for question in there.questions}
        own.rows = [
            {"label": labels.get(one.key), "question": clean(one.question)} | _best_chunk(one) for one in own.asked
        ]
    return own.rows


def _best_chunk(asked: UnlabelledQuestion) -> dict[str, object]:
    """Empty cells where nothing was found, or it is not graded under the present conditions."""
    try:
        trace = app_state.workbench().experiments.scores(labelled_sets.conditions((asked,))).record(asked.key)
    except CragError:
        trace = None
    if trace is None or not trace.passages:
        return {"best chunk": "", "score": None, "document": ""}
    is_two = app_state.policy().compares_two_scores  # then that for answering
    scores = {
        grade.passage_id: dict(grade.parts).get(ANSWERING, grade.score) if is_two else grade.score
        for grade in trace.grades or ()
    }
    best = max(trace.passages, key=lambda passage: scores.get(passage.id) or 0.0)
    text = shortened(clean(without_marks(best.text)), _LONGEST_CHUNK)
    return {"best chunk": text, "score": scores.get(best.id), "document": clean(best.source)}
