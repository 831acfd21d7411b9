"""The first token of a reply, and how probable it and others were there, in what either protocol sends. Pure."""

from __future__ import annotations

from typing import Any

from crag_core.base.protocols import Reply
from crag_core.base.types.steps import Usage
from crag_core.llms.reply_errors import WrongShape, counts, part

_ROUNDING = 1e-3  # what it may make of 0, the log probability of what is certain
_LEAST = -1e9
TOP = 20
"""Tokens whose log probabilities are asked for: the most that Ollama, OpenAI and vLLM give."""


def first_token(raw: object) -> Reply:
    """A reply of one token; `top_logprobs` is () where the server tells no log probabilities. Raises `WrongShape`.

    What a model thinks before it replies counts as its text, in tags: then it does not begin with its reply.
    """
    choice = _first(part(raw, "choices"))
    message = part(choice, "message") or part(raw, "message")
    if message is None:
        raise WrongShape("no message")
    thought = part(message, "thinking") or part(message, "reasoning_content") or part(message, "reasoning")
    content = part(message, "content") or ""
    text = f"<think>{thought}" if isinstance(thought, str) and thought and not content else content
    told = _first(part(part(choice, "logprobs"), "content")) or _first(part(raw, "logprobs"))
    return Reply(text if isinstance(text, str) else "", Usage(1, *_tokens(raw)), _likely(told))


def _likely(told: object) -> tuple[tuple[str, float], ...]:
    """Most probable first; the token that was taken is among them, whether or not the server lists it again.

    () where one of the numbers is no log probability: those that are left would say something else.
    """
    others = part(told, "top_logprobs")
    listed = others if isinstance(others, list | tuple) else ()
    if any(_is_number(value := part(one, "logprob")) and not value <= _ROUNDING for one in (told, *listed)):
        return ()
    found = [pair for one in listed if (pair := _pair(one))]
    own = _pair(told)
    if own and own[0] not in [token for token, _ in found]:
        found.append(own)
    return tuple(sorted(found, key=lambda pair: -pair[1]))


def _pair(one: object) -> tuple[str, float] | None:
    token, value = part(one, "token"), part(one, "logprob")
    is_pair = isinstance(token, str) and _is_number(value)
    return (token, float(max(min(value, 0.0), _LEAST))) if is_pair else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tokens(raw: object) -> tuple[int, int]:
    """Ollama's own client leaves its counts where the server puts them."""
    own = {"prompt_tokens": part(raw, "prompt_eval_count"), "completion_tokens": part(raw, "eval_count")}
    return counts({"usage": own}) if part(raw, "usage") is None else counts(raw)


def _first(of: Any) -> Any:
    return of[0] if isinstance(of, list | tuple) and of else None
