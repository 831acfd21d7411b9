"""The stages "answer", quoted or generated from the evidence, and "check answer": how far the evidence supports it."""

from __future__ import annotations

from collections.abc import Iterator

from crag_core.base import errors
from crag_core.base.errors import CragError, Stopped
from crag_core.base.protocols import LanguageModel, Messages
from crag_core.base.types import Answer, AnswerState, StepName, StepState, Support, Usage
from crag_core.decision.policy import ContextJudge
from crag_core.pipeline.run import Parts, Result, Run
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import pieces_of, summed_up
from crag_core.trace.grounding.claims import sentences
from crag_core.trace.grounding.quoted_answer import (
    EXTRACTIVE,
    StreamedReply,
    cited_in,
    declines,
    left_out,
    may_decline,
    without_thoughts,
)
from crag_core.trace.reroute import Reroute, key_of, quoted, reroute, withheld
from crag_core.trace.trace import Trace

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
    abstention = withheld(trace, trace.settings.policy, routed.decision, routed.knowledge)
    if abstention is not None:
        if trace.answer != abstention:
            yield Result({"answer": abstention}, "no answer: the policy abstains when in doubt")
        return
    if routed.answer and routed.answer is trace.answer and routed.answer.state in _FINAL:
        return
    key = key_of(trace, routed.decision, routed.knowledge)
    if routed.decision.is_from_memory and parts.model is not None:
        yield from _stream_from(parts.model, parts.prompts.alone(trace.question), routed, key, run)
    elif not routed.knowledge.excerpts:
        answer = quoted(trace, routed.decision_path, routed.knowledge)
        yield Result({"answer": answer}, "cannot be answered from this evidence")
    elif attempt := _attempt(trace, routed):
        yield from _taken_over(attempt, key, len(routed.knowledge.excerpts), trace.settings.writer, parts)
    elif parts.model is None:
        answer = quoted(trace, routed.decision_path, routed.knowledge)
        yield answer.text
        yield Result({"answer": answer}, "quoted word for word, no language model")
    else:
        asked = parts.prompts.answer(trace.question, routed.knowledge.excerpts)
        yield from _stream_from(parts.model, asked, routed, key, run)


def _attempt(trace: Trace, routed: Reroute) -> str:
    """What a model answered when it was asked whether these very chunks are enough; "" where it was not, or declined.

    Self-Route (arXiv 2407.16881) asks for the answer and for its absence in one request.
    """
    policy = trace.settings.policy
    judged = trace.judgement(policy)
    chunks = tuple((one.id, one.text) for one in trace.passages or ())
    seen = tuple((one.passage.id, one.text) for one in routed.knowledge.excerpts)
    is_answer = judged is not None and policy.context_judge is ContextJudge.ANSWER and judged.score is not None
    return without_thoughts(judged.raw).strip() if judged and is_answer and seen == chunks else ""


def _taken_over(text: str, key: str, count: int, writer: str, parts: Parts) -> Iterator[str | Result]:
    """The reply that was given before, which costs nothing now."""
    name = parts.model.name if parts.model else writer
    if declines(text):
        why = f"{name} found no answer in the {count} excerpts that it was given."
        yield Result({"answer": Answer("", AnswerState.CANNOT_ANSWER, name, key, why)}, why)
        return
    yield text
    yield Result({"answer": Answer(text, AnswerState.COMPLETE, name, key)}, f"written by {name} when it was asked")


def written_by(trace: Trace, text: str, writer: str) -> Result:
    """An answer that was written elsewhere, from the evidence of this trace."""
    routed = reroute(trace, trace.settings.policy)
    key = key_of(trace, routed.decision, routed.knowledge)
    return Result({"answer": Answer(text, AnswerState.COMPLETE, writer, key)}, f"written by {writer}")


def _stream_from(model: LanguageModel, asked: Messages, routed: Reroute, key: str, run: Run) -> Iterator[str | Result]:
    excerpts = routed.knowledge.excerpts
    spoken = StreamedReply()
    usage = Usage(calls=1)
    state, message, hint, broken = AnswerState.COMPLETE, "", "", ""
    try:
        for piece in model.stream(asked, run.cancel):
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
        if routed.decision.is_from_memory:
            message = f"{model.name} does not know, and no document was read."
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


def check(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Measure a finished answer against what it was written from: by its words, or by asking a model if it is set so.

    An answer that cannot be measured, or no longer because somebody stopped it, is an answer all the same: the step is
    skipped then, and says why.
    """
    answer = trace.answer
    if parts.support is None or trace.support is not None or answer is None or answer.state is not AnswerState.COMPLETE:
        return None
    if reroute(trace, trace.settings.policy).decision.is_from_memory:
        return Result({}, "not measured: no document was read", state=StepState.SKIPPED)
    spans = sentences(answer.text)
    pieces = pieces_of(reroute(trace, trace.settings.policy).knowledge.excerpts, edited(trace).all_strips)
    said = [answer.text[start:end] for start, end in spans]
    try:
        found = parts.support.measure(said, pieces, run.cancel, trace.question)
    except CragError as error:
        why, kind = f"not measured: {error.message}", type(error).__name__
        return Result({}, why, state=StepState.SKIPPED, hint=error.hint, error=kind)
    support = tuple(
        Support(start, end, backing.score, backing.pieces, cited_in(sentence), backing.spans)
        for (start, end), sentence, backing in zip(spans, said, found, strict=True)
    )
    usage = sum((backing.usage for backing in found), Usage())
    summary = summed_up(support, trace.settings.support)
    if answer.writer == EXTRACTIVE:
        summary = "quoted word for word, so there is nothing to check"
    return Result({"support": support}, summary, usage)


def unmeasured(trace: Trace) -> CragError | None:
    """Why an answer could not be measured, `Stopped` where somebody stopped it; None where it was, or was not to be."""
    missed = (step for step in trace.steps if step.name == StepName.CHECK_ANSWER and step.error)
    step = next(missed, None) if trace.support is None else None
    return errors.kind_named(step.error)(step.summary, hint=step.hint) if step else None
