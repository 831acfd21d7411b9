"""Reroutes a recorded run under another policy: decision, knowledge, and what is missing. Pure; asks no model."""

from dataclasses import dataclass, replace
from enum import StrEnum

from crag_core.base.text.display import counted
from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action, Correction, CorrectionKind, Decision, Handling
from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.base.types.passages import Passage
from crag_core.base.types.web import AS_ASKED, PageOutcome, WebOutcome, WebSearch
from crag_core.decision.policy import Doubtful, Policy
from crag_core.decision.reasons import FIELD, Terms, reason_in
from crag_core.decision.refine import recompose
from crag_core.decision.rounds import DecisionPath, replay_rounds
from crag_core.decision.steps import DOCUMENTS, EXPAND
from crag_core.trace.consolidation import conflict_lines
from crag_core.trace.edits import edited
from crag_core.trace.grounding.disagreement import disagreement
from crag_core.trace.grounding.ending import FROM_MEMORY, NOT_IN_EVIDENCE, AnswerEnding, ending_of, standing
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, doubtful_title, quote, why_doubtful, why_no_evidence
from crag_core.trace.trace import Trace, context_key

NO_MODEL = "No language model: "  # how a note begins that says what the policy did in place of asking one
_UNASKED = (WebOutcome.PENDING, WebOutcome.APPROVED, WebOutcome.COOLING)
_ROUND = {CorrectionKind.EXPAND, CorrectionKind.READ, CorrectionKind.RE_RETRIEVE}


class Missing(StrEnum):
    """What this policy would need that the run never did; the value is said to people as it stands."""

    GRADES = "grades: this run did not grade these chunks"
    QUESTION_CLASS = "the class of the question: this run did not sort it"
    CHUNKS = "chunks: this run retrieved none, since the question was to be answered without"
    SUFFICIENCY = "a judgement of the whole context: this run did not ask for one on these chunks"
    STRIPS = "strip scores: this run never scored sentences"
    EXTRACTION = "extracted sentences: this run never asked a model for them"
    WEB = "web results: this run made no web search"
    PAGES = "web pages: this run did not read those that its search found"
    EXPANSION = "a second retrieval with an expanded question"
    DOCUMENTS = "whole documents: this run did not read them"
    RE_RETRIEVAL = "another round of retrieval"
    CONSOLIDATION = "a consolidation: this run did not set this evidence beside the model's own knowledge"
    ANSWER = "an answer from this evidence"


_UNSETTLED = {
    Missing.QUESTION_CLASS,
    Missing.CHUNKS,
    Missing.GRADES,
    Missing.SUFFICIENCY,
    Missing.STRIPS,
    Missing.EXPANSION,
    Missing.DOCUMENTS,
    Missing.RE_RETRIEVAL,
}
"""Without these the action or the kept sentences may still change, so nothing is quoted from them."""


@dataclass(frozen=True)
class Reroute:
    """`answer` is the recorded one only if it was written from exactly this action and knowledge.

    Where a policy abstains, a doubtful ending has the answer that says so. A run that answers in quotations, which cost
    no model call, is quoted anew from the present knowledge. `policy` is the one that decided, as it can here.
    `asks_back`: the question was not understood.
    """

    policy: Policy
    decision_path: DecisionPath
    knowledge: Knowledge
    missing: tuple[Missing, ...]
    answer: Answer | None
    asks_back: bool = False

    @property
    def decision(self) -> Decision:
        return self.decision_path.decision

    @property
    def ending(self) -> AnswerEnding:
        return ending_of(self.decision, self.knowledge, self.answer, self.asks_back)

    @property
    def said(self) -> str:
        return self.answer.message.rstrip(".") if self.answer and self.ending is AnswerEnding.CUT else self.ending

    @property
    def is_doubtful(self) -> bool:
        """Whether nothing here is called an answer, written, withheld or not yet there."""
        return self._stands is AnswerEnding.DOUBTFUL

    @property
    def uses_irrelevant(self) -> bool:
        return self.decision.verdict is Action.INCORRECT and bool(self.knowledge.internal)

    @property
    def is_from_memory(self) -> bool:
        """Whether what is said here is the language model's own knowledge, written or not yet there."""
        return self._stands is AnswerEnding.FROM_MEMORY

    @property
    def _stands(self) -> AnswerEnding:
        is_written = self.answer is not None and self.answer.state is AnswerState.COMPLETE
        return standing(self.decision, self.knowledge, self.answer.text if self.answer and is_written else "")


def withheld(trace: Trace, policy: Policy, decision: Decision, knowledge: Knowledge) -> Answer | None:
    """What a policy that abstains says in place of a doubtful answer; None where there is nothing to withhold."""
    if policy.doubtful is not Doubtful.ABSTAIN or not _is_doubtful(decision, knowledge):
        return None
    key = context_key(trace.question, decision.action, knowledge.excerpts, withheld=True)
    return Answer("", AnswerState.CANNOT_ANSWER, EXTRACTIVE, key, why_doubtful(decision, trace.web, decision.reason))


