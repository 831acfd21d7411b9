"""State of the Tune page: labelled set, grades and objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crag_core.base.errors import CragError
from crag_core.experiments.labelled.graded import Case, Conditions, cases
from crag_core.experiments.labelled.questions import (
    LabelledQuestion,
    LabelledSet,
    UnlabelledQuestion,
)
from crag_core.experiments.labelled.read import Read, read_questions
from crag_core.experiments.store import set_name_of
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.recommend import Recommendation, accept, choose
from crag_core.experiments.thresholds.threshold_board import Board
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.view.score_words import threshold_names
from ui.session import access, app_state, current_run, labelled_sets
from ui.session.keys import kept, remembered
from ui.session.labelled_sets import SetInUse, SetWork


@dataclass
class TunePage:
    """The last file; the last draft, () where none could be made; what the name of a preset started with."""

    uploaded: Uploaded | None = None
    drafted: tuple[LabelledQuestion, ...] | None = None
    preset_start: str = ""


@dataclass(frozen=True)
class Seen:
    """A set, the conditions that it is to be graded under, and what was graded so far."""

    labelled: LabelledSet
    conditions: Conditions
    graded: tuple[Case, ...]

    @property
    def missing(self) -> int:
        return len(self.labelled.questions) - len(self.graded)


@app_state.reporting()
def keep(found: LabelledSet, instead_of: LabelledSet | None = None) -> None:
    """For a callback: save a set, where this person may, and work with it."""
    if access.is_administrator():
        found = app_state.workbench().experiments.keep_set(found, instead_of)
    labelled_sets.use(found)


def add_questions(questions: tuple[LabelledQuestion, ...]) -> None:
    """To the set that is there, those that it does not hold yet."""
    there = labelled_sets.in_use()
    if there is not None:
        known = {question.key for question in there.questions}
        new = tuple(question for question in questions if question.key not in known)
        keep(replace(there, questions=there.questions + new), there)


def choose_cell(label: int, route: int) -> None:
    """For a callback. One that is chosen again closes."""
    now = kept(SetInUse)
    now.cell = None if now.cell == (label, route) else (label, route)
    current_run.redraw()


# --- a person's own set -----------------------------------------------------------------------------------------------


def speaking_of(collection: str, questions: Sequence[LabelledQuestion]) -> tuple[LabelledQuestion, ...]:
    """With the collection that their labels speak of, where they do not say."""
    return tuple(replace(one, collection=one.collection or collection) for one in questions)


def own_name() -> str:
    """Of the set that this person's own questions go into."""
    return set_name_of(f"questions of {access.user()}" if access.user() else "my questions")


def own_set() -> LabelledSet:
    """As it is kept; empty where there is none, or it cannot be read."""
    try:
        return app_state.workbench().experiments.find_set(own_name())
    except CragError:
        return LabelledSet(own_name(), ())


# --- an uploaded file -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Uploaded:
    """A file: without a problem its questions were saved, else nothing was changed."""

    name: str
    read: Read


def take_file(name: str, content: bytes) -> tuple[UnlabelledQuestion, ...]:
    """For a callback: save the questions of a file and work with them; where a row is at fault, nothing is changed.

    Returns the questions of a file without labels.
    """
    read = read_questions(name, content)
    read = replace(read, questions=speaking_of(app_state.choice().collection, read.questions))
    kept(TunePage).uploaded = Uploaded(name, read)
    if read.problems:
        return ()
    if read.questions:
        keep(LabelledSet(_titled(name), read.questions))
    return read.unlabelled


def take_the_rest() -> None:
    """For a callback: the questions of the refused file without the rows at fault."""
    page = kept(TunePage)
    if (found := page.uploaded) is not None and found.read.questions:
        page.uploaded = replace(found, read=replace(found.read, problems=()))
        keep(LabelledSet(_titled(found.name), found.read.questions))


def _titled(name: str) -> str:
    return name.rsplit(".", 1)[0]


def seen() -> Seen | None:
    """Raises `CragError` where the sidebar's choice cannot grade, or what was graded cannot be read."""
    found = labelled_sets.in_use()
    if found is None:
        return None
    now = labelled_sets.conditions(found.questions)
    book = app_state.workbench().experiments.scores(now)
    key = (now.fingerprint, found.fingerprint, book.state)
    return remembered("tune_seen", key, lambda: Seen(found, now, cases(found.questions, book.load())))


def board(of: Seen, policy: str = "") -> Board:
    """`of` under a policy, that of the sidebar unless another is named, at the thresholds to start from."""
    choice = app_state.choice()
    name = policy or choice.policy.name

    def work_out() -> Board:
        chosen, judge = app_state.suited(name, choice.evaluator), app_state.workbench().card(choice.evaluator)
        return Board(chosen, of.graded, judge, writer=choice.model != EXTRACTIVE)

    key = (of.conditions.fingerprint, of.labelled.fingerprint, len(of.graded), choice.model)
    return remembered(f"tune_board_{name}", key, work_out)


def advice(of: Seen, objective: Objective, confidence: float | None) -> Recommendation:
    """Chosen once for a set, a policy and an objective; held against the thresholds of the sidebar each time."""
    now, own = board(of), app_state.policy()
    others = [("start", now.policy.lower, now.policy.upper)]
    others += [(preset.name, preset.lower, preset.upper) for preset in now.policy.presets]
    chosen = remembered(
        "tune_advice",
        (now, objective, confidence),
        lambda: choose(now, objective, confidence=confidence),
    )
    return accept(chosen, objective, (own.lower, own.upper), tuple(others), threshold_names(own))


def grading() -> SetWork:
    found = labelled_sets.in_use()
    return labelled_sets.grading_of("tune_grading", found.fingerprint if found else "")


@app_state.reporting()
def start_grading() -> None:
    """For a callback: grade what is missing, in the background."""
    if (found := labelled_sets.in_use()) is not None:
        grading().grade(found.questions)
