"""Requests to a provider and their outcomes, independent of HTTP."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crag_core.base.types import WebOutcome
from crag_core.websearch.results import well_formed


@dataclass(frozen=True)
class Call:
    """What is asked: a GET with `params`, or a POST of `body` as JSON.

    `key` is sent as a bearer token and struck out of whatever comes back; `login` is a name and a password.
    """

    url: str
    params: Mapping[str, str | int] | None = None
    body: Mapping[str, Any] | None = None
    login: tuple[str, str] | None = field(default=None, repr=False)
    key: str = field(default="", repr=False)

    def cleaned(self, value: Any) -> Any:
        """A JSON value whose texts are well formed and do not hold the key, which servers repeat in what they say."""
        if isinstance(value, str):
            text = well_formed(value)
            return text.replace(self.key, "[key]") if self.key else text
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        if isinstance(value, dict):
            return {name: self.cleaned(item) for name, item in value.items()}
        return value

    def shortened(self, text: object) -> str:
        """A foreign text for a message: without the key, on one line, at most 160 characters."""
        return _on_one_line(self.cleaned(str(text)))  # cleaned first: a cut could leave a piece of the key


@dataclass(frozen=True)
class Answer:
    """An HTTP status and the JSON that came with it; `data` is None when the body was no JSON."""

    status: int
    data: Any

    @property
    def said(self) -> str:
        """What an error says of itself, wherever the server puts it; "" where it says nothing."""
        data = self.data
        while not isinstance(data, str):
            if isinstance(data, list) and data:
                data = data[0]
            elif isinstance(data, dict):
                data = next((data[key] for key in ("detail", "error", "message", "msg") if key in data), "")
            else:
                return ""
        return _on_one_line(data)

    @property
    def describe(self) -> str:
        """The status, and what was said with it."""
        return f"HTTP {self.status}: {self.said}" if self.said else f"HTTP {self.status}"


class NoAnswer(Exception):
    """A call brought no results; `why` goes on where the provider's name begins a sentence."""

    def __init__(self, outcome: WebOutcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class Deadline:
    """The end of `seconds` that begin now; several calls may share them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())


def _on_one_line(text: str) -> str:
    return " ".join(text.split())[:160]
