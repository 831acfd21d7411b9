"""One question under several configurations: what two of them do alike is done once, and counts for each in full.

Each run is a run like any other, with a record of its own. Its retriever, evaluators, models and web search remember
what they were asked, and give the same reply again with what it cost; its clock adds the time that the reply took then.
So every record tells what its configuration takes alone, and nothing is paid for twice. What was stopped or has failed
is not remembered.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from crag_core.base.protocols import (
    Backing,
    Cancel,
    Clock,
    Evaluator,
    Found,
    LanguageModel,
    Messages,
    Piece,
    Reply,
    Retriever,
    SupportMeter,
    WebReply,
    WebSearcher,
)
from crag_core.base.serialization import fingerprint
from crag_core.base.types import Engine, EvaluatorCard, Grade, Passage, Usage, WebOutcome
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import Parts, Run
from crag_core.trace.same_evaluator import grades_apart, judge_of, made_by
from crag_core.trace.trace import RunSettings, Trace

T = TypeVar("T")


@dataclass
class _Lane:
    """Of one thread of a run: the seconds that remembered work took."""

    added: float = 0.0


class SharedWork:
    """What was done for one question so far. The runs that share it come one after the other.

    `without`: passages that hold this text count as not indexed.
    """

    def __init__(self, clock: Clock, without: str = "") -> None:
        self.clock = clock
        self.without = without
        self._kept: dict[Hashable, tuple[Any, float]] = {}
        self._here = threading.local()
        self._latest = _Lane()
        self._beside = -math.inf
        self._lock = threading.Lock()

    def run(self, pipeline: Pipeline, question: str, run: Run | None = None) -> Trace:
        """The run of `question` by `pipeline`, as it would be alone."""
        parts = _shared(pipeline.parts, pipeline.settings, self)
        return pipeline.with_parts(parts, self.now).run(question, run)

    def now(self) -> float:
        """Seconds, with those added that remembered work took; the clock of each lane of a run by itself."""
        with self._lock:
            lane: _Lane = self._here.__dict__.setdefault("lane", _Lane())
            time = self.clock() + lane.added
            waited = max(self._beside - time, 0.0)
            lane.added += waited
            self._latest = lane
            return time + waited

    def once(
        self,
        key: Hashable,
        work: Callable[[], T],
        lasts: Callable[[T], bool] = lambda result: True,
        within: float | None = None,
    ) -> T:
        """The result of `work`, which is done for the first who asks for `key`; others get it where it `lasts`.

        What took more seconds than `within` is done again.
        """
        if found := self.known(key, within):
            kept: T = found[0]
            return kept
        start = self.clock()
        result = work()
        if lasts(result):
            self.keep(key, result, self.clock() - start)
        return result

    def known(self, key: Hashable, within: float | None = None) -> tuple[Any] | None:
        """What was kept for `key`, its seconds added to the clock of this lane; None where nothing was."""
        if key not in self._kept or (within is not None and self._kept[key][1] > within):
            return None
        result, seconds = self._kept[key]
        self._add(seconds)
        return (result,)

    def keep(self, key: Hashable, result: object, seconds: float) -> None:
        self._kept[key] = (result, seconds)

    def _add(self, seconds: float) -> None:
        """A thread that never looks at the clock works for the step under way, which goes on when the last has ended.

        Only a retrieval that asks several times at once starts such threads, and no other lane goes on beside it. One
        thread may give several remembered replies, which took their times beside each other all the same.
        """
        lane: _Lane | None = getattr(self._here, "lane", None)
        if lane:
            lane.added += seconds
            return
        with self._lock:
            self._beside = max(self._beside, self.clock() + self._latest.added + seconds)


def _shared(parts: Parts, settings: RunSettings, work: SharedWork) -> Parts:
    judge = (settings.embedding, *judge_of(settings))
    scorer = ("strips", settings.embedding, *made_by(settings.strip_evaluator))
    return replace(
        parts,
        evaluator=_SharedEvaluator(parts.evaluator, work, judge),
        strip_evaluator=_SharedEvaluator(parts.strip_evaluator, work, scorer),
        retriever=_SharedRetriever(parts.retriever, work, settings.embedding) if parts.retriever else None,
        model=_SharedModel(parts.model, work, settings.writer) if parts.model else None,
        searcher=_SharedSearcher(parts.searcher, work, settings.policy.web_seconds) if parts.searcher else None,
        support=_SharedMeter(parts.support, work, settings.support) if parts.support else None,
        pause=None,  # nobody is asked twice, so nobody has to wait
    )


class _SharedRetriever:
    def __init__(self, retriever: Retriever, work: SharedWork, embedding: str) -> None:
        self._retriever, self._work, self._embedding = retriever, work, embedding

    def retrieve(self, question: str, limit: int, engine: Engine = Engine.HYBRID, without: str = "") -> Found:
        without = without or self._work.without
        key = ("retrieve", self._embedding, question, limit, engine, without)
        return self._work.once(key, lambda: self._retriever.retrieve(question, limit, engine, without))

    def read_files(self, document_ids: Sequence[str]) -> tuple[Passage, ...]:
        return self._work.once(("read", *document_ids), lambda: self._retriever.read_files(document_ids))


class _SharedEvaluator:
    """Remembers passage by passage, or the whole company where a grade depends on it."""

    def __init__(self, evaluator: Evaluator, work: SharedWork, identity: tuple[str, ...]) -> None:
        self._evaluator, self._work, self._identity = evaluator, work, identity

    @property
    def card(self) -> EvaluatorCard:
        return self._evaluator.card

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        keys = [("grade", self._identity, question, fingerprint(passage)) for passage in passages]
        if not grades_apart(self.card):
            together = ("grade", *keys)
            return self._work.once(together, lambda: self._evaluator.grade(question, passages, cancel), _are_final)
        known = {place: found[0] for place, key in enumerate(keys) if (found := self._work.known(key))}
        todo = [place for place in range(len(keys)) if place not in known]
        start = self._work.clock()
        made = self._evaluator.grade(question, [passages[place] for place in todo], cancel) if todo else ()
        each = (self._work.clock() - start) / max(len(todo), 1)
        for place, grade in zip(todo, made, strict=True):
            known[place] = grade
            if not grade.retryable:
                self._work.keep(keys[place], grade, each)
        return tuple(known[place] for place in range(len(keys)))


class _SharedModel:
    def __init__(self, model: LanguageModel, work: SharedWork, identity: str) -> None:
        self._model, self._work, self._identity = model, work, identity

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, messages: Messages, cancel: Cancel, schema: dict[str, Any] | None = None) -> Reply:
        key = self._key("complete", messages, schema)
        return self._work.once(key, lambda: self._model.complete(messages, cancel, schema))

    def complete_all(
        self, chats: Sequence[Messages], cancel: Cancel, schema: dict[str, Any] | None = None
    ) -> list[Reply | Exception]:
        keys = [self._key("complete", messages, schema) for messages in chats]
        known = {place: found[0] for place, key in enumerate(keys) if (found := self._work.known(key))}
        todo = [place for place in range(len(keys)) if place not in known]
        start = self._work.clock()
        replies = self._model.complete_all([chats[place] for place in todo], cancel, schema) if todo else []
        each = (self._work.clock() - start) / max(len(todo), 1)
        for place, reply in zip(todo, replies, strict=True):
            known[place] = reply
            if isinstance(reply, Reply):
                self._work.keep(keys[place], reply, each)
        return [known[place] for place in range(len(keys))]

    def stream(self, messages: Messages, cancel: Cancel) -> Iterator[str | Usage]:
        key = self._key("stream", messages, None)
        if found := self._work.known(key):
            yield from found[0]
            return
        pieces: list[str | Usage] = []
        seconds, start = 0.0, self._work.clock()
        for piece in self._model.stream(messages, cancel):
            seconds += self._work.clock() - start
            pieces.append(piece)
            yield piece  # what the reader does with it takes its time again
            start = self._work.clock()
        self._work.keep(key, tuple(pieces), seconds + self._work.clock() - start)

    def _key(self, kind: str, messages: Messages, schema: dict[str, Any] | None) -> Hashable:
        return kind, self._identity, tuple(messages), repr(schema)


class _SharedSearcher:
    """An answer that took longer than `allowed` seconds is none that this run would have waited for."""

    def __init__(self, searcher: WebSearcher, work: SharedWork, allowed: float | None) -> None:
        self._searcher, self._work, self._allowed = searcher, work, allowed

    @property
    def name(self) -> str:
        return self._searcher.name

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        key = ("search", self.name, query, limit)
        return self._work.once(key, lambda: self._searcher.search(query, limit, cancel), _is_answered, self._allowed)


class _SharedMeter:
    def __init__(self, meter: SupportMeter, work: SharedWork, identity: str) -> None:
        self._meter, self._work, self._identity = meter, work, identity

    def measure(self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel) -> tuple[Backing, ...]:
        key = ("support", self._identity, tuple(sentences), tuple(pieces))
        return self._work.once(key, lambda: self._meter.measure(sentences, pieces, cancel))


def _are_final(grades: Sequence[Grade]) -> bool:
    return not any(grade.retryable for grade in grades)


def _is_answered(reply: WebReply) -> bool:
    return reply.outcome in (WebOutcome.USED, WebOutcome.EMPTY)
