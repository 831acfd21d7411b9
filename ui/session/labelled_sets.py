"""The labelled set in use, and what the questions of any set are graded under, for all pages that read them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.app.workbench import Choice
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.graded import Conditions, conditions_of
from crag_core.experiments.labelled.questions import Gradable, LabelledSet
from ui.session import app_state, background
from ui.session.keys import kept

SAMPLE = "Sample questions"
SetJob = Job[SetProgress | None, SetProgress]
"""A labelled set on its way, graded or run whole."""


@dataclass
class SetInUse:
    """The labelled set that Tune shows, and the chosen (label, route) of its routes, by their places."""

    labelled: LabelledSet | None = None
    cell: tuple[int, int] | None = None


def in_use() -> LabelledSet | None:
    return kept(SetInUse).labelled


def use(found: LabelledSet | None) -> None:
    """For a callback: the set to work with; None: none."""
    now = kept(SetInUse)
    now.labelled, now.cell = found, None


def chosen() -> Choice:
    """The sidebar's choice, with nothing pinned."""
    return replace(app_state.choice(), pinned=(), search_too=False)


def conditions(questions: Sequence[Gradable] | None = None) -> Conditions:
    """Of grading under the sidebar's choice, with the documents, or the logs, of now; None: those of the set in use."""
    if questions is None:
        found = in_use()
        questions = found.questions if found else ()
    settings = app_state.workbench().engine(chosen(), observed=False).settings
    return conditions_of(settings, corpus_of(questions, settings.collection))


def corpus_of(questions: Sequence[Gradable], collection: str) -> str:
    """What is retrieved from for them: the index, looked at every few seconds, or the logs that they are from."""
    if any(asked.log for asked in questions):
        return app_state.workbench().corpus_of(questions, collection)
    return corpus(str(app_state.settings().home), collection)


@st.cache_data(ttl=5, show_spinner=False, max_entries=20)
def corpus(home: str, collection: str) -> str:
    """Of the documents indexed there in a collection, "": in all.

    Looked at every few seconds, since a large index takes time to list.
    """
    return app_state.workbench().store.fingerprint(collection)


def start_grading(name: str, questions: Sequence[Gradable], about: object = None) -> None:
    """Grade what is missing of these questions in the background. Raises `CragError` where the choice cannot grade."""
    workbench, turns = app_state.workbench(), background.turns()
    pipeline = workbench.engine(chosen(), observed=False)

    def work(job: SetJob) -> SetProgress:
        book = workbench.experiments.scores(workbench.conditions(pipeline, questions))
        job.progress = score(
            questions, pipeline, book, time.monotonic, workers=workbench.scoring_workers, cancel=job.cancel,
            on_progress=job.tell, take_turn=turns, recorded=workbench.recorded(questions),
        )  # fmt: skip
        return job.progress

    background.start(name, work, None, about)


def take_ended(name: str, about: object = None) -> SetJob | None:
    """The job on a set that has ended since the last redraw, put away; None without one."""
    done = background.take_ended(name, about)
    if done is not None:
        corpus.clear()  # documents may have come in meanwhile
    return done
