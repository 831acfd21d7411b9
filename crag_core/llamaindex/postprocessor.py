"""CRAG as a LlamaIndex node postprocessor, for any query engine."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from crag_core.base.errors import WrongUse
from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.protocols import Evaluator, LanguageModel, PageReader, StripEvaluator, SupportMeter, WebSearcher
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import DEFAULT, default_evaluator
from crag_core.evaluators.shipped import signal_meter, strip_evaluator, synonyms
from crag_core.llamaindex import parts
from crag_core.llamaindex.nodes import COSINE, found_in, is_text, kept_nodes
from crag_core.llamaindex.own_web import OwnPageReader
from crag_core.llamaindex.run_query import RunQuery
from crag_core.pipeline.answer_stages import refuses
from crag_core.pipeline.pipeline import OpenRun, Pipeline, raise_failure
from crag_core.pipeline.run import VERSION, Cooldown, Listener, Parts, WebMode, now
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import RunSettings, Trace

dispatcher = get_dispatcher(__name__)
_PARTS = (
    *("policy", "evaluator", "web", "llm", "support", "observers", "pause", "page_reader", "prompts"),
    *("sentence_scorer", "settings"),
)
"""Arguments that may be objects, which no name makes again."""


class CRAGPostprocessor(BaseNodePostprocessor):
    """Grades the retrieved nodes, routes the question, and hands on what the policy keeps.

    `policy` is a name of `data/policies`, a TOML file, or a `Policy`; `evaluator` a registered name, a reranker of
    LlamaIndex, or an object with `card` and `grade` (None: the policy's, or the trained one where that needs an LLM and
    none is given); `llm` any LLM of LlamaIndex; `web` "off", a provider's name, or an object with `name` and `search`.
    At most `top_n` nodes are handed on. `node_scores="cosine"` declares what the scores of incoming nodes are, for
    rules and signals that need cosines; "retriever" says nothing of them.

    Incoming nodes are never changed. A node that is kept leaves as a copy with its id, metadata and relationships,
    its text refined; web results leave as new nodes with `source="web"` and `url` in their metadata. Each carries
    `crag_action` and `crag_reason`, hidden from model and embedding. Images pass by. `on_trace` receives the whole
    record of each run, from the thread that made it. Raises `CragError` when a step fails, so that a broken grader is
    never mistaken for "nothing relevant".

    The other arguments are for an application: who checks answers (`support`), listens to runs (`observers`), remembers
    the last web search (`pause`) and reads the pages that it found (`page_reader`; None: snippets alone are used), the
    wording of requests (`prompts`), who scores sentences (`sentence_scorer`; None: what ships), and what the record
    says of them (`settings`, fields of `RunSettings`).
    """

    policy: str = Field(default="", frozen=True)
    evaluator: str = Field(default="", frozen=True)
    web: str = Field(default="off", frozen=True)
    top_n: int | None = None
    node_scores: str = Field(default="retriever", frozen=True)
    on_trace: Callable[[Trace], None] | None = Field(default=None, exclude=True)
    _pipeline: Pipeline = PrivateAttr()
    _objects: tuple[str, ...] = PrivateAttr()

    def __init__(
        self,
        policy: str | Path | Policy = DEFAULT,
        evaluator: str | Evaluator | BaseNodePostprocessor | None = None,
        *,
        llm: LLM | LanguageModel | None = None,
        web: str | WebSearcher = "off",
        top_n: int | None = None,
        node_scores: str = "retriever",
        on_trace: Callable[[Trace], None] | None = None,
        support: SupportMeter | None = None,
        observers: tuple[Listener, ...] = (),
        pause: Cooldown | None = None,
        page_reader: PageReader | None = None,
        prompts: Prompts | None = None,
        sentence_scorer: StripEvaluator | None = None,
        settings: Mapping[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        given = dict(locals())
        if node_scores not in ("retriever", COSINE):
            raise WrongUse(f'Expected node_scores to be "retriever" or "cosine", found {node_scores!r}.')
        _check_top_n(top_n)
        chosen, model, searcher = parts.policy_of(policy), parts.model_of(llm), parts.searcher_of(web)
        if evaluator in (None, ""):
            evaluator = default_evaluator(chosen, EXTRACTIVE if model is None else model.name)
        judge = parts.evaluator_of(evaluator, model, prompts)
        strips = sentence_scorer or strip_evaluator()
        wording = prompts or shipped()
        if not isinstance(policy, Policy):
            chosen = chosen.with_thresholds_for(judge.card, strips.card)
        elif chosen.refinement.cutoff is None:
            chosen = chosen.with_thresholds(cutoff=strips.card.strip_cutoff)
        super().__init__(  # type: ignore[call-arg]
            policy=str(policy) if isinstance(policy, str | Path) else chosen.name,
            evaluator=judge.card.name,
            web=web if isinstance(web, str) else web.name,
            top_n=top_n,
            node_scores=node_scores,
            on_trace=on_trace,
            callback_manager=callback_manager or CallbackManager([]),
        )
        made = RunSettings(
            policy=chosen,
            evaluator=judge.card,
            strip_evaluator=strips.card,
            embedding="",
            writer=EXTRACTIVE if model is None else model.name,
            web_mode=(WebMode.OFF if searcher is None else WebMode.AUTO).value,
            top_k=0,
            prompts=wording.version,
            version=VERSION,
            support=WORDS,
        )
        self._pipeline = Pipeline(
            Parts(
                evaluator=judge,
                strip_evaluator=strips,
                meter=signal_meter(),
                model=model,
                searcher=searcher,
                synonyms=synonyms(),
                pause=pause or Cooldown(),
                support=support,
                prompts=wording,
                page_reader=page_reader and OwnPageReader(page_reader),
            ),
            replace(made, **settings or {}),
            clock=time.perf_counter,
            now=now,
            new_id=lambda: uuid.uuid4().hex[:12],
            observers=observers,
        )
        self._objects = tuple(name for name in _PARTS if given[name] and not isinstance(given[name], str | Path))

    @classmethod
    def class_name(cls) -> str:
        return "CRAGPostprocessor"

    @property
    def pipeline(self) -> Pipeline:
        """The stages that it runs, without a retriever."""
        return self._pipeline

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("CRAGPostprocessor needs the query: pass query_bundle or query_str.")
        asked = QueryBundle(query_bundle.query_str)
        top_n, judge = self.top_n or len(nodes), self._pipeline.settings.evaluator.name
        dispatcher.event(ReRankStartEvent(query=asked, nodes=nodes, top_n=top_n, model_name=judge))
        found = found_in(nodes, self.node_scores)
        if isinstance(query_bundle, RunQuery):
            open_run = query_bundle.open_run
            open_run.replace_passages(found)
            (open_run.grade if query_bundle.only_grades else open_run.correct)()
            kept = self._handed_on(open_run, nodes, query_bundle.given)
        else:
            self.refuse_other_writers("Its synthesizer")
            trace = self._pipeline.begin(query_bundle.query_str, found.passages, agreement=found.agreement)
            with self._pipeline.open(trace) as open_run:
                open_run.correct()
            kept = self._handed_on(open_run, nodes)
            raise_failure(open_run.trace)
        dispatcher.event(ReRankEndEvent(nodes=kept))
        return kept

    def _handed_on(
        self, open_run: OpenRun, nodes: Sequence[NodeWithScore], given: Sequence[NodeWithScore] = ()
    ) -> list[NodeWithScore]:
        """`given` are nodes of the run besides, in whose shape what is kept of them leaves."""
        if self.on_trace:
            self.on_trace(open_run.trace)
        if not open_run.can_continue or refuses(open_run.trace):
            return []
        images = {node.node.node_id: node for node in nodes if not is_text(node)}
        return [*kept_nodes(open_run.trace, [*nodes, *given]), *images.values()][: self.top_n]

    def refuse_other_writers(self, who: str) -> None:
        """Raises `WrongUse` where the policy has its answer written from what no node holds."""
        policy = self._pipeline.settings.policy
        if policy.has("consolidate") and self._pipeline.parts.model is not None:
            raise WrongUse(
                f"The policy {policy.name!r} has its answer written from what the language model puts together of the "
                f"chunks and its own knowledge. {who} would not see that.",
                hint="Use CRAGQueryEngine(retriever, CRAGPostprocessor(...)) without response_synthesizer.",
            )

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "top_n":
            _check_top_n(value)
        super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, with what may be assigned. The parts are shared."""
        other = super().model_copy()
        for name, value in (update or {}).items():
            setattr(other, name, value)
        return other

    def to_dict(self, **options: Any) -> dict[str, Any]:
        if objects := (*self._objects, *(["on_trace"] if self.on_trace else [])):
            raise WrongUse(
                f"A CRAGPostprocessor that was given objects ({', '.join(objects)}) cannot be pickled or written as a "
                "dictionary.",
                hint="Make it from names where it is needed, and give it its objects there.",
            )
        return super().to_dict(**options)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> CRAGPostprocessor:
        """The parts are shared: they hold no state of a run."""
        return self.model_copy()


def _check_top_n(top_n: int | None) -> None:
    if top_n is not None and top_n < 1:
        raise WrongUse(f"Expected top_n of 1 or more, found {top_n}.")
