"""What the endpoints do, apart from HTTP: runs in line, routing of given chunks, records, documents, health."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from threading import Event, Lock
from typing import Any

from crag_core.app.background_jobs import Job, RunJob, job_of
from crag_core.app.choice import Choice, Request, choose, with_thresholds
from crag_core.app.own_engine import in_thread
from crag_core.app.uploads import read_record
from crag_core.app.workbench import Workbench
from crag_core.base.concurrency.cancellation import POLL_SECONDS
from crag_core.base.errors import CragError, ModelUnavailable, Stopped, UnknownName, WrongUse
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.protocols import Cancel
from crag_core.base.types.passages import UNNAMED, Logged, Passage
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import known_card
from crag_core.pipeline.run import VERSION, Cooldown, Run, WebMode
from crag_core.service import answers, schemas
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.standalone import follow
from crag_core.trace.trace import Trace

Resume = Callable[[Trace, Run], Trace]
_LOG = logging.getLogger("crag.service")

ASKED_BY = "service"
"""Who asked, in the history."""
HEALTH_S = 5.0
"""Health is looked at so often at most, however many ask."""
PART_S = 2.5
"""How long it waits for all parts together."""
_MOST_ASKERS = 10_000


class UnknownRun(CragError):
    """No run is kept under an id."""


class UnderWay(CragError):
    """What is to be carried on still goes on."""


class RunBroke(CragError):
    """A run that broke off; `trace` is its record, `is_kept` whether the history has it."""

    def __init__(self, message: str, *, hint: str, kind: str, trace: Trace, is_kept: bool) -> None:
        super().__init__(message, hint=hint)
        self.kind, self.trace, self.is_kept = kind, trace, is_kept


class Service:
    """One for the process. `choice` is what a request that names nothing else is answered under."""

    def __init__(self, workbench: Workbench, choice: Choice) -> None:
        self.workbench = workbench
        self.choice = choice
        self._pause_of = lru_cache(_MOST_ASKERS)(lambda who: Cooldown())
        """Of each client: who asks, waits for no other's search."""
        self._live: set[str] = set()
        self._lock = Lock()
        self._parts: dict[str, schemas.Part] = {}
        self._looked_at = -math.inf
        self._asked: dict[str, Future[Any]] = {}
        """What each part was last asked, which may not be answered yet."""
        self._looking = Lock()
        self._loaded = Event()
        self.warming: Job[None, None] = Job(self._warm_up, None)

    def start(self) -> None:
        """Load the models, and finish what a kill left of indexing, in the background."""
        self.warming.start()

    # --- /query ---

    def begin_query(self, asked: schemas.QueryRequest, who: str) -> tuple[Trace, Resume]:
        """The record to begin with, and what carries it to its end. Raises `CragError`."""
        choice = self._choice_of(asked)
        if asked.collection:
            known = {document.collection for document in self.workbench.store.documents()}
            if asked.collection not in known:
                raise UnknownName.among("collection", asked.collection, known)
        engine = self.workbench.engine(choice, self._pause_of(who))
        if asked.resume is None:
            question = str(asked.query).strip()
            before = follow(question, self._kept_run(asked.after)) if asked.after else None
            return engine.begin(question, follow_up=before), engine.resume
        found = self._kept_run(asked.resume)
        if not found.is_unfinished:
            words = "Expected a run that broke off, was stopped or cut; this one is finished."
            raise WrongUse(words, hint="Ask anew.")
        if found.logged is not None:
            engine = engine.over(found.passages or (), found.logged)
        kept = self.workbench.history.find(found.id)
        is_own = kept is not None and not kept.is_imported and kept.asked_by in ("", ASKED_BY)
        return engine.adopt(found, as_new=not is_own), engine.resume

    def run_job(self, started: Trace, resume: Resume) -> tuple[RunJob, Callable[[], bool]]:
        """The run as a job that has to be started; the second tells, after its end, whether it is kept.

        Raises `UnderWay` for one that goes on already.
        """
        kept = Event()
        with self._lock:
            if started.id in self._live:
                raise UnderWay("Expected a run that broke off or was stopped; this one goes on.", hint="Wait for it.")
            ticket = self.workbench.run_queue.join()
            self._live.add(started.id)

        def work(run: Run) -> Trace:
            try:
                with ticket.turn(run.cancel):
                    self._wait_for_models(run.cancel)
                    return resume(started, run)
            finally:
                self._live.discard(started.id)

        def keep(done: Trace) -> None:
            if self._keep(done):
                kept.set()

        return job_of(work, started, keep, ASKED_BY, ticket), kept.is_set

    def query_response(self, trace: Trace, *, is_kept: bool, with_record: bool) -> schemas.QueryResponse:
        """Raises `RunBroke` for one that came to no end."""
        _check_end(trace, is_kept)
        return answers.answered(trace, kept=is_kept, with_record=with_record)

    # --- /route ---

    def route_job(self, asked: schemas.RouteRequest) -> Job[None, schemas.RouteResponse]:
        ticket = self.workbench.run_queue.join()

        def work(job: Job[None, schemas.RouteResponse]) -> schemas.RouteResponse:
            with ticket.turn(job.cancel) as is_mine:
                if not is_mine:
                    raise Stopped("The program was ended before this was looked at.", hint="Ask again.")
                return self.route(asked, job.cancel)

        return Job(work, None, owner=ASKED_BY, ticket=ticket)

    def route(self, asked: schemas.RouteRequest, cancel: Cancel) -> schemas.RouteResponse:
        """Grades and decides; the index is not looked at, and nothing is searched or written."""
        started = time.perf_counter()
        choice = self._choice_of(asked)
        # The index may be away, or made with another model: what it was made with says nothing of these chunks.
        embedder = self.workbench.find_embedder(self.workbench.config.embedding)
        pipeline = self.workbench.postprocessor(replace(choice, web=WebMode.OFF), embedder=embedder).pipeline
        begun = pipeline.begin(asked.question.strip(), _passages(asked), may_ask_again=True)
        with pipeline.open(begun, Run(cancel=cancel)) as open_run:
            open_run.grade()
        trace = open_run.trace
        # Whoever goes on from there, here or in the application, has these chunks and no index.
        is_kept = asked.keep and self._keep(replace(trace, logged=Logged()))
        _check_end(trace, is_kept)
        seconds = time.perf_counter() - started
        return answers.routed(trace, seconds, kept=is_kept, with_record=asked.record)

    # --- /reroute ---

    def reroute(self, asked: schemas.RerouteRequest) -> schemas.RerouteResponse:
        record = json.dumps(asked.record).encode()
        trace = read_record(record) if asked.id is None else self._kept_run(asked.id)
        return answers.rerouted(trace, self._policy_for(asked, trace))

    # --- /health ---

    def health(self) -> schemas.HealthResponse:
        """As it was some seconds ago, at most `HEALTH_S`."""
        with self._looking:
            if time.monotonic() - self._looked_at > HEALTH_S:
                self._parts, self._looked_at = self._look(), time.monotonic()
        broken = [part for part in self._parts.values() if not part.works]
        status: schemas.Status = "degraded" if broken else "ok"
        if not self._loaded.is_set():
            status = "starting"
        elif any(part.needed for part in broken):
            status = "failing"
        queue = self.workbench.run_queue
        return schemas.HealthResponse(
            status=status, version=VERSION, parts=self._parts, runs_under_way=queue.active, runs_waiting=queue.waiting
        )

    def _look(self) -> dict[str, schemas.Part]:
        """Each part by its last use, or asked now, all at the same time."""
        parts = {
            name: schemas.Part(works=not problem, needed=False, problem=problem)
            for name, problem in self.workbench.problems_of_parts().items()
        }
        if not self._loaded.is_set():  # who asks for a model waits until it is loaded
            return parts
        works: dict[str, Callable[[], object]] = {"index": self._try_index, "evaluator": self._try_evaluator}
        works["embedding model"] = self._load_embedder
        if self.choice.model != EXTRACTIVE:
            works["language model"] = self._try_model
        for name, work in works.items():
            if name not in self._asked or self._asked[name].done():  # else it still hangs
                self._asked[name] = in_thread(work)
        until = time.monotonic() + PART_S
        parts |= {name: _tried(self._asked[name], until) for name in works}
        if parts["index"].works and self._asked["index"].result() == 0:
            # An index that holds nothing asks no model; where only /route is used, none is installed.
            parts["embedding model"] = parts["embedding model"].model_copy(update={"needed": False})
        if "language model" in parts and not known_card(self.choice.evaluator).calls_model:
            parts["language model"] = parts["language model"].model_copy(update={"needed": False})
        return parts

    def _try_index(self) -> int:
        """How many documents it holds."""
        for engine in (self.workbench.own_engine, self.workbench.vector_store):
            if engine is not None:
                engine.check()
        return len(self.workbench.store.documents())

    def _try_model(self) -> None:
        choice, models = self.choice.model, self.workbench.servers.look()
        server = models.openai if choice.startswith("openai/") else models.ollama
        if server is None or not server.reachable:
            raise ModelUnavailable(f"The server of {choice} cannot be reached.")
        if choice not in models.choices:
            raise ModelUnavailable(f"{choice} is not offered by its server.")

    # --- what a request asks for ---

    def _choice_of(self, asked: schemas.Judged) -> Choice:
        """What is not named is as the service was started."""
        # By any other name anybody's model would be fetched: only the operator may have that.
        if asked.evaluator and asked.evaluator not in (offered := {*self.workbench.cards(), self.choice.evaluator}):
            raise UnknownName.among("evaluator", asked.evaluator, offered)
        _check_preset(asked.preset)
        request = Request.of(asked)
        if isinstance(asked, schemas.QueryRequest):
            if asked.use_web_search and self.choice.web is WebMode.OFF:
                raise WrongUse("Web search is off here.", hint="Start the service with --web auto, or leave it out.")
            if asked.use_web_search is False or not asked.use_crag:
                is_idle = not asked.use_crag and asked.use_web_search
                request = replace(request, web=WebMode.AUTO if is_idle else WebMode.OFF, plain=not asked.use_crag)
        return choose(self.workbench, request, self.choice)

    def _keep(self, trace: Trace) -> bool:
        """Whether it could be; the health tells why not, and what was decided is there all the same."""
        try:
            self.workbench.history.save(trace, ASKED_BY)
        except CragError:
            return False
        return True

    def _policy_for(self, asked: schemas.RerouteRequest, trace: Trace) -> Policy:
        made = trace.settings
        policy = made.policy
        if asked.policy and asked.policy != made.policy.name:
            found = self.workbench.policy(asked.policy)
            policy = found.with_thresholds_for(made.evaluator, made.strip_evaluator)
        if asked.preset:
            policy = policy.preset(asked.preset)
        return with_thresholds(policy, asked)

    def _kept_run(self, run_id: str) -> Trace:
        found = self.workbench.history.load(run_id)
        if found is None:
            raise UnknownRun(f"No run {run_id[:80]!r} is kept.", hint="It was never kept, or it was deleted.")
        return found

    # --- the models ---

    def _warm_up(self, job: Job[None, None]) -> None:
        job.can_be_left = True
        try:
            import_llama_index()
            for load in (self._try_evaluator, self._load_embedder):
                _tried(in_thread(load))  # the health tells
        finally:
            self._loaded.set()
            self._looked_at = -math.inf
        job.can_be_left = False
        try:  # nobody is there to be asked whether to go on
            self.workbench.store.take_over(lambda progress: None, job.cancel)
            self.workbench.store.finish_interrupted(lambda progress: None, job.cancel)
        except CragError as error:
            _LOG.warning("What was being indexed is not finished: %s", error)
        except ModuleNotFoundError:  # nothing is indexed here at all
            pass

    def _try_evaluator(self) -> None:
        """One that asks no model reads something, which loads it."""
        now = self.choice
        if not known_card(now.evaluator).calls_model:
            embedder = self.workbench.find_embedder(self.workbench.config.embedding)
            evaluator = self.workbench.evaluator(now.evaluator, None, cached=False, embedder=embedder)
            evaluator.grade("Is it read?", (Passage("0", "It is.", "none"),), Event())

    def _load_embedder(self) -> None:
        self.workbench.find_embedder(self.workbench.embedder.name).load()

    def _wait_for_models(self, cancel: Cancel) -> None:
        while not self._loaded.wait(POLL_SECONDS) and not cancel.is_set():
            pass


