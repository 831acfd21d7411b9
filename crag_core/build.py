"""Puts the parts together; the only module that imports concrete adapters. Importing it loads nothing heavy."""

from __future__ import annotations

import time
import uuid
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crag_core import config, evaluators, prompts
from crag_core.answer import EXTRACTIVE
from crag_core.config import Config
from crag_core.errors import ModelMissing, UnknownName
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.model import LlamaIndexModel
from crag_core.llms.ollama import ServerState
from crag_core.pipeline import Pipeline
from crag_core.policy import Policy, parse_policy
from crag_core.protocols import Evaluator, LanguageModel
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.store import PassageStore
from crag_core.run import Parts, WebMode
from crag_core.signals import SignalMeter
from crag_core.trace import RunSettings
from crag_core.types import EvaluatorCard
from crag_core.websearch.cached import CachedSearcher
from crag_core.websearch.duckduckgo import DuckDuckGo

VERSION = "0.1.0"
DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Choice:
    """What a user chose for one run. `model` is "extractive", "ollama/NAME" or "openai/NAME"."""

    policy: Policy
    evaluator: str
    model: str = EXTRACTIVE
    web: WebMode = WebMode.OFF
    top_k: int = 6


@dataclass(frozen=True)
class Models:
    """What the model servers offer now: choices such as "ollama/llama3.2", and the state of each server."""

    choices: tuple[str, ...]
    ollama: ServerState
    openai: ServerState | None


class Workbench:
    """Everything that is built once and shared by all sessions. Building it is cheap: models load at first use."""

    def __init__(self, settings: Config | None = None) -> None:
        self.config = settings or config.load()
        self.embedder = HuggingFaceEmbedder(self.config.embedding)
        self.store = PassageStore(self.config.home / "index", self.embedder, self.embedder.tokenize)
        self.retriever = HybridRetriever(self.store, self.embedder)
        self.searcher = CachedSearcher(DuckDuckGo(self.config.web_timeout))
        self.meter = SignalMeter(frozenset((DATA / "stopwords.txt").read_text("utf-8").split()))
        self.policies = load_policies()

    def using(self, settings: Config) -> Workbench:
        """A workbench with other settings that shares index and embedding model with this one."""
        if (settings.home, settings.embedding) != (self.config.home, self.config.embedding):
            return Workbench(settings)
        other = copy(self)
        other.config = settings
        return other

    def models(self) -> Models:
        """Ask the model servers what they have; a server that is away costs its time-out of 2 s."""
        local = ollama.look(ollama.host_url(self.config.ollama_host))
        remote = None
        if self.config.openai_url:
            remote = openai_compatible.look(self.config.openai_url, self.config.openai_key)
        # The first choice is the default. A server by URL may be far away: passages go there only if somebody says so.
        near = [f"ollama/{name}" for name in local.models]
        elsewhere = [f"openai/{name}" for name in (remote.models if remote else ())]
        return Models((*near, EXTRACTIVE, *elsewhere), local, remote)

    def language_model(self, choice: str) -> LlamaIndexModel | None:
        """The model named by `choice`; None for "extractive"."""
        server, _, name = choice.partition("/")
        settings = self.config
        if choice == EXTRACTIVE:
            return None
        if server == "ollama" and name:
            host = ollama.host_url(settings.ollama_host)
            return ollama.model(host, name, settings.model_timeout, settings.calls_at_once)
        if server == "openai" and name and settings.openai_url:
            return openai_compatible.model(
                settings.openai_url, name, settings.openai_key, settings.model_timeout, settings.calls_at_once
            )
        raise UnknownName(
            f"Unknown language model {choice!r}.",
            hint='Expected "extractive", "ollama/NAME", or "openai/NAME" with OPENAI_BASE_URL set.',
        )

    def evaluator(self, name: str, model: LanguageModel | None) -> Evaluator:
        """An evaluator by name; `llm` needs a language model and says so."""
        if name == "embedding":
            return evaluators.EmbeddingEvaluator(self.embedder)
        if name == "heuristic":
            return evaluators.HeuristicEvaluator(self.meter)
        if name == "llm" and model is not None:
            return evaluators.LLMEvaluator(model)
        if name == "llm":
            raise ModelMissing(
                "The evaluator 'llm' needs a language model.", hint="Choose a model, or another evaluator."
            )
        raise UnknownName.among("evaluator", name, evaluators.cards())

    def pipeline(self, choice: Choice) -> Pipeline:
        """A pipeline for `choice`, ready to run questions against the shared index."""
        model = self.language_model(choice.model)
        parts = Parts(
            evaluator=self.evaluator(choice.evaluator, model),
            strip_evaluator=evaluators.EmbeddingEvaluator(self.embedder),
            meter=self.meter,
            retriever=self.retriever,
            model=model,
            searcher=None if choice.web is WebMode.OFF else self.searcher,
        )
        settings = RunSettings(
            policy=choice.policy,
            evaluator=parts.evaluator.card,
            strip_evaluator=parts.strip_evaluator.card,
            embedding=self.embedder.name,
            writer=choice.model,
            web_mode=choice.web.value,
            top_k=choice.top_k,
            prompts=prompts.VERSION,
            version=VERSION,
        )
        return Pipeline(parts, settings, clock=time.perf_counter, now=_now, new_id=lambda: uuid.uuid4().hex[:12])


def load_policies(folder: Path = DATA / "policies") -> dict[str, Policy]:
    """Every policy of `folder`, by name, in the order of the files' names; `paper` first, being the default."""
    found = {path.stem: parse_policy(path.read_text("utf-8"), path.stem) for path in sorted(folder.glob("*.toml"))}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "paper", name))}


def find_policy(name: str) -> Policy:
    policies = load_policies()
    if name not in policies:
        raise UnknownName.among("policy", name, policies)
    return policies[name]


def build_pipeline(
    policy: str = "paper",
    evaluator: str | None = None,
    model: str = EXTRACTIVE,
    web: str = "off",
    settings: Config | None = None,
) -> Pipeline:
    """A pipeline in one line, for libraries and notebooks; `evaluator` None: one that works without a server.

    Thresholds start where policy and evaluator suggest. Raises `UnknownName` or `ModelMissing`.
    """
    workbench = Workbench(settings)
    chosen = find_policy(policy)
    judge = evaluator or default_evaluator(chosen, model)
    suited = chosen.suited_to(known_card(judge), known_card("embedding"))
    return workbench.pipeline(Choice(suited, judge, model, WebMode(web), workbench.config.top_k))


def default_evaluator(policy: Policy, model: str) -> str:
    """The evaluator that the policy was described with; `embedding` when that one needs a model and none is there."""
    return policy.evaluator if model != EXTRACTIVE or not known_card(policy.evaluator).calls_model else "embedding"


def known_card(name: str) -> EvaluatorCard:
    cards = evaluators.cards()
    if name not in cards:
        raise UnknownName.among("evaluator", name, cards)
    return cards[name]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
