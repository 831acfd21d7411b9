"""The health strip: model, embedding, web and store, one line each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from crag_core.app.workbench import Models
from crag_core.base.errors import CragError
from crag_core.base.types import WebOutcome
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from ui.session import app_state
from ui.text import plain


@dataclass(frozen=True)
class Health:
    """`ok` None: not in use or not known yet."""

    name: str
    ok: bool | None
    message: str
    hint: str = ""


_LOOK_EVERY = 4.0
"""Seconds between two looks at a server that is away."""
_ICONS = {
    True: ":green[:material/check_circle:]",
    False: ":orange[:material/warning:]",
    None: ":gray[:material/circle:]",
}


def draw_health(models: Models) -> None:
    with st.container(border=True, gap="xsmall"):
        draw_live(_draw_models, models)
        for health in (_embedding(), _web(), _store(), *_troubles()):
            _draw(health)


def draw_live(draw: Callable[[Models, float], None], models: Models) -> None:
    """A part of the page that notices by itself when a model server that is away is back, and redraws only itself.

    `draw` is given what was found last, and when; `models_now` tells what is to be shown.
    """
    every = _LOOK_EVERY if _is_any_away(models) else None
    st.fragment(draw, run_every=every)(models, time.monotonic())


def models_now(models: Models, drawn_at: float) -> Models:
    """`models` while the page is drawn; later, when its part is drawn again, what is found then."""
    if time.monotonic() - drawn_at < _LOOK_EVERY / 2:
        return models
    now = app_state.look_for_models(app_state.settings())
    return app_state.look_again(app_state.settings()) if _is_any_away(now) else now


def _is_any_away(models: Models) -> bool:
    is_chosen_away = bool(app_state.why_away(st.session_state.get("model", EXTRACTIVE), models))
    return is_chosen_away or not all(one.reachable for one in (models.ollama, models.openai) if one)


def _draw_models(models: Models, drawn_at: float) -> None:
    _draw(_model(models_now(models, drawn_at)))


def _draw(health: Health) -> None:
    hint = f"  \n`{health.hint}`" if health.hint and "`" not in health.hint else ""
    st.markdown(f":small[{_ICONS[health.ok]} **{plain(health.name)}** {plain(health.message)}]{hint}")


def _model(models: Models) -> Health:
    writers = len(models.choices) - 1
    chosen = st.session_state.get("model", EXTRACTIVE)
    if why := app_state.why_away(chosen, models):
        server = models.ollama if chosen.startswith("ollama/") else models.openai
        summary, hint = (server.message, server.hint) if server else ("OPENAI_BASE_URL is not set.", "")
        there = f", {writers} others available" if writers else ""
        return Health(
            "Model", False, f"{app_state.called(chosen)} ({why}) stays chosen{there}. {summary}".strip(), hint
        )
    if writers:
        return Health("Model", True, f"{writers} available")
    away = models.openai if models.openai and not models.openai.models else models.ollama
    return Health("Model", None, f"none: answers are quotations. {away.message}", away.hint)


def _embedding() -> Health:
    workbench, warming = app_state.workbench(), app_state.warm_up()
    if warming.error:
        return Health("Embedding", False, warming.error.message, warming.error.hint)
    try:
        name = workbench.store.index_version.embedding
    except CragError:
        return Health("Embedding", None, "not known while the index cannot be read")
    return Health("Embedding", None if warming.is_running else True, name)


def _web() -> Health:
    if st.session_state.get("web") == WebMode.OFF:
        return Health("Web", None, "off")
    last = app_state.workbench().searcher.last
    if last is None:
        return Health("Web", None, f"{app_state.workbench().searcher.name}, not asked yet")
    if last.outcome in (WebOutcome.USED, WebOutcome.EMPTY):
        return Health("Web", True, f"{last.provider} answers")
    return Health("Web", False, last.message)


def _troubles() -> tuple[Health, ...]:
    """What works in the background, only where it does not."""
    workbench = app_state.workbench()
    cache = workbench.cache.problem if workbench.cache else ""
    audit = workbench.audit.problem if workbench.audit else ""
    found = (
        ("Grade cache", cache),
        ("History", workbench.history.problem),
        ("Audit log", audit),
        ("Metrics", workbench.metrics.problem),
    )
    return tuple(Health(name, False, problem) for name, problem in found if problem)


def _store() -> Health:
    try:
        count = app_state.workbench().store.count()
    except CragError as error:
        return Health("Store", False, error.message, error.hint)
    if not count and app_state.warm_up().is_running:
        return Health("Store", None, "the sample documents are on their way in")
    if not count:
        return Health("Store", False, "empty: add documents on the Documents page")
    return Health("Store", True, f"{count} chunks")
