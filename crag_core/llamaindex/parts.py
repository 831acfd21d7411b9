"""The parts of a run from what a LlamaIndex user has at hand: names, files, or objects of their own."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from crag_core.base.errors import BadRecord, CragError, ModelUnavailable, UnknownName, WrongUse
from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.messages import shipped as shipped_prompts
from crag_core.base.protocols import Embedder, Evaluator, LanguageModel, WebSearcher
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.evaluators import EVALUATORS, shipped
from crag_core.evaluators.cascade import Cascade, parse_cascade
from crag_core.evaluators.named.names import is_named
from crag_core.evaluators.policies import find_policy, known_card, read_policy
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.shipped import signal_meter
from crag_core.llamaindex.own_web import OwnSearcher
from crag_core.llamaindex.reranker import RerankerEvaluator
from crag_core.llms.client import LlamaIndexClient
from crag_core.llms.context_window import Capacity
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.pipeline.model_calls import NotedModel
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.websearch import PROVIDERS

WEB_TIMEOUT = 8.0
"""Seconds that a provider by name is waited for."""


def policy_of(given: str | Path | Policy) -> Policy:
    if isinstance(given, Policy):
        return given
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
        return read_policy(Path(given))
    if not isinstance(given, str):
        raise WrongUse(f"Expected the name of a policy, a TOML file, or a Policy, found {type(given).__name__}.")
    return find_policy(given)


def model_of(given: LLM | LanguageModel | None) -> LanguageModel | None:
    if not isinstance(given, LLM):
        if given is None or hasattr(given, "complete_all"):
            return given
        raise WrongUse(
            f"Expected a LlamaIndex LLM, found {type(given).__name__}.", hint='For instance Ollama(model="llama3.2").'
        )
    name = given.metadata.model_name
    name = name if name not in ("", "unknown") else type(given).__name__

    def explain(error: Exception) -> CragError:
        return ModelUnavailable(f"The language model {name} failed: {type(error).__name__}: {error}")

    async def context_length() -> int:
        return given.metadata.context_window

    return NotedModel(
        ServerModel(LlamaIndexClient(given, name, explain=explain), CallLimit(1), Capacity(), context_length)
    )


def evaluator_of(given: object, model: LanguageModel | None, prompts: Prompts | None = None) -> Evaluator:
    """An evaluator by its registered name, a reranker of LlamaIndex, or any object with `card` and `grade`."""
    if isinstance(given, str):
        if is_named(given):
            raise BadRecord(
                f"{given} has its thresholds from a calibration, which a home keeps: expected the evaluator itself.",
                hint=f"Give Workbench().evaluator({given!r}, None), of crag_core, once it is calibrated.",
            )
        if pair := parse_cascade(given):
            first, second = (evaluator_of(one, model, prompts) for one in (pair.first, pair.second))
            return Cascade(known_card(given), first, second, (pair.low, pair.high))
        if given not in EVALUATORS:
            raise UnknownName.among("evaluator", given, EVALUATORS)
        wording = prompts or shipped_prompts()
        parts = EvaluatorParts(_default_embedder(), signal_meter(), shipped.EVALUATOR_FOLDER, model, wording)
        return EVALUATORS[given].build(parts)
    if isinstance(given, BaseNodePostprocessor):
        return RerankerEvaluator(given)
    card = getattr(given, "card", None)
    if not isinstance(card, EvaluatorCard) or not callable(getattr(given, "grade", None)):
        raise WrongUse(
            f"Expected an evaluator with `card`, an EvaluatorCard, and `grade(question, passages, cancel)`, "
            f"found {type(given).__name__}.",
            hint="See docs/extending.md.",
        )
    return given  # type: ignore[return-value]  # checked as far as it can be


def searcher_of(given: str | WebSearcher) -> WebSearcher | None:
    """A web provider by its name, set up by the environment, or an object with `name` and `search`; None for "off"."""
    if given == "off":
        return None
    if not isinstance(given, str):
        if callable(getattr(given, "search", None)) and isinstance(getattr(given, "name", None), str):
            return OwnSearcher(given)
        raise WrongUse(
            f"Expected a web provider with `name` and `search(query, limit, cancel)`, found {type(given).__name__}.",
            hint="See docs/extending.md.",
        )
    if given not in PROVIDERS:
        raise UnknownName.among("web provider", given, ["off", *PROVIDERS])
    needs = PROVIDERS[given].needs
    if needs and not os.environ.get(needs):
        raise WrongUse(f"The web provider {given!r} cannot do without {needs}, which is not set.", hint=f"Set {needs}.")
    return PROVIDERS[given].build({**os.environ, "CRAG_WEB_TIMEOUT": WEB_TIMEOUT})


@cache
def _default_embedder() -> Embedder:
    return HuggingFaceEmbedder()
