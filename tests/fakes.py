"""Small parts for a pipeline that count what is asked of them; for calls and faults only, never in place of a wire."""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from crag_core.base.errors import DocumentMissing, Stopped
from crag_core.base.protocols import Cancel, LanguageModel, Messages, Reply, RetrievalResult, WebReply
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Engine, Origin, Passage
from crag_core.base.types.steps import Step, Usage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Policy
from crag_core.decision.refine import as_passage
from crag_core.decision.signals import SignalMeter
from crag_core.pipeline.pipeline import SEARCHING, Pipeline
from crag_core.pipeline.run import Cooldown, Listener, Parts, WebMode
from crag_core.trace.trace import RunSettings, Trace
from tests import builders
from tests.stand_ins.local_server import wait_until

if TYPE_CHECKING:  # llama_index takes seconds to import, and processes of their own use a part of these
    from crag_core.llamaindex.postprocessor import CRAGPostprocessor
    from crag_core.llamaindex.query_engine import CRAGQueryEngine

QUESTION = "When does the ferry to Vennick leave?"
ANSWER = "It leaves at nine [1]."
MEMORY = "Ferries usually leave in the morning."
WEB_QUERY = "ferry Vennick timetable"
KEYWORDS = "departures harbour Vennick"
REPHRASED = "At what time does the boat to Vennick depart?"
USEFUL = "The ferry to Vennick leaves at nine in the morning."
USELESS = "Bring a warm coat and a good book for the crossing."

Scoring = Callable[[Passage], float | Grade | None]
Finding = Callable[[str, Engine], Sequence[Passage]]


def passage(number: int, text: str = f"{USEFUL} {USELESS}", **fields: Any) -> Passage:
    """Passage p1, p2, … of its own document; two sentences, the first of which is useful."""
    shown: dict[str, Any] = {"source": f"document-{number}.txt", "document_id": f"d{number}", "ordinal": 0} | fields
    return Passage(f"p{number}", text, **shown)


def passages(count: int = 3) -> tuple[Passage, ...]:
    return tuple(passage(number) for number in range(1, count + 1))


def web_passage(number: int, text: str = "Ferries to Vennick leave at nine, says the harbour office.") -> Passage:
    url = f"https://example.org/{number}"
    return Passage(f"web-{number}", text, f"Harbour {number}", Origin.WEB, f"web-{number}", url=url, found_by=("web",))


def found_web(count: int = 2) -> WebReply:
    return WebReply(WebOutcome.USED, "Fake search", tuple(web_passage(n) for n in range(1, count + 1)))


def card(name: str = "fake", calls_model: bool = False) -> EvaluatorCard:
    return EvaluatorCard(name, name.capitalize(), "0 to 1", 0.4, 0.6, 0.3, calls_model, "nothing")


def score_strip(strip: Passage) -> float:
    """The useful sentence is kept at every cut-off in use, the useless one at none."""
    return 0.1 if strip.text == USELESS else 0.9


class FakeRetriever:
    """Finds by a function of query and engine; `files` can be read whole, by document id.

    `asked` holds query and limit of each retrieval, `ways` its query and engine.
    """

    def __init__(self, finding: Finding, files: Sequence[Passage] = ()) -> None:
        self.finding = finding
        self.files = {file.document_id: file for file in files}
        self.asked: list[tuple[str, int]] = []
        self.ways: list[tuple[str, Engine]] = []
        self.read: list[tuple[str, ...]] = []
        self.hidden = ""

    def hiding(self, text: str) -> FakeRetriever:
        other = copy(self)
        other.hidden = text
        return other

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID) -> RetrievalResult:
        self.asked.append((question, limit))
        self.ways.append((question, engine))
        found = [one for one in self.finding(question, engine) if not self.hidden or self.hidden not in one.text]
        return RetrievalResult(tuple(found[:limit]), 0.5)

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        self.read.append(tuple(document_ids))
        missing = [id_ for id_ in document_ids if id_ not in self.files]
        if missing:
            raise DocumentMissing(f"{missing[0]} is not indexed.", hint="Add it.")
        return tuple(self.files[id_] for id_ in document_ids)