def caution(trace: Trace, routed: Reroute, terms: Terms = FIELD) -> tuple[str, str]:
    """(heading, why) above a text that is no answer of the evidence; above one that is, that documents disagree, or
    ("", "")."""
    if routed.is_from_memory:
        return "", FROM_MEMORY if routed.decision.is_from_memory else NOT_IN_EVIDENCE
    if routed.is_doubtful:
        writer = routed.answer.writer if routed.answer else trace.settings.writer
        reason = reason_in(terms, routed.policy, routed.decision)
        return doubtful_title(writer), why_doubtful(routed.decision, trace.web, reason)
    return "", disagreement(trace.question, routed.knowledge, routed.answer.text) if routed.answer else ""


def _is_doubtful(decision: Decision, knowledge: Knowledge) -> bool:
    return standing(decision, knowledge) is AnswerEnding.DOUBTFUL


def decision_path_of(trace: Trace, policy: Policy) -> DecisionPath:
    """The way of `trace`, as its edits have it; a run that retrieved nothing yet counts as one that found nothing."""
    trace = edited(trace)
    possible = _possible(policy, trace)
    return replay_rounds(
        possible,
        trace.passages or (),
        trace.grades,
        trace.measured(possible),
        trace.rounds,
        trace.strips,
        trace.extractions,
    )


def reroute(trace: Trace, policy: Policy) -> Reroute:
    """Decide `trace` again under `policy`, as its edits have it; under its own policy it is decided once."""
    if policy != trace.settings.policy:
        return _rerouted(trace, policy)
    if "reroute" not in trace.derived:
        trace.derived["reroute"] = _rerouted(trace, policy)
    own: Reroute = trace.derived["reroute"]
    return own


def _rerouted(trace: Trace, policy: Policy) -> Reroute:
    known, pinned, trace = trace.numbers, trace.edits.pinned, edited(trace)
    without_model = policy.without_model if trace.settings.writer == EXTRACTIVE else ""
    policy = _possible(policy, trace)
    decision_path = decision_path_of(trace, policy)
    decision = decision_path.decision
    facts = trace.strips, trace.extractions, trace.web, trace.web_grades
    knowledge = recompose(policy, decision, decision_path.evidence, *facts)
    if without_model and trace.passages:
        knowledge = replace(knowledge, notes=(f"{NO_MODEL}{without_model}", *knowledge.notes))
    if (judged := trace.judgement(policy)) and judged.reason:
        knowledge = replace(knowledge, notes=(f"On all chunks together: {judged.reason}", *knowledge.notes))
    if decision.is_from_memory:
        knowledge = replace(knowledge, notes=(FROM_MEMORY,))
    most = policy.steps(decision.action).get("consolidate")
    consolidated = trace.consolidated(most, knowledge.excerpts)
    if consolidated and not consolidated.cause:
        numbers = [known[excerpt.passage.id] for excerpt in knowledge.excerpts]
        notes = (*conflict_lines(consolidated, numbers), *knowledge.notes)
        knowledge = replace(knowledge, consolidation=consolidated, notes=notes)
    elif consolidated:
        note = f"Not set beside the model's own knowledge: {consolidated.cause}."
        knowledge = replace(knowledge, notes=(note, *knowledge.notes))
    missing = _missing_evidence(trace, policy, decision_path, pinned)
    if most is not None and knowledge.excerpts and consolidated is None:
        missing.append(Missing.CONSOLIDATION)
    answer = _answer(trace, policy, decision_path, knowledge, missing)
    if answer is None:
        missing.append(Missing.ANSWER)
    return Reroute(policy, decision_path, knowledge, tuple(missing), answer, bool(trace.asks_back))


def _possible(policy: Policy, trace: Trace) -> Policy:
    policy = trace.decided_by(policy)
    return with_room(policy.without_retrieval(), trace.passages or ()) if trace.logged else policy


def with_room(policy: Policy, passages: tuple[Passage, ...]) -> Policy:
    """The policy with a token budget that holds these passages whole."""
    if policy.refinement.budget is None:
        return policy
    needed = sum(estimate_tokens(passage.text) for passage in passages)
    budget = max(policy.refinement.budget, needed)
    return replace(policy, refinement=replace(policy.refinement, budget=budget))


def _answer(
    trace: Trace, policy: Policy, decision_path: DecisionPath, knowledge: Knowledge, missing: list[Missing]
) -> Answer | None:
    decision = decision_path.decision
    if trace.grades is None and decision_path.ungraded:
        return None  # nothing is decided, so nothing is answered
    key = key_of(trace, decision, knowledge)
    recorded = trace.answer.context_key if trace.answer else None
    writers = {trace.settings.writer, trace.answer.writer if trace.answer else ""}
    # Where the web would be searched, what it brings may be the answer.
    is_settled = _UNSETTLED.isdisjoint(missing) and (Missing.WEB not in missing or trace.settings.web_mode == "off")
    is_quoted = (writers == {EXTRACTIVE} or trace.is_unsure) and is_settled
    if abstention := withheld(trace, policy, decision, knowledge):
        # What the run went on without, as a search that had to wait, is missing beside an answer too.
        is_ended = not missing or is_quoted or recorded in (key, abstention.context_key)
        return abstention if is_ended else None
    if recorded == key:
        return trace.answer
    return quoted(trace, decision_path, knowledge) if is_quoted else None


