"""State of the Compare page: its configurations, their runs, and the run in progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from crag_core.app.background_jobs import Job
from crag_core.app.choice import Configuration, Request, choose, plain_choice
from crag_core.app.workbench import Choice
from crag_core.base.text.display import limit_text, readable
from crag_core.evaluators.policies import PLAIN, default_evaluator, known_card
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.comparison.run_configurations import Contender, run_each, run_set, warm_up
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.pipeline.run import Listener, Run, WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import Trace
from ui.session import access, app_state, background, labelled_sets
from ui.session.keys import kept
from ui.session.labelled_sets import SetJob, SetWork

MOST = 4
_QUESTION = "compared_question"


@dataclass
class ComparePage:
    """The choices that stay whatever the sidebar does, None: not looked at yet; and the runs that were compared last,
    with the names of their configurations then."""

    stored: tuple[Choice, ...] | None = None
    traces: tuple[tuple[str, Trace], ...] = ()


def configurations() -> tuple[Configuration, ...]:
    """The first is what the others are compared with. Those whose names would be alike are numbered.

    The sidebar's choice comes last, unless it is there already, or there is no room for it.
    """
    now, found = sidebar(), stored()
    chosen = found if now in found or len(found) >= MOST else (*found, now)
    names = [name_of(one) for one in chosen]
    return tuple(
        Configuration(f"{name} ({names[:place].count(name)})" if names.count(name) > 1 else name, one)
        for place, (name, one) in enumerate(zip(names, chosen, strict=True), start=1)
    )


def stored() -> tuple[Choice, ...]:
    """Those that stay whatever the sidebar does next."""
    return tuple(map(_alike, _stored()))


def sidebar() -> Choice:
    """The sidebar's choice, with nothing pinned, and without a web search that somebody would have to approve."""
    chosen = app_state.unpinned_choice()
    return replace(chosen, web=chosen.web if chosen.web is WebMode.AUTO else WebMode.OFF)


def keep() -> None:
    """For a callback: the sidebar's choice stays, whatever the sidebar does next."""
    _keep(sidebar())


def add(policy: str) -> None:
    """For a callback: a policy as it starts, with the sidebar's writer and web search; or plain RAG, which is first."""
    if policy == PLAIN:
        if PLAIN in can_add():
            _keep(_plain(), is_first=True)
        return
    now = sidebar()
    _keep(choose(app_state.workbench(), Request(policy, model=now.model, web=now.web, top_k=now.top_k)))


def can_add() -> tuple[str, ...]:
    """The names of the policies, and that of plain RAG where it does not take part."""
    has_plain = any(one.policy.name == PLAIN for one in _stored())
    return tuple(app_state.policies()) if has_plain else (PLAIN, *app_state.policies())


def remove(one: Choice) -> None:
    kept(ComparePage).stored = tuple(other for other in _stored() if _alike(other) != one)


def name_of(choice: Choice) -> str:
    """The policy, and what is other than it starts with."""
    if choice.policy.name == PLAIN:
        return choice.policy.title
    start = app_state.suited(choice.policy.name, choice.evaluator)
    message = [choice.policy.title]
    if choice.policy.thresholds[:2] != start.thresholds[:2]:
        message.append("/".join(readable(one)[0] for one in choice.policy.thresholds[:2]))
    if choice.policy.cutoff != start.cutoff:
        message.append(f"cut-off {readable(choice.policy.cutoff)[0]}")
    if choice.policy.refinement.top != start.refinement.top:
        message.append(limit_text(choice.policy.refinement.top))
    if choice.policy.doubtful is not start.doubtful:
        message.append(f"{app_state.DOUBTFUL_TITLES[choice.policy.doubtful].lower()} if doubtful")
    if choice.evaluator != default_evaluator(app_state.policies()[choice.policy.name], choice.model):
        message.append(known_card(choice.evaluator).title)
    if choice.web is WebMode.AUTO:
        message.append("with the web")
    return ", ".join(message)


