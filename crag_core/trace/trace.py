"""The record of one run: frozen, complete enough to decide again, and portable as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crag_core.base import serialization
from crag_core.base.errors import BadRecord
from crag_core.base.text.words import COMMON_WORDS
from crag_core.base.types.answers import Answer, Support
from crag_core.base.types.decisions import Action, Correction, Decision
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion, QuestionClass, Sufficiency
from crag_core.base.types.knowledge import Consolidation, Excerpt, Extraction, Strip
from crag_core.base.types.passages import Logged, Passage, Round, Scores, Suspicion
from crag_core.base.types.questions import FollowUp, Turn, Understanding
from crag_core.base.types.steps import ModelCall, Step, StepName, StepState, Usage
from crag_core.base.types.web import WebSearch
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import upgrade
from crag_core.decision.signals import CLASS, CLASSES, REPEATED, SUFFICIENCY, UNSURE, class_by_rule
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.claims import terms_of
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

SCHEMA = 6
LANES = ((StepName.SCORE_STRIPS, StepName.EXTRACT), (StepName.REWRITE, StepName.SEARCH, StepName.READ_PAGES))
"""Steps that go on at the same time, unless the run `refines_first`."""
_READABLE = (1, 2, 3, 4, 5, 6)


@dataclass(frozen=True)
class RunSettings:
    """Everything that a run depended on besides the question and the corpus.

    `pinned` are the ids of documents read whole; nothing else is retrieved then, unless `search_too`. `support` is who
    measures what stands behind the sentences of an answer: `WORDS`, a language model as `writer` names one, or a model
    by name, "hf:NAME". `collection` is the one that was searched, "": all. `writer_version` tells versions of one model
    name apart, "" where its server does not.
    """

    policy: Policy
    evaluator: EvaluatorCard
    strip_evaluator: EvaluatorCard
    embedding: str
    writer: str
    web_mode: str
    top_k: int
    prompts: str
    version: str
    pinned: tuple[str, ...] = ()
    search_too: bool = False
    support: str = WORDS
    collection: str = ""
    writer_version: str = ""

    @property
    def judge(self) -> tuple[str, ...]:
        """Who grades: grades by a model hold for that model, in that version, and its prompt only."""
        made = self.evaluator.identity
        return (*made, self.writer, self.writer_version, self.prompts) if self.evaluator.calls_model else made

    def same_judge(self, other: RunSettings) -> bool:
        """Whether grades made under one hold under the other; an unknown version of a model may be any."""
        one = self
        if not (one.writer_version and other.writer_version):
            one, other = replace(one, writer_version=""), replace(other, writer_version="")
        return one.judge == other.judge

    def by(self, opinion: Opinion) -> RunSettings:
        made = replace(self, evaluator=opinion.evaluator)
        if not opinion.evaluator.calls_model:
            return made
        return replace(made, writer=opinion.writer, writer_version=opinion.writer_version)


@dataclass(frozen=True)
class Trace:
    """One run, raw facts first. A field that is None was never done; () was done and found nothing.

    `passages` and `signals` are those of the first retrieval, `rounds` the later ones; `strips` those of all corpus
    passages (the web's are in `web`). `opinions` are the grades, one entry an evaluator; the one that `settings` name
    decides. `decision`, `earlier` (those of the iterations before it), `corrections` (what was done) and `context` (the
    ids of strips, or of whole passages, in the order in which the answer saw them) are as taken. `edits` change what is
    decided from, never the facts. `support` has one entry a sentence of the answer. `calls` are the requests to
    language models; a grade from the cache made none. `sufficiency` has one entry for each way to ask and set of
    passages, `consolidations` one for each set of excerpts. `logged`: the passages were given, and nothing else can be
    retrieved. `follow_up`: `question` is then the one that stands alone, as soon as it is settled.
    """

    id: str
    created: str
    question: str
    settings: RunSettings
    schema: int = SCHEMA
    passages: tuple[Passage, ...] | None = None
    signals: Scores = ()
    rounds: tuple[Round, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    strips: tuple[Strip, ...] | None = None
    decision: Decision | None = None
    earlier: tuple[Decision, ...] = ()
    extractions: tuple[Extraction, ...] | None = None
    web: WebSearch | None = None
    context: tuple[str, ...] | None = None
    corrections: tuple[Correction, ...] | None = None
    answer: Answer | None = None
    support: tuple[Support, ...] | None = None
    edits: Edits = Edits()
    steps: tuple[Step, ...] = ()
    suspicions: tuple[Suspicion, ...] | None = None
    calls: tuple[ModelCall, ...] = ()
    sufficiency: tuple[Sufficiency, ...] = ()
    question_class: QuestionClass | None = None
    logged: Logged | None = None
    follow_up: FollowUp | None = None
    consolidations: tuple[Consolidation, ...] = ()

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What was derived from the record already, for whoever needs it twice; no part of it."""
        return {}

    @property
    def fingerprint(self) -> str:
        return serialization.fingerprint(self.settings)

    def judgement(self, policy: Policy) -> Sufficiency | None:
        """What a model said, asked as `policy` asks, of just the passages of the first retrieval together."""
        ids = tuple(passage.id for passage in self.passages or ())
        alike = (one for one in self.sufficiency if (one.by, one.passages) == (policy.context_judge, ids))
        return next(alike, None) if policy.judges_together else None

    def consolidated(self, most: int | None, excerpts: tuple[Excerpt, ...]) -> Consolidation | None:
        asked = (most, context_ids(excerpts))
        return next((one for one in self.consolidations if (one.most, one.context) == asked), None)

    def measured(self, policy: Policy) -> Scores:
        """The signals, with what a model said of these passages together and of the question, if `policy` asks that."""
        judged, found = self.judgement(policy), self.signals
        if judged and judged.score is not None:
            found = (*found, (SUFFICIENCY, judged.score))
        if policy.classifies and self.settings.writer == EXTRACTIVE:
            found = (*found, (CLASS, class_by_rule(self.question)))
        elif policy.classifies and self.question_class and self.question_class.label in CLASSES:
            found = (*found, (CLASS, CLASSES[self.question_class.label]))
        found = (*found, (UNSURE, 1.0)) if self.is_unsure else found
        return (*found, (REPEATED, 1.0)) if self._repeats else found

    @cached_property
    def _repeats(self) -> bool:
        best = max(self.strips or (), key=lambda strip: strip.score or 0.0, default=None)
        return best is not None and any(
            speaks_of_before(best.text, turn.question, self.question) for turn in self._turns if not turn.asks_back
        )

    @property
    def _turns(self) -> tuple[Turn, ...]:
        return self.follow_up.history if self.follow_up else ()

    @property
    def is_unretrieved(self) -> bool:
        """Whether nothing was retrieved since the question was to be answered without any document."""
        skipped = (step.name == StepName.RETRIEVE and step.state is StepState.SKIPPED for step in self.steps)
        return self.passages == () and any(skipped)

    def decided_by(self, policy: Policy) -> Policy:
        """`policy` as it decides this record: a run without a language model had nobody to ask."""
        return policy.without_language_model() if self.settings.writer == EXTRACTIVE else policy

    @property
    def asked(self) -> str:
        return self.follow_up.asked if self.follow_up else self.question

    @property
    def is_unsure(self) -> bool:
        return self.follow_up is not None and self.follow_up.outcome is Understanding.UNSURE

    @property
    def asks_back(self) -> str:
        """What is asked in place of an answer, since the question cannot be understood; "": nothing."""
        known = self.follow_up
        return known.asks if known and known.outcome is Understanding.ASKS_BACK else ""

    @property
    def usage(self) -> Usage:
        return sum((step.usage for step in self.steps), Usage())

    @property
    def own_usage(self) -> Usage:
        return sum((step.usage for step in self.steps if not step.taken_over), Usage())

    @property
    def seconds(self) -> float:
        return self.seconds_of({step.name for step in self.steps})

    @property
    def refines_first(self) -> bool:
        """Whether the web is asked only after refinement: that depends on what refinement leaves, or finds repeated."""
        made = self.decision
        is_open = bool(self._turns) or (made is not None and "web_if_fewer" in self.settings.policy.steps(made.action))
        return made is not None and is_open

    def seconds_of(self, names: Collection[str]) -> float:
        """What these steps took together; of two lanes at the same time only the longer one counts."""
        steps = [step for step in self.steps if step.name in names]
        if self.refines_first:
            return math.fsum(step.seconds for step in steps)
        lanes = [math.fsum(step.seconds for step in steps if step.name in lane) for lane in LANES]
        return math.fsum(step.seconds for step in steps) - min(lanes)

    @property
    def failure(self) -> Step | None:
        broken = (step for step in self.steps if step.state in (StepState.FAILED, StepState.STOPPED))
        return next((step for step in broken if step.name != StepName.SECOND_OPINION), None)

    @cached_property
    def all_passages(self) -> tuple[Passage, ...]:
        """The corpus passages of every retrieval, each once, in the order in which they were first found."""
        found = {passage.id: passage for passage in self.passages or ()}
        for retrieval in (retrieval for later in self.rounds for retrieval in later.retrievals):
            for passage in retrieval.passages:
                found.setdefault(passage.id, passage)
        return tuple(found.values())

    @property
    def web_passages(self) -> tuple[Passage, ...]:
        return self.web.passages if self.web else ()

    @cached_property
    def every_passage(self) -> tuple[Passage, ...]:
        return self.all_passages + self.web_passages

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number that each chunk and snippet has wherever it is shown or cited, by id, from 1."""
        return {passage.id: number for number, passage in enumerate(self.every_passage, start=1)}

    @cached_property
    def deciding(self) -> Opinion | None:
        """What the evaluator of `settings` says; None where it has graded nothing."""
        return next((one for one in self.opinions if self.settings.same_judge(self.settings.by(one))), None)

    @property
    def other_opinions(self) -> tuple[Opinion, ...]:
        return tuple(one for one in self.opinions if one is not self.deciding)

    @property
    def all_grades(self) -> tuple[Grade, ...]:
        return self.deciding.grades if self.deciding else ()

    @cached_property
    def grades(self) -> tuple[Grade, ...] | None:
        """Those of corpus passages that decide."""
        found = {passage.id for passage in self.web_passages}
        corpus = tuple(grade for grade in self.all_grades if grade.passage_id not in found)
        is_of_web = len(corpus) < len(self.all_grades)
        return None if self.deciding is None or (is_of_web and not corpus and self.all_passages) else corpus

    @cached_property
    def web_grades(self) -> tuple[Grade, ...] | None:
        found = {passage.id for passage in self.web_passages}
        return tuple(grade for grade in self.all_grades if grade.passage_id in found) or None

    @cached_property
    def all_strips(self) -> tuple[Strip, ...]:
        return (self.strips or ()) + ((self.web.strips if self.web else None) or ())

    @cached_property
    def _grade_by_id(self) -> dict[str, Grade]:
        return {grade.passage_id: grade for grade in reversed(self.all_grades)}

    def grade_of(self, passage_id: str) -> Grade | None:
        return self._grade_by_id.get(passage_id)

    @property
    def is_unfinished(self) -> bool:
        """It broke off, was stopped, waits, was never to come to an answer, or to no whole one."""
        return self.failure is not None or self.answer is None or self.answer.state.is_unfinished

    def to_dict(self) -> dict[str, Any]:
        """As plain data. `grades` beside it are those that decide, for programs; `from_dict` leaves them aside."""
        return dict(serialization.to_plain(self)) | {"grades": serialization.to_plain(self.grades)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Trace:
        """Rebuild a trace; `BadRecord` names what does not fit, including a schema from another version."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema is None:
            raise BadRecord("This is not a recorded run: it has no schema.")
        if schema not in _READABLE or isinstance(schema, bool):
            raise BadRecord(
                f"This run has schema {schema!r}, expected one of {', '.join(map(str, _READABLE))}.",
                hint="Export it again with this version.",
            )
        trace = serialization.from_plain(cls, _upgraded(data) | {"schema": SCHEMA}, "run")
        if fault := next(_faults(trace), ""):
            raise BadRecord(f"run.{fault}")
        return trace

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"This is not a recorded run: not valid JSON ({error}).") from error
        return cls.from_dict(data)


