"""The stages "consolidate", "answer", quoted or generated, and "check answer": how far the evidence supports it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from crag_core.base import errors
from crag_core.base.errors import CragError, Stopped
from crag_core.base.prompts import replies
from crag_core.base.prompts.delimiters import harmless
from crag_core.base.prompts.messages import Prompts
from crag_core.base.protocols import LanguageModel, Messages
from crag_core.base.reply_parsing import without_thoughts
from crag_core.base.text.refusals import begins_agreed, is_refusal
from crag_core.base.types.answers import Answer, AnswerState, Support
from crag_core.base.types.knowledge import Consolidation, Excerpt
from crag_core.base.types.steps import StepName, StepState, Usage
from crag_core.decision.policy import ContextJudge
from crag_core.pipeline.run import Parts, Result, Run, ask_twice
from crag_core.trace.consolidation import ListReply, in_brief, parse_pieces, parse_recalled
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import pieces_of, summed_up
from crag_core.trace.grounding.claims import is_from_memory, sentences
from crag_core.trace.grounding.quoted_answer import (
    EXTRACTIVE,
    StreamedReply,
    cited_in,
    left_out,
    why_cut,
)
from crag_core.trace.reroute import Reroute, key_of, quoted, reroute, withheld
from crag_core.trace.trace import Trace, context_ids

_FINAL = (AnswerState.COMPLETE, AnswerState.CANNOT_ANSWER)
_ANEW = 40  # characters by which a reply is recognised that does not go on from what was written, but begins anew
_STEP_STATES = {AnswerState.STOPPED: StepState.STOPPED, AnswerState.FAILED: StepState.FAILED}


def consolidate(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Ask the language model for what it knows itself, and to put that beside the evidence (arXiv 2410.07176)."""
    routed = reroute(trace, trace.settings.policy)
    excerpts = routed.knowledge.excerpts
    most = trace.settings.policy.steps(routed.decision.action).get("consolidate")
    if most is None or not excerpts or edited(trace).consolidated(most, excerpts):
        return None
    if parts.model is None:
        return Result({}, "no language model to ask; the evidence is used as it is", state=StepState.SKIPPED)
    try:
        found, usage = _consolidated(trace.question, excerpts, most, parts.model, parts.prompts, run)
    except Stopped:
        raise
    except CragError as error:
        text = f"not consolidated, the evidence is used as it is: {error.message}"
        return Result({}, text, Usage(calls=1), StepState.SKIPPED, error.hint, type(error).__name__)
    return Result({"consolidations": (*trace.consolidations, found)}, in_brief(found), usage)


def _consolidated(
    question: str, excerpts: tuple[Excerpt, ...], most: int, model: LanguageModel, prompts: Prompts, run: Run
) -> tuple[Consolidation, Usage]:
    """Two requests: for what the model knows, and for what both say; raises a `CragError` where it cannot be asked."""
    shown = Consolidation(context_ids(excerpts), most)
    recalled, raw, usage = ListReply[str](()), tuple[str, ...](), Usage()
    if most:
        asked, recall = prompts.recall(question, most), partial(parse_recalled, most=most)
        recalled, raw, usage = ask_twice(model, prompts, asked, recall, run.cancel, replies.recall_schema(most))
    if recalled.listed is None:
        return replace(shown, raw="\n---\n".join(raw), cause=f"{recalled.cause} (asked twice)"), usage
    asked = prompts.consolidate(question, excerpts, recalled.listed)
    read = partial(parse_pieces, excerpts=len(excerpts), own=len(recalled.listed))
    found, said, spent = ask_twice(model, prompts, asked, read, run.cancel, replies.CONSOLIDATION_SCHEMA)
    made = replace(shown, own=recalled.listed, pieces=found.listed or (), raw="\n---\n".join((*raw, *said)))
    return replace(made, cause=f"{found.cause} (asked twice)" if found.cause else ""), usage + spent


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
        if not is_refusal(attempt):
            yield attempt
        made = written_by(trace, attempt, parts.model.name if parts.model else trace.settings.writer)
        yield made if is_refusal(attempt) else replace(made, summary=f"{made.summary} when it was asked")
    elif (found := routed.knowledge.consolidation) and not found.pieces:
        name = parts.model.name if parts.model else trace.settings.writer
        why = f"{name} found nothing on this in {len(routed.knowledge.excerpts)} excerpts"
        why += " or its own knowledge." if found.most else "."
        yield Result({"answer": Answer("", AnswerState.CANNOT_ANSWER, name, key, why)}, why)
    elif parts.model is None or trace.is_unsure:
        answer = quoted(trace, routed.decision_path, routed.knowledge)
        yield answer.text
        yield Result({"answer": answer}, "quoted word for word, no language model")
    else:
        asked = (
            parts.prompts.consolidated(trace.question, found)
            if found
            else parts.prompts.answer(trace.question, routed.knowledge.excerpts)
        )
        yield from _stream_from(parts.model, asked, routed, key, run)


def _attempt(trace: Trace, routed: Reroute) -> str:
    """What a model answered when it was asked whether these very chunks are enough; "" where it did not, or was cut.

    Self-Route (arXiv 2407.16881) asks for the answer and for its absence in one request.
    """
    policy = trace.settings.policy
    judged = trace.judgement(policy)
    chunks = tuple((one.id, one.text) for one in trace.passages or ())
    seen = tuple((one.passage.id, one.text) for one in routed.knowledge.excerpts)
    is_answer = judged is not None and policy.context_judge is ContextJudge.ANSWER and judged.score is not None
    return without_thoughts(judged.raw) if judged and is_answer and seen == chunks and not judged.cause else ""


