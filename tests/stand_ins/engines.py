"""What writes the replies of a stand-in model server."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Message = Mapping[str, Any]
Reply = str | Mapping[str, Any]


class Token(dict[str, float]):
    """How probable each of some tokens is as the first of a reply."""

    @property
    def likely(self) -> tuple[tuple[str, float], ...]:
        """With log probabilities, likeliest first."""
        logs = ((token, math.log(value) if value else -math.inf) for token, value in self.items())
        return tuple(sorted(logs, key=lambda pair: -pair[1]))


@dataclass(frozen=True)
class Ask:
    """One request, whatever the wire. `schema` is a JSON schema, or `None` for free text."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top: int = 0
    """So many of the likeliest tokens are wanted with their log probabilities."""


@dataclass(frozen=True)
class Finish:
    """The end of a reply: "stop" or "length", tokens and nanoseconds; `likely` in place of its first token."""

    reason: str
    prompt_tokens: int
    completion_tokens: int
    load_ns: int
    prompt_ns: int
    eval_ns: int
    likely: tuple[tuple[str, float], ...] = ()


class Engine(Protocol):
    """Writes a reply as pieces of text and then one `Finish`. Closing the iterator must end the generation.

    `asks` and `pieces_written` count what was begun and what was produced, whoever listened.
    """

    asks: list[Ask]
    pieces_written: int

    def write(self, ask: Ask) -> AsyncGenerator[str | Finish, None]: ...


class ScriptedModel:
    """Replies from a queue, one a call, or from a function of the messages; a mapping is written as JSON.

    A piece of `piece_chars` characters counts as one token, and `max_tokens` cuts by it; so does a word of the prompt.
    The schema is not enforced: ugly replies are what a script is for. `delay_s` is the pause before each piece.
    `queue`, `piece_chars` and `delay_s` may be changed at any time. An empty queue raises: a server answers 500.
    A `Token` is a reply of one token, the likeliest.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[tuple[Message, ...]], Reply],
        *,
        piece_chars: int = 4,
        delay_s: float = 0.0,
    ) -> None:
        self.asks: list[Ask] = []
        self.pieces_written = 0
        self.piece_chars = piece_chars
        self.delay_s = delay_s
        self.queue: deque[Reply] = deque() if callable(replies) else deque(replies)
        self._compose = replies if callable(replies) else self._next_in_queue

    async def write(self, ask: Ask) -> AsyncGenerator[str | Finish, None]:
        """See `Engine.write`."""
        self.asks.append(ask)
        began = time.perf_counter_ns()
        reply = self._compose(ask.messages)
        likely = reply.likely if isinstance(reply, Token) else ()
        text = likely[0][0] if likely else reply if isinstance(reply, str) else json.dumps(reply)
        starts = range(0, len(text), self.piece_chars)
        limit = len(starts) if ask.max_tokens is None else min(len(starts), ask.max_tokens)
        for start in starts[:limit]:
            await asyncio.sleep(self.delay_s)
            self.pieces_written += 1
            yield text[start : start + self.piece_chars]
        yield Finish(
            reason="stop" if limit == len(starts) else "length",
            prompt_tokens=sum(len(str(message.get("content", "")).split()) for message in ask.messages),
            completion_tokens=limit,
            load_ns=0,
            prompt_ns=0,
            eval_ns=time.perf_counter_ns() - began,
            likely=likely[: ask.top],
        )

    def _next_in_queue(self, messages: tuple[Message, ...]) -> Reply:
        if not self.queue:
            raise LookupError(f"expected a reply for call {len(self.asks)}, found the queue empty: add to `queue`")
        return self.queue.popleft()