def upgraded_settings(plain: Any) -> Any:
    policy = plain.get("policy") if isinstance(plain, dict) else None
    return plain | {"policy": upgrade(policy)} if isinstance(policy, dict) else plain


def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """A run of schema 1 to 4 in the words of schema 5: a policy is a list of steps, and nothing is read twice.

    Schema 6 has all grades by evaluator; before, those of the deciding one stood apart, and of them those of the web.
    """
    if data["schema"] == SCHEMA:
        return {key: value for key, value in data.items() if key != "grades"}
    if data["schema"] < 5:
        data = data | {"settings": upgraded_settings(data.get("settings"))}
        for key in ("decision", "earlier", "grades", "web", "opinions"):
            data |= {key: in_present_words(data[key])} if key in data else {}
    return _by_evaluator(data)


def _by_evaluator(data: dict[str, Any]) -> dict[str, Any]:
    found, web, settings, others = dict(data), data.get("web"), data.get("settings"), data.get("opinions") or []
    own = [found.pop("grades", None)]
    if isinstance(web, dict):
        own.append(web.get("grades"))
        found["web"] = {key: value for key, value in web.items() if key != "grades"}
    made = [one for one in own if one is not None]
    if not made or not isinstance(settings, dict) or not isinstance(others, list):
        return found
    grades = [grade for one in made for grade in one] if all(isinstance(one, list) for one in made) else made
    asked = {"writer": settings.get("writer"), "writer_version": settings.get("writer_version", "")}
    return found | {"opinions": [{"evaluator": settings.get("evaluator"), "grades": grades} | asked, *others]}