class FakeEvaluator:
    """Grades by a function of the passage; `asked` holds the ids of each call. `before` may raise or set a flag."""

    def __init__(self, scoring: Scoring, card: EvaluatorCard) -> None:
        self.card = card
        self.scoring = scoring
        self.asked: list[tuple[str, ...]] = []
        self.before: Callable[[], None] = lambda: None

    @property
    def graded(self) -> list[str]:
        """Every id that it was asked about, in order."""
        return [passage_id for call in self.asked for passage_id in call]

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        self.asked.append(tuple(passage.id for passage in passages))
        self.before()
        if cancel.is_set():
            raise Stopped()
        return tuple(self._grade(passage) for passage in passages)

    def _grade(self, passage: Passage) -> Grade:
        found = self.scoring(passage)
        if isinstance(found, Grade):
            return found
        usage = Usage(1, 10, 2) if self.card.calls_model else Usage()
        return Grade(passage.id, found, "as scored" if found is not None else "", usage=usage)


class FakeStripEvaluator(FakeEvaluator):
    """Scores each strip as a passage of its own."""

    def score(
        self, question: str, chunks: Sequence[tuple[Passage, Sequence[Strip]]], cancel: Cancel
    ) -> tuple[tuple[Strip, ...], str]:
        pieces = [(strip, passage) for passage, strips in chunks for strip in strips]
        grades = self.grade(question, [as_passage(*piece) for piece in pieces], cancel)
        scored = tuple(replace(strip, score=grade.score) for (strip, _), grade in zip(pieces, grades, strict=True))
        return scored, next((grade.cause for grade in grades if grade.score is None), "")


class FakeModel:
    """Replies by the kind of request, as `kind_of` names it; a reply that is an exception is raised."""

    name = "fake-model"

    def __init__(self, **replies: str | Exception | Callable[[Messages], str | Exception]) -> None:
        usual = {"rewrite": WEB_QUERY, "phrases": WEB_QUERY, "keywords": KEYWORDS, "rephrase": REPHRASED}
        usual |= {
            "answer": ANSWER,
            "extract": '{"sentences": []}',
            "classify": '{"verdict": "C"}',
            "alone": MEMORY,
            "sufficient": '{"explanation": "It says when.", "verdict": "sufficient"}',
            "check": '{"verdict": "supported", "sentences": [1]}',
            "yes-no": "yes",
            "recall": '{"passages": []}',
            "consolidate": json.dumps({"passages": [{"text": USEFUL, "sources": ["1"], "contradicts": []}]}),
        }
        self.replies = usual | replies
        self.asked: list[tuple[str, Messages]] = []

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.asked]

    def complete(self, messages: Messages, cancel: Cancel, schema: Mapping[str, Any] | None = None) -> Reply:
        reply = self._reply(messages)
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, Usage(1, 20, 5))

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: Mapping[str, Any] | None = None
    ) -> list[Reply | Exception]:
        replies = [self._reply(messages) for messages in chats]
        return [reply if isinstance(reply, Exception) else Reply(reply, Usage(1, 20, 5)) for reply in replies]

    def first_tokens(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply | Exception]:
        """A reply "yes" or "no" is as good as certain."""
        replies = self.complete_all(chats, cancel)
        return [
            one if isinstance(one, Exception) else replace(one, top_logprobs=((one.text, -0.01),)) for one in replies
        ]

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        reply = self._reply(messages)
        if isinstance(reply, Exception):
            raise reply
        for piece in reply.split(" "):
            if cancel.is_set():
                raise Stopped()
            yield f"{piece} "
        yield Usage(1, 30, 7)

    def _reply(self, messages: Messages) -> str | Exception:
        kind = kind_of(messages)
        self.asked.append((kind, messages))
        reply = self.replies[kind]
        return reply(messages) if callable(reply) else reply