def _check_end(trace: Trace, is_kept: bool) -> None:
    """Raises `RunBroke` for a run that broke off."""
    if broken := trace.failure:
        hint = broken.hint or (f'Carry it on with {{"resume": "{trace.id}"}}.' if is_kept else "Ask again.")
        text, kind = f"Step {broken.name!r} failed: {broken.summary}", broken.error or "Stopped"
        raise RunBroke(text, hint=hint, kind=kind, trace=trace, is_kept=is_kept)


def _passages(asked: schemas.RouteRequest) -> tuple[Passage, ...]:
    return tuple(
        Passage(
            id=one.id or str(place),
            text=one.text,
            source=one.source or UNNAMED,
            scores=() if one.score is None else ((asked.scores, one.score),),
        )
        for place, one in enumerate(asked.contexts, 1)
    )


def _check_preset(name: str | None) -> None:
    """A kept one alone: on the command line a path is one too, and here it would be a file of this machine."""
    if name and (name.endswith(".toml") or "/" in name or "\\" in name):
        raise UnknownName(f"Unknown preset {name[:80]!r}.", hint="Expected the name of a preset that is kept here.")


def _tried(asked: Future[Any], until: float = math.inf) -> schemas.Part:
    """A part that answers need, but where its packages were left out on purpose."""
    problem, needed = "", True
    try:
        asked.result(None if until == math.inf else max(until - time.monotonic(), 0.0))
    except TimeoutError:
        problem = f"It does not answer within {PART_S:g} s."
    except CragError as error:
        problem = str(error)
    except ModuleNotFoundError as error:
        problem, needed = f"Expected the package {error.name}, found none.", False
    except Exception as error:  # a bug of one part must not hide the others
        _LOG.exception("a part could not be looked at")
        problem = type(error).__name__
    return schemas.Part(works=not problem, needed=needed, problem=problem)
