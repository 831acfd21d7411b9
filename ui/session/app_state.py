"""Session state, caches and query parameters shared by all pages."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import streamlit as st

from crag_core.app.background_jobs import Job, LiveJobs
from crag_core.app.choice import plain_choice
from crag_core.app.config import Config
from crag_core.app.model_servers import Models
from crag_core.app.uploads import check_files
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.concurrency.shared import shared
from crag_core.base.data_files import DATA
from crag_core.base.documents import Ingested, Progress, Rebuilt, Recipe
from crag_core.base.errors import BadRecord, CragError
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import default_evaluator
from crag_core.observability.logs import show_logs
from crag_core.observability.metrics import serve
from crag_core.pipeline.run import Cooldown, WebMode
from crag_core.storage import backup
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import RunSettings, Trace
from ui.session import access
from ui.session.keys import forget, hand, handed, kept, remembered, take

PLAIN = "ask_plain"
"""Key of the switch by which a question is asked as plain RAG."""
THRESHOLDS, LOWER, UPPER = "thresholds", "lower", "upper"
"""Keys of the sliders: one range for both thresholds, or one each where the policy compares two scores."""
DOUBTFUL = "doubtful"
SENTENCES = "sentences"
SLIDERS = (THRESHOLDS, LOWER, UPPER, "strips", SENTENCES)
_HELD_FOR = 30.0
"""Seconds; which of the pages drawn meanwhile has arrived nobody tells."""
NO_LIMIT = 0
"""On the slider of the sentences kept; a policy has None."""
LIMITS = (*range(1, 21), 30, 50)
"""Others on it."""
WEB_TITLES = {WebMode.AUTO: "Auto", WebMode.ASK: "Ask first", WebMode.OFF: "Off"}
_WEB_ORDER = (WebMode.OFF, WebMode.ASK, WebMode.AUTO)
DOUBTFUL_TITLES = {Doubtful.SHOW: "Show nearest", Doubtful.ABSTAIN: "Abstain"}
SERVERS = ("ollama_host", "openai_url", "web_providers", "searxng_url")
"""Settings of a session that only those may change who may set up."""

# Shared by all sessions


@shared
def shared_workbench() -> Workbench:
    """It serves metrics once it is made, if a port is set. Raises `CragError` for settings of no use."""
    workbench = Workbench()
    workbench.searcher  # noqa: B018  a bad address is refused at the start, where it can be corrected
    if not workbench.policies:
        raise BadRecord("No policy can be used.", hint="\n".join(workbench.problems) or "Put one into data/policies.")
    show_logs(workbench.config.log)
    if workbench.config.metrics_port:
        try:
            serve(workbench.metrics.registry, workbench.config.metrics_port, workbench.config.metrics_address)
        except CragError as error:  # shown in the sidebar; no reason not to start
            workbench.metrics.problem = str(error)
    return workbench


IndexJob = Job[Progress | None, tuple[Ingested, ...]]
RebuildJob = Job[Progress | None, Rebuilt | None]


@shared
def warm_up() -> IndexJob:
    """Takes back parts of documents that a kill left, reads the documents of an index of an earlier release once more,
    and indexes the samples at the very first start, where no other documents are; then `model_loading` starts. What a
    kill interrupted waits for somebody to continue or discard it, on the Documents page.

    The caller starts this, when the first page is drawn. The result: the sample documents.
    """
    workbench, loading = shared_workbench(), model_loading()
    marker = workbench.config.home / backup.MARKER

    def work(job: IndexJob) -> tuple[Ingested, ...]:
        if workbench.own_engine is not None:
            job.can_be_left = True
            workbench.own_engine.open()
            return ()
        done: tuple[Ingested, ...] = ()
        files = [(path.name, path) for path in sorted((DATA / "sample").iterdir())]
        workbench.store.take_over(job.tell, job.cancel)
        is_ours = not workbench.config.vector_store  # nobody asked for the samples in theirs
        # Somebody may have put in documents of their own by the command line, before the application was started.
        others = {one.name for one in workbench.store.listing()} - {name for name, _ in files}
        if is_ours and not marker.exists() and not others:
            done = workbench.store.ingest(files, job.tell, cancel=job.cancel)
            # At the end of the program the parsing processes may be gone before `cancel` is set: what came tells.
            if len(done) == len(files) and all(one.document_id for one in done):
                marker.touch()
        workbench.store.interrupted()
        loading.start()
        return done

    return Job(work, None)


@shared
def model_loading() -> Job[None, None]:
    """Loads the embedding model. A question that was asked before goes first: importing PyTorch would slow it down,
    and one about the samples needs no model.
    """
    workbench = shared_workbench()

    def work(job: Job[None, None]) -> None:
        while workbench.run_queue.active and not job.cancel.wait(0.1):
            pass
        job.can_be_left = True
        workbench.find_embedder(workbench.embedder.name).load()

    return Job(work, None)


@dataclass
class SharedRebuild:
    """The last re-indexing of all chunks, which every session sees: its progress, and how it ended."""

    job: RebuildJob | None = None

    def start(self, recipe: Recipe) -> None:
        """Unless one is under way; raises `NotAllowed` to all but administrators."""
        access.require_administrator()
        if self.job is None or not self.job.is_running:
            chosen = workbench()
            self.job = Job(lambda job: chosen.rebuild(recipe, job.tell, job.cancel), None)
            self.job.start()


@shared
def shared_rebuild() -> SharedRebuild:
    return SharedRebuild()


@st.cache_resource(ttl=10, show_spinner=False, max_entries=50)
def look_for_models(settings: Config) -> Models:
    return shared_workbench().using(settings).servers.look()


@st.cache_resource(ttl=3, show_spinner=False, max_entries=50)
def look_again(settings: Config) -> Models:
    """For a page that waits for a server to come back: as `look_for_models`, and not as it was ten seconds ago."""
    look_for_models.clear(settings)
    return look_for_models(settings)


def called(choice: str) -> str:
    """A writer as the page calls it."""
    return "Quotations, no model" if choice == EXTRACTIVE else choice.replace("/", ": ", 1)


def unavailable_reason(choice: str, models: Models) -> str:
    """What is wrong with a model that was chosen and cannot be had now; "" for one that can, and for none."""
    if choice == EXTRACTIVE or choice in models.choices or f"{choice}:latest" in models.choices:
        return ""
    server = models.ollama if choice.startswith("ollama/") else models.openai
    return "not offered by its server" if server and server.reachable else "not reachable"


def judges() -> list[str]:
    """Who may check the sentences of answers here: words, the models that are there now, and the one that is set."""
    there = [choice for choice in look_for_models(settings()).choices if choice != EXTRACTIVE]
    return list(dict.fromkeys((WORDS, *there, settings().support)))


@st.cache_data(show_spinner=False)
def suggested_questions() -> list[str]:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    return [record["question"] for record in map(json.loads, lines) if record["suggested"]]


# This session


def belong_to(who: str) -> None:
    """This session is that of `who`, "" being nobody: nothing that it holds from somebody else is seen."""
    if st.session_state.get("belongs_to", who) != who:
        st.session_state.clear()
        st.query_params.pop("run", None)  # the others belong to widgets, which have no value any more
    st.session_state["belongs_to"] = who


def start_choices(models: Models) -> None:
    """Before anything is drawn: what the widgets of the sidebar hold in a session that has set nothing they can hold.

    Without it whoever reads a choice before its widget is drawn finds nothing. A value in the address wins: when its
    widget is drawn, and here too, since that of a browser whose session has ended meanwhile takes what it finds.
    """
    chosen, wanted = st.session_state, settings()
    for key, known in (("policy", tuple(policies())), ("evaluator", tuple(evaluators()))):
        if chosen.get(key) not in known:
            chosen[key] = known[0]
    start = suited(chosen["policy"], chosen["evaluator"])
    limits = {"strips": start.cutoff, SENTENCES: start.refinement.top or NO_LIMIT, DOUBTFUL: start.doubtful}
    for key, value in (_marks(start.lower, start.upper) | limits).items():
        chosen.setdefault(key, _in_address(key, value))
    chosen.setdefault("model", wanted.model or models.choices[0])
    if "web" not in chosen:
        usual = WebMode(wanted.web)
        asked = _in_address("web", usual)
        # Whoever wrote a link consents to nothing here.
        chosen["web"] = min(asked, usual, key=_WEB_ORDER.index)


def _in_address(key: str, start: Any) -> Any:
    """What the address sets a slider or the choice `DOUBTFUL` to; `start` where it sets nothing that it can hold."""
    said = st.query_params.get_all(key)
    named: dict[Any, str] = {**DOUBTFUL_TITLES} if key == DOUBTFUL else {**WEB_TITLES} if key == "web" else {}
    titles: dict[str, Any] = {title: one for one, title in named.items()}
    if key == SENTENCES:
        titles = {limit_title(most): most for most in (*LIMITS, NO_LIMIT)}
    if titles:
        return titles.get("".join(said), start)
    try:
        numbers = tuple(sorted(map(float, said)))
    except ValueError:
        return start
    if len(numbers) != (2 if key == THRESHOLDS else 1) or not all(0.0 <= number <= 1.0 for number in numbers):
        return start
    return numbers if key == THRESHOLDS else numbers[0]


def begin_page() -> None:
    """At the start of a full run of the script, before anything is drawn."""
    forget("evaluators")
    st.session_state["moving"] = None  # a mark that was never let go: the thresholds of the sidebar hold
    hold_choices("policy", "evaluator", "model", "collection", "web", DOUBTFUL, *SLIDERS)


def hold_choices(*keys: str) -> None:
    """Before they are drawn: for a while after a connection was made anew, tell the sidebar's widgets what they hold.

    What the browser held itself it may have forgotten with a page that was cut off in the middle (docs/faults.md).
    """
    before, _ = st.session_state.setdefault("connection", (_connection(), -math.inf))
    if before != _connection():
        st.session_state["connection"] = _connection(), time.monotonic()
    if time.monotonic() - st.session_state["connection"][1] < _HELD_FOR:
        for key in keys:
            if key in st.session_state:
                st.session_state[key] = st.session_state[key]


def _connection() -> str:
    """Another one for each connection between browser and server."""
    return st.context.headers.get("Sec-WebSocket-Key") or ""


@dataclass
class NamedEvaluators:
    """Evaluators of others that this session `added`; why the last name was `refused`, and the last calibration that
    `failed`: (evaluator, why)."""

    added: tuple[str, ...] = ()
    refused: str = ""
    failed: tuple[str, str] = ("", "")


def workbench() -> Workbench:
    return shared_workbench().using(settings())


def settings() -> Config:
    found: Config = st.session_state.setdefault("config", shared_workbench().config)
    return found


def change_settings(**changes: Any) -> None:
    """Other settings for this session; raises `CragError` for a value that cannot be used and changes nothing then.

    So it does where somebody who may not set up names another server.
    """
    if any(changes.get(name, getattr(settings(), name)) != getattr(settings(), name) for name in SERVERS):
        access.require_administrator()
    started = shared_workbench().config
    changed = replace(settings(), **changes)
    # The key that came with the start goes to the server that came with it: one that is typed here can be anybody's.
    is_known = changed.openai_url in ("", started.openai_url)
    changed = replace(changed, openai_key=started.openai_key if is_known else "")
    shared_workbench().using(changed).searcher  # noqa: B018  a bad address is refused here, not at the first search
    st.session_state["config"] = changed


def policy() -> Policy:
    """The policy as the sidebar has it: chosen, with the thresholds on the sliders."""
    state = st.session_state
    named = policies()[state["policy"]]
    on_sliders = (state[LOWER], state[UPPER]) if named.compares_two_scores else state[THRESHOLDS]
    pair = state.get("moving") or on_sliders
    lower, upper = pair if named.compares_two_scores else sorted(pair)
    doubtful = Doubtful(state.get(DOUBTFUL) or named.doubtful)
    limited = named.with_limit(state[SENTENCES] or None)
    chosen = limited.with_thresholds(lower, upper, state["strips"]).with_doubtful(doubtful)
    pinned, search_too = pins()
    return chosen.without_retrieval() if pinned and not search_too else chosen


def pins() -> tuple[tuple[str, ...], bool]:
    """(ids of the pinned files, whether the other documents are searched beside them)."""
    pinned = tuple(st.session_state.get("ask_pinned") or ())
    return pinned, bool(pinned) and bool(st.session_state.get("ask_search_too"))


def policies() -> dict[str, Policy]:
    return shared_workbench().policies


def suited(name: str, evaluator: str) -> Policy:
    """A policy with the thresholds to start from for an evaluator."""
    return workbench().suited(policies()[name], evaluator)


def evaluators() -> dict[str, EvaluatorCard]:
    """Those that this session can choose, by name: also the ones of others that it added; read once a full run."""
    known, added = workbench(), kept(NamedEvaluators).added

    def read() -> dict[str, EvaluatorCard]:
        return known.cards() | {name: known.card(name) for name in added}

    return remembered("evaluators", (known.config, added), read)


def evaluator() -> str:
    """The name of the one that the sidebar has."""
    found: str = st.session_state["evaluator"]
    return found


def model() -> str:
    """Who writes and judges by the sidebar; before it is drawn first, nobody but the quotations."""
    found: str = st.session_state.get("model", EXTRACTIVE)
    return found


def has_model() -> bool:
    return model() != EXTRACTIVE


def choice() -> Choice:
    state = st.session_state
    web, collection = WebMode(state["web"]), state.get("collection") or ""
    return Choice(policy(), state["evaluator"], state["model"], web, settings().top_k, *pins(), collection)


def asked_choice() -> Choice:
    """What a question is asked under: the sidebar's choice, or plain RAG with its writer and documents."""
    now = choice()
    if not st.session_state.get(PLAIN):
        return now
    made = plain_choice(now.model, now.top_k)
    return replace(made, pinned=now.pinned, search_too=now.search_too, collection=now.collection)


