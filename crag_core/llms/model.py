"""Any LlamaIndex LLM behind the project's `LanguageModel` protocol: cancellable, counted, with typed errors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crag_core.errors import CragError
from crag_core.llms.background import iterate, wait_for
from crag_core.llms.shape import Reading, WrongShape, counts, is_of_model
from crag_core.protocols import Cancel, Messages, Reply
from crag_core.types import Usage

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.llms import LLM

Explain = Callable[[Exception], CragError | None]
"""Turns a client's exception, or a `WrongShape`, into the project's error; None lets it through, for it is a bug."""

Structured = Callable[[dict[str, Any]], dict[str, Any]]
"""The call arguments that ask for a reply of the given JSON schema."""


class LoopModel(ABC):
    """A `LanguageModel` by two coroutines, which run on the one loop of all model calls."""

    name: str

    @abstractmethod
    async def ask(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply | Exception:
        """One reply, or what came instead of it. `cancel` tells whose call it is; who sets it ends this coroutine."""

    @abstractmethod
    def pieces(self, messages: Messages, cancel: Cancel) -> AsyncGenerator[str | Usage, None]:
        """The pieces of one reply, its usage last; `cancel` as for `ask`."""

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        reply = self.complete_all([messages], cancel, schema)[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        async def ask_all() -> list[Reply | Exception]:
            return list(await asyncio.gather(*(self.ask(messages, cancel, schema) for messages in chats)))

        return wait_for(ask_all(), cancel)

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        return iterate(self.pieces(messages, cancel), cancel)


class LlamaIndexModel(LoopModel):
    """One client of one server; nothing keeps it from asking for many replies together, which `Served` does.

    `streaming` are extra call arguments for a stream.
    `longest`: seconds for a whole reply, or for the beginning of a stream; None: as the client has it.
    """

    def __init__(
        self,
        llm: LLM,
        name: str,
        *,
        explain: Explain = lambda error: None,
        structured: Structured = lambda schema: {},
        streaming: Mapping[str, Any] = MappingProxyType({}),
        longest: float | None = None,
    ) -> None:
        self.name = name
        self._llm = llm
        self._explain = explain
        self._structured = structured
        self._streaming = dict(streaming)
        self._longest = longest

    async def ask(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply | Exception:
        options = self._structured(schema) if schema else {}
        chat = _chat(messages)
        reading = Reading()
        try:
            async with asyncio.timeout(self._longest):
                response = await self._llm.achat(chat, **options)
        except Exception as error:
            return self._explained(error, reading)
        return Reply(response.message.content or "", _usage(response))

    async def pieces(self, messages: Messages, cancel: Cancel) -> AsyncGenerator[str | Usage, None]:
        last: ChatResponse | None = None
        is_reply = False
        chat = _chat(messages)
        reading = Reading()
        try:
            async with asyncio.timeout(self._longest):
                stream = await self._llm.astream_chat(chat, **self._streaming)
            try:
                async for last in stream:
                    is_reply = is_reply or bool(last.delta) or is_of_model(last.raw)
                    if last.delta:
                        yield last.delta
            finally:
                close = getattr(stream, "aclose", None)
                if close:
                    await close()
                await reading.end()
            if not is_reply:
                raise WrongShape("an end without a word")
        except Exception as error:
            raise self._explained(error, reading) from error
        yield _usage(last)

    def _explained(self, error: Exception, reading: Reading) -> Exception:
        if isinstance(error, CragError):
            return error
        if told := self._explain(error):
            return told
        wrong = reading.wrong_shape(error)
        return (self._explain(wrong) if wrong else None) or error


def is_of_request(status: int) -> bool:
    """Whether an HTTP status tells of the request, not of key, load or server."""
    return 400 <= status < 500 and status not in (401, 403, 404, 408, 429)


def _chat(messages: Messages) -> list[ChatMessage]:
    from llama_index.core.base.llms.types import ChatMessage

    # Half a surrogate pair, as broken documents have them, cannot be sent.
    sound = [(role, text.encode("utf-8", "replace").decode("utf-8")) for role, text in messages]
    return [ChatMessage(role=role, content=text) for role, text in sound]


def _usage(response: ChatResponse | None) -> Usage:
    """One call, with the tokens that the server reported."""
    return Usage(1, *counts(response.raw if response else None))
