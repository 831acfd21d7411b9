"""What a session holds beside the values of its widgets. All keys of ours in st.session_state:

| key | what it holds | module |
|---|---|---|
| `trace`, `edits` | the run on the page as taken, and the chunks dropped or pinned since | `current_run` |
| `jobs` | work in the background, by name: the run in progress, files on their way in, grading … | `background` |
| `moving` | thresholds of a mark that is being dragged | `app_state` |
| `config`, `belongs_to`, `added_evaluators` | settings, who is signed in, evaluators of others | `app_state` |
| `connection` | the one there is, and since when where it is not the first | `app_state` |
| `pause` | the last web search | `current_run` |
| `handed` | what is left for the next redraw, by name | here |
| `remembered` | what was worked out last, by name | here |
| the name of a class | one object for a page or a part of it, see `kept` | where the class is |
| `followed` | whether the link of the first visit was opened | `share` |
| `upload_rounds` | how often each uploader was emptied | `uploads` |
| `fragments`, `fragments_at`, `fragments_ticking` | what is drawn, and what is drawn again by itself | `fragments` |
| `router_routed`, `router_wanted` | whether the router was passed, and the page behind it | `shell.page` |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

T = TypeVar("T")


def kept(kind: type[T]) -> T:
    """This session's object of a class, made by its defaults when it is asked for first."""
    found: T = st.session_state.setdefault(kind.__name__, kind())
    return found


def remembered(name: str, key: object, work_out: Callable[[], T]) -> T:
    """Worked out once for a key, and again for another one; only the last is kept."""
    values = _named("remembered")
    if name not in values or values[name][0] != key:
        values[name] = key, work_out()
    found: T = values[name][1]
    return found


def forget(name: str) -> None:
    """Work it out again, whatever its key."""
    _named("remembered").pop(name, None)


def hand(name: str, value: object) -> None:
    """Leave something for the next redraw."""
    _named("handed")[name] = value


def handed(name: str) -> Any:
    """What was left; None where nothing was."""
    return _named("handed").get(name)


def take(name: str) -> Any:
    """As `handed`, and not again after that."""
    return _named("handed").pop(name, None)


def _named(key: str) -> dict[str, Any]:
    found: dict[str, Any] = st.session_state.setdefault(key, {})
    return found
