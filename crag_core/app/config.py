"""Settings from the environment and from `.env`, with defaults and meanings; refuses wrong ones by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from crag_core.app.access.permissions import Grants, Right, read_grants
from crag_core.base.documents import TOKENS
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.network.addresses import check_url
from crag_core.llms import servers
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.websearch import PROVIDERS

ENV_FILE = Path(".env")


def _setting(variable: str, default: Any, meaning: str) -> Any:
    # A URL may hold a password.
    secret = ("_KEY", "_STORE", "_CACHE", "_HISTORY", "_SEARXNG_URL", "_HOST", "_BASE_URL", "_ENDPOINT")
    is_secret = variable.endswith(secret)
    return field(default=default, repr=not is_secret, metadata={"variable": variable, "meaning": meaning})


@dataclass(frozen=True)
class Config:
    home: Path = _setting("CRAG_HOME", Path(".crag"), "folder of the index; created when missing")
    store: str = _setting(
        "CRAG_STORE",
        "disk",
        "where documents are kept: disk, or a place that several machines share, by URL (s3://…, postgresql://…)",
    )
    embedding: str = _setting(
        "CRAG_EMBEDDING",
        "all-MiniLM-L6-v2",
        "embedding model for an index that is empty: the built-in one, or any model name or folder",
    )
    chunk_tokens: int = _setting(
        "CRAG_CHUNK_TOKENS", 220, "tokens of the embedding model in a chunk at most; for an index that is empty"
    )
    chunk_overlap: int = _setting(
        "CRAG_CHUNK_OVERLAP", 30, "tokens at most that a chunk repeats of the one before; for an index that is empty"
    )
    ollama_host: str = _setting("OLLAMA_HOST", "", "where Ollama answers; empty: http://127.0.0.1:11434")
    openai_url: str = _setting("OPENAI_BASE_URL", "", "an OpenAI-compatible server, usually ending in /v1")
    openai_key: str = _setting("OPENAI_API_KEY", "", "its key, if it wants one; never shown, logged or recorded")
    model: str = _setting(
        "CRAG_MODEL", "", "language model to start with, such as ollama/llama3.2; empty: the first of Ollama"
    )
    support: str = _setting(
        "CRAG_SUPPORT",
        WORDS,
        "who checks the sentences of an answer: words, which asks no model, or a model such as ollama/llama3.2",
    )
    model_timeout: float = _setting(
        "CRAG_MODEL_TIMEOUT",
        180.0,
        "seconds that a model may be silent in a reply; five times as long before its first word, ten times in all",
    )
    calls_at_once: int = _setting("CRAG_MODEL_CALLS", 2, "model calls under way at the same time, at each server")
    web: str = _setting("CRAG_WEB", "ask", "web search to start with: auto, ask (shows the query first) or off")
    web_timeout: float = _setting("CRAG_WEB_TIMEOUT", 8.0, "seconds to wait for one web search")
    web_providers: str = _setting(
        "CRAG_WEB_PROVIDERS",
        "duckduckgo",
        f"who is asked, in order: {', '.join(PROVIDERS)}; the next on failure",
    )
    searxng_url: str = _setting("CRAG_SEARXNG_URL", "", "a SearXNG instance with its JSON format switched on")
    tavily_key: str = _setting("TAVILY_API_KEY", "", "key for Tavily; never shown, logged or recorded")
    web_snapshot: str = _setting(
        "CRAG_WEB_SNAPSHOT", "", "folder of an offline web, one page a line in its web.jsonl, for the provider snapshot"
    )
    top_k: int = _setting("CRAG_TOP_K", 6, "chunks retrieved for a question, 1 to 20")
    cache: str = _setting(
        "CRAG_CACHE",
        "disk",
        "where grades are kept for the next time: disk, off, or a server by URL (redis://…, postgresql://…)",
    )
    cache_hours: float = _setting("CRAG_CACHE_HOURS", 24.0, "hours that a kept grade holds")
    history: str = _setting(
        "CRAG_HISTORY", "disk", "where runs and labels are kept: disk, off, or the URL of a database (postgresql://…)"
    )
    history_days: float = _setting("CRAG_HISTORY_DAYS", 0.0, "days that a run is kept, its labels with it; 0: for ever")
    audit: str = _setting(
        "CRAG_AUDIT", "on", "on: decisions and discarded evidence go to audit.jsonl in the home; or off"
    )
    metrics_port: int = _setting("CRAG_METRICS_PORT", 0, "port of Prometheus metrics; 0: none")
    metrics_address: str = _setting(
        "CRAG_METRICS_ADDRESS",
        "127.0.0.1",
        "address that serves the metrics: this machine only, or 0.0.0.0 for every network",
    )
    otel_endpoint: str = _setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "", "collector of OpenTelemetry spans (OTLP over HTTP); empty: no spans"
    )
    log: str = _setting(
        "CRAG_LOG", "off", "log records on standard error, a line for each step of a run: text, json or off"
    )
    runs_at_once: int = _setting("CRAG_RUNS_AT_ONCE", 4, "runs under way at the same time; the others wait in line")
    runs_waiting: int = _setting("CRAG_RUNS_WAITING", 100, "runs in line at most; a question beyond is refused")
    sign_in: str = _setting(
        "CRAG_SIGN_IN", "off", "on: only who signs in at the provider of .streamlit/secrets.toml comes in; or off"
    )
    may_enter: str = _setting(
        "CRAG_MAY_ENTER", "*", "with sign-in, who may come in: ann@example.org, @example.org, or * for all who sign in"
    )
    may_index: str = _setting(
        "CRAG_MAY_INDEX", "*", "with sign-in, who may add and remove documents: addresses as above, * or nobody"
    )
    may_tune: str = _setting("CRAG_MAY_TUNE", "*", "with sign-in, who may tune thresholds and keep presets")
    may_see_history: str = _setting("CRAG_MAY_SEE_HISTORY", "*", "with sign-in, who may see the runs of all")
    may_set_up: str = _setting("CRAG_MAY_SET_UP", "*", "with sign-in, who may change servers on the Settings page")
    agent_iterations: int = _setting("KB_AGENT_MAX_ITERATIONS", 3, "policy agentic: retrievals for a question at most")
    agent_few: int = _setting(
        "KB_AGENT_AUTO_APPROVE_MAX_ITEMS", 2, "policy agentic: so many chunks need no grading; 0: always grade"
    )
    agent_cosine: float = _setting(
        "KB_AGENT_VECTOR_SCORE_THRESHOLD", 0.8, "policy agentic: chunks at least this near need no grading"
    )

    def __post_init__(self) -> None:
        for name, low, high in (
            ("cache_hours", 0.01, 24 * 3650),
            ("history_days", 0, 36500),
            ("runs_at_once", 1, 64),
            ("runs_waiting", 0, 10000),
            ("metrics_port", 0, 65535),
            ("agent_iterations", 1, 20),
            ("agent_few", 0, 20),
            ("agent_cosine", 0, 1),
            ("top_k", 1, 20),
            ("chunk_tokens", *TOKENS),
            ("chunk_overlap", 0, self.chunk_tokens // 2),
            ("calls_at_once", 1, 64),
            ("model_timeout", 1, 3600),
            ("web_timeout", 1, 120),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise BadRecord(f"{variable_of(name)}: expected {low} to {high}, found {value}.")
        if self.web not in ("auto", "ask", "off"):
            raise BadRecord(f"CRAG_WEB: expected auto, ask or off, found {self.web!r}.")
        if self.audit not in ("on", "off"):
            raise BadRecord(f"CRAG_AUDIT: expected on or off, found {self.audit!r}.")
        if self.sign_in not in ("on", "off"):
            raise BadRecord(f"CRAG_SIGN_IN: expected on or off, found {self.sign_in!r}.")
        if self.log not in ("text", "json", "off"):
            raise BadRecord(f"CRAG_LOG: expected text, json or off, found {self.log!r}.")
        servers.check_openai_url(self.openai_url)
        _ = self.ollama_url, self.grants  # what is of no use is refused here
        check_url("CRAG_SEARXNG_URL", self.searxng_url)
        server, _, model = self.support.partition("/")
        if self.support != WORDS and not (server in ("ollama", "openai") and model):
            raise BadRecord(f"CRAG_SUPPORT: expected {WORDS}, ollama/NAME or openai/NAME, found {self.support!r}.")
        if server == "openai" and not self.openai_url:
            message = f"CRAG_SUPPORT names {self.support}, and OPENAI_BASE_URL is not set."
            raise BadRecord(message, hint="Set OPENAI_BASE_URL.")
        if not self.providers or len(set(self.providers)) < len(self.providers):
            raise BadRecord(f"CRAG_WEB_PROVIDERS: expected each provider once, found {self.web_providers!r}.")
        for name in self.providers:
            if name not in PROVIDERS:
                unknown = UnknownName.among("web search provider", name, PROVIDERS)
                raise BadRecord(f"CRAG_WEB_PROVIDERS: {unknown.message}", hint=unknown.hint)
        for name in self.providers:
            needed = PROVIDERS[name].needs
            if needed and not self.by_variable()[needed]:
                raise BadRecord(f"CRAG_WEB_PROVIDERS names {name}, and {needed} is not set.", hint=f"Set {needed}.")

    def by_variable(self) -> dict[str, Any]:
        return {setting.metadata["variable"]: getattr(self, setting.name) for setting in fields(self)}

    @property
    def ollama_url(self) -> str:
        """Where Ollama answers, in full."""
        return servers.ollama_url(self.ollama_host)

    @property
    def grants(self) -> Grants:
        """Who may do what, where people sign in."""
        return read_grants({right: getattr(self, f"may_{right}") for right in Right})

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(name.strip().lower() for name in self.web_providers.split(",") if name.strip())


def load(environment: Mapping[str, str] = os.environ, env_file: Path | None = None) -> Config:
    """Settings from `environment`, else from `env_file` (default: `.env` here, if there is one), else the defaults.

    A variable that is empty counts as unset. An unknown KB_AGENT_ variable and a line that sets nothing are refused.
    """
    given = {**_read_file(env_file or ENV_FILE), **{name: text for name, text in environment.items() if text.strip()}}
    known = [setting.metadata["variable"] for setting in fields(Config)]
    for name in given:
        if name.startswith("KB_AGENT_") and name not in known:
            near = get_close_matches(name, known, n=1)
            guess = f"Did you mean {near[0]}? " if near else ""
            ours = ", ".join(variable for variable in known if variable.startswith("KB_AGENT_"))
            raise BadRecord(f"{name}: unknown variable.", hint=f"{guess}Known: {ours}.")
    values: dict[str, Any] = {}
    for setting in fields(Config):
        text = given.get(setting.metadata["variable"], "").strip()
        if text:
            values[setting.name] = _read(setting.metadata["variable"], text, type(setting.default))
    return Config(**values)


def _read_file(path: Path) -> dict[str, str]:
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8") as file:
            wrong = [one.original.line for one in parse_stream(file) if one.error or (one.key and one.value is None)]
        found = {} if wrong else dotenv_values(path)
    except (OSError, ValueError) as error:
        raise BadRecord(f"{path.name} cannot be read: {error}.") from error
    if wrong:  # the line itself is not shown, since it may hold a key
        message = f"{path.name}, line {wrong[0]}: expected NAME=value or a comment, found something else."
        raise BadRecord(message, hint="Correct the line, or put # before it.")
    return {name: text for name, text in found.items() if text is not None}


def variable_of(name: str) -> str:
    return str(next(setting.metadata["variable"] for setting in fields(Config) if setting.name == name))


def _read(variable: str, text: str, kind: type[Any]) -> Any:
    try:
        return Path(text).expanduser() if issubclass(kind, Path) else kind(text)
    except ValueError:
        raise BadRecord(
            f"{variable}: expected {'a whole number' if kind is int else 'a number'}, found {text!r}."
        ) from None
