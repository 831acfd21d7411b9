"""The stage "retrieve again": with an expanded query, refined keywords, another strategy, or documents whole."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace

from crag_core.base.errors import BadRecord, DocumentMissing
from crag_core.base.protocols import Messages, Retriever
from crag_core.base.text.tokens import around
from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.passages import Engine, Passage, Retrieval, Round
from crag_core.base.types.steps import StepState, Usage
from crag_core.decision.query_expansion import ExpandedQuery, expand
from crag_core.decision.rounds import DecisionPath, gather
from crag_core.decision.steps import DOCUMENTS, EXPAND, REFINE
from crag_core.pipeline.run import Parts, Result, Run
from crag_core.pipeline.web_stages import ask_for_query, clean_query, keyword_query
from crag_core.trace.edits import edited
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace

_NEAR = 80  # characters of a chunk that tell where it stands in its document


@dataclass(frozen=True)
class _Query:
    """What to ask the corpus, how, who wrote it, the terms it gained, and what writing it cost.

    `text` "": there is nothing to ask that was not asked before; `by` says so.
    """

    text: str
    engine: Engine
    by: str
    added: tuple[tuple[str, str], ...] = ()
    usage: Usage = Usage()


def retrieve_again(trace: Trace, parts: Parts, run: Run) -> Result | None:
    policy = trace.settings.policy
    decision_path = decision_path_of(trace, policy)
    if decision_path.wanted is None or parts.retriever is None:
        return None
    if trace.settings.pinned and not trace.settings.search_too:
        return Result({}, "not made: only the files that you pinned are looked at", state=StepState.SKIPPED)
    if decision_path.wanted[-1] == DOCUMENTS:
        return _read_documents(trace, decision_path, parts.retriever)
    query = _WRITERS[decision_path.wanted[-1]](trace, decision_path, parts, run)
    if not query.text:
        unmade = Round(decision_path.wanted, (), query.by)
        return Result({"rounds": (*trace.rounds, unmade)}, f"{unmade.path[-1]}: not made, {query.by}", query.usage)
    asked, limit = [(query.text, query.engine)], trace.settings.top_k
    if decision_path.wanted[-1] == EXPAND:
        asked, limit = [(trace.question, Engine.HYBRID), *asked], policy.expansion.max_chunks
    with ThreadPoolExecutor(max_workers=len(asked)) as threads:  # each in the context of the run, for its spans
        retrieve = parts.retriever.retrieve
        begun = [threads.submit(copy_context().run, retrieve, text, limit, engine) for text, engine in asked]
    made = [one.result() for one in begun]
    query = replace(query, by=", ".join(dict.fromkeys((query.by, *(one.by for one in made if one.by)))))
    retrievals = tuple(
        Retrieval(*way, tuple(p for p in one.passages if p.document_id not in trace.settings.pinned))
        for way, one in zip(asked, made, strict=True)
    )
    found = Round(decision_path.wanted, retrievals, query.by, query.added)
    left = edited(replace(trace, rounds=(found,))).rounds[0]  # what is dropped is recorded, and not looked at
    evidence = gather(policy, decision_path.decision, decision_path.evidence, left)
    before = {passage.id for passage in decision_path.evidence}
    new = sum(passage.id not in before for passage in evidence)
    message = f"{decision_path.wanted[-1]}: {new} new chunks for “{query.text}”, {query.by}, {len(evidence)} to look at"
    return Result({"rounds": (*trace.rounds, found)}, message, query.usage)


def _read_documents(trace: Trace, decision_path: DecisionPath, retriever: Retriever) -> Result:
    """The documents of the evidence whole, in rank order, until the token budget of the policy is full."""
    wanted, evidence = decision_path.wanted or (), decision_path.evidence
    ids = tuple(dict.fromkeys(one.document_id for one in evidence if one.document_id))
    budget = trace.settings.policy.refinement.budget
    read: list[Passage] = []
    left, cut, failed = budget, "", ""
    for id_ in ids:
        if left is not None and left <= 0:
            break
        try:
            (whole,) = retriever.read_files((id_,))
        except (DocumentMissing, BadRecord) as error:
            failed = error.message
            continue
        text = whole.text
        if left is not None:
            best = next(one.text for one in evidence if one.document_id == id_)
            start = max(text.find(best[:_NEAR]), 0)
            text = around(text, start, start + len(best), left, estimate_tokens)
            left -= estimate_tokens(text)
        if len(text) < len(whole.text):
            cut = f", of {whole.source} about {estimate_tokens(text):,} of {estimate_tokens(whole.text):,} tokens"
            cut += ", around its best chunk"
            left = 0
        read += [replace(whole, text=text)] if text.strip() else []
    if not read:
        unmade = Round(wanted, (), failed or "the chunks belong to no document")
        return Result({"rounds": (*trace.rounds, unmade)}, f"documents: not read, {unmade.query_by}")
    unread = f"; {len(ids) - len(read)} not read, the budget of {budget:,} tokens is full" if budget else ""
    told = f"{len(read)} of {len(ids)} read{cut}{unread if len(read) < len(ids) and not failed else ''}"
    told += f"; {failed}" if failed else ""
    found = Round(wanted, (Retrieval(trace.question, Engine.HYBRID, tuple(read)),), told)
    return Result({"rounds": (*trace.rounds, found)}, f"documents: {told}")


def _expanded(trace: Trace, decision_path: DecisionPath, parts: Parts, run: Run) -> _Query:
    grown = _grow(trace, decision_path.evidence, parts)
    terms = ", ".join(term for term, _ in grown.added)
    return _Query(
        grown.query, Engine.HYBRID, f"expanded by {terms}" if terms else "nothing to expand it by", grown.added
    )


def _refined(trace: Trace, decision_path: DecisionPath, parts: Parts, run: Run) -> _Query:
    """Other keywords than those tried; without a model the question's own and the next terms that go with them."""
    on_the_way = [found for found in trace.rounds if found.path == (decision_path.wanted or ())[: len(found.path)]]
    tried = [trace.question, *(found.retrievals[-1].query for found in on_the_way if found.retrievals)]
    limit = trace.settings.policy.web.words
    grown = _grow(trace, decision_path.kept, parts, tried)
    own = keyword_query(trace.question, parts.meter.keywords)
    text = " ".join([own, *(term for term, _ in grown.added)])
    fallback = _Query(text, Engine.HYBRID, "keywords of question and chunks", grown.added)
    if text.casefold() in {query.casefold() for query in tried}:
        fallback = _Query("", Engine.HYBRID, "no keywords of question and chunks are left that were not asked")
    return _ask(parts.prompts.keywords(trace.question, tried, limit), fallback, parts, run, tried)