def switch_plain(found: Trace) -> None:
    """Before the Ask page is drawn: a run is shown as it was asked, as plain RAG or not."""
    st.session_state[PLAIN] = found.settings.policy.is_plain


def collections() -> tuple[str, ...]:
    """Those of the indexed documents, by name; none where the index cannot be read, which the pages tell."""
    try:
        return tuple(sorted({document.collection for document in workbench().store.documents()}, key=str.casefold))
    except CragError:
        return ()


def still_indexed(document_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some documents that are; all, where the index cannot be read."""
    try:
        known = {document.id for document in workbench().store.documents()} if document_ids else set()
    except CragError:
        return document_ids
    return tuple(one for one in document_ids if one in known)


def pause() -> Cooldown:
    """When this session last searched the web."""
    found: Cooldown = st.session_state.setdefault("pause", Cooldown())
    return found


def set_thresholds(at: Policy) -> None:
    """Put the sliders where `at` has its thresholds, its sentence cut-off and its limit of sentences."""
    put_marks(at.lower, at.upper)
    st.session_state["strips"] = at.cutoff
    st.session_state[SENTENCES] = at.refinement.top or NO_LIMIT


def limit_title(most: int) -> str:
    """How the slider and links write it."""
    return "no limit" if most == NO_LIMIT else f"{most}"


def put_marks(lower: float, upper: float) -> None:
    """Put the sliders of the two thresholds there, whichever of them the policy has; no mark is dragged any more."""
    st.session_state.update({"moving": None, **_marks(lower, upper)})


def _marks(lower: float, upper: float) -> dict[str, Any]:
    return {THRESHOLDS: (min(lower, upper), max(lower, upper)), LOWER: lower, UPPER: upper}


def suited_now() -> Policy:
    """The policy of the sidebar with the thresholds to start from for its evaluator."""
    return suited(st.session_state["policy"], evaluator())


def start_thresholds() -> None:
    """Put the sliders where policy and evaluator suggest."""
    set_thresholds(suited_now())


def choose_evaluator(name: str) -> None:
    """With the thresholds that suit it."""
    st.session_state["evaluator"] = name
    start_thresholds()


def start_policy() -> None:
    """After another policy was chosen: its evaluator, if it can work here, and its thresholds."""
    chosen = policies()[st.session_state["policy"]]
    st.session_state[DOUBTFUL] = chosen.doubtful
    choose_evaluator(default_evaluator(chosen, model()))


def trace() -> Trace | None:
    return st.session_state.get("trace")


def show(found: Trace | None) -> None:
    """Put a run on the page, as it was taken."""
    st.session_state["trace"] = found
    st.session_state["edits"] = found.edits if found else Edits()
    if found:
        st.query_params["run"] = found.id


def use_settings_of(found: Trace, but: Collection[str] = ()) -> None:
    """Before the sidebar is drawn: put it where a run had it, as far as this installation knows its settings.

    `but` names the widgets that something else has set.
    """
    made = found.settings
    switch_plain(found)
    if made.policy.is_plain:
        but = (*but, "policy", "evaluator", THRESHOLDS, "strips", SENTENCES, DOUBTFUL)  # it has none of its own
    named: dict[str, tuple[str, Collection[str]]] = {
        "policy": (made.policy.name, policies()),
        "evaluator": (made.evaluator.name, evaluators()),
        "collection": (made.collection, ("", *collections())),
    }
    here = {key: name for key, (name, known) in named.items() if name in known}
    gone = [f"the {key} {name!r}" for key, (name, _) in named.items() if key not in here and key not in but]
    if gone:
        report(
            f"This run was made with {' and '.join(gone)}, not to be had here now: see it under the sidebar's choice."
        )
    wanted = {
        **here,
        "strips": made.policy.cutoff,
        SENTENCES: made.policy.refinement.top or NO_LIMIT,
        DOUBTFUL: made.policy.doubtful,
    }
    st.session_state.update({key: value for key, value in wanted.items() if key not in but})
    if THRESHOLDS not in but:
        put_marks(made.policy.lower, made.policy.upper)


def settings_now() -> RunSettings | None:
    """What a question asked now is run under; None where it cannot work."""
    try:
        return workbench().engine(asked_choice()).settings
    except CragError:
        return None


def report(problem: str) -> None:
    """A message for the user, shown at the next redraw after those that wait already."""
    before = handed("problem") or ""
    hand("problem", before if problem in before else f"{before} {problem}".strip())


def take_report() -> str | None:
    problem: str | None = take("problem")
    return problem


@contextmanager
def reporting() -> Iterator[None]:
    """Around an action, or on a callback: the message of a `CragError` is shown at the next redraw."""
    try:
        yield
    except CragError as error:
        report(str(error))


def time_zone() -> tzinfo:
    """That of the browser; UTC where it is not known."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (KeyError, ValueError, OSError):
        return UTC


@shared
def _index_jobs() -> LiveJobs[IndexJob]:
    return LiveJobs()


def indexing() -> IndexJob | None:
    """This session's files on their way into the index, or what became of them."""
    return st.session_state.get("indexing")


def indexing_of_others() -> tuple[IndexJob, ...]:
    """What other sessions of this process are indexing, one that was left by loading its page again among them."""
    own = indexing()
    return tuple(job for job in [*_index_jobs().values()] if job is not own and job.is_running)


def index(files: list[tuple[str, bytes]], collection: str) -> None:
    """Take files in, in the background; raises `NotAllowed` to all but administrators."""
    access.require_administrator()
    check_files(files)
    store = workbench().store
    _start_indexing(lambda job: store.ingest(files, job.tell, collection=collection, cancel=job.cancel))


def resume_interrupted() -> None:
    """Index what killed processes had begun, in the background; raises `NotAllowed` to all but administrators."""
    access.require_administrator()
    store = workbench().store
    _start_indexing(lambda job: store.finish_interrupted(job.tell, job.cancel))


def discard_interrupted() -> None:
    """Forget what killed processes had begun; raises `NotAllowed` to all but administrators."""
    access.require_administrator()
    workbench().store.discard_interrupted()


def _start_indexing(work: Callable[[IndexJob], tuple[Ingested, ...]]) -> None:
    running = indexing()
    if running is None or not running.is_running:
        st.session_state["indexing"] = started = Job(work, None)
        _index_jobs().add(id(started), started)
        started.start()
