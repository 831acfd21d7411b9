"""The model servers of the settings: what they offer, a model of one, and what a call waits for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass

from crag_core.app.config import Config
from crag_core.base.errors import UnknownName
from crag_core.base.protocols import Cancel
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.llms.servers import ServerState, shown, version_of
from crag_core.pipeline.model_calls import NotedModel
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

LONG_WAIT = 5.0
"""Seconds after which the page says that a model has not begun to answer."""


@dataclass(frozen=True)
class Models:
    """What the model servers offer now: choices such as "ollama/llama3.2", and the state of each server."""

    choices: tuple[str, ...]
    ollama: ServerState
    openai: ServerState | None


class ModelServers:
    """Ollama and an OpenAI-compatible server; what is learned of them is shared by all settings (`using`)."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._limits: dict[tuple[str, str, int], CallLimit] = {}
        self._seen: dict[str, ServerState] = {}

    def using(self, config: Config) -> ModelServers:
        other = copy(self)
        other.config = config
        return other

    def look(self) -> Models:
        """Ask both servers at the same time for their models; those that are away cost a time-out of 2 s in all."""
        url, key = self.config.openai_url, self.config.openai_key
        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(openai_compatible.list_models, url, key) if url else None
            local = ollama.list_models(self.config.ollama_url)
            remote = asked.result() if asked else None
        self._remember(local)
        # The first choice is the default. A server by URL may be far away: passages go there only if somebody says so.
        choices = [f"ollama/{name}" for name in local.models]
        elsewhere = [f"openai/{name}" for name in (remote.models if remote else ())]
        return Models((*choices, EXTRACTIVE, *elsewhere), local, remote)

    def model(self, choice: str) -> NotedModel | None:
        """The model named by `choice`, whose calls a run records; None for "extractive"."""
        return None if choice == EXTRACTIVE else NotedModel(self._served(choice))

    def _served(self, choice: str) -> ServerModel:
        server, _, name = choice.partition("/")
        now = self.config
        if server == "ollama" and name:
            return ollama.model(now.ollama_url, name, now.model_timeout, self._limit(server))
        if server == "openai" and name and now.openai_url:
            return openai_compatible.model(now.openai_url, name, now.openai_key, now.model_timeout, self._limit(server))
        raise UnknownName(
            f"Unknown language model {choice!r}.",
            hint='Expected "extractive", "ollama/NAME", or "openai/NAME" with OPENAI_BASE_URL set.',
        )

    def version_of(self, choice: str) -> str:
        """What distinguishes the versions of this model, as far as its server says so: Ollama does.

        By the last look at the server; one is taken here only where there was none, as on the command line.
        """
        server, _, name = choice.partition("/")
        if server != "ollama" or not name:
            return ""
        if self.config.ollama_url not in self._seen:
            self._remember(ollama.list_models(self.config.ollama_url))
        return version_of(name, self._seen[self.config.ollama_url])

    def chats(self, choice: str) -> bool:
        """False for a model of Ollama that has no chat template."""
        server, _, name = choice.partition("/")
        return server != "ollama" or ollama.chats(self.config.ollama_url, name)

    def check(self, choice: str) -> None:
        """Raises `UnknownName` for a model that the Ollama at hand has not, by the last look at it."""
        server, _, name = choice.partition("/")
        self.version_of(choice)
        seen = self._seen.get(self.config.ollama_url)
        known = [model for model, _ in seen.versions] if seen else []
        if server == "ollama" and known and not {name, f"{name}:latest"} & set(known):
            raise UnknownName.among("language model", choice, [f"ollama/{model}" for model in known])

    def waits_for(self, cancel: Cancel) -> str:
        """What keeps the run with this flag from the first word of its model; "": nothing, or not for long."""
        silent = (limit.silent_model(cancel, LONG_WAIT) for limit in tuple(self._limits.values()))
        return next((f"{model} has not begun to answer: it loads, or serves others" for model in silent if model), "")

    def calls_under_way(self) -> dict[str, float]:
        urls = {"ollama": self.config.ollama_url, "openai": self.config.openai_url}
        return {shown(url): self._limit(server).active for server, url in urls.items() if url}

    def _remember(self, seen: ServerState) -> None:
        """A server that is away for a moment has the same models when it is back."""
        if seen.reachable or self.config.ollama_url not in self._seen:
            self._seen[self.config.ollama_url] = seen

    def _limit(self, server: str) -> CallLimit:
        """Shared by all runs with the same server, so that it is not asked for more than it may be."""
        now = self.config
        key = (server, now.ollama_url if server == "ollama" else now.openai_url, now.calls_at_once)
        return self._limits.setdefault(key, CallLimit(now.calls_at_once))