def in_present_words(value: Any) -> Any:
    """Decisions and grades of schema 4 and before, or what holds some, in the words of schema 5."""
    if isinstance(value, list):
        return [in_present_words(one) for one in value]
    if not isinstance(value, dict):
        return value
    words = {("handling", "whole"): "keep", ("next_round", "web"): None}
    kept = {key: one for key, one in value.items() if key != "second"}
    return {
        key: words.get((key, one), one) if isinstance(one, str) else in_present_words(one) for key, one in kept.items()
    }


def _faults(run: Trace) -> Iterator[str]:
    """What would break whoever shows or decides the run: sentences and places are cut out of texts, sources are looked
    up by number, thresholds go into policies, batches divide."""
    known = {passage.id: passage for passage in run.every_passage}
    for place, strips in (("strips", run.strips), ("web.strips", run.web.strips if run.web else None)):
        there = {passage.id: passage.text for passage in (run.web_passages if "web" in place else run.all_passages)}
        for index, strip in enumerate(strips or ()):
            if there.get(strip.passage_id, "")[strip.start : strip.end] != strip.text or strip.passage_id not in there:
                yield f"{place}[{index}]: this strip does not stand in a chunk {strip.passage_id!r} of the run."
    length, done = len(run.answer.text) if run.answer else 0, 0
    pieces = {*known, *(strip.id for strip in run.all_strips)}
    for index, one in enumerate(run.support or ()):
        if not done <= one.start <= one.end <= length:
            where = f"between {done} and {length}, where the answer goes on, found {one.start} to {one.end}"
            yield f"support[{index}]: expected a sentence {where}."
        for piece in one.pieces:
            if piece not in pieces:
                yield f"support[{index}].pieces: {piece[:80]!r} is no chunk and no strip of the run."
        done = one.end
    for index, found in enumerate(run.suspicions or ()):
        passage = known.get(found.passage_id)
        text = "" if passage is None else passage.source if found.in_source else passage.text
        if not 0 <= found.start < found.end <= len(text):
            yield f"suspicions[{index}]: this place does not stand in a chunk of the run."
    for index, made in enumerate(run.consolidations):
        for part in made.pieces:
            named = ((part.excerpts, made.context), (part.memory, made.own), (part.contradicts, made.pieces))
            if not all(1 <= number <= len(sources) for numbers, sources in named for number in numbers):
                yield f"consolidations[{index}]: a piece names a source that is not there."
    cards = {"settings.evaluator": run.settings.evaluator, "settings.strip_evaluator": run.settings.strip_evaluator}
    cards |= {f"opinions[{index}].evaluator": one.evaluator for index, one in enumerate(run.opinions)}
    for place, card in cards.items():
        if not (0.0 <= card.lower <= card.upper <= 1.0 and 0.0 <= card.strip_cutoff <= 1.0 and card.batch >= 1):
            told = f"{card.lower}, {card.upper}, {card.strip_cutoff} and {card.batch}"
            wanted = "0 <= lower <= upper <= 1, a strip_cutoff in 0..1 and a batch of 1 or more"
            yield f"{place}: expected {wanted}, found {told}."