# One question


class RunsProgress(Listener):
    """Which of the runs goes on, counted from 0, and what it does now."""

    def __init__(self) -> None:
        self.place = 0
        self.step = "starting"
        self._begun = 0

    def opened(self, trace: Trace) -> None:
        self.place, self._begun = self._begun, self._begun + 1

    def started(self, name: str) -> None:
        self.step = name


Compared = tuple[tuple[str, Trace], ...]
RunsJob = Job[RunsProgress, Compared]


def comparing() -> RunsJob | None:
    return background.job(_QUESTION)


@app_state.reporting()
def start_question(question: str) -> None:
    if _is_busy():
        return
    chosen, workbench = configurations(), app_state.workbench()
    names = [one.name for one in chosen]
    pipelines = [workbench.engine(one.choice, observed=False) for one in chosen]
    uncached = [workbench.engine(one.choice, observed=False, cached=False) for one in chosen]

    def work(job: RunsJob) -> Compared:
        run = Run(job.progress, job.cancel)
        run.listener.started("loading the models")
        warm_up(uncached, run.cancel)
        return tuple(zip(names, run_each(question, pipelines, run), strict=False))

    background.start(_QUESTION, work, RunsProgress(), ticket=background.in_line())


def take_question() -> None:
    """Once the job has ended: keep its runs for the page; raises what broke it off."""
    page = kept(ComparePage)  # first: the script may be broken off at any touch of the session
    job = background.take_ended(_QUESTION)
    if job is not None and job.result is not None:
        page.traces = job.result
    if job is not None and (broken := job.bug or job.error):
        raise broken


# A labelled set


def running() -> SetWork:
    """The run of the set in use under the configurations, in whatever session it was started."""
    found = labelled_sets.in_use()
    what = found and (found.fingerprint, tuple(one.choice for one in configurations()), str(app_state.settings().home))
    return SetWork("compared_set", what)


@app_state.reporting()
def start_set(labelled: LabelledSet) -> None:
    """For a callback: run what is missing, in the background."""
    access.require_administrator()
    if _is_busy():
        return
    chosen, workbench = configurations(), app_state.workbench()
    pipelines = [workbench.engine(one.choice, observed=False, cached=False) for one in chosen]
    turns = background.turns()

    def work(job: SetJob) -> SetProgress:
        corpus = workbench.corpus_of(labelled.questions, chosen[0].choice.collection)  # all search where the first does
        contenders = [
            Contender(pipeline, workbench.experiments.outcomes(workbench.setup(one.choice, corpus)))
            for one, pipeline in zip(chosen, pipelines, strict=True)
        ]
        job.progress = run_set(
            labelled.questions, contenders, time.perf_counter, cancel=job.cancel, on_progress=job.tell,
            prepare=lambda: warm_up(pipelines, job.cancel), take_turn=turns,
            recorded=workbench.recorded(labelled.questions),
        )  # fmt: skip
        return job.progress

    background.start(running().name, work, None, running().about)


def _is_busy() -> bool:
    return any(job is not None and job.is_running for job in (comparing(), running().job))


def _plain() -> Choice:
    return plain_choice(EXTRACTIVE, app_state.settings().top_k)


def _stored() -> tuple[Choice, ...]:
    page = kept(ComparePage)
    if page.stored is None:
        page.stored = (_plain(),)
    return page.stored


def _alike(one: Choice) -> Choice:
    """All search where the sidebar says; plain RAG has its writer and its number of passages too.

    So only the correction differs.
    """
    now = app_state.choice()
    found = replace(one, collection=now.collection)
    return replace(found, model=now.model, top_k=now.top_k) if found.policy.name == PLAIN else found


def _keep(one: Choice, is_first: bool = False) -> None:
    if _alike(one) not in stored() and len(_stored()) < MOST:  # two clicks may be faster than the page
        kept(ComparePage).stored = (one, *_stored()) if is_first else (*_stored(), one)
