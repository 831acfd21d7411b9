"""The stages of a run up to the assembled context. Each does one thing if the trace does not hold its result yet.

A stage takes the trace so far and gives a `Result`, or None when there is nothing to do.
"""

from __future__ import annotations

from dataclasses import replace

from crag_core import prompts
from crag_core.decide import decide, match_rule
from crag_core.errors import CragError, Stopped
from crag_core.extraction import locate, parse_sentences
from crag_core.policy import Handling
from crag_core.query import clean_query, keyword_query
from crag_core.refine import as_passage, decompose
from crag_core.reroute import reroute
from crag_core.run import Parts, Result, Run, WebMode
from crag_core.trace import Trace, context_ids
from crag_core.types import (
    CorrectionKind,
    Extraction,
    Passage,
    StepState,
    Strip,
    Usage,
    WebOutcome,
    WebSearch,
)
from crag_core.words import estimate_tokens

GRADED_TOGETHER = 4
"""Passages that a model judges before the grades are kept and shown: the most that a stop can lose."""


def retrieve(trace: Trace, parts: Parts, run: Run) -> Result | None:
    if trace.passages is not None or parts.retriever is None:
        return None
    found = parts.retriever.retrieve(trace.question, trace.settings.top_k)
    signals = parts.meter.measure(trace.question, found.passages, found.agreement)
    sources = len({passage.source for passage in found.passages})
    summary = f"{len(found.passages)} passages from {sources} documents" if found.passages else "nothing found"
    return Result({"passages": found.passages, "signals": signals}, summary)


def grade(trace: Trace, parts: Parts, run: Run) -> Result | None:
    policy, card = trace.settings.policy, trace.settings.evaluator
    passages = (trace.passages or ())[: policy.grade_top if card.calls_model else None]
    done = {grade.passage_id: grade for grade in trace.grades or () if not grade.retryable}
    todo = [passage for passage in passages if passage.id not in done]
    if trace.grades is not None and not todo:
        return None
    if trace.grades is None and (rule := match_rule(policy, passages)):
        return Result({}, f"not needed, rule {rule[0]}: {rule[1]}", state=StepState.SKIPPED)
    usage, state, broken = Usage(), StepState.DONE, ""
    size = GRADED_TOGETHER if card.calls_model else max(len(todo), 1)
    for start in range(0, len(todo), size):
        try:
            grades = parts.evaluator.grade(trace.question, todo[start : start + size], run.cancel)
        except Stopped:
            state, broken = StepState.STOPPED, f"stopped by you after {len(done)} of {len(passages)} passages"
            break
        done |= {grade.passage_id: grade for grade in grades}
        usage = sum((grade.usage for grade in grades), usage)
        run.listener.progressed("grade", len(done), len(passages))
        if all(grade.retryable for grade in grades):  # the judge is away: asking on would only wait
            state, broken = StepState.FAILED, grades[0].cause
            break
    ungraded = sum(grade.score is None for grade in done.values())
    told = f"{len(done) - ungraded} of {len(passages)} passages graded by {card.title.lower()}"
    told += f", {ungraded} not graded" if ungraded else ""
    graded = tuple(done[passage.id] for passage in passages if passage.id in done)
    changes = {"grades": graded} if graded or not todo else {}
    return Result(changes, broken or told, usage, state)


def score_strips(trace: Trace, parts: Parts, run: Run) -> Result | None:
    if trace.strips is not None:
        return None
    strips = _scored_strips(trace.question, trace.passages or (), parts, run)
    return Result({"strips": strips}, f"{len(strips)} strips scored by {trace.settings.strip_evaluator.title.lower()}")


def route(trace: Trace, parts: Parts, run: Run) -> Result | None:
    decision = decide(trace.settings.policy, trace.passages or (), trace.grades, trace.signals)
    if decision == trace.decision:
        return None
    return Result({"decision": decision}, f"{decision.label}: {decision.reason}")