def kind_of(messages: Messages) -> str:
    """Which of the project's prompts this is, told by its first words."""
    starts = {
        "You grade": "judge",
        "You decide": "yes-no",
        "You rate": "batch",
        "You score": "list",
        "You pick": "extract",
        "You judge": "sufficient",
        "You sort": "classify",
        "You reply": "alone",
        "You check": "check",
        "You rewrite": "condense",
        "Turn the question": "rewrite",
        "Give at most": "phrases",
        "Give another query": "keywords",
        "Say the question": "rephrase",
        "You write down": "recall",
        "You put together": "consolidate",
        "You answer": "answer",
    }
    return next(kind for start, kind in starts.items() if messages[0][1].startswith(start))


class FakeSearcher:
    """`before` may raise, set a flag, or wait for `cancel` as a provider does that takes long."""

    name = "Fake search"

    def __init__(self, reply: WebReply) -> None:
        self.reply = reply
        self.asked: list[tuple[str, int]] = []
        self.before: Callable[[Cancel], object] = lambda cancel: None

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        self.asked.append((query, limit))
        self.before(cancel)
        if cancel.is_set():
            raise Stopped()
        return self.reply


class Diary(Listener):
    """Remembers what a run told; `at` maps a step's name to what is done when that step has finished."""

    def __init__(self, **at: Callable[[], None]) -> None:
        self.begun: list[str] = []
        self.done: list[Step] = []
        self.traces: list[Trace] = []
        self.progress: list[tuple[str, int, int]] = []
        self.pieces: list[str] = []
        self.at = at

    def started(self, name: str) -> None:
        self.begun.append(name)

    def progressed(self, name: str, done: int, total: int) -> None:
        self.progress.append((name, done, total))

    def finished(self, step: Step, trace: Trace) -> None:
        self.done.append(step)
        self.traces.append(trace)
        self.at.get(step.name.replace(" ", "_"), lambda: None)()

    def wrote(self, piece: str) -> None:
        self.pieces.append(piece)


@dataclass
class Bench:
    """A pipeline with its parts in reach. `scoring` grades passages, `best` is short for one score for all.

    `found` is what every retrieval gives, unless `finding` says otherwise.
    """

    policy: str | Policy = "paper"
    best: float | None = 0.9
    scoring: Scoring | None = None
    judge: EvaluatorCard = field(default_factory=card)
    model: LanguageModel | None = None
    web: WebMode = WebMode.AUTO
    reply: WebReply = field(default_factory=found_web)
    found: tuple[Passage, ...] = field(default_factory=passages)
    finding: Finding | None = None
    top_k: int = 20
    files: tuple[Passage, ...] = ()
    search_too: bool = False
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pause: Cooldown | None = None
    observers: tuple[Listener, ...] = ()

    def __post_init__(self) -> None:
        self.retriever = FakeRetriever(self.finding or (lambda query, engine: self.found), self.files)
        self.evaluator = FakeEvaluator(self.scoring or (lambda _: self.best), self.judge)
        self.strip_evaluator = FakeStripEvaluator(score_strip, card("strips"))
        self.searcher = FakeSearcher(self.reply)
        self.clock = Clock()
        parts = Parts(
            self.evaluator,
            self.strip_evaluator,
            SignalMeter(frozenset({"when", "does", "the", "to"})),
            self.retriever,
            self.model,
            None if self.web is WebMode.OFF else self.searcher,
            self.synonyms,
            self.pause,
        )
        policy = builders.policy(self.policy) if isinstance(self.policy, str) else self.policy
        settings = RunSettings(
            policy=policy,
            evaluator=self.judge,
            strip_evaluator=self.strip_evaluator.card,
            embedding="none",
            writer=self.model.name if self.model else "extractive",
            web_mode=self.web.value,
            top_k=self.top_k,
            prompts="test",
            version="test",
            pinned=tuple(file.document_id for file in self.files),
            search_too=self.search_too,
        )
        self._ids = itertools.count(1)
        self._parts = parts
        self.pipeline = self._engine(parts, settings)

    def under(self, *, parts: Mapping[str, Any] | None = None, **settings: Any) -> CRAGQueryEngine:
        """The bench's engine with some parts and settings changed."""
        changed = replace(self._parts, **parts or {})
        return self._engine(changed, replace(self.pipeline.settings, **settings))

    def _engine(self, parts: Parts, settings: RunSettings) -> CRAGQueryEngine:
        return engine_of(self._stages(parts, settings))

    def streaming(self) -> CRAGQueryEngine:
        return engine_of(self._stages(self._parts, self.pipeline.settings), streaming=True)

    def postprocessor(self, on_trace: Callable[[Trace], None] | None = None) -> CRAGPostprocessor:
        """For an engine of others, whose retriever it does not know."""
        return postprocessor_of(self._stages(replace(self._parts, retriever=None), self.pipeline.settings), on_trace)

    def _stages(self, parts: Parts, settings: RunSettings) -> Pipeline:
        return Pipeline(
            parts,
            settings,
            clock=self.clock,
            now=lambda: "now",
            new_id=lambda: f"run-{next(self._ids)}",
            observers=self.observers,
        )

    @property
    def counts(self) -> Counter[str]:
        """How often each part was asked, if it was; passages graded, not calls, for the evaluators."""
        asked = {
            "retrieve": len(self.retriever.asked),
            "read": len(self.retriever.read),
            "grade": len(self.evaluator.graded),
            "strips": len(self.strip_evaluator.graded),
            "search": len(self.searcher.asked),
        }
        model = Counter(self.model.kinds if isinstance(self.model, FakeModel) else ())
        return +(Counter(asked) + model)

    def forget_counts(self) -> None:
        self.retriever.ways.clear()
        self.retriever.read.clear()
        for counted in (self.retriever, self.evaluator, self.strip_evaluator, self.searcher, self.model):
            if counted is not None and hasattr(counted, "asked"):
                counted.asked.clear()


