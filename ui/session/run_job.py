"""The run of this session in progress: start, follow, keep, dismiss."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from crag_core.app.background_jobs import RunJob, job_of
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import CragError, ModelUnavailable
from crag_core.base.serialization import fingerprint
from crag_core.base.types.passages import Logged, Passage
from crag_core.pipeline.run import Run
from crag_core.trace.standalone import follow
from crag_core.trace.trace import Trace
from ui.session import access, app_state, background, current_run

if TYPE_CHECKING:
    from crag_core.llamaindex.query_engine import CRAGQueryEngine

CarryOn = Callable[["CRAGQueryEngine", Trace, Run], Trace]
RUN = current_run.RUN


def job() -> RunJob | None:
    return background.job(RUN)


def current() -> RunJob | Trace | None:
    """What the Ask page shows: the run in progress, else a record as it was taken."""
    return job() or current_run.trace()


def ask(question: str, after: Trace | None = None, *, waits: bool = False) -> None:
    """Run a question in the background, under what is chosen for it; one run a session at a time.

    `after`: the run that it follows in a conversation; with `waits` somebody sees first how it is understood. Raises
    `CragError` when the choice cannot work, for instance a judge without a model.
    """
    known = follow(question, after, waits=waits)
    _start(lambda engine: engine.begin(question, follow_up=known), app_state.asked_choice())


def ask_record(question: str, passages: tuple[Passage, ...], logged: Logged) -> None:
    """As `ask`, over the chunks that another system's log has for the question."""
    _start(lambda engine: engine.begin(question), app_state.asked_choice(), over=(passages, logged))


def own_choice(found: Trace) -> Choice:
    """What a record that broke off goes on under: what it was begun with, whatever the sidebar shows by now.

    Its evidence, evaluator and writer are its own; the web is searched only as the sidebar has it now. Thresholds that
    were moved since are those of the sidebar, as long as it has the same policy and evaluator.
    """
    now, made = app_state.choice(), found.settings
    # A file that was deleted before it could be read is gone, which the button that pins files tells.
    pinned = made.pinned if found.passages is not None else app_state.still_indexed(made.pinned)
    mine = (made.policy.name, made.evaluator.name, made.pinned, made.search_too)
    same = (now.policy.name, now.evaluator, now.pinned, now.search_too) == mine
    policy = now.policy if same else made.policy
    evaluator, writer = made.evaluator.name, made.writer
    return Choice(policy, evaluator, writer, now.web, made.top_k, pinned, made.search_too, made.collection)


def go_on(found: Trace, chosen: Choice | None = None) -> None:
    """Carry a record on, as `ask` does: an unfinished one of this visitor's as the same run.

    `chosen` None: under its own choice, its answer checked by whom it was to be.
    """
    history = app_state.workbench().history
    try:
        kept = history.find(found.id) if history.is_on else None
        is_own = kept is None or (not kept.is_imported and kept.asked_by == access.user())
    except CragError:
        is_own = False
    if is_own and found.is_unfinished and rejoin(found.id):
        return  # another page of this visitor's has just carried it on
    workbench = app_state.workbench()
    if chosen is None:
        workbench = workbench.using(replace(app_state.settings(), support=found.settings.support))
    chosen = chosen or own_choice(found)
    over = (found.passages or (), found.logged) if found.logged else None
    _start(lambda engine: engine.adopt(found, as_new=not is_own), chosen, workbench=workbench, over=over)


def keep_import(found: Trace) -> Trace:
    """Keep a run from elsewhere as this visitor's; raises `CragError`. The one that is kept may have another id.

    A run that goes on here is not kept yet and has its id all the same: it would take the place of the import when it
    ends, or be followed in its place by whoever opens the link.
    """
    if _under_way(found.id):
        found = replace(found, id=f"imported-{fingerprint(found)}")
    return app_state.workbench().history.save_import(found, access.user())


def start_opinion(evaluator: str) -> None:
    """Let another evaluator grade the passages of the run on the page; raises as `ask` does."""
    taken = current_run.trace()
    if taken is not None:
        chosen = replace(app_state.choice(), evaluator=evaluator)
        _start(lambda engine: taken, chosen, lambda engine, begun, run: engine.second_opinion(begun, run))


def _start(
    begin: Callable[[CRAGQueryEngine], Trace],
    chosen: Choice,
    carry_on: CarryOn = lambda engine, begun, run: engine.resume(begun, run),
    *,
    workbench: Workbench | None = None,
    over: tuple[tuple[Passage, ...], Logged] | None = None,
) -> None:
    """`over`: chunks that take the place of the index."""
    if background.is_busy(RUN):
        return
    workbench = workbench or app_state.workbench()
    engine = workbench.engine(replace(chosen, pinned=()) if over else chosen, current_run.pause())
    engine = engine.over(*over) if over else engine
    begun, history, owner = begin(engine), workbench.history, access.user()
    ticket = background.in_line()

    def work(run: Run) -> Trace:
        with background.in_turn(ticket, run.cancel):
            return carry_on(engine, begun, run)

    def keep(done: Trace) -> None:
        with suppress(CragError):  # the health box tells; the run is there all the same
            history.save(done, owner)

    background.begin(RUN, job_of(work, begun, keep, owner, ticket), begun.id)
    st.query_params["run"] = begun.id


def rejoin(run_id: str) -> bool:
    """Follow a run that this or another session has started and that still goes on, as after a reload of the page.

    Where people sign in, only that of the same person, who could stop it from here: others are asked to come back.
    """
    running = _under_way(run_id)
    if running is not None and running.owner == access.user():
        background.join(RUN, running)
    elif running is not None:
        app_state.report("Another user's run is in progress. Open the link again when it is finished.")
    return running is not None


def _under_way(run_id: str) -> RunJob | None:
    found = background.live().get((RUN, run_id))
    return found if found is not None and found.is_running else None


def finish(done: RunJob) -> None:
    """Show what a run has recorded and put its job away; a bug in it is raised here, where it can be seen.

    The job goes last: Streamlit may break a script off at any touch of the state, and then all this is done again.
    """
    trace = done.progress.trace
    if trace.passages is not None or trace.asks_back:
        current_run.remember(trace)
    if trace.failure and trace.failure.error == ModelUnavailable.__name__:
        app_state.look_for_models.clear(app_state.settings())  # what was found some seconds ago is no longer so
    current_run.show_grown(trace)
    background.put_away(RUN)
    if broken := done.bug or done.error:
        raise broken
