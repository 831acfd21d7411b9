"""The stage "answer": quoted or generated from the assembled knowledge."""

from __future__ import annotations

from collections.abc import Iterator

from crag_core.base import prompts
from crag_core.base.errors import CragError, Stopped
from crag_core.base.protocols import LanguageModel
from crag_core.base.types import Answer, AnswerState, StepState, Usage
from crag_core.pipeline.run import Parts, Result, Run
from crag_core.trace.grounding.quoted_answer import (
    EXTRACTIVE,
    StreamedReply,
    declines,
    left_out,
    may_decline,
    quote,
    why_no_evidence,
)
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace, context_key

_FINAL = (AnswerState.COMPLETE, AnswerState.CANNOT_ANSWER)
_STEP_STATES = {AnswerState.STOPPED: StepState.STOPPED, AnswerState.FAILED: StepState.FAILED}


def write(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Write the answer, telling `run.listener` each piece as it comes; what a stop or failure leaves is kept."""
    for piece in stream(trace, parts, run):
        if isinstance(piece, Result):
            return piece
        run.listener.wrote(piece)
    return None


def stream(trace: Trace, parts: Parts, run: Run) -> Iterator[str | Result]:
    """The pieces of the answer as they come, and the `Result` last; nothing when the trace has its answer already."""
    routed = reroute(trace, trace.settings.policy)
    if routed.answer and routed.answer.state in _FINAL:
        return
    key = context_key(trace.question, routed.decision.action, routed.knowledge.excerpts)
    if not routed.knowledge.excerpts:
        why = why_no_evidence(routed.decision, routed.knowledge, trace.web, len(routed.decision_path.evidence))
        answer = Answer("", AnswerState.CANNOT_ANSWER, EXTRACTIVE, key, why)
        yield Result({"answer": answer}, "cannot be answered from this evidence")
    elif parts.model is None:
        text = quote(routed.knowledge, trace.all_strips)
        yield text
        answer = Answer(text, AnswerState.COMPLETE, EXTRACTIVE, key)
        yield Result({"answer": answer}, "quoted word for word, no language model")
    else:
        yield from _stream_from(parts.model, trace, routed, key, run)


def _stream_from(model: LanguageModel, trace: Trace, routed: Reroute, key: str, run: Run) -> Iterator[str | Result]:
    excerpts = routed.knowledge.excerpts
    spoken = StreamedReply()
    usage = Usage(calls=1)
    state, message, hint, broken = AnswerState.COMPLETE, "", "", ""
    try:
        for piece in model.stream(prompts.answer(trace.question, excerpts), run.cancel):
            if isinstance(piece, Usage):
                usage = piece
            else:
                if heard := spoken.add(piece):
                    yield heard
    except Stopped as error:
        state, message = AnswerState.STOPPED, error.message
    except CragError as error:
        state, message, hint = AnswerState.FAILED, error.message, error.hint
        broken = type(error).__name__
    text = spoken.text.strip()
    if state is not AnswerState.COMPLETE:
        text = "" if may_decline(text) else text
    elif not text or declines(text):
        state = AnswerState.CANNOT_ANSWER
        message = f"{model.name} found no answer in the {len(excerpts)} excerpts that it was given."
        if spoken.is_thought_only:
            message = f"{model.name} thought aloud until its reply was cut off, and gave no answer."
        message = " ".join(filter(None, (message, left_out(usage))))
    elif heard := spoken.rest():
        yield heard
    answer = Answer(text, state, model.name, key, message, usage)
    step_state = _STEP_STATES.get(state, StepState.DONE)
    # The step says itself what was left out.
    summary = message.removesuffix(left_out(usage)).rstrip()
    yield Result({"answer": answer}, summary or f"written by {model.name}", usage, step_state, hint, broken)
