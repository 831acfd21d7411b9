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
from crag_core.trace.grounding.checkers import MINICHECK
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.websearch import PROVIDERS

ENV_FILE = Path(".env")


_DOCUMENTS, _MODELS, _WEB, _KEPT = "Documents", "Models", "The web", "What is kept"
_PEOPLE, _SERVICE, _WATCHING, _AGENTIC = "Many people", "The service", "Watching it", "Policy agentic"
SHORTEST_TOKEN = 16
_TOKEN = re.compile(rf"[!-~]{{{SHORTEST_TOKEN},}}")
_HOST_NAME = re.compile(r"[0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\]")
_ORIGIN = re.compile(r"https?://[^/\s?#@]+")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_NEAR = 0.85
"""How alike an unknown CRAG_ name is to a known one that is meant; others may be of another program."""
_OF_KUBERNETES = ("CRAG_SERVICE_HOST", "CRAG_SERVICE_PORT")
"""Set by Kubernetes in every container beside a service called crag."""
# A URL may hold a password.
_SECRET = ("_KEY", "_CACHE", "_HISTORY", "_SEARXNG_URL", "_HOST", "_BASE_URL", "_ENDPOINT", "_TOKEN")


def _setting(
    group: str,
    variable: str,
    default: Any,
    example: str,
    meaning: str,
    *,
    limits: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    is_list: bool = False,
) -> Any:
    """`example` differs from the default; `limits` are the least and the most."""
    about: dict[str, Any] = {"group": group, "variable": variable, "meaning": meaning, "example": example}
    about |= {"limits": limits, "choices": choices, "is_list": is_list}
    return field(default=default, repr=not variable.endswith(_SECRET), metadata=about)


