"""Errors of a call to a model server in plain words, the same for every protocol."""

from __future__ import annotations

import json

from crag_core.base.errors import CragError, ModelUnavailable
from crag_core.llms.client import TooLong
from crag_core.llms.reply_shape import WrongShape
from crag_core.llms.servers import shown


def explain_call(
    error: Exception,
    called: str,
    url: str,
    name: str,
    *,
    expected: str,
    check: str,
    start: str,
    away: tuple[type[Exception], ...] = (),
) -> CragError | None:
    """The project's error for what a client raised; None for a bug.

    `called` begins a sentence about the server, `expected` names its protocol and the shape of a reply. `check` is the
    hint where something else answers, `start` where nothing does, which the client tells by errors of types `away` too.
    """
    import httpx

    from crag_core.base.network.http_guard import refusal_in

    if why := refusal_in(error):
        return ModelUnavailable(f"What answers at {shown(url)} {why}.", hint=check)
    if isinstance(error, TooLong):
        return ModelUnavailable(f"{called} {error.summary} (model {name!r}).", hint=error.hint, is_late=True)
    if isinstance(error, WrongShape | json.JSONDecodeError):
        found = error.found if isinstance(error, WrongShape) else "no JSON"
        wrong = f"does not speak {expected}, found {found}"
        return ModelUnavailable(f"What answers at {shown(url)} {wrong}.", hint=check)
    if isinstance(error, (httpx.HTTPError, OSError, *away)):
        return ModelUnavailable(f"{called} does not answer or went away.", hint=start)
    return None
