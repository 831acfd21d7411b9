"""The health strip: model, embedding, web and store, one line each, with the command that helps."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from crag_core.build import Models
from crag_core.errors import CragError
from crag_core.run import WebMode
from crag_core.types import WebOutcome
from ui import state
from ui.text import plain


@dataclass(frozen=True)
class Health:
    """`ok` None: not in use or not known yet."""

    name: str
    ok: bool | None
    message: str
    hint: str = ""


def check(models: Models) -> tuple[Health, ...]:
    return (_model(models), _embedding(), _web(), _store(), *_troubles())


def draw_health(models: Models) -> None:
    icons = {
        True: ":green[:material/check_circle:]",
        False: ":orange[:material/warning:]",
        None: ":gray[:material/circle:]",
    }
    with st.container(border=True, gap="xsmall"):
        for health in check(models):
            hint = f"  \n`{health.hint}`" if health.hint and "`" not in health.hint else ""
            st.markdown(f":small[{icons[health.ok]} **{health.name}** {plain(health.message)}]{hint}")


def _model(models: Models) -> Health:
    writers = len(models.choices) - 1
    if writers:
        return Health("Model", True, f"{writers} available")
    away = models.openai if models.openai and not models.openai.models else models.ollama
    return Health("Model", None, f"none: answers are quotations. {away.message}", away.hint)


def _embedding() -> Health:
    workbench, warming = state.workbench(), state.warm_up()
    if warming.error:
        return Health("Embedding", False, warming.error.message, warming.error.hint)
    return Health("Embedding", None if warming.is_running else True, workbench.embedder.name)


def _web() -> Health:
    if st.session_state.get("web") == WebMode.OFF:
        return Health("Web", None, "off")
    last = state.workbench().searcher.last
    if last is None:
        return Health("Web", None, f"{state.workbench().searcher.name}, not asked yet")
    if last.outcome in (WebOutcome.USED, WebOutcome.EMPTY):
        return Health("Web", True, f"{last.provider} answers")
    return Health("Web", False, last.message)


def _troubles() -> tuple[Health, ...]:
    """What works in the background, only where it does not."""
    workbench = state.workbench()
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
        count = state.workbench().store.count()
    except CragError as error:
        return Health("Store", False, error.message, error.hint)
    if not count and state.warm_up().is_running:
        return Health("Store", None, "the sample documents are on their way in")
    if not count:
        return Health("Store", False, "empty: add documents on the Documents page")
    return Health("Store", True, f"{count} passages")
