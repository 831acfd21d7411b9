"""The context window of a served model, and prompts cut so that they never overflow it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from crag_core.base.errors import PromptTooLong
from crag_core.base.prompts.delimiters import EVIDENCE
from crag_core.base.protocols import Messages
from crag_core.base.text.tokens import beginning, token_bound

CONTEXT_WINDOW = 8192
"""Tokens that are asked for; what a model is taken to read where its server does not tell."""

ANSWER_TOKENS = 768
ASKED_FROM = 1024
"""A shorter prompt fits every model, so nobody asks the server for its length, unless it is told what to read."""

_TEMPLATE = 16  # tokens that a chat template puts around a message
LESS = 3.0
"""A prompt that a server refused as too long is taken to have so many times the tokens of its bound."""
_TOO_LONG = re.compile(
    r"exceed\w*[^.]{0,40}context|context[^.]{0,40}(?:exceed|length|size|window)|prompt is too long|too many tokens|"
    r"maximum (?:context|model|input) length",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"n_prompt_tokens\D{1,5}(\d{1,9})|\((\d{1,9}) tokens?\)|(?:requested|has|resulted in) (\d{1,9}) ")
_READS = re.compile(r"n_ctx\D{1,5}(\d{1,9})|(?:context (?:size|length|window)|length) \D{0,12}(\d{1,9}) ?tokens?")


class Capacity:
    """Of one model at one server. Only the loop of the model calls changes it.

    `window`: tokens that it is asked to read at once, and taken to. `has_logprobs`: it has once told how probable the
    tokens of a reply are.
    """

    def __init__(self) -> None:
        self.window = CONTEXT_WINDOW
        self.asking = asyncio.Lock()
        self.is_asked = False
        self.has_logprobs = False

    def fit(self, messages: Messages, per_bound: float = 1.0) -> tuple[Messages, int]:
        """The messages with so much evidence as there is room for, the reply's tokens left free; and the tokens cut.

        `per_bound`: the server's tokens by those of `token_bound`.
        """
        reply = min(ANSWER_TOKENS, self.window // 2)
        room = self.window - reply - _TEMPLATE * (len(messages) + 1)
        return fitted(messages, room, lambda text: int(token_bound(text) * per_bound) + 1)

    def set_context_length(self, tokens: int | None) -> None:
        """What its server says that it reads at once, or is to; None: it does not say."""
        self.is_asked = True
        self.window = tokens or self.window


def tokens_in(messages: Messages) -> float:
    """A bound of them, whatever the model."""
    return sum(token_bound(text) + _TEMPLATE for _, text in messages)


@lru_cache(512)
def capacity_of(url: str, name: str) -> Capacity:
    return Capacity()


def least(*found: object) -> int | None:
    """The smallest of what are numbers of tokens; None where none is."""
    numbers = [one for one in found if isinstance(one, int) and not isinstance(one, bool) and one >= 256]
    return min(numbers, default=None)


def words_of(error: object) -> str:
    """What a server said of a failure, out of the JSON that it may stand in."""
    found: Any = error
    for _ in range(4):
        if isinstance(found, str) and found.lstrip().startswith("{"):
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                break
        if not isinstance(found, dict):
            break
        found = found.get("message") or found.get("error") or found.get("detail") or ""
    return str(found)


def describe_length(error: Exception, called: str, name: str) -> PromptTooLong | None:
    """In words for people that a prompt was too long; None for another failure."""
    said = f"{getattr(error, 'error', '')} {getattr(error, 'body', '')} {error}"[:4000]
    if not _TOO_LONG.search(said):
        return None
    counted, reads = _number(_COUNTED, said), _number(_READS, said)
    size = f": {counted:,} tokens" if counted else ""
    most = f", and the model reads {reads:,} at once" if counted and reads else ""
    return PromptTooLong(
        f"The question and its evidence are too long for {name!r} at {called}{size}{most}.",
        hint="Ask for fewer chunks, unpin long files, or choose a model with a longer context.",
    )


def _number(pattern: re.Pattern[str], words: str) -> int | None:
    match = pattern.search(words)
    return next((int(group) for group in match.groups() if group), None) if match else None


def fitted(messages: Messages, room: int, count: Callable[[str], int]) -> tuple[Messages, int]:
    """The messages with their longest evidence cut at ends of sentences until all have `room`; and the tokens cut.

    Evidence that is shorter than what is left for each piece stays whole, wherever it stands.
    """
    total = sum(count(text) for _, text in messages)
    sizes = [count(found) for role, text in messages if role == "user" for found in EVIDENCE.findall(text)]
    if total <= room or not sizes:
        return messages, 0
    most = _share(sizes, room - (total - sum(sizes)))

    def cut(found: re.Match[str]) -> str:
        return beginning(found[0], most, count) if count(found[0]) > most else found[0]

    short = [(role, EVIDENCE.sub(cut, text) if role == "user" else text) for role, text in messages]
    return short, total - sum(count(text) for _, text in short)


def _share(sizes: Sequence[int], room: int) -> int:
    """The most that each may have so that all together have `room`."""
    left = room
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(share, 0)
        left -= size
    return max(sizes)
