"""A server that speaks Ollama's wire.

Paths, fields and words as in Ollama's `server/routes.go` and `docs/api.md`: a chat with a model that is not there
names it as it was asked for, `/api/show` names it with its tag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from .engines import Ask, Engine, Finish
from .local_server import Handler
from .model_server import Answer, ModelServer

MODEL = "smollm2:135m"
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "134.52M",
    "quantization_level": "Q4_1",
}
SIZE = 98_000_000


class OllamaServer(ModelServer):
    """Ollama with these models pulled, all answered by one engine. `x` and `x:latest` are the same model.

    `num_ctx` is enforced once `counts` tells the tokens of a text. Log probabilities, of the first token of a reply in
    one go, are told from version 0.12.11 on.
    """

    chat_path = "/api/chat"

    def __init__(
        self, engine: Engine, *, models: Sequence[str] = (MODEL,), context_length: int = 8192, version: str = "0.12.11"
    ) -> None:
        handlers: dict[tuple[str, str], Handler] = {
            ("GET", "/api/tags"): self._list,
            ("POST", "/api/show"): self._show,
            ("POST", "/api/chat"): self._chat,
        }
        super().__init__(engine, [with_tag(model) for model in models], handlers)
        self.context_length = context_length
        self.version = version
        self.parameters = ""
        """Of the Modelfile of every model, as `/api/show` tells them."""
        self.base_models: set[str] = set()
        """Those without a template for chats, by their full names."""
        self.counts: Callable[[str], int] | None = None

    def _tells_likely(self) -> bool:
        return tuple(map(int, self.version.split("."))) >= (0, 12, 11)

    async def _list(self, body: None) -> ASGIApp:
        return JSONResponse({"models": [entry(model) | {"modified_at": now()} for model in self.models]})

    async def _show(self, body: dict[str, Any]) -> ASGIApp:
        name = with_tag(body.get("model") or body.get("name") or "")
        if name not in self.models:
            return not_found(name)
        info = {
            "general.architecture": "llama",
            "general.parameter_count": 134_515_008,
            "llama.context_length": self.context_length,
        }
        shown = {
            "modelfile": f"FROM {name}\n",
            "parameters": self.parameters,
            "template": "{{ .Prompt }}" if name in self.base_models else "{{ range .Messages }}{{ .Content }}{{ end }}",
            "details": DETAILS,
        }
        return JSONResponse(shown | {"model_info": info, "modified_at": now()})

    async def _chat(self, body: dict[str, Any]) -> ASGIApp:
        messages = tuple(body.get("messages") or ())
        model, options = body.get("model") or "", body.get("options") or {}
        if not model:
            return JSONResponse({"error": "model is required"}, 400)
        if with_tag(model) not in self.models:
            return not_found(model)
        if self.counts:
            tokens = sum(self.counts(str(message.get("content"))) for message in messages)
            room = min(options.get("num_ctx", self.context_length), self.context_length)
            if tokens + max(options.get("num_predict", 0), 0) > room:
                return too_long(tokens, room)
        wire = OllamaWire(model)
        num_predict = options.get("num_predict", -1)
        ask = Ask(
            messages=messages,
            schema=body.get("format") or None,
            max_tokens=num_predict if num_predict > 0 else None,
            temperature=options.get("temperature"),
            top=body.get("top_logprobs", 0) if body.get("logprobs") and self._tells_likely() else 0,
        )
        return Answer(self, wire, ask, is_streamed=body.get("stream", True))


def too_long(tokens: int, room: int) -> ASGIApp:
    """As the runner of Ollama refuses it, whose JSON stands in the server's."""
    told = f"request ({tokens} tokens) exceeds the available context size ({room} tokens), try increasing it"
    kind = {"type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": room}
    return JSONResponse({"error": json.dumps({"error": {"code": 400, "message": told} | kind})}, 400)


class OllamaWire:
    """One reply as newline-delimited JSON; counts and nanoseconds stand in its last line."""

    media_type = "application/x-ndjson"

    def __init__(self, model: str) -> None:
        self.model = model
        self.broken = b'{"model": "%s", "mess\n' % model.encode()

    def chunk(self, text: str, **fields: Any) -> dict[str, Any]:
        """One object of the stream."""
        message = {"role": "assistant", "content": text}
        return {"model": self.model, "created_at": now(), "message": message} | fields

    def piece(self, text: str) -> bytes:
        return line(self.chunk(text, done=False))

    def final(self, finish: Finish) -> bytes:
        return line(self.whole("", finish))

    def failure(self, message: str) -> bytes:
        return line(self.error(500, message))

    def whole(self, text: str, finish: Finish) -> dict[str, Any]:
        return self.chunk(
            text,
            done=True,
            done_reason=finish.reason,
            total_duration=finish.load_ns + finish.prompt_ns + finish.eval_ns,
            load_duration=finish.load_ns,
            prompt_eval_count=finish.prompt_tokens,
            prompt_eval_duration=finish.prompt_ns,
            eval_count=finish.completion_tokens,
            eval_duration=finish.eval_ns,
        ) | ({"logprobs": [logprob(finish.likely)]} if finish.likely else {})

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": message}


def logprob(likely: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """A token with its log probability and those in its place, as Ollama, OpenAI and llama.cpp spell it."""
    told = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in likely]
    return told[0] | {"top_logprobs": told}


def with_tag(model: str) -> str:
    """The full name of a model."""
    return model if ":" in model else f"{model}:latest"


def not_found(model: str) -> JSONResponse:
    """Ollama's refusal of a model that was not pulled."""
    return JSONResponse({"error": f"model '{model}' not found"}, 404)


def entry(model: str) -> dict[str, Any]:
    """A model as it stands in a list."""
    return {
        "name": model,
        "model": model,
        "size": SIZE,
        "digest": sha256(model.encode()).hexdigest(),
        "details": DETAILS,
    }


def line(chunk: Mapping[str, Any]) -> bytes:
    return json.dumps(chunk).encode() + b"\n"


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