def speaks_of_before(sentence: str, before: str, now: str) -> bool:
    """Whether it names what only the question `before` asks for, and nothing that only this one, `now`, does.

    It has to name something of what both ask, too.
    """
    common = terms_of(" ".join(COMMON_WORDS))
    then, today, said = terms_of(before) - common, terms_of(now) - common, terms_of(sentence)
    return all(said & one for one in (then & today, then - today)) and not said & (today - then)


def context_key(
    question: str,
    action: Action,
    excerpts: tuple[Excerpt, ...],
    *,
    withheld: bool = False,
    from_memory: bool = False,
    consolidation: Consolidation | None = None,
) -> str:
    """Ties an answer to what it was written from; the action is part of it, so that no answer outlives its route.

    `withheld`: nothing was written, since the policy abstains. `from_memory`: it was written without any document.
    `consolidation`: it was written from the pieces of that.
    """
    seen = tuple((excerpt.passage.id, excerpt.text) for excerpt in excerpts)
    marks = (*(("withheld",) if withheld else ()), *(("memory",) if from_memory else ()))
    pieces = (serialization.to_plain(consolidation.pieces),) if consolidation else ()
    return serialization.fingerprint((question, action, seen, *marks, *pieces))


def context_ids(excerpts: tuple[Excerpt, ...]) -> tuple[str, ...]:
    return tuple(piece for excerpt in excerpts for piece in (excerpt.strip_ids or (excerpt.passage.id,)))
