"""The stage before retrieval: a question of a conversation is made to stand alone, by the model or by a rule."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.errors import CragError, Stopped
from crag_core.base.prompts.replies import CONDENSE_SCHEMA
from crag_core.base.protocols import LanguageModel
from crag_core.base.reply_parsing import CondensedReply, parse_condensed
from crag_core.base.types import FollowUp, StepState, Understanding, Usage
from crag_core.pipeline.run import LONGEST_QUESTION, Parts, Result, Run
from crag_core.pipeline.web_stages import answered
from crag_core.trace.standalone import (
    ALONE,
    BY_RULE,
    back_question,
    by_rule,
    fold_space,
    is_said,
    lacks_subject,
    stands_alone,
)
from crag_core.trace.trace import Trace

EDITED = "edited by you"
_OPEN = (Understanding.WAITING, Understanding.ASKS_BACK)


def condense(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Settles what a question of a conversation is understood as, asks back, or waits for the user's word.

    The model is asked once, or twice where its reply cannot be read, and only where the question may depend on what
    came before. One that is away, or cannot be understood, costs nobody the question: it goes on as it was asked. What
    it wrote is used where it stands alone; else it asks back what the turns before do not name, or the rule is used.
    """
    known = trace.follow_up
    if known is None or not is_open(trace):
        return None
    stop_words = parts.meter.stop_words
    is_reply = bool(known.history) and known.history[-1].asks_back
    if not known.history:
        # `needed` has seen that it lacks something.
        return _asks_back(known, back_question(known.asked, stop_words), BY_RULE)
    if not is_reply and stands_alone(known.asked, stop_words):
        return _settled(known, known.asked, ALONE, "stands alone")
    made = by_rule(known.asked, known.history, stop_words)
    if len(made) > LONGEST_QUESTION:
        made = known.asked
    if parts.model is None:
        if not made:
            return _asks_back(known, back_question(known.asked, stop_words), BY_RULE)
        return _settled(known, made, BY_RULE)
    said, usage, why = _ask(parts.model, parts, known, run)
    by = f"written by {parts.model.name}"
    if said.question is None:
        return _settled(replace(known, note=why), known.asked, ALONE, why, usage)
    if not made or stands_alone(said.question, stop_words):
        return _settled(known, said.question, by, usage=usage)
    if said.missing and not is_said(said.missing, known.history, stop_words):
        return _asks_back(known, f"What does “{said.missing}” stand for?", by, usage)
    note = f"what {parts.model.name} wrote does not stand alone"
    return _settled(replace(known, note=note), made, BY_RULE, usage=usage)


def is_open(trace: Trace) -> bool:
    return trace.follow_up is not None and trace.follow_up.outcome is Understanding.OPEN


def needed(follow_up: FollowUp, stop_words: frozenset[str]) -> bool:
    """Whether there is anything to settle: a first question is as it stands, unless it speaks of what nobody said."""
    return bool(follow_up.history) or lacks_subject(follow_up.asked, stop_words)


def _ask(model: LanguageModel, parts: Parts, known: FollowUp, run: Run) -> tuple[CondensedReply, Usage, str]:
    """What the model made of it, the cost, and why there is nothing; raises `Stopped` alone."""
    messages, usage, said = parts.prompts.condense(known.asked, known.history), Usage(), CondensedReply(None)
    for _ in range(2):
        try:
            reply = model.complete(messages, run.cancel, CONDENSE_SCHEMA)
        except Stopped:
            raise
        except CragError as error:
            return CondensedReply(None), usage + Usage(calls=1), f"as it was asked, since: {error.message}"
        usage += reply.usage
        said = parse_condensed(reply.text)
        if said.question is not None:
            return said, usage, ""
        messages = parts.prompts.again(messages, reply.text, said.cause)
    return CondensedReply(None), usage, f"as it was asked, since of {model.name} {said.cause}"


def _settled(known: FollowUp, question: str, by: str, summary: str = "", usage: Usage | None = None) -> Result:
    """Nothing waits where nothing was changed."""
    usage, is_changed = usage or Usage(), fold_space(question) != fold_space(known.asked)
    if not is_changed:
        done = replace(known, outcome=Understanding.SETTLED, question=known.asked, by=by)
        return Result({"follow_up": done}, summary or f"left as it is, {by}", usage)
    summary = f"“{question}”, {by}"
    if known.waits:
        waiting = replace(known, outcome=Understanding.WAITING, question=question, by=by)
        return Result({"follow_up": waiting}, f"{summary}, waits for your word", usage, StepState.WAITING)
    done = replace(known, outcome=Understanding.SETTLED, question=question, by=by)
    return Result({"follow_up": done, "question": question}, summary, usage)


def _asks_back(known: FollowUp, asks: str, by: str, usage: Usage | None = None) -> Result:
    asked = replace(known, outcome=Understanding.ASKS_BACK, asks=asks, by=by)
    return Result({"follow_up": asked}, f"asks back: {asks}", usage or Usage())


# --- the user's word ------------------------------------------------------------------------------------------------


def holds_back(trace: Trace) -> bool:
    """Whether nothing is retrieved yet, since the question waits for the user's word, or is not understood."""
    return trace.follow_up is not None and trace.follow_up.outcome in _OPEN


def confirm(trace: Trace, question: str = "") -> Trace:
    """A run that holds back with the question that it goes on with, "": as it was typed; resume it."""
    known = trace.follow_up
    if known is None or known.outcome not in _OPEN:
        return trace
    question = question.strip() or known.asked
    by = known.by if question == known.question else ALONE if question == known.asked else EDITED
    settled = replace(known, outcome=Understanding.SETTLED, question=question, by=by, asks="")
    return replace(trace, question=question, follow_up=settled, steps=answered(trace, f"“{question}”, {by}"))
