"""The record of a run in words: its rounds of retrieval, what each step cost, its model calls, and its settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from crag_core.base.text.display import clean, counted, duration, limit_text, model_calls, moment, readable
from crag_core.base.types.decisions import Decision
from crag_core.base.types.grades import EvaluatorCard
from crag_core.base.types.passages import Round
from crag_core.base.types.steps import ModelCall, Step, StepName, Usage
from crag_core.decision.rounds import Iteration
from crag_core.decision.steps import DOCUMENTS, EXPAND, WIDENING
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, left_out
from crag_core.trace.trace import Trace
from crag_core.view.run_view import RunView


@dataclass(frozen=True)
class RoundRow:
    """One retrieval: how, what it found, and what was decided by it; None where its results were only added."""

    how: str
    found: str
    decision: Decision | None


def round_rows(view: RunView) -> tuple[RoundRow, ...]:
    """Of the rounds that this policy takes; () for a run that retrieved once."""
    path, rounds = view.routed.decision_path, {one.path: one for one in view.trace.rounds}
    first = "first retrieval, meaning and words together"
    rows = [
        RoundRow(_how(rounds[one.path]) if one.path else first, _looked_at(one, rounds.get(one.path)), one.decision)
        for one in path.iterations
    ]
    last = path.iterations[-1]
    following = last.decision.next_round
    widened = rounds.get((*last.path, str(following)))
    if widened and following in WIDENING:  # else it is in the record, and this policy does not use it
        found = f"both retrievals fused by rank: {counted(len(path.evidence), 'chunk')}"
        if following == DOCUMENTS:
            found = f"{counted(len(path.evidence), 'document')} in place of the chunks"
        rows.append(RoundRow(_how(widened), found, None))
    return tuple(rows) if len(rows) > 1 else ()


def _looked_at(one: Iteration, made: Round | None) -> str:
    count = counted(len(one.passages), "chunk")
    is_empty = made is not None and not any(found.passages for found in made.retrievals)
    return f"nothing, {count} of earlier rounds" if is_empty and one.passages else count


def _how(found: Round) -> str:
    if found.path[-1] == DOCUMENTS:
        return f"documents: {found.query_by}"
    asked = found.retrievals[-1]
    added = "; ".join(f"{term} ({why})" for term, why in found.added)
    terms = f", with {added}" if added else ""
    by = "" if terms and found.path[-1] == EXPAND else f"{found.query_by}, "  # it would name the same terms
    return f"{found.path[-1]}: “{asked.query}”, {by}{asked.engine.value}{terms}"


def step_title(name: str) -> str:
    """A step as it is called on the screen; records, logs and spans have its name."""
    return "score sentences" if name == StepName.SCORE_STRIPS else clean(name)


def cost_of(step: Step) -> str:
    """ "1.2 s · first word after 340 ms · 2 model calls, 340 tokens"."""
    cost, usage = [duration(step.seconds)], step.usage
    if step.first_word is not None:
        cost.append(f"first word after {duration(step.first_word)}")
    if usage.calls:
        cost.append(f"{model_calls(usage.calls)}, {usage.prompt_tokens + usage.completion_tokens} tokens")
    if step.taken_over:
        cost.append("taken over from an earlier run")
    return " · ".join(cost)


def spent(usage: Usage, seconds: float) -> str:
    return f"{model_calls(usage.calls)}, {seconds:.1f} s"


@dataclass(frozen=True)
class CallRow:
    """A model call: its number, step and cost in `title`, then what was sent, part by part, and what came back.

    `remark` says what is not there, or was not sent; "": nothing.
    """

    title: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    remark: str = ""


def call_rows(trace: Trace) -> tuple[CallRow, ...]:
    """In the order in which they ended; () where no model was asked, or by a version that did not record it."""
    return tuple(
        CallRow(f"{number}. {_titled(call)}", call.messages, call.reply, _remark(call))
        for number, call in enumerate(trace.calls, start=1)
    )


def calls_by_step(trace: Trace) -> str:
    """ "3 for grade, 1 for answer"."""
    counts: Counter[str] = Counter()
    for call in trace.calls:
        counts[step_title(call.step)] += call.usage.calls
    return ", ".join(f"{count} for {step}" for step, count in counts.items())


def _titled(call: ModelCall) -> str:
    sent, came = call.usage.prompt_tokens, call.usage.completion_tokens
    cost = f" · {sent:,} tokens in, {came:,} out" if sent or came else ""
    broken = " · broken off" if call.usage.calls else " · not sent"
    return f"{step_title(call.step)}{cost}{broken if call.error else ''}"


def _remark(call: ModelCall) -> str:
    unkept = "" if call.messages else "The record had no room left for what was sent and what came back."
    return " ".join(filter(None, (clean(call.error), left_out(call.usage), unkept)))


def asked_as(trace: Trace) -> str:
    """How a question of a conversation was asked, and who made what it was understood as; "" for any other."""
    known = trace.follow_up
    if known is None or not (known.history or known.asks):
        return ""
    after = f", after {counted(len(known.history), 'question')}" if known.history else ""
    made = f"standalone question {known.by}" if known.by else ""
    made = "no standalone question: both were searched for together" if trace.is_unsure else made
    return clean("; ".join(filter(None, (f"Asked as “{known.asked}”{after}", made, known.note))))


def settings_of(trace: Trace) -> tuple[tuple[str, str], ...]:
    """Everything that the run depended on, as name and value; the policy is that of the run."""
    own, policy = trace.settings, trace.settings.policy
    writer = "quotations, no model" if own.writer == EXTRACTIVE else own.writer
    found = {
        "Policy": f"{policy.title} ({policy.name}): {policy.summary}",
        "Described in": policy.source,
        "Thresholds of the run": "none: plain RAG"
        if policy.is_plain
        else "lower {}, upper {}, sentence cut-off {}, ".format(*readable(*policy.thresholds))
        + limit_text(policy.refinement.top),
        "If doubtful": policy.doubtful,
        "Chunks graded by": "nobody: plain RAG" if policy.is_plain else _card(own.evaluator),
        "Sentences scored by": _card(own.strip_evaluator),
        "Embedding model": own.embedding,
        "Answer by": f"{writer}, version {own.writer_version}" if own.writer_version else writer,
        "Answer checked by": "comparing words" if own.support == WORDS else own.support,
        "Web search": own.web_mode,
        "Chunks asked for": str(own.top_k) if trace.logged is None else "none: those of the log",
        "Searched in": _searched(trace),
        "Files read whole": str(len(own.pinned)) + (", and the others searched too" if own.search_too else ""),
        "Version": f"CRAG Explorer {own.version}, prompts {own.prompts}, record schema {trace.schema}",
        "Fingerprint of the settings": trace.fingerprint,
        "Run": f"{trace.id}, {moment(trace.created)}",
    }
    if known := trace.follow_up:
        found["Asked after"] = "; ".join(f"{turn.question} ({turn.run})" for turn in known.history) or "nothing"
    return tuple(found.items())


def _searched(trace: Trace) -> str:
    if trace.logged is not None:
        logged = trace.logged
        return f"nothing: chunks of the log {logged.log!r}, record {logged.record!r}" if logged.log else "nothing"
    collection = trace.settings.collection
    return f"the collection {collection!r}" if collection else "all collections"


def _card(card: EvaluatorCard) -> str:
    version = f", version {card.version}" if card.version else ""
    return f"{card.title} ({card.name}{version}), scale {card.scale}"
