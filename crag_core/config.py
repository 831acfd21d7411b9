"""Settings from the environment, each with its default and what it means; wrong values are refused by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crag_core.errors import BadRecord


def _setting(variable: str, default: Any, meaning: str) -> Any:
    is_secret = variable.endswith("_KEY")
    return field(default=default, repr=not is_secret, metadata={"variable": variable, "meaning": meaning})


@dataclass(frozen=True)
class Config:
    home: Path = _setting("CRAG_HOME", Path(".crag"), "folder of the index; created when missing")
    embedding: str = _setting(
        "CRAG_EMBEDDING", "all-MiniLM-L6-v2", "embedding model: the built-in one, or any model name or folder"
    )
    ollama_host: str = _setting("OLLAMA_HOST", "", "where Ollama answers; empty: http://127.0.0.1:11434")
    openai_url: str = _setting("OPENAI_BASE_URL", "", "an OpenAI-compatible server, usually ending in /v1")
    openai_key: str = _setting("OPENAI_API_KEY", "", "its key, if it wants one; never shown, logged or recorded")
    model: str = _setting(
        "CRAG_MODEL", "", "language model to start with, such as ollama/llama3.2; empty: the first of Ollama"
    )
    model_timeout: float = _setting("CRAG_MODEL_TIMEOUT", 180.0, "seconds to wait for one reply of a model")
    calls_at_once: int = _setting("CRAG_MODEL_CALLS", 2, "model calls under way at the same time")
    web: str = _setting("CRAG_WEB", "ask", "web search to start with: auto, ask (shows the query first) or off")
    web_timeout: float = _setting("CRAG_WEB_TIMEOUT", 8.0, "seconds to wait for one web search")
    top_k: int = _setting("CRAG_TOP_K", 6, "passages retrieved for a question, 1 to 20")

    def __post_init__(self) -> None:
        for name, low, high in (
            ("top_k", 1, 20),
            ("calls_at_once", 1, 64),
            ("model_timeout", 1, 3600),
            ("web_timeout", 1, 120),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise BadRecord(f"{variable_of(name)}: expected {low} to {high}, found {value}.")
        if self.web not in ("auto", "ask", "off"):
            raise BadRecord(f"CRAG_WEB: expected auto, ask or off, found {self.web!r}.")


def load(environment: Mapping[str, str] = os.environ) -> Config:
    """Settings from `environment`; a variable that is unset or empty keeps its default."""
    values: dict[str, Any] = {}
    for setting in fields(Config):
        text = environment.get(setting.metadata["variable"], "").strip()
        if text:
            values[setting.name] = _read(setting.metadata["variable"], text, type(setting.default))
    return Config(**values)


def variable_of(name: str) -> str:
    return str(next(setting.metadata["variable"] for setting in fields(Config) if setting.name == name))


def _read(variable: str, text: str, kind: type[Any]) -> Any:
    try:
        return Path(text).expanduser() if issubclass(kind, Path) else kind(text)
    except ValueError:
        raise BadRecord(
            f"{variable}: expected {'a whole number' if kind is int else 'a number'}, found {text!r}."
        ) from None


def reference() -> str:
    """Every variable as a Markdown table, for the README."""
    rows = [
        f"| `{setting.metadata['variable']}` | {f'`{setting.default}`' if str(setting.default) else '(empty)'} "
        f"| {setting.metadata['meaning']} |"
        for setting in fields(Config)
    ]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])
