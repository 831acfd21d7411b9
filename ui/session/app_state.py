"""The settings of a session, the choice in its sidebar, and messages for its next redraw."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import streamlit as st

from crag_core.app.choice import plain_choice
from crag_core.app.config import Config
from crag_core.app.model_servers import Models
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.documents import Document
from crag_core.base.errors import CragError
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.named.names import is_named
from crag_core.evaluators.policies import default_evaluator
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import Trace
from ui.session import access
from ui.session.keys import forget, hand, handed, remembered, take
from ui.session.startup import shared_workbench

PLAIN = "ask_plain"
"""Key of the switch by which a question is asked as plain RAG."""
THRESHOLDS, LOWER, UPPER = "thresholds", "lower", "upper"
"""Keys of the sliders: one range for both thresholds, or one each where the policy compares two scores."""
DOUBTFUL = "doubtful"
SENTENCES = "sentences"
SLIDERS = (THRESHOLDS, LOWER, UPPER, "strips", SENTENCES)
_CHOICES = ("policy", "evaluator", "model", "collection", "web", DOUBTFUL, *SLIDERS)
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

# --- settings, and what works under them ------------------------------------------------------------------------------


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


@st.cache_resource(ttl=10, show_spinner=False, max_entries=50)
def look_for_models(settings: Config) -> Models:
    return shared_workbench().using(settings).servers.look()


@st.cache_resource(ttl=3, show_spinner=False, max_entries=50)
def look_again(settings: Config) -> Models:
    """For a page that waits for a server to come back: as `look_for_models`, and not as it was ten seconds ago."""
    look_for_models.clear(settings)
    return look_for_models(settings)


def called(choice: str) -> str:
    return "Quotations, no model" if choice == EXTRACTIVE else choice.replace("/", ": ", 1)


def unavailable_reason(choice: str, models: Models) -> str:
    """What is wrong with a model that was chosen and cannot be had now; "" for one that can, and for none."""
    if choice == EXTRACTIVE or choice in models.choices or f"{choice}:latest" in models.choices:
        return ""
    server = models.ollama if choice.startswith("ollama/") else models.openai
    return "not offered by its server" if server and server.reachable else "not reachable"


def policies() -> dict[str, Policy]:
    return shared_workbench().policies


def suited(name: str, evaluator: str) -> Policy:
    """A policy with the thresholds to start from for an evaluator."""
    return workbench().suited(policies()[name], evaluator)


def evaluators() -> dict[str, EvaluatorCard]:
    """Those that this session can choose, by name: also the ones of others that it added; read once a full run."""
    known, added = workbench(), added_evaluators()
    return remembered(
        "evaluators", (known.config, added), lambda: known.cards() | {name: known.card(name) for name in added}
    )


def usable_evaluators() -> tuple[EvaluatorCard, ...]:
    """Those that a run can be started with, or may be once a model is chosen."""
    calibrated = workbench().experiments.evaluators()
    return tuple(card for name, card in evaluators().items() if not is_named(name) or name in calibrated)


def added_evaluators() -> tuple[str, ...]:
    found: tuple[str, ...] = st.session_state.get("added_evaluators", ())
    return found


def documents() -> tuple[Document, ...] | None:
    """The indexed ones; None where the index cannot be read, which the pages tell."""
    try:
        return tuple(workbench().store.documents())
    except CragError:
        return None


def collections() -> tuple[str, ...]:
    return tuple(sorted({document.collection for document in documents() or ()}, key=str.casefold))


def still_indexed(document_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some documents that are; all, where the index cannot be read."""
    found = documents() if document_ids else ()
    return document_ids if found is None else tuple(one for one in document_ids if one in {it.id for it in found})


# --- the sidebar ------------------------------------------------------------------------------------------------------


def start_choices(models: Models) -> None:
    """Before anything is drawn: what the widgets of the sidebar hold in a session that has set nothing they can hold.

    Without it whoever reads a choice before its widget is drawn finds nothing. A value in the address wins: when its
    widget is drawn, and here too, since that of a browser whose session has ended meanwhile takes what it finds.
    """
    chosen, wanted = st.session_state, settings()
    for key, known in (("policy", policies()), ("evaluator", evaluators())):
        if chosen.get(key) not in known:
            chosen[key] = next(iter(known))
    start = suited(chosen["policy"], chosen["evaluator"])
    for key, value in (_sliders_of(start) | {DOUBTFUL: start.doubtful}).items():
        chosen.setdefault(key, _in_address(key, value))
    chosen.setdefault("model", wanted.model or models.choices[0])
    if "web" not in chosen:
        usual = WebMode(wanted.web)
        # Whoever wrote a link consents to nothing here.
        chosen["web"] = min(_in_address("web", usual), usual, key=_WEB_ORDER.index)


def _in_address(key: str, start: Any) -> Any:
    """What the address sets a slider, `DOUBTFUL` or "web" to; `start` where it sets nothing that it can hold."""
    said = st.query_params.get_all(key)
    named: dict[str, dict[Any, str]] = {
        DOUBTFUL: {**DOUBTFUL_TITLES},
        "web": {**WEB_TITLES},
        SENTENCES: {most: limit_title(most) for most in (*LIMITS, NO_LIMIT)},
    }
    if key in named:
        return next((one for one, title in named[key].items() if [title] == said), start)
    found = shares(said, 2 if key == THRESHOLDS else 1)
    return start if found is None else found if key == THRESHOLDS else found[0]