def extract(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Sentences picked by the language model, where the route asks for that; checked word for word."""
    decision = trace.decision
    wanted = decision and trace.settings.policy.route(decision.action).passages is Handling.EXTRACT
    if not wanted or trace.extractions is not None or not trace.passages:
        return None
    if parts.model is None:
        return Result({}, "no language model to extract sentences; kept by score instead", state=StepState.SKIPPED)
    chats = [prompts.extract(trace.question, passage.text) for passage in trace.passages]
    extractions = []
    for passage, reply in zip(
        trace.passages, parts.model.complete_all(chats, run.cancel, prompts.EXTRACTION_SCHEMA), strict=True
    ):
        if isinstance(reply, Exception):
            raise reply
        extractions.append(_checked(passage, reply.text, reply.usage, trace.strips or ()))
    kept = sum(len(extraction.strip_indexes) for extraction in extractions)
    refused = sum(len(extraction.refused) for extraction in extractions)
    told = f"{kept} strips extracted word for word"
    told += f"; {refused} sentences refused, they do not stand in the passage" if refused else ""
    usage = sum((extraction.usage for extraction in extractions), Usage())
    return Result({"extractions": tuple(extractions)}, told, usage)


def rewrite(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """The web query, written but not sent: `search` sends it once it is approved."""
    decision = trace.decision
    if decision is None or not decision.wants(CorrectionKind.WEB_SEARCH) or trace.web is not None:
        return None
    if trace.settings.web_mode == WebMode.OFF or parts.searcher is None:
        return Result({"web": WebSearch(WebOutcome.OFF, "", "")}, "web search is off", state=StepState.SKIPPED)
    query, by, usage, note = _web_query(trace, parts, run)
    if trace.settings.web_mode == WebMode.ASK:
        waiting = WebSearch(WebOutcome.PENDING, query, by)
        return Result({"web": waiting}, f"“{query}”, {by}{note}, waits for your approval", usage, StepState.WAITING)
    return Result({"web": WebSearch(WebOutcome.APPROVED, query, by)}, f"“{query}”, {by}{note}", usage)


def search(trace: Trace, parts: Parts, run: Run) -> Result | None:
    web = trace.web
    if web is None or web.outcome is not WebOutcome.APPROVED or parts.searcher is None:
        return None
    reply = parts.searcher.search(web.query, trace.settings.policy.web_limit, run.cancel)
    web = replace(
        web,
        outcome=reply.outcome,
        provider=reply.provider,
        message=reply.message,
        passages=reply.passages,
        from_cache=reply.from_cache,
    )
    told = f"{len(web.passages)} results for “{web.query}” from {web.provider}" if web.passages else web.message
    return Result({"web": web}, told)


def grade_web(trace: Trace, parts: Parts, run: Run) -> Result | None:
    web = trace.web
    if web is None or not web.passages or web.grades:
        return None
    grades = parts.evaluator.grade(trace.question, web.passages, run.cancel)
    strips = _scored_strips(trace.question, web.passages, parts, run)
    usage = sum((grade.usage for grade in grades), Usage())
    graded = sum(grade.score is not None for grade in grades)
    told = f"{graded} of {len(grades)} web results graded, {len(strips)} strips scored"
    return Result({"web": replace(web, grades=grades, strips=strips)}, told, usage)


def assemble(trace: Trace, parts: Parts, run: Run) -> Result | None:
    knowledge = reroute(trace, trace.settings.policy).knowledge
    ids = context_ids(knowledge.excerpts)
    if ids == trace.context:
        return None
    tokens = sum(estimate_tokens(excerpt.text) for excerpt in knowledge.excerpts)
    internal, external = len(knowledge.internal), len(knowledge.external)
    return Result({"context": ids}, f"{internal} excerpts from the corpus, {external} from the web, {tokens} tokens")


def _web_query(trace: Trace, parts: Parts, run: Run) -> tuple[str, str, Usage, str]:
    """(query, who wrote it, cost, a note); a model that fails here must not cost the user the search."""
    limit = trace.settings.policy.web_query_words
    keywords = keyword_query(trace.question, parts.meter.keywords, limit)
    if parts.model is None:
        return keywords, "the question's keywords", Usage(), ""
    try:
        reply = parts.model.complete(prompts.rewrite(trace.question, limit), run.cancel)
    except Stopped:
        raise
    except CragError as error:
        return keywords, "the question's keywords", Usage(calls=1), f", since: {error.message}"
    query = clean_query(reply.text, limit)
    if not query:
        return keywords, "the question's keywords", reply.usage, f", since {parts.model.name} gave no query"
    return query, f"rewritten by {parts.model.name}", reply.usage, ""


def _checked(passage: Passage, reply: str, usage: Usage, strips: tuple[Strip, ...]) -> Extraction:
    sentences = parse_sentences(reply)
    if sentences is None:
        return Extraction(passage.id, (), raw=reply, cause="the reply of the model could not be read", usage=usage)
    own = tuple(strip for strip in strips if strip.passage_id == passage.id)
    indexes, refused = locate(sentences, passage.text, own)
    return Extraction(passage.id, indexes, refused, reply, usage=usage)


def _scored_strips(question: str, passages: tuple[Passage, ...], parts: Parts, run: Run) -> tuple[Strip, ...]:
    pieces = [(strip, passage) for passage in passages for strip in decompose(passage)]
    grades = parts.strip_evaluator.grade(question, [as_passage(*piece) for piece in pieces], run.cancel)
    return tuple(replace(strip, score=grade.score) for (strip, _), grade in zip(pieces, grades, strict=True))