def postprocessor_of(pipeline: Pipeline, on_trace: Callable[[Trace], None] | None = None) -> CRAGPostprocessor:
    from crag_core.llamaindex.postprocessor import CRAGPostprocessor

    corrects = CRAGPostprocessor(pipeline.settings.policy, on_trace=on_trace)
    corrects._pipeline = pipeline
    return corrects


def engine_of(pipeline: Pipeline, streaming: bool = False) -> CRAGQueryEngine:
    """The query engine over these parts, as the application builds it over its own."""
    assert pipeline.parts.retriever is not None
    from crag_core.llamaindex.query_engine import CRAGQueryEngine
    from crag_core.llamaindex.retriever import CRAGRetriever

    retriever = CRAGRetriever(pipeline.parts.retriever, pipeline.settings.top_k)
    return CRAGQueryEngine(retriever, postprocessor_of(pipeline), streaming=streaming)


class Clock:
    """One second later at each look."""

    def __init__(self) -> None:
        self._ticks = itertools.count()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            return float(next(self._ticks))


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def set_when(is_time: Callable[[], bool], event: threading.Event | None = None) -> threading.Event:
    """An event that is set, from another thread, as soon as something is so (within a minute, or never)."""
    event = event or threading.Event()

    def watch() -> None:
        if wait_until(is_time, 60):
            event.set()

    threading.Thread(target=watch, daemon=True).start()
    return event


def by_id(**scores: float | None) -> Scoring:
    """Scores by passage id; web passages, whose ids hold a dash, by default 0.5."""
    return lambda passage: scores.get(passage.id, 0.5)


def step_names(trace: Trace) -> list[str]:
    return [step.name for step in trace.steps]


def lanes(trace: Trace) -> tuple[list[str], list[str]]:
    """The names of the steps without the web lane, and those of the web lane: they go on at the same time."""
    searching = [name for name, _ in SEARCHING]
    names = step_names(trace)
    return [name for name in names if name not in searching], [name for name in names if name in searching]


def changed(policy: str, **changes: Any) -> Policy:
    return builders.changing(builders.policy(policy), **changes)