def shares(said: Sequence[str], count: int) -> tuple[float, ...] | None:
    """So many numbers from 0 to 1, the lowest first; None where these are none."""
    try:
        found = tuple(sorted(map(float, said)))
    except ValueError:
        return None
    return found if len(found) == count and all(0.0 <= one <= 1.0 for one in found) else None


def begin_page() -> None:
    forget("evaluators")
    st.session_state["moving"] = None  # a mark that was never let go: the thresholds of the sidebar hold
    hold_choices(*_CHOICES)


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


def policy() -> Policy:
    """The policy as the sidebar has it, which retrieves nothing where files are pinned and the others are left out."""
    pinned, search_too = pins()
    return _on_sliders().without_retrieval() if pinned and not search_too else _on_sliders()


def _on_sliders() -> Policy:
    """The chosen one, with the thresholds on the sliders."""
    state = st.session_state
    named = policies()[state["policy"]]
    on_sliders = (state[LOWER], state[UPPER]) if named.compares_two_scores else state[THRESHOLDS]
    pair = state.get("moving") or on_sliders
    lower, upper = pair if named.compares_two_scores else sorted(pair)
    doubtful = Doubtful(state.get(DOUBTFUL) or named.doubtful)
    limited = named.with_limit(state[SENTENCES] or None)
    return limited.with_thresholds(lower, upper, state["strips"]).with_doubtful(doubtful)


def pins() -> tuple[tuple[str, ...], bool]:
    """(ids of the pinned files, whether the other documents are searched beside them)."""
    pinned = tuple(st.session_state.get("ask_pinned") or ())
    return pinned, bool(pinned) and bool(st.session_state.get("ask_search_too"))


def evaluator() -> str:
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


def unpinned_choice() -> Choice:
    """The sidebar's choice, with nothing pinned: for questions of a set."""
    return replace(choice(), policy=_on_sliders(), pinned=(), search_too=False)


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


def set_thresholds(at: Policy) -> None:
    """Put the sliders where `at` has its thresholds, its sentence cut-off and its limit of sentences."""
    st.session_state.update({"moving": None, **_sliders_of(at)})


def put_marks(lower: float, upper: float) -> None:
    """Put the sliders of the two thresholds there, whichever of them the policy has; no mark is dragged any more."""
    st.session_state.update({"moving": None, **_marks(lower, upper)})


def _marks(lower: float, upper: float) -> dict[str, Any]:
    return {THRESHOLDS: (min(lower, upper), max(lower, upper)), LOWER: lower, UPPER: upper}


def _sliders_of(at: Policy) -> dict[str, Any]:
    return _marks(at.lower, at.upper) | {"strips": at.cutoff, SENTENCES: at.refinement.top or NO_LIMIT}


def limit_title(most: int) -> str:
    """How the slider and links write it."""
    return "no limit" if most == NO_LIMIT else f"{most}"


def suited_now() -> Policy:
    """The policy of the sidebar with the thresholds to start from for its evaluator."""
    return suited(st.session_state["policy"], evaluator())


def start_thresholds() -> None:
    set_thresholds(suited_now())


def choose_evaluator(name: str) -> None:
    st.session_state["evaluator"] = name
    start_thresholds()


def start_policy() -> None:
    """After another policy was chosen: its evaluator, if it can work here, and its thresholds."""
    chosen = policies()[st.session_state["policy"]]
    st.session_state[DOUBTFUL] = chosen.doubtful
    choose_evaluator(default_evaluator(chosen, model()))


def use_settings_of(found: Trace, but: Collection[str] = ()) -> None:
    """Before the sidebar is drawn: put it where a run had it, as far as this installation knows its settings.

    `but` names the widgets that something else has set.
    """
    made, policy = found.settings, found.settings.policy
    switch_plain(found)
    named: dict[str, tuple[str, Collection[str]]] = {"collection": (made.collection, ("", *collections()))}
    wanted: dict[str, Any] = {}
    if not policy.is_plain:  # which has none of these
        named |= {"policy": (policy.name, policies()), "evaluator": (made.evaluator.name, evaluators())}
        wanted = _sliders_of(policy) | {DOUBTFUL: policy.doubtful}
        if THRESHOLDS in but:
            but = {*but, LOWER, UPPER}
        else:
            wanted["moving"] = None
    gone = [f"the {key} {name!r}" for key, (name, known) in named.items() if name not in known and key not in but]
    if gone:
        report(
            f"This run was made with {' and '.join(gone)}, not to be had here now: see it under the sidebar's choice."
        )
    wanted |= {key: name for key, (name, known) in named.items() if name in known}
    st.session_state.update({key: value for key, value in wanted.items() if key not in but})


# --- messages, person, time -------------------------------------------------------------------------------------------


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


def belong_to(who: str) -> None:
    """This session is that of `who`, "" being nobody: nothing that it holds from somebody else is seen."""
    if st.session_state.get("belongs_to", who) != who:
        st.session_state.clear()
        st.query_params.pop("run", None)  # the others belong to widgets, which have no value any more
    st.session_state["belongs_to"] = who


def time_zone() -> tzinfo:
    """That of the browser; UTC where it is not known."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (KeyError, ValueError, OSError):
        return UTC
