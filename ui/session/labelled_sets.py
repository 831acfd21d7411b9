"""The labelled set in use, and what the questions of any set are graded under, for all pages that read them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.app.background_jobs import Job
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import Gradable, LabelledSet
from ui.session import access, app_state, background
from ui.session.keys import kept

SetJob = Job[SetProgress | None, SetProgress]
"""A labelled set on its way, graded or run whole."""


@dataclass
class SetInUse:
    """The labelled set that Tune shows, and the chosen (label, route) of its routes, by their places."""

    labelled: LabelledSet | None = None
    cell: tuple[int, int] | None = None


def in_use() -> LabelledSet | None:
    return kept(SetInUse).labelled


def use(found: LabelledSet) -> None:
    """For a callback: the set to work with."""
    now = kept(SetInUse)
    now.labelled, now.cell = found, None


def conditions(questions: Sequence[Gradable]) -> Conditions:
    """Of grading them under the sidebar's choice, with the documents, or the logs that they are from, of now."""
    workbench = app_state.workbench()
    return workbench.conditions(workbench.engine(app_state.unpinned_choice(), observed=False), questions)


@dataclass(frozen=True)
class SetWork:
    """What is done with the questions of a set in the background. `name` and `about` as `background.start` has them."""

    name: str
    about: object = None

    @property
    def job(self) -> SetJob | None:
        """Under way, or ended since the last redraw."""
        return background.job(self.name, self.about)

    def take_ended(self) -> SetJob | None:
        """The job that has ended since the last redraw, put away; None without one."""
        return background.take_ended(self.name, self.about)

    def grade(self, questions: Sequence[Gradable]) -> None:
        """What is missing of them; raises `CragError` where the choice cannot grade, or this person may not."""
        access.require_administrator()
        workbench, turns = app_state.workbench(), background.turns()
        pipeline = workbench.engine(app_state.unpinned_choice(), observed=False)

        def work(job: SetJob) -> SetProgress:
            book = workbench.experiments.scores(workbench.conditions(pipeline, questions))
            job.progress = score(
                questions, pipeline, book, time.monotonic, workers=workbench.scoring_workers, cancel=job.cancel,
                on_progress=job.tell, take_turn=turns, recorded=workbench.recorded(questions),
            )  # fmt: skip
            return job.progress

        background.start(self.name, work, None, self.about)


def grading_of(name: str, *what: str) -> SetWork:
    """The grading of `what`, told by fingerprints, under the sidebar's choice, in whatever session it was started."""
    now = app_state.choice()
    return SetWork(name, (*what, now.evaluator, now.model, str(app_state.settings().home)))
