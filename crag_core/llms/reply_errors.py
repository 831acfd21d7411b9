"""What can be wrong with the reply of a model server, and the project's error for it, the same for every protocol.

What a server sends may be any JSON. The clients read a reply as if it had the shape that it should have, and fail at
others with errors of Python. Those differ from errors of this program by the place: not in a module of ours.
"""

from __future__ import annotations

import json
from typing import Any

from crag_core.base.errors import CragError, ModelUnavailable
from crag_core.llms.servers import shown

LARGEST_COUNT = 1_000_000_000
"""Tokens of one call; whoever tells more does not count."""
_OF_SHAPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)


class WrongShape(Exception):
    """A server sent something else than a reply; `found` ends a sentence that tells what was expected."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


def counts(raw: object) -> tuple[int, int]:
    """(tokens of the prompt, tokens of the reply) as a server reported them; 0 for what is no count."""
    usage = part(raw, "usage")
    return _count(part(usage, "prompt_tokens")), _count(part(usage, "completion_tokens"))


_WHOLE = ("", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call")
_LONGEST_REASON = 40  # characters


def end_of(raw: object) -> str | None:
    """Why a reply is over, as this piece or the whole of it says: "" where it is whole; None: it is not said here."""
    choices = part(raw, "choices")
    reasons = [part(choice, "finish_reason") for choice in choices] if isinstance(choices, list) else []
    reasons += [part(raw, "done_reason") or ""] if part(raw, "done") is True else []
    said = next((reason for reason in reasons if isinstance(reason, str)), None)
    return "" if said in _WHOLE else said and said[:_LONGEST_REASON]


def is_of_wire(raw: object) -> bool:
    """Whether a piece is of a protocol whose streams tell their end."""
    return isinstance(part(raw, "choices"), list) or isinstance(part(raw, "done"), bool)


def is_of_model(raw: object) -> bool:
    """Whether a piece of a stream tells of a model at work: then a reply without a word is a reply, too."""
    return end_of(raw) is not None or counts(raw)[0] > 0


def part(of: object, name: str) -> Any:
    """A field of what a server sent, as JSON or as its client's object; None where it has none."""
    return of.get(name) if isinstance(of, dict) else getattr(of, name, None)


def _count(value: object) -> int:
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT
    return int(value) if is_count else 0  # type: ignore[call-overload]  # is_count is of its type


def _is_of_ours(error: Exception) -> bool:
    """Whether it was raised in a module of this project, however deep in a client's call."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and str(place.tb_frame.f_globals.get("__name__", "")).startswith("crag_core.")


class TooLong(Exception):
    """A reply did not come in time, or has no end; `summary` follows the name of its server."""

    def __init__(self, summary: str, hint: str) -> None:
        super().__init__(summary)
        self.summary = summary
        self.hint = hint


def never_sent(error: BaseException | None) -> bool:
    """Whether a call failed before there was any connection to send it on."""
    import httpx

    while error is not None and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        error = error.__cause__ or error.__context__
    return error is not None


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
    if isinstance(error, (httpx.HTTPError, OSError, *away)):
        return ModelUnavailable(f"{called} does not answer or went away.", hint=start)
    if found := _wrong_shape(error):
        wrong = f"does not speak {expected}, found {found}"
        return ModelUnavailable(f"What answers at {shown(url)} {wrong}.", hint=check)
    return None


def _wrong_shape(error: Exception) -> str:
    """What was found in place of a reply; "": the error is not of the reply."""
    if isinstance(error, WrongShape):
        return error.found
    if isinstance(error, json.JSONDecodeError):
        return "no JSON"
    return "something else" if isinstance(error, _OF_SHAPE) and not _is_of_ours(error) else ""
