"""Settings from the environment and from `.env`, with defaults and meanings; refuses wrong ones by name."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from crag_core.app.access import read_people
from crag_core.base.documents import TOKENS
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.network.addresses import check_url
from crag_core.base.network.database import show_place
from crag_core.evaluators.named.names import parse_name
from crag_core.llms import servers
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.websearch import PROVIDERS

ENV_FILE = Path(".env")
SHORTEST_TOKEN = 16
_TOKEN = re.compile(rf"[!-~]{{{SHORTEST_TOKEN},}}")
_HOST = re.compile(r"[0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\]")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_NEAR = 0.85
"""How alike an unknown CRAG_ name is to a known one that is meant; others may be of another program."""
_OF_KUBERNETES = ("CRAG_SERVICE_HOST", "CRAG_SERVICE_PORT")
"""Set by Kubernetes in every container beside a service called crag."""
# A URL may hold a password.
_SECRET = ("_KEY", "_CACHE", "_HISTORY", "_SEARXNG_URL", "_HOST", "_BASE_URL", "_ENDPOINT", "_TOKEN")


def _setting(
    variable: str, default: Any, *, limits: tuple[float, float] | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """`limits` are the least and the most."""
    about = {"variable": variable, "limits": limits, "choices": choices}
    return field(default=default, repr=not variable.endswith(_SECRET), metadata=about)


@dataclass(frozen=True)
class Config:
    """In the order of docs/settings.md, which says what each means."""

    home: Path = _setting("CRAG_HOME", Path(".crag"))
    embedding: str = _setting("CRAG_EMBEDDING", "all-MiniLM-L6-v2")
    chunk_tokens: int = _setting("CRAG_CHUNK_TOKENS", 220, limits=TOKENS)
    chunk_overlap: int = _setting("CRAG_CHUNK_OVERLAP", 30)
    top_k: int = _setting("CRAG_TOP_K", 6, limits=(1, 20))
    retriever: str = _setting("CRAG_RETRIEVER", "")
    vector_store: str = _setting("CRAG_VECTOR_STORE", "")
    engine_timeout: float = _setting("CRAG_ENGINE_TIMEOUT", 30.0, limits=(1, 600))
    ollama_host: str = _setting("OLLAMA_HOST", "")
    openai_url: str = _setting("OPENAI_BASE_URL", "")
    openai_key: str = _setting("OPENAI_API_KEY", "")
    model: str = _setting("CRAG_MODEL", "")
    support: str = _setting("CRAG_SUPPORT", WORDS)
    evaluators: str = _setting("CRAG_EVALUATORS", "")
    prompts: str = _setting("CRAG_PROMPTS", "")
    model_timeout: float = _setting("CRAG_MODEL_TIMEOUT", 180.0, limits=(1, 3600))
    calls_at_once: int = _setting("CRAG_MODEL_CALLS", 2, limits=(1, 64))
    web: str = _setting("CRAG_WEB", "ask", choices=("auto", "ask", "off"))
    web_timeout: float = _setting("CRAG_WEB_TIMEOUT", 8.0, limits=(1, 120))
    web_pages: str = _setting("CRAG_WEB_PAGES", "on", choices=("on", "off"))
    web_providers: str = _setting("CRAG_WEB_PROVIDERS", "duckduckgo")
    searxng_url: str = _setting("CRAG_SEARXNG_URL", "")
    tavily_key: str = _setting("TAVILY_API_KEY", "")
    web_snapshot: str = _setting("CRAG_WEB_SNAPSHOT", "")
    history: str = _setting("CRAG_HISTORY", "disk")
    history_days: float = _setting("CRAG_HISTORY_DAYS", 0.0, limits=(0, 36500))
    cache: str = _setting("CRAG_CACHE", "disk")
    cache_hours: float = _setting("CRAG_CACHE_HOURS", 24.0, limits=(0.01, 24 * 3650))
    audit: str = _setting("CRAG_AUDIT", "on", choices=("on", "off"))
    runs_at_once: int = _setting("CRAG_RUNS_AT_ONCE", 2, limits=(1, 64))
    runs_waiting: int = _setting("CRAG_RUNS_WAITING", 100, limits=(0, 10000))
    sign_in: str = _setting("CRAG_SIGN_IN", "off", choices=("on", "off"))
    people: str = _setting("CRAG_PEOPLE", "*")
    administrators: str = _setting("CRAG_ADMINISTRATORS", "*")
    service_token: str = _setting("CRAG_SERVICE_TOKEN", "")
    service_hosts: str = _setting("CRAG_SERVICE_HOSTS", "")
    metrics_port: int = _setting("CRAG_METRICS_PORT", 0, limits=(0, 65535))
    metrics_address: str = _setting("CRAG_METRICS_ADDRESS", "127.0.0.1")
    otel_endpoint: str = _setting("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    log: str = _setting("CRAG_LOG", "off", choices=("text", "json", "off"))
    agent_iterations: int = _setting("KB_AGENT_MAX_ITERATIONS", 3, limits=(1, 20))
    agent_few: int = _setting("KB_AGENT_AUTO_APPROVE_MAX_ITEMS", 2, limits=(0, 20))
    agent_cosine: float = _setting("KB_AGENT_VECTOR_SCORE_THRESHOLD", 0.8, limits=(0, 1))

    def __post_init__(self) -> None:
        for setting in fields(self):
            variable, value = setting.metadata["variable"], getattr(self, setting.name)
            if isinstance(value, str):
                object.__setattr__(self, setting.name, value := value.strip())
            limits, choices = setting.metadata["limits"], setting.metadata["choices"]
            if limits and not limits[0] <= value <= limits[1]:
                raise _wrong(variable, f"{limits[0]} to {limits[1]}", value)
            if choices and value not in choices:
                raise _wrong(variable, f"{', '.join(choices[:-1])} or {choices[-1]}", repr(value))
        if not 0 <= self.chunk_overlap <= self.chunk_tokens // 2:
            raise _wrong("CRAG_CHUNK_OVERLAP", f"0 to {self.chunk_tokens // 2}", self.chunk_overlap)
        self._check_engines()
        servers.check_openai_url(self.openai_url)
        _ = self.ollama_url, self.named_evaluators  # what is of no use is refused here
        read_people("CRAG_PEOPLE", self.people)
        read_people("CRAG_ADMINISTRATORS", self.administrators)
        check_url("CRAG_SEARXNG_URL", self.searxng_url)
        for host in listed(self.service_hosts):
            if not _HOST.fullmatch(host):
                raise _wrong("CRAG_SERVICE_HOSTS", "names of hosts, without port or scheme", repr(host))
        for token in self.service_tokens:  # none is repeated
            if not _TOKEN.fullmatch(token):
                expected = f"at least {SHORTEST_TOKEN} letters, digits and signs without spaces"
                hint = "Make one with: openssl rand -hex 24"
                raise _wrong("CRAG_SERVICE_TOKEN", expected, f"{len(token)} characters", hint)
        if "://" in self.history and not re.match(r"(sqlite|postgres(ql)?)(\+\w+)?://", self.history):
            expected = "disk, off, sqlite:///FILE or postgresql://HOST/DATABASE"
            hint = "Runs are kept in an SQLite file or in PostgreSQL, in no other database."
            raise _wrong("CRAG_HISTORY", expected, show_place(self.history), hint)
        self._check_support()
        self._check_providers()

    def _check_engines(self) -> None:
        for variable, named, kind in (
            ("CRAG_RETRIEVER", self.retriever, "retriever"),
            ("CRAG_VECTOR_STORE", self.vector_store, "vector store"),
        ):
            if named and not _FUNCTION.fullmatch(named):
                hint = f"The function takes no arguments and returns a LlamaIndex {kind}: see docs/scaling.md."
                raise _wrong(variable, "package.module:function", show_place(named), hint)
        if self.retriever and self.vector_store:
            raise BadRecord(
                "CRAG_RETRIEVER and CRAG_VECTOR_STORE exclude each other: the first adds no documents.",
                hint="Unset one of them.",
            )

    def _check_support(self) -> None:
        server, _, model = self.support.partition("/")
        if not (self.support == WORDS or (server in ("ollama", "openai") and model)):
            raise _wrong("CRAG_SUPPORT", f"{WORDS}, ollama/NAME or openai/NAME", repr(self.support))
        if server == "openai" and not self.openai_url:
            message = f"CRAG_SUPPORT names {self.support}, and OPENAI_BASE_URL is not set."
            raise BadRecord(message, hint="Set OPENAI_BASE_URL.")

    def _check_providers(self) -> None:
        if not self.providers or len(set(self.providers)) < len(self.providers):
            raise _wrong("CRAG_WEB_PROVIDERS", "each provider once", repr(self.web_providers))
        for name in self.providers:
            if name not in PROVIDERS:
                unknown = UnknownName.among("web search provider", name, PROVIDERS)
                raise BadRecord(f"CRAG_WEB_PROVIDERS: {unknown.message}", hint=unknown.hint)
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
    def named_evaluators(self) -> tuple[str, ...]:
        """In the order given, each once."""
        try:
            names = [str(parse_name(name)) for one in self.evaluators.split(",") if (name := one.strip())]
        except UnknownName as error:
            raise BadRecord(f"CRAG_EVALUATORS: {error.message}", hint=error.hint) from error
        return tuple(dict.fromkeys(names))

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(name.lower() for name in listed(self.web_providers))

    @property
    def service_tokens(self) -> tuple[str, ...]:
        return listed(self.service_token)


def _wrong(variable: str, expected: str, found: object, hint: str = "") -> BadRecord:
    return BadRecord(f"{variable}: expected {expected}, found {found}.", hint=hint)


def listed(text: str) -> tuple[str, ...]:
    """The entries of a setting that is a list."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def load(environment: Mapping[str, str] = os.environ, env_file: Path | None = None) -> Config:
    """Settings from `environment`, else from `env_file` (default: `.env` here, if there is one), else the defaults.

    A variable that is empty counts as unset. An unknown KB_AGENT_ variable, a CRAG_ one that is nearly a known one, a
    CRAG_MAY_ one and a CRAG_STORE of earlier versions, and a line that sets nothing are refused.
    """
    given = {**_read_file(env_file or ENV_FILE), **{name: text for name, text in environment.items() if text.strip()}}
    known = [setting.metadata["variable"] for setting in fields(Config)]
    for name in given:
        near = get_close_matches(name, known, n=1, cutoff=0.6 if name.startswith("KB_AGENT_") else _NEAR)
        is_ours = name.startswith("KB_AGENT_") or (name.startswith("CRAG_") and bool(near))
        if is_ours and name not in (*known, *_OF_KUBERNETES):
            guess = f"Did you mean {near[0]}? " if near else ""
            ours = ", ".join(variable for variable in known if variable.startswith("KB_AGENT_"))
            hint = "All are in docs/settings.md." if name.startswith("CRAG_") else f"Known: {ours}."
            raise BadRecord(f"{name}: unknown variable.", hint=f"{guess}{hint}")
    if gone := sorted(name for name in given if name.startswith("CRAG_MAY_")):
        raise BadRecord(
            f"{gone[0]}: not a setting any more; without it everybody who signs in could do everything.",
            hint="Set CRAG_PEOPLE in place of CRAG_MAY_ENTER, and CRAG_ADMINISTRATORS in place of the others.",
        )
    if (place := given.get("CRAG_STORE", "").strip()) not in ("", "disk"):
        raise BadRecord(
            f"CRAG_STORE: not a setting any more, found {show_place(place)}: documents are in a file in CRAG_HOME.",
            hint="Remove it, and add the documents once more: the command ingest takes a folder.",
        )
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


def _read(variable: str, text: str, kind: type[Any]) -> Any:
    try:
        return Path(text).expanduser() if issubclass(kind, Path) else kind(text)
    except ValueError:
        raise _wrong(variable, "a whole number" if kind is int else "a number", repr(text)) from None
