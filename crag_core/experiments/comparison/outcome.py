"""The outcome of one labelled question under one configuration: what metrics need, without texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crag_core.base.text.words import estimate_tokens
from crag_core.base.types import ANSWERING, Action, AnswerState, Origin, Passage, Usage
from crag_core.decision.policy import Aggregation
from crag_core.experiments.comparison.answer_match import contains, exact, token_f1
from crag_core.experiments.comparison.relevance import of_documents, of_passage, spans
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.trace.grounding.citation_check import Standing, standing
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace


@dataclass(frozen=True)
class Evidence:
    """Some evidence against the labels.

    `ranked` holds the grades of its documents in the order of their first passage, of its passages where the labels
    name no document; None where they tell neither. `beyond` holds those above 0 of what is none of the documents that
    are known beforehand, such as pages of the web. `tokens` counts those of passages that the labels can judge,
    `irrelevant` those of passages graded 0.
    """

    ranked: tuple[int, ...] | None
    tokens: int
    irrelevant: int
    beyond: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """`key` is that of the labelled question, `run_id` that of the recorded run.

    `known` holds the grades of the documents that are known to be related or to answer, None where the labels name
    none. `before` is what was retrieved first, `after` what reached the answer. `score_before` and `score_after` are
    the evaluator's best score of either, None where nothing of it was graded. `exact`, `f1` and `contains` are None
    without a known answer. `sentences` counts those of the answer that could be measured, `grounded` the supported and
    `ungrounded` those that nothing supports. `failed` says what broke the run off, "" where nothing did.
    """

    key: str
    run_id: str
    action: Action | None
    label: str = ""
    before: Evidence | None = None
    after: Evidence | None = None
    known: tuple[int, ...] | None = None
    score_before: float | None = None
    score_after: float | None = None
    is_answered: bool = False
    exact: float | None = None
    f1: float | None = None
    contains: float | None = None
    sentences: int = 0
    grounded: int = 0
    ungrounded: int = 0
    web: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    failed: str = ""


def outcome_of(trace: Trace, asked: LabelledQuestion, judged: Mapping[str, int] | None = None) -> Outcome:
    """Of a finished run. `judged` has the grades of files for this question, where its set has them."""
    judged = judged or {}
    if trace.failure:
        return Outcome(asked.key, trace.id, None, failed=f"{trace.failure.name}: {trace.failure.summary}")
    routed = reroute(trace, trace.settings.policy)
    excerpts = routed.knowledge.excerpts
    answer = trace.answer
    is_answered = answer is not None and answer.state is AnswerState.COMPLETE
    text = answer.text if answer and is_answered else ""
    known = tuple(sorted(of_documents(asked, judged).values(), reverse=True)) or None
    standings = [standing(one.score) for one in trace.support or ()]
    retrieved = trace.passages or ()
    return Outcome(
        key=asked.key,
        run_id=trace.id,
        action=routed.decision.action,
        label=routed.decision.label,
        before=_evidence([(passage, passage.text) for passage in retrieved], asked, judged),
        after=_evidence([(excerpt.passage, excerpt.text) for excerpt in excerpts], asked, judged),
        known=known,
        score_before=_best(trace, retrieved),
        score_after=_best(trace, (excerpt.passage for excerpt in excerpts)),
        is_answered=is_answered,
        exact=_compared(exact, text, asked.answers),
        f1=_compared(token_f1, text, asked.answers),
        contains=_compared(contains, text, asked.answers),
        sentences=sum(one is not Standing.UNCHECKED for one in standings),
        grounded=standings.count(Standing.SUPPORTED),
        ungrounded=standings.count(Standing.NONE),
        web=trace.web.outcome.value if trace.web else "",
        seconds=trace.seconds,
        usage=trace.usage,
    )


def _compared(measure: Callable[[str, Sequence[str]], float], text: str, answers: Sequence[str]) -> float | None:
    """None without a known answer; a question that got no answer has 0, even where the known one has no words."""
    if not answers:
        return None
    return measure(text, answers) if text else 0.0


def _evidence(found: Iterable[tuple[Passage, str]], asked: LabelledQuestion, judged: Mapping[str, int]) -> Evidence:
    documents = of_documents(asked, judged)
    first: dict[tuple[bool, str], int] = {}
    tokens = irrelevant = 0
    for passage, text in found:
        grade = of_passage(passage, asked, judged)
        if grade is None:
            continue
        tokens += estimate_tokens(text)
        irrelevant += 0 if grade else estimate_tokens(text)
        if documents and passage.origin is Origin.CORPUS:
            first.setdefault((True, passage.source), documents.get(passage.source, 0))
        else:
            first.setdefault((False, passage.id), grade)
    beyond = tuple(grade for (is_document, _), grade in first.items() if grade and not is_document)
    return Evidence(tuple(first.values()) if documents or spans(asked) else None, tokens, irrelevant, beyond)


def _best(trace: Trace, passages: Iterable[Passage]) -> float | None:
    """By the part that decides where two signals do."""
    name = ANSWERING if trace.settings.policy.aggregation is Aggregation.TWO_SIGNAL else ""
    grades = (trace.grade_of(passage.id) for passage in passages)
    return max((score for grade in grades if grade and (score := grade.part(name)) is not None), default=None)
