"""A server that speaks the chat wire of OpenAI, as llama.cpp, vLLM and Ollama's `/v1` do."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from .engines import Ask, Engine, Finish
from .local_server import Handler
from .model_server import Answer, ModelServer
from .ollama_server import logprob

MODEL = "smollm2"


class OpenAIServer(ModelServer):
    """`POST /v1/chat/completions` and `GET /v1/models`; clients want `api_base` as their base address.

    `has_logprobs`: log probabilities of the first token go with a reply in one go that is asked for them.
    """

    chat_path = "/v1/chat/completions"

    def __init__(self, engine: Engine, *, models: Sequence[str] = (MODEL,)) -> None:
        handlers: dict[tuple[str, str], Handler] = {
            ("GET", "/v1/models"): self._list,
            ("POST", self.chat_path): self._chat,
        }
        super().__init__(engine, models, handlers)
        self.has_logprobs = True

    @property
    def api_base(self) -> str:
        """The address that clients call `base_url` or `api_base`."""
        return f"{self.url}/v1"

    async def _list(self, body: None) -> ASGIApp:
        listed = [{"id": model, "object": "model", "created": 0, "owned_by": "stand-in"} for model in self.models]
        return JSONResponse({"object": "list", "data": listed})

    async def _chat(self, body: dict[str, Any]) -> ASGIApp:
        model = body.get("model", "")
        options = body.get("stream_options") or {}
        wire = OpenAIWire(model, f"chatcmpl-{len(self.requests)}", has_usage=bool(options.get("include_usage")))
        if model not in self.models:
            return JSONResponse(wire.error(404, f"The model `{model}` does not exist"), 404)
        ask = Ask(
            messages=tuple(body["messages"]),
            schema=schema_of(body.get("response_format")),
            max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
            temperature=body.get("temperature"),
            top=body.get("top_logprobs") or 0 if body.get("logprobs") and self.has_logprobs else 0,
        )
        return Answer(self, wire, ask, is_streamed=body.get("stream", False))


class OpenAIWire:
    """One reply as server-sent events; token counts come in an event of their own, and only if asked for."""

    media_type = "text/event-stream; charset=utf-8"
    broken = b'data: {"id": "chatcmpl-0", "choi\n\n'

    def __init__(self, model: str, reply_id: str, *, has_usage: bool) -> None:
        self.model = model
        self.reply_id = reply_id
        self.has_usage = has_usage

    def piece(self, text: str) -> bytes:
        return event(self._chunk([choice({"delta": {"role": "assistant", "content": text}})]))

    def final(self, finish: Finish) -> bytes:
        ending = event(self._chunk([choice({"delta": {}}, finish.reason)]))
        if self.has_usage:
            ending += event(self._chunk([]) | {"usage": usage(finish)})
        return ending + b"data: [DONE]\n\n"

    def failure(self, message: str) -> bytes:
        return event(self.error(500, message))

    def whole(self, text: str, finish: Finish) -> dict[str, Any]:
        message = choice({"message": {"role": "assistant", "content": text}}, finish.reason)
        message |= {"logprobs": {"content": [logprob(finish.likely)]}} if finish.likely else {}
        return self._chunk([message]) | {"object": "chat.completion", "usage": usage(finish)}

    def error(self, status: int, message: str) -> dict[str, Any]:
        kind, code = ("invalid_request_error", "model_not_found") if status == 404 else ("server_error", None)
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.reply_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.model,
            "choices": choices,
        }


def choice(content: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "finish_reason": reason} | dict(content)


def usage(finish: Finish) -> dict[str, int]:
    total = finish.prompt_tokens + finish.completion_tokens
    return {"prompt_tokens": finish.prompt_tokens, "completion_tokens": finish.completion_tokens, "total_tokens": total}


def event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def schema_of(response_format: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    asked = response_format or {}
    return asked["json_schema"]["schema"] if asked.get("type") == "json_schema" else None