def refuses(trace: Trace) -> bool:
    routed = reroute(trace, trace.settings.policy)
    abstention = withheld(trace, trace.settings.policy, routed.decision, routed.knowledge)
    return abstention is not None or is_refusal(_attempt(trace, routed))


def written_by(trace: Trace, text: str, writer: str) -> Result:
    routed = reroute(trace, trace.settings.policy)
    key = key_of(trace, routed.decision, routed.knowledge)
    if not is_refusal(text):
        return Result({"answer": Answer(text, AnswerState.COMPLETE, writer, key)}, f"written by {writer}")
    why = _declined(writer, routed)
    return Result({"answer": Answer(text, AnswerState.CANNOT_ANSWER, writer, key, why)}, why)


def _declined(writer: str, routed: Reroute) -> str:
    return f"{writer} found no answer in the {len(routed.knowledge.excerpts)} excerpts that it was given."


def _stream_from(model: LanguageModel, asked: Messages, routed: Reroute, key: str, run: Run) -> Iterator[str | Result]:
    """An answer of this model that was cut, stopped or broke off goes on from its last word."""
    before = routed.answer if routed.answer and routed.answer.writer == model.name and routed.answer.text else None
    begun = before.text if before and len(before.text) >= _ANEW else ""  # a few words are sooner written anew
    if begun:
        yield begun
        asked = (*asked, ("assistant", harmless(begun)))
    spoken = StreamedReply(begun)
    usage = Usage(calls=1)
    state, message, hint, broken = AnswerState.COMPLETE, "", "", ""
    start, first_word = run.clock(), None
    try:
        for piece in model.stream(asked, run.cancel):
            if isinstance(piece, Usage):
                usage = piece
            else:
                if heard := spoken.add(piece):
                    first_word = run.clock() - start if first_word is None else first_word
                    yield heard
    except Stopped as error:
        state, message = AnswerState.STOPPED, error.message
    except CragError as error:
        state, message, hint = AnswerState.FAILED, error.message, error.hint
        broken = type(error).__name__
    text, spent = spoken.text.strip(), before.usage if before else Usage()
    total = replace(spent + usage, cut=usage.cut, ended=usage.ended)
    if state is not AnswerState.COMPLETE:
        text = "" if is_refusal(text) or begins_agreed(text) else text
        text = text or (before.text if before else "")
    elif (usage.ended and not spoken.is_thought_only and not is_refusal(text)) or (begun and text == begun):
        state, message = AnswerState.CUT, why_cut(total) or "The model wrote nothing more after this."
        if heard := spoken.rest():
            yield heard
    elif not text or is_refusal(text):
        state = AnswerState.CANNOT_ANSWER
        message = _declined(model.name, routed)
        if routed.decision.is_from_memory:
            message = f"{model.name} does not know, and no document was read."
        if spoken.is_thought_only:
            message = f"{model.name} thought aloud until its reply was cut off, and gave no answer."
        message = " ".join(filter(None, (message, left_out(usage))))
    elif heard := spoken.rest():
        yield heard
    answer = Answer(_joined(begun, text), state, model.name, key, message, total)
    step_state = _STEP_STATES.get(state, StepState.DONE)
    # The step says itself what was left out.
    summary = message.removesuffix(left_out(usage)).rstrip()
    summary = summary or f"written by {model.name}"
    yield Result({"answer": answer}, summary, usage, step_state, hint, broken, first_word=first_word)


def _joined(begun: str, text: str) -> str:
    """`text`, which begins with `begun`; without that where the rest begins with the same words once more."""
    rest = text.removeprefix(begun).lstrip()
    return rest if begun and rest.startswith(begun[:_ANEW]) else text


def check(trace: Trace, parts: Parts, run: Run) -> Result | None:
    answer = trace.answer
    if parts.support is None or trace.support is not None or answer is None or answer.state is not AnswerState.COMPLETE:
        return None
    routed = reroute(trace, trace.settings.policy)
    if routed.decision.is_from_memory:
        return Result({}, "not measured: no document was read", state=StepState.SKIPPED)
    spans = sentences(answer.text)
    pieces = pieces_of(routed.knowledge.excerpts, edited(trace).all_strips)
    recalled = [one for one in spans if routed.knowledge.consolidation and is_from_memory(answer.text[slice(*one)])]
    measured = [one for one in spans if one not in recalled]
    said = [answer.text[start:end] for start, end in measured]
    try:
        found = parts.support.measure(said, pieces, run.cancel, trace.question)
    except CragError as error:
        why, kind = f"not measured: {error.message}", type(error).__name__
        return Result({}, why, state=StepState.SKIPPED, hint=error.hint, error=kind)
    backed = [
        Support(start, end, backing.score, backing.pieces, cited_in(sentence))
        for (start, end), sentence, backing in zip(measured, said, found, strict=True)
    ]
    unbacked = [Support(start, end, 0.0) for start, end in recalled]  # whatever the evidence says, it is not from there
    support = tuple(sorted(backed + unbacked, key=lambda one: one.start))
    usage = sum((backing.usage for backing in found), Usage())
    summary = summed_up(support, trace.settings.support)
    if recalled:
        summary = f"{summary} {len(recalled)} from the model's memory, which is no evidence."
    if answer.writer == EXTRACTIVE:
        summary = "quoted word for word, so there is nothing to check"
    return Result({"support": support}, summary, usage)


def unmeasured(trace: Trace) -> CragError | None:
    """Why an answer could not be measured, `Stopped` where somebody stopped it; None where it was, or was not to be."""
    missed = (step for step in trace.steps if step.name == StepName.CHECK_ANSWER and step.error)
    step = next(missed, None) if trace.support is None else None
    return errors.kind_named(step.error)(step.summary, hint=step.hint) if step else None