def _rewritten(trace: Trace, decision_path: DecisionPath, parts: Parts, run: Run) -> _Query:
    own = keyword_query(trace.question, parts.meter.keywords)
    fallback = _Query(own, Engine.DENSE, "the question's keywords, by meaning")
    return _ask(parts.prompts.rephrase(trace.question), fallback, parts, run)


_WRITERS: dict[str, Callable[[Trace, DecisionPath, Parts, Run], _Query]] = {
    EXPAND: _expanded,
    REFINE: _refined,
    "keyword": lambda trace, *_: _Query(trace.question, Engine.KEYWORD, "the question, by its words alone"),
    "rewritten": _rewritten,
    "expanded": _expanded,
}


def _grow(trace: Trace, passages: tuple[Passage, ...], parts: Parts, asked: Sequence[str] = ()) -> ExpandedQuery:
    rules = trace.settings.policy.expansion
    return expand(
        trace.question,
        parts.meter.keywords(trace.question),
        parts.synonyms,
        passages,
        parts.meter.stop_words,
        rules.synonyms_per_term,
        rules.vocabulary,
        asked,
    )


def _ask(messages: Messages, fallback: _Query, parts: Parts, run: Run, tried: Sequence[str] = ()) -> _Query:
    if parts.model is None:
        return fallback
    query, usage, why = ask_for_query(parts.model, messages, clean_query, run.cancel, tried)
    if query:
        return _Query(query, fallback.engine, f"written by {parts.model.name}", usage=usage)
    return replace(fallback, by=f"{fallback.by}, {why}", usage=usage)
