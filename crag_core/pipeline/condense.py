"""The stage before retrieval: a question of a conversation is made to stand alone, by the model or by a rule."""

from dataclasses import replace

from crag_core.base.errors import CragError, Stopped
from crag_core.base.prompts.replies import CONDENSE_SCHEMA
from crag_core.base.protocols import LanguageModel
from crag_core.base.reply_parsing import CondensedReply, parse_condensed
from crag_core.base.text.words import words
from crag_core.base.types.questions import FollowUp, Understanding
from crag_core.base.types.steps import StepName, StepState, Usage
from crag_core.pipeline.run import LONGEST_QUESTION, Parts, Result, Run, ask_twice
from crag_core.pipeline.web_stages import answered
from crag_core.trace.standalone import (
    ALONE,
    BY_RULE,
    TOGETHER,
    back_question,
    by_rule,
    fold_space,
    is_said,
    lacks_subject,
    own_words,
    points_back,
    stands_alone,
    why_refused,
)
from crag_core.trace.trace import Trace

EDITED = "edited by you"
_HELD_BACK = (Understanding.WAITING, Understanding.ASKS_BACK)


def condense(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Settles what a question of a conversation is understood as, asks back, or waits for the user's word.

    The model is asked once, or twice where its reply cannot be read, and only where the question may depend on what
    came before. What it wrote is used where `why_refused` has nothing against it. Else a word of the question is asked
    back that the turns before do not explain; or it is two questions: evidence is found by both, and nothing decided
    until the user's word.
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
        return _settled(known, known.asked, "as it stands alone")
    usage, said = Usage(), CondensedReply(None)
    if parts.model is not None:
        said, usage, why = _ask(parts.model, parts, known, run)
        if said.question is not None:
            why = why_refused(said.question, known.asked, known.history, stop_words)
            if not why:
                return _settled(known, said.question, f"written by {parts.model.name}", usage)
            why = f"{parts.model.name} {why}: “{said.question}”"
        known = replace(known, note=why)
    made, is_one = by_rule(known.asked, known.history, stop_words)
    if is_one and len(made) <= LONGEST_QUESTION:
        return _settled(known, made, BY_RULE, usage)
    if parts.model is not None and _asks_for(said.missing, known, stop_words):
        return _asks_back(known, f"What does “{said.missing}” stand for?", f"written by {parts.model.name}", usage)
    if not made:
        return _asks_back(known, back_question(known.asked, stop_words), BY_RULE, usage)
    return _unsure(known, made if len(made) <= LONGEST_QUESTION else known.asked, usage)


def _asks_for(missing: str, known: FollowUp, stop_words: frozenset[str]) -> bool:
    """Whether what a model misses stands in the question, and in no turn before: small ones miss what they made up."""
    stands = set(words(missing)) <= set(words(known.asked))
    names = bool(own_words(missing, stop_words) or points_back(missing, stop_words))
    return stands and names and not is_said(missing, known.history, stop_words)


def is_open(trace: Trace) -> bool:
    return trace.follow_up is not None and trace.follow_up.outcome is Understanding.OPEN


def needed(follow_up: FollowUp, stop_words: frozenset[str]) -> bool:
    """Whether there is anything to settle: a first question is as it stands, unless it speaks of what nobody said."""
    return bool(follow_up.history) or lacks_subject(follow_up.asked, stop_words)


def _ask(model: LanguageModel, parts: Parts, known: FollowUp, run: Run) -> tuple[CondensedReply, Usage, str]:
    """What the model made of it, the cost, and why there is nothing; raises `Stopped` alone."""
    asked = parts.prompts.condense(known.asked, known.history)
    try:
        said, _, usage = ask_twice(model, parts.prompts, asked, parse_condensed, run.cancel, CONDENSE_SCHEMA)
    except Stopped:
        raise
    except CragError as error:
        return CondensedReply(None), Usage(calls=1), error.message
    return said, usage, f"of {model.name} {said.cause}" if said.cause else ""


def _settled(known: FollowUp, question: str, by: str, usage: Usage | None = None) -> Result:
    usage = usage or Usage()
    if fold_space(question) == fold_space(known.asked):
        done = replace(known, outcome=Understanding.SETTLED, question=known.asked, by=ALONE)
        return Result({"follow_up": done}, f"left as it is, {by}", usage)
    summary = "; ".join(filter(None, (f"“{question}”, {by}", known.note)))
    if known.waits:
        waiting = replace(known, outcome=Understanding.WAITING, question=question, by=by)
        return Result({"follow_up": waiting}, f"{summary}; waits for your word", usage, StepState.WAITING)
    done = replace(known, outcome=Understanding.SETTLED, question=question, by=by)
    return Result({"follow_up": done, "question": question}, summary, usage)


def _unsure(known: FollowUp, both: str, usage: Usage) -> Result:
    found = replace(known, outcome=Understanding.UNSURE, question=both, by=TOGETHER)
    summary = "; ".join(filter(None, ("no one question is made of both", known.note, "waits for your word")))
    return Result({"follow_up": found, "question": both}, summary, usage, StepState.WAITING)


def _asks_back(known: FollowUp, asks: str, by: str, usage: Usage | None = None) -> Result:
    asked = replace(known, outcome=Understanding.ASKS_BACK, asks=asks, by=by)
    return Result({"follow_up": asked}, f"asks back: {asks}", usage or Usage())


# --- the user's word ------------------------------------------------------------------------------------------------


def holds_back(trace: Trace) -> bool:
    return trace.follow_up is not None and trace.follow_up.outcome in _HELD_BACK


def confirm(trace: Trace, question: str = "") -> Trace:
    """A run that holds back with the question that it goes on with, "": as it was typed; resume it."""
    known = trace.follow_up
    if known is None or not (holds_back(trace) or trace.is_unsure):
        return trace
    question = question.strip() or known.asked
    if trace.is_unsure and question == known.question:
        return trace
    by = known.by if question == known.question else ALONE if question == known.asked else EDITED
    settled = replace(known, outcome=Understanding.SETTLED, question=question, by=by, asks="")
    steps = tuple(one for one in answered(trace, f"“{question}”, {by}") if one.name == StepName.CONDENSE)
    made = Trace(trace.id, trace.created, question, trace.settings, logged=trace.logged, calls=trace.calls)
    return replace(made, follow_up=settled, steps=steps)