def key_of(trace: Trace, decision: Decision, knowledge: Knowledge) -> str:
    memory = decision.is_from_memory
    return context_key(
        trace.question,
        decision.action,
        knowledge.excerpts,
        from_memory=memory,
        consolidation=knowledge.consolidation,
    )


def quoted(trace: Trace, decision_path: DecisionPath, knowledge: Knowledge) -> Answer:
    decision = decision_path.decision
    key = context_key(trace.question, decision.action, knowledge.excerpts)
    if not knowledge.excerpts:
        why = why_no_evidence(decision, knowledge, trace.web, len(decision_path.evidence))
        return Answer("", AnswerState.CANNOT_ANSWER, EXTRACTIVE, key, why)
    text = quote(knowledge, trace.all_strips, nearest=_is_doubtful(decision, knowledge))
    return Answer(text, AnswerState.COMPLETE, EXTRACTIVE, key)


def _missing_evidence(
    trace: Trace, policy: Policy, decision_path: DecisionPath, pinned: tuple[str, ...]
) -> list[Missing]:
    decision, wanted = decision_path.decision, decision_path.wanted
    scored = {strip.passage_id for strip in trace.strips or ()}
    read = {*pinned, *(one.passage_id for one in trace.extractions or ())}  # a pinned one stays whole
    is_unasked = trace.web is None or trace.web.outcome in _UNASKED
    reads_pages = decision.wants(CorrectionKind.WEB_SEARCH) and bool(policy.web.pages)
    again = {EXPAND: Missing.EXPANSION, DOCUMENTS: Missing.DOCUMENTS}
    open_ones = {
        Missing.QUESTION_CLASS: policy.classifies
        and trace.settings.writer != EXTRACTIVE
        and trace.question_class is None,
        Missing.CHUNKS: trace.is_unretrieved and not decision.is_from_memory,
        Missing.GRADES: bool(decision_path.ungraded),
        Missing.SUFFICIENCY: policy.judges_together and bool(trace.passages) and trace.judgement(policy) is None,
        Missing.STRIPS: decision.handling in (Handling.REFINE, Handling.EXTRACT)
        and _lacks(decision_path.evidence, scored),
        Missing.EXTRACTION: decision.handling is Handling.EXTRACT and _lacks(decision_path.kept, read),
        Missing.WEB: decision.may_search and is_unasked,
        Missing.PAGES: reads_pages and trace.web is not None and _has_unread(trace.web),
    }
    missing = [one for one, is_open in open_ones.items() if is_open]
    return [*missing, again.get(wanted[-1], Missing.RE_RETRIEVAL)] if wanted else missing


def _lacks(passages: tuple[Passage, ...], known: set[str]) -> bool:
    return any(passage.id not in known and passage.text.strip() for passage in passages)


def _has_unread(web: WebSearch) -> bool:
    waits = (PageOutcome.PENDING, PageOutcome.APPROVED)
    is_open = web.pages is None or any(page.outcome in waits for page in web.pages)
    return web.outcome is WebOutcome.USED and is_open


def carried_out(trace: Trace, routed: Reroute) -> tuple[Correction, ...]:
    """The corrections of every iteration in order that were really made, with the query of each."""
    rounds = {found.path: found for found in trace.rounds}
    done: list[Correction] = []
    for iteration in routed.decision_path.iterations:
        following = rounds.get((*iteration.path, str(iteration.decision.next_round)))
        is_last = iteration is routed.decision_path.iterations[-1]
        for one in iteration.decision.plan:
            if one.kind in _ROUND and following:
                query = following.retrievals[-1].query
                done.append(replace(one, reason=f"{one.reason}; {following.query_by}", query=query))
            elif one.kind in (CorrectionKind.REWRITE, CorrectionKind.WEB_SEARCH):
                done += _searched(one, trace.web)
            elif one.kind is CorrectionKind.REFINE:
                done.append(_refined(one, trace.question, routed.knowledge.internal))
            elif one.kind is CorrectionKind.DISCARD or (is_last and one.kind not in _ROUND):
                done.append(one)
    return tuple(done)


def _refined(wanted: Correction, question: str, excerpts: tuple[Excerpt, ...]) -> Correction:
    """Passages that went in whole all the same were not refined; the notes of the knowledge say why."""
    whole = sum(not excerpt.strip_ids for excerpt in excerpts)
    if not whole:
        return replace(wanted, query=question)
    return Correction(CorrectionKind.KEEP, f"use {counted(whole, 'chunk')} as they are")


def _searched(wanted: Correction, web: WebSearch | None) -> list[Correction]:
    if web is None or not web.outcome.was_asked:
        return []
    if wanted.kind is CorrectionKind.REWRITE:
        return (
            []
            if web.query_by == AS_ASKED
            else [replace(wanted, reason=f"{wanted.reason}; {web.query_by}", query=web.query)]
        )
    came = counted(len(web.results), "result") if web.results else web.outcome.value
    return [replace(wanted, reason=f"{wanted.reason}; {came}", query=web.query)]
