"""Builds every part from the settings; alone imports concrete adapters. Loads nothing heavy at import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from crag_core import evaluators
from crag_core.app import config
from crag_core.app.choice import Choice as Choice
from crag_core.app.choice import Request, choose
from crag_core.app.config import Config
from crag_core.app.earlier_home import take_files, take_index
from crag_core.app.model_servers import ModelServers
from crag_core.app.own_engine import RETRIEVER, VECTOR_STORE, EngineStore, OwnEngine
from crag_core.base.data_files import read_input
from crag_core.base.documents import OnProgress, Rebuilt, Recipe, check_lengths
from crag_core.base.errors import BadRecord, NotCalibrated, ScoresUnavailable, UnknownName
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.network.drivers import check_installed
from crag_core.base.prompts.messages import Prompts, prompts_in
from crag_core.base.protocols import Cancel, Embedder, Evaluator, LanguageModel, SupportMeter
from crag_core.base.serialization import fingerprint
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.evaluators import shipped
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.evaluators.cascade import Cascade, cascade_card, parse_cascade
from crag_core.evaluators.named.evaluator import Calibrated, NamedEvaluator
from crag_core.evaluators.named.names import is_named, parse_name
from crag_core.evaluators.policies import OWN_JUDGE, find_policy, known_card, load_policies
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.shipped import signal_meter
from crag_core.evaluators.support import open_support
from crag_core.experiments.batch import Recorded
from crag_core.experiments.comparison.outcome import Setup
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.labelled.graded import Conditions, conditions_of
from crag_core.experiments.labelled.questions import Gradable
from crag_core.experiments.logs.record import logged_of, passages_of
from crag_core.experiments.store import KINDS, OUTCOMES, SCORES, ExperimentStore
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset
from crag_core.observability.audit_log import AuditLog
from crag_core.observability.logs import RunLog
from crag_core.observability.metrics import Metrics
from crag_core.pipeline.run import VERSION, Cooldown, Listener, WebMode, now
from crag_core.pipeline.run_queue import RunQueue
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.hybrid import HybridRetriever
from crag_core.retrieval.index.store import PassageStore as PassageStore
from crag_core.retrieval.index.vector_store import VectorStorePassages
from crag_core.retrieval.passage_location import Places
from crag_core.retrieval.sandbox.documents import DRAWING, PAGE, DocumentProcesses
from crag_core.retrieval.sandbox.messages import Limits
from crag_core.storage.cache import open_cache
from crag_core.storage.history import open_history
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.opinions import DEPEND_ON_OTHERS
from crag_core.websearch import PROVIDERS, SNAPSHOT
from crag_core.websearch.pages import WebPages
from crag_core.websearch.search_chain import SearchChain

if TYPE_CHECKING:
    from crag_core.llamaindex.postprocessor import CRAGPostprocessor
    from crag_core.llamaindex.query_engine import CRAGQueryEngine


_DISK = ("", "disk")


class Workbench:
    """Everything that is built once and shared by all sessions. Building it is cheap: models load at first use."""

    def __init__(self, settings: Config | None = None) -> None:
        self.config = settings or config.load()
        _ = self.prompts  # what is of no use is refused here
        if self.config.otel_endpoint:
            exporter = "opentelemetry.exporter.otlp.proto.http"
            check_installed("OTEL_EXPORTER_OTLP_ENDPOINT", exporter, "opentelemetry-exporter-otlp-proto-http")
        self._embedders: dict[str, HuggingFaceEmbedder] = {}
        home = self.config.home
        take_index(home)
        self.own_engine = self._engine_named(RETRIEVER, self.config.retriever)
        """In place of our own index, where the settings name one."""
        self.vector_store = self._engine_named(VECTOR_STORE, self.config.vector_store)
        """In place of the vectors in memory, likewise."""
        self.store = self._open_store()
        self.retriever = HybridRetriever(self.store)
        self.places = Places(self.store, processes(DRAWING).draw)
        self.meter = signal_meter()
        self.policies, self.problems = load_policies(settings=self.config)
        self.cache = open_cache(self.config.cache, home, self.config.cache_hours * 3600)
        self.history = open_history(self.config.history, home, self.config.history_days)
        self.experiments = ExperimentStore(home)
        self.audit = AuditLog(home, now) if self.config.audit == "on" else None
        self.not_taken = self._take_earlier_files()
        self.problems += self.not_taken
        self.metrics = Metrics(VERSION)
        self.run_log = RunLog()
        self.servers = ModelServers(self.config)
        self._searchers: dict[tuple[object, ...], SearchChain] = {}
        self.run_queue = RunQueue(self.config.runs_at_once, self.config.runs_waiting)
        """For those who run questions for many people; `engine` does not look at it."""
        self._watch()

    def _engine_named(self, variable: str, target: str) -> OwnEngine | None:
        return OwnEngine(variable, target, self.config.engine_timeout) if target else None

    def _open_store(self) -> PassageStore:
        embedder = self.find_embedder(self.config.embedding)
        if self.own_engine is not None:
            return EngineStore(self.config.home, embedder, self.own_engine)
        recipe = Recipe(self.config.embedding, self.config.chunk_tokens, self.config.chunk_overlap)
        home, read, find = self.config.home, processes().cut, self.find_embedder
        if (vectors := self.vector_store) is not None:
            return VectorStorePassages(home, embedder, read, vectors.ask, vectors.target, recipe, find)
        return PassageStore(home, embedder, read, recipe=recipe, find_embedder=find)

    def _take_earlier_files(self) -> tuple[str, ...]:
        """What earlier versions kept in files of their own; what could not be taken over, in words."""
        kept = self.experiments.take_over
        takers: dict[str, Callable[[Path], None]] = {f"laboratory/{kind}": kept for kind in KINDS}
        takers |= {f"laboratory/{log}.db": kept for log in (SCORES, OUTCOMES)}
        if self.config.history in _DISK:
            takers["history.db"] = self.history.take_over
        if self.audit:
            takers["audit.jsonl"] = self.audit.take_over
        return take_files(self.config.home, takers)

    def _watch(self) -> None:
        """What of this workbench is asked for at a scrape."""

        def parts() -> dict[str, float]:
            return {name: float(not problem) for name, problem in self.problems_of_parts().items()}

        self.metrics.watch("crag_runs_waiting", lambda: self.run_queue.waiting)
        self.metrics.watch("crag_part_works", parts)
        self.metrics.watch("crag_model_server_busy", self.servers.calls_under_way)
        self.metrics.watch("crag_index_documents", lambda: len(self.store.documents()))
        self.metrics.watch("crag_index_passages", self.store.count)

    def problems_of_parts(self) -> dict[str, str]:
        """What the last use of each part met that no answer needs, "": it worked. Those that are off are left out."""
        parts = {"history": self.history if self.history.is_on else None, "audit": self.audit, "cache": self.cache}
        return {name: part.problem for name, part in parts.items() if part is not None}

    def using(self, settings: Config) -> Workbench:
        """A workbench with other settings that shares index, caches and embedding model with this one."""
        if _index_of(settings) != _index_of(self.config):
            return Workbench(settings)
        other = copy(self)
        other.config = settings
        other.servers = self.servers.using(settings)
        _ = other.prompts
        return other

    @property
    def embedder(self) -> Embedder:
        """The embedding model that the index was made with; for one that holds nothing yet, that of the settings."""
        return self.store.embedder

    def find_embedder(self, name: str) -> HuggingFaceEmbedder:
        """Each model once; it loads at its first use."""
        return self._embedders.setdefault(name, HuggingFaceEmbedder(name))

    def rebuild(self, recipe: Recipe, on_progress: OnProgress, cancel: Cancel) -> Rebuilt:
        """Index all documents again; raises `BadRecord` for a length that the model does not read."""
        if not self.config.retriever:  # else the store says why not
            check_lengths(recipe)
            longest = self.find_embedder(recipe.embedding).longest()
            if recipe.tokens > longest:
                raise BadRecord(
                    f"{recipe.embedding} reads {longest} tokens at most, and ignores the rest of a chunk; "
                    f"expected at most that many, found {recipe.tokens}.",
                    hint="Choose shorter chunks, or another embedding model.",
                )
        return self.store.rebuild(recipe, on_progress, cancel)

    @property
    def searcher(self) -> SearchChain:
        """The web search of these settings; its memory is shared by all who search with the same ones."""
        now = self.config
        settings = now.by_variable()
        made_of = (now.web_timeout, *((name, settings.get(PROVIDERS[name].needs)) for name in now.providers))
        if made_of not in self._searchers:
            asked = [PROVIDERS[name].build(settings) for name in now.providers]
            identity = ", ".join(f"{one.name} {getattr(one, 'fingerprint', '')}".strip() for one in asked)
            self._searchers[made_of] = SearchChain(asked, identity)
        return self._searchers[made_of]

    @property
    def page_reader(self) -> WebPages | None:
        """Reads web pages, in chunks as long as those of documents; None where the settings leave none to read."""
        if self.config.web_pages == "off" or self.config.providers == (SNAPSHOT,):
            return None
        # In tokens of the model that scores them: they are embedded by none.
        tokenizer = str(shipped.EVALUATOR_FOLDER / "tokenizer.json")
        made = Cut(self.config.chunk_tokens, self.config.chunk_overlap, tokenizer=tokenizer)

        def cut(content: bytes, name: str, cancel: Cancel) -> tuple[tuple[str, str], ...]:
            chunks = processes(PAGE).cut(content, name, made, cancel).chunks
            return tuple((chunk.text, chunk.section) for chunk in chunks)

        return WebPages(cut, self.config.web_timeout)

    @property
    def prompts(self) -> Prompts:
        """In the wording that the settings name; raises `BadRecord` for a file that cannot be used."""
        try:
            return prompts_in(self.config.prompts)
        except BadRecord as error:
            named = "CRAG_PROMPTS: " if self.config.prompts else ""
            raise BadRecord(f"{named}{error.message}", hint=error.hint) from error

    def support(self, name: str = "") -> SupportMeter:
        """Who measures what stands behind the sentences of an answer; "": by these settings."""
        name = name or self.config.support
        return open_support(name, shipped.EVALUATOR_FOLDER, self.meter.stop_words, self.servers.model, self.prompts)

    def evaluator(
        self,
        name: str,
        model: LanguageModel | None,
        writer: str = EXTRACTIVE,
        *,
        cached: bool = True,
        embedder: Embedder | None = None,
    ) -> Evaluator:
        """An evaluator by name, its grades kept in the cache; one that asks a model says so when there is none.

        `writer` names the model for the cache, as a `Choice` does. `embedder` None: that of the index.
        """
        if pair := parse_cascade(name):
            first, second = (
                self.evaluator(one, model, writer, cached=cached, embedder=embedder)
                for one in (pair.first, pair.second)
            )
            return Cascade(self.card(name), first, second, (pair.low, pair.high))
        card = known_card(name)
        embedder = embedder or self.embedder
        parts = EvaluatorParts(embedder, self.meter, shipped.EVALUATOR_FOLDER, model, self.prompts)
        made = self.named(name) if is_named(name) else evaluators.EVALUATORS[name].build(parts)
        if not cached or self.cache is None or name in DEPEND_ON_OTHERS:
            return made
        version = self.servers.version_of(writer) if card.calls_model else ""
        of_model = f"{writer}{version and f' {version}'}|prompts {self.prompts.version}"
        asked = of_model if card.calls_model else made.card.version or embedder.name
        return CachedEvaluator(made, self.cache, f"{name}|{asked}")

    def cards(self) -> dict[str, EvaluatorCard]:
        """Of all evaluators that can be chosen here: ours, those of CRAG_EVALUATORS, and the calibrated ones."""
        kept: dict[str, KeptEvaluator] = {}
        with suppress(ScoresUnavailable):  # a page is drawn though the file cannot be read, which the index tells
            kept = self.experiments.evaluators()
        offered = (*self.config.named_evaluators, *kept)
        return evaluators.cards() | {name: self.card(name) for name in offered}

    def card(self, name: str) -> EvaluatorCard:
        """With the thresholds of its calibration, where there is one; raises `UnknownName`."""
        made = self._calibrated(name)
        if made is not None:
            return NamedEvaluator(parse_name(name), made).card
        return cascade_card(name, self.card) or known_card(name)

    def policy(self, name: str) -> Policy:
        """A policy by name, read anew; raises `UnknownName`, or `BadRecord` for a faulty file."""
        return find_policy(name, self.config)

    def suited(self, policy: Policy, evaluator: str) -> Policy:
        """`policy` with the thresholds and the strip cut-off to start from for `evaluator`; raises `UnknownName`."""
        return policy.with_thresholds_for(self.card(evaluator), known_card(OWN_JUDGE))

    def named(self, name: str) -> NamedEvaluator:
        """An evaluator that somebody else trained; raises `NotCalibrated` unless these very files were calibrated."""
        name = str(parse_name(name))
        made = self._calibrated(name)
        hint = f"Calibrate it once: crag-explorer calibrate '{name}'"
        if made is None:
            raise NotCalibrated(f"{name} is not calibrated: no threshold fits its raw scores.", hint=hint)
        found = NamedEvaluator(parse_name(name), made)
        if found.name.is_folder and found.folder_now != made.revision:
            raise NotCalibrated(
                f"{name} is another model now: expected files with digest {made.revision[:12]}…, as calibrated, "
                f"found {found.folder_now[:12]}….",
                hint=hint,
            )
        return found

    def _calibrated(self, name: str) -> Calibrated | None:
        kept = self.experiments.evaluators().get(str(parse_name(name))) if is_named(name) else None
        if kept is None:
            return None
        cost = f"no LLM call, about {kept.seconds * 1000:.0f} ms a chunk"
        return Calibrated(kept.revision, kept.curve.probability, kept.lower, kept.upper, kept.version, cost)

    @property
    def scoring_workers(self) -> int:
        """Questions of a labelled set graded at a time: as many as model calls are allowed, two where none is made."""
        return max(self.config.calls_at_once, 2)

    def conditions(self, engine: CRAGQueryEngine, questions: Sequence[Gradable] = ()) -> Conditions:
        """Under which an engine of this workbench grades these questions now: with the documents that are indexed, or
        with the logs that the questions are from."""
        return conditions_of(engine.settings, self.corpus_of(questions, engine.settings.collection))

    def corpus_of(self, questions: Sequence[Gradable], collection: str) -> str:
        """The fingerprint of what is retrieved from for them. Raises `UnknownName` for a log that is gone."""
        logs = tuple(self.experiments.load_log(name).fingerprint for name in _logs_of(questions))
        if logs and all(asked.log for asked in questions):
            return fingerprint(logs)
        index = self.store.fingerprint(collection)
        return fingerprint((*logs, index)) if logs else index

    def recorded(self, questions: Sequence[Gradable]) -> Recorded:
        """The chunks of those questions that logs have, in place of a search; a record that is gone is left out."""
        logs = {name: self.experiments.load_log(name) for name in _logs_of(questions)}
        found = ((asked, logs[asked.log].find(asked.record)) for asked in questions if asked.log)
        return {asked.key: (passages_of(one), logged_of(one, asked.log)) for asked, one in found if one is not None}

    def find_preset(self, name: str) -> TunedPreset:
        """A kept preset by name, or of a TOML file by its path."""
        path = Path(name)
        if path.suffix != ".toml":
            if name not in (known := self.experiments.preset_names()):
                raise UnknownName.among("preset", name, known)
            return self.experiments.load_preset(name)
        content = read_input(name, "preset", 1, "Name the file of a preset, or a preset that is kept here.")
        try:
            return parse_preset(content.decode(), path.stem)
        except UnicodeError as error:
            raise BadRecord(f"The preset {path} cannot be read: {error}.") from error

    def setup(self, choice: Choice, corpus: str = "") -> Setup:
        """Under which questions are run with `choice` now; `corpus` is the fingerprint of the index, if it is known."""
        web = "" if choice.web is WebMode.OFF else self.searcher.identity
        corpus = corpus or self.store.fingerprint(choice.collection)
        return Setup(self.engine(choice, observed=False).settings, corpus, web)

    def engine(
        self,
        choice: Choice,
        pause: Cooldown | None = None,
        *,
        observed: bool = True,
        cached: bool = True,
        evaluator: Evaluator | None = None,
    ) -> CRAGQueryEngine:
        """The query engine for `choice`, ready to run questions against the shared index; otherwise `postprocessor`."""
        postprocessor = self.postprocessor(choice, pause, observed=observed, cached=cached, evaluator=evaluator)
        from crag_core.llamaindex.query_engine import CRAGQueryEngine
        from crag_core.llamaindex.retriever import CRAGRetriever

        if self.own_engine is not None:
            return CRAGQueryEngine(self.own_engine.retriever(choice.top_k), postprocessor)
        source = self.retriever.within(choice.collection)
        retriever = CRAGRetriever(source, choice.top_k, embedding=self.embedder.name, collection=choice.collection)
        return CRAGQueryEngine(retriever, postprocessor)

    def postprocessor(
        self,
        choice: Choice,
        pause: Cooldown | None = None,
        *,
        observed: bool = True,
        cached: bool = True,
        embedder: Embedder | None = None,
        evaluator: Evaluator | None = None,
    ) -> CRAGPostprocessor:
        """What grades and routes passages under `choice`, whoever retrieved them.

        `pause` remembers this user's last web search; None: this engine alone does. `observed`: its runs are counted
        in metrics, logs and spans; not those of a labelled set, which no user asked. `cached`: a
        grade that an earlier run paid for is taken; not where it is measured what grading costs. `embedder` made the
        cosines of the passages; None: that of the index, which is looked at. `evaluator` grades in place of the chosen
        one.
        """
        import_llama_index()
        from crag_core.llamaindex.postprocessor import CRAGPostprocessor

        embedder = embedder or self.embedder

        def by_name(name: str) -> Evaluator:
            return self.evaluator(name, model, choice.model, cached=cached, embedder=embedder)

        model = self.servers.model(choice.model)
        listeners = (spans(self.config.otel_endpoint), self.metrics, self.audit, self.run_log)
        judge = evaluator or by_name(choice.evaluator)
        return CRAGPostprocessor(
            choice.policy,
            judge,
            llm=model,
            web="off" if choice.web is WebMode.OFF else self.searcher,
            support=self.support(),
            observers=tuple(one for one in listeners if one is not None) if observed else (),
            pause=pause,
            page_reader=None if choice.web is WebMode.OFF else self.page_reader,
            prompts=self.prompts,
            sentence_scorer=shipped.strip_evaluator(embedder.name),
            settings={
                "writer": choice.model,
                "writer_version": self.servers.version_of(choice.model),
                "web_mode": choice.web.value,
                "support": self.config.support,
                "pinned": choice.pinned,
                "search_too": choice.search_too,
            },
        )


def _index_of(settings: Config) -> tuple[object, ...]:
    own = (settings.retriever, settings.vector_store, settings.engine_timeout)
    return settings.home, settings.embedding, *own


def _logs_of(questions: Sequence[Gradable]) -> tuple[str, ...]:
    return tuple(sorted({asked.log for asked in questions if asked.log}))


@cache
def spans(endpoint: str) -> Listener | None:
    """One for the whole process: it follows LlamaIndex, which knows no end of that."""
    if not endpoint:
        return None
    from crag_core.observability.spans import open_spans  # OpenTelemetry is heavy

    return open_spans(endpoint, VERSION)


@cache
def processes(limits: Limits | None = None) -> DocumentProcesses:
    """One of a kind for the whole process, whatever is indexed where; a page of the web waits for no document."""
    return DocumentProcesses(limits)


def build_pipeline(
    policy: str | None = None,
    evaluator: str | None = None,
    model: str = EXTRACTIVE,
    web: str = "off",
    settings: Config | None = None,
    preset: str = "",
) -> CRAGQueryEngine:
    """The application's query engine over its index in one line; `evaluator` None: one that works without a server.

    `preset` is the name of thresholds of the policy's file, or of tuned ones, or the path of their file, which bring
    policy, evaluator and number of passages. Raises `UnknownName`, `ModelMissing`, or `WrongUse` for a preset of
    another policy or evaluator.
    """
    workbench = Workbench(settings)
    return workbench.engine(choose(workbench, Request(policy, preset or None, evaluator, model, web=WebMode(web))))