@dataclass(frozen=True)
class Config:
    """Each setting in its group, in the order of docs/settings.md."""

    home: Path = _setting(
        _DOCUMENTS, "CRAG_HOME", Path(".crag"), "/var/lib/crag/home", "folder of the index; created when missing"
    )
    embedding: str = _setting(
        _DOCUMENTS, "CRAG_EMBEDDING", "all-MiniLM-L6-v2", "/srv/models/my-embedder",
        "embedding model for an index that is empty: the built-in one, or any model name or folder",
    )  # fmt: skip
    chunk_tokens: int = _setting(
        _DOCUMENTS, "CRAG_CHUNK_TOKENS", 220, "120",
        "tokens of the embedding model in a chunk at most; for an index that is empty", limits=TOKENS,
    )  # fmt: skip
    chunk_overlap: int = _setting(
        _DOCUMENTS, "CRAG_CHUNK_OVERLAP", 30, "20",
        "tokens at most that a chunk repeats of the one before; for an index that is empty",
    )  # fmt: skip
    top_k: int = _setting(_DOCUMENTS, "CRAG_TOP_K", 6, "8", "chunks retrieved for a question, 1 to 20", limits=(1, 20))
    retriever: str = _setting(
        _DOCUMENTS, "CRAG_RETRIEVER", "", "my_rag.search:retriever",
        "an engine of your own in place of the index in CRAG_HOME, read only: package.module:function, where the "
        "function returns a LlamaIndex retriever",
    )  # fmt: skip
    vector_store: str = _setting(
        _DOCUMENTS, "CRAG_VECTOR_STORE", "", "my_rag.store:vectors",
        "where the vectors of documents are searched, in place of memory: package.module:function, where the function "
        "returns a LlamaIndex vector store",
    )  # fmt: skip
    engine_timeout: float = _setting(
        _DOCUMENTS, "CRAG_ENGINE_TIMEOUT", 30.0, "5",
        "seconds to wait for a reply of either; ten times as long for its function", limits=(1, 600),
    )  # fmt: skip
    ollama_host: str = _setting(
        _MODELS, "OLLAMA_HOST", "", "http://one:11434", "where Ollama answers; empty: http://127.0.0.1:11434"
    )
    openai_url: str = _setting(
        _MODELS, "OPENAI_BASE_URL", "", "http://vllm:8000/v1", "an OpenAI-compatible server, usually ending in /v1"
    )
    openai_key: str = _setting(
        _MODELS, "OPENAI_API_KEY", "", "sk-…", "its key, if it wants one; never shown, logged or recorded"
    )
    model: str = _setting(
        _MODELS, "CRAG_MODEL", "", "ollama/llama3.2",
        "language model to start with, such as ollama/llama3.2; empty: the first of Ollama",
    )  # fmt: skip
    support: str = _setting(
        _MODELS, "CRAG_SUPPORT", WORDS, "ollama/llama3.2",
        "who checks the sentences of an answer: words, which asks no model, or a language model, ollama/llama3.2 or "
        "bespoke-minicheck",
    )  # fmt: skip
    evaluators: str = _setting(
        _MODELS, "CRAG_EVALUATORS", "", "hf:BAAI/bge-reranker-base,hf:/srv/models/judge",
        "evaluators of others to offer, by name or folder; each has to be calibrated once", is_list=True,
    )  # fmt: skip
    prompts: str = _setting(
        _MODELS, "CRAG_PROMPTS", "", "/etc/crag/prompts",
        "folder with your own wording of prompts, in files named as in data/prompts; what has none there is as shipped",
    )  # fmt: skip
    model_timeout: float = _setting(
        _MODELS, "CRAG_MODEL_TIMEOUT", 180.0, "60",
        "seconds that a model may be silent in a reply; five times as long before its first word, ten times in all",
        limits=(1, 3600),
    )  # fmt: skip
    calls_at_once: int = _setting(
        _MODELS, "CRAG_MODEL_CALLS", 2, "8", "model calls under way at the same time, at each server", limits=(1, 64)
    )
    web: str = _setting(
        _WEB, "CRAG_WEB", "ask", "off",
        "web search to start with: auto, ask (shows the query first) or off", choices=("auto", "ask", "off"),
    )  # fmt: skip
    web_timeout: float = _setting(
        _WEB, "CRAG_WEB_TIMEOUT", 8.0, "4",
        "seconds to wait for one web search, and again for the pages that it found", limits=(1, 120),
    )  # fmt: skip
    web_pages: str = _setting(
        _WEB, "CRAG_WEB_PAGES", "on", "off",
        "on: a policy that says so reads the pages that a search found; off: no policy does", choices=("on", "off"),
    )  # fmt: skip
    web_providers: str = _setting(
        _WEB, "CRAG_WEB_PROVIDERS", "duckduckgo", "searxng,duckduckgo",
        f"who is asked, in order: {', '.join(PROVIDERS)}; the next on failure", is_list=True,
    )  # fmt: skip
    searxng_url: str = _setting(
        _WEB, "CRAG_SEARXNG_URL", "", "http://searxng:8080", "a SearXNG instance with its JSON format switched on"
    )
    tavily_key: str = _setting(_WEB, "TAVILY_API_KEY", "", "tvly-…", "key for Tavily; never shown, logged or recorded")
    web_snapshot: str = _setting(
        _WEB, "CRAG_WEB_SNAPSHOT", "", "data/web",
        "folder of an offline web, one page a line in its web.jsonl, for the provider snapshot",
    )  # fmt: skip
    history: str = _setting(
        _KEPT, "CRAG_HISTORY", "disk", "postgresql://crag:s3cret@db/crag",
        "where runs and labels are kept: disk, off, or an SQLite file or PostgreSQL by URL (sqlite:///…, postgresql://…)",
    )  # fmt: skip
    history_days: float = _setting(
        _KEPT, "CRAG_HISTORY_DAYS", 0.0, "90",
        "days that a run is kept, its labels with it; 0: for ever", limits=(0, 36500),
    )  # fmt: skip
    cache: str = _setting(
        _KEPT, "CRAG_CACHE", "disk", "redis://:s3cret@valkey:6379/0",
        "where grades are kept for the next time: disk, off, or a Redis by URL (redis://…)",
    )  # fmt: skip
    cache_hours: float = _setting(
        _KEPT, "CRAG_CACHE_HOURS", 24.0, "168", "hours that a kept grade holds", limits=(0.01, 24 * 3650)
    )
    audit: str = _setting(
        _KEPT, "CRAG_AUDIT", "on", "off",
        "on: decisions and discarded evidence go to the audit log in the home; or off", choices=("on", "off"),
    )  # fmt: skip
    runs_at_once: int = _setting(
        _PEOPLE, "CRAG_RUNS_AT_ONCE", 4, "8", "runs under way at the same time; the others wait in line", limits=(1, 64)
    )
    runs_waiting: int = _setting(
        _PEOPLE, "CRAG_RUNS_WAITING", 100, "50", "runs in line at most; a question beyond is refused", limits=(0, 10000)
    )
    sign_in: str = _setting(
        _PEOPLE, "CRAG_SIGN_IN", "off", "on",
        "on: only who signs in at the provider of .streamlit/secrets.toml comes in; or off", choices=("on", "off"),
    )  # fmt: skip
    people: str = _setting(
        _PEOPLE, "CRAG_PEOPLE", "*", "@example.org",
        "with sign-in, who may come in: ann@example.org, @example.org, or * for all who sign in", is_list=True,
    )  # fmt: skip
    administrators: str = _setting(
        _PEOPLE, "CRAG_ADMINISTRATORS", "*", "ann@example.org,bob@example.org",
        "with sign-in, who may change documents, presets and servers, and see the runs of all: as above, or nobody",
        is_list=True,
    )  # fmt: skip
    service_token: str = _setting(
        _SERVICE, "CRAG_SERVICE_TOKEN", "", "s3cret-of-16-letters-or-more",
        "what programs send as Authorization: Bearer …; several while one replaces another; empty: this machine only",
        is_list=True,
    )  # fmt: skip
    service_hosts: str = _setting(
        _SERVICE, "CRAG_SERVICE_HOSTS", "", "crag.example.org",
        "names that it is called by; empty: any with a token, else those of this machine", is_list=True,
    )  # fmt: skip
    service_origins: str = _setting(
        _SERVICE, "CRAG_SERVICE_ORIGINS", "", "https://app.example.org",
        "web pages that may call it from a browser (CORS); empty: none", is_list=True,
    )  # fmt: skip
    metrics_port: int = _setting(
        _WATCHING, "CRAG_METRICS_PORT", 0, "9464", "port of Prometheus metrics; 0: none", limits=(0, 65535)
    )
    metrics_address: str = _setting(
        _WATCHING, "CRAG_METRICS_ADDRESS", "127.0.0.1", "0.0.0.0",
        "address that serves the metrics: this machine only, or 0.0.0.0 for every network",
    )  # fmt: skip
    otel_endpoint: str = _setting(
        _WATCHING, "OTEL_EXPORTER_OTLP_ENDPOINT", "", "http://collector:4318",
        "collector of OpenTelemetry spans (OTLP over HTTP); empty: no spans",
    )  # fmt: skip
    log: str = _setting(
        _WATCHING, "CRAG_LOG", "off", "json",
        "log records on standard error, a line for each step of a run: text, json or off",
        choices=("text", "json", "off"),
    )  # fmt: skip
    agent_iterations: int = _setting(
        _AGENTIC, "KB_AGENT_MAX_ITERATIONS", 3, "5", "policy agentic: retrievals for a question at most", limits=(1, 20)
    )
    agent_few: int = _setting(
        _AGENTIC, "KB_AGENT_AUTO_APPROVE_MAX_ITEMS", 2, "0",
        "policy agentic: so many chunks need no grading; 0: always grade", limits=(0, 20),
    )  # fmt: skip
    agent_cosine: float = _setting(
        _AGENTIC, "KB_AGENT_VECTOR_SCORE_THRESHOLD", 0.8, "0.9",
        "policy agentic: chunks at least this near need no grading", limits=(0, 1),
    )  # fmt: skip

    def __post_init__(self) -> None:
        for setting in fields(self):
            variable, value = setting.metadata["variable"], getattr(self, setting.name)
            if isinstance(value, str):
                object.__setattr__(self, setting.name, value := value.strip())
            limits, choices = setting.metadata["limits"], setting.metadata["choices"]
            if limits and not limits[0] <= value <= limits[1]:
                raise BadRecord(f"{variable}: expected {limits[0]} to {limits[1]}, found {value}.")
            if choices and value not in choices:
                expected = f"{', '.join(choices[:-1])} or {choices[-1]}"
                raise BadRecord(f"{variable}: expected {expected}, found {value!r}.")
        if not 0 <= self.chunk_overlap <= self.chunk_tokens // 2:
            found = f"expected 0 to {self.chunk_tokens // 2}, found {self.chunk_overlap}"
            raise BadRecord(f"CRAG_CHUNK_OVERLAP: {found}.")
        for variable, kind in (("CRAG_RETRIEVER", "retriever"), ("CRAG_VECTOR_STORE", "vector store")):
            if (named := self.by_variable()[variable]) and not _FUNCTION.fullmatch(named):
                raise BadRecord(
                    f"{variable}: expected package.module:function, found {show_place(named)}.",
                    hint=f"The function takes no arguments and returns a LlamaIndex {kind}: see docs/scaling.md.",
                )
        if self.retriever and self.vector_store:
            raise BadRecord(
                "CRAG_RETRIEVER and CRAG_VECTOR_STORE exclude each other: the first adds no documents.",
                hint="Unset one of them.",
            )
        servers.check_openai_url(self.openai_url)
        _ = self.ollama_url  # what is of no use is refused here
        for variable in ("CRAG_PEOPLE", "CRAG_ADMINISTRATORS"):
            read_people(variable, self.by_variable()[variable])
        check_url("CRAG_SEARXNG_URL", self.searxng_url)
        if "://" in self.history and not re.match(r"(sqlite|postgres(ql)?)(\+\w+)?://", self.history):
            raise BadRecord(
                f"CRAG_HISTORY: expected disk, off, sqlite:///FILE or postgresql://HOST/DATABASE, "
                f"found {show_place(self.history)}.",
                hint="Runs are kept in an SQLite file or in PostgreSQL, in no other database.",
            )
        if self.support == MINICHECK:
            object.__setattr__(self, "support", f"ollama/{MINICHECK}")
        server, _, model = self.support.partition("/")
        if not (self.support == WORDS or (server in ("ollama", "openai") and model)):
            expected = f"{WORDS}, ollama/NAME, openai/NAME or {MINICHECK}"
            raise BadRecord(f"CRAG_SUPPORT: expected {expected}, found {self.support!r}.")
        if server == "openai" and not self.openai_url:
            message = f"CRAG_SUPPORT names {self.support}, and OPENAI_BASE_URL is not set."
            raise BadRecord(message, hint="Set OPENAI_BASE_URL.")
        check_tokens("CRAG_SERVICE_TOKEN", self.service_tokens)
        for host in listed(self.service_hosts):
            if not _HOST_NAME.fullmatch(host):
                raise BadRecord(f"CRAG_SERVICE_HOSTS: expected names of hosts, without port or scheme, found {host!r}.")
        for origin in listed(self.service_origins):
            if not _ORIGIN.fullmatch(origin):
                raise BadRecord(
                    f"CRAG_SERVICE_ORIGINS: expected origins such as https://app.example.org, found {origin!r}."
                )
        _ = self.named_evaluators
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


def listed(text: str) -> tuple[str, ...]:
    """The entries of a setting that is a list."""
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def check_tokens(where: str, tokens: tuple[str, ...]) -> None:
    """Raises `BadRecord`, which repeats none, for one that a header cannot carry or that is soon guessed."""
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            raise BadRecord(
                f"{where}: expected at least {SHORTEST_TOKEN} letters, digits and signs without spaces, found "
                f"{len(token)} characters.",
                hint="Make one with: openssl rand -hex 24",
            )


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
        raise BadRecord(
            f"{variable}: expected {'a whole number' if kind is int else 'a number'}, found {text!r}."
        ) from None
