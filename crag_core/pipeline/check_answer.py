"""The stage "check answer": the support of each sentence of the answer."""

from __future__ import annotations

from crag_core.base import errors
from crag_core.base.errors import CragError
from crag_core.base.types import AnswerState, StepName, StepState, Support, Usage
from crag_core.pipeline.run import Parts, Result, Run
from crag_core.trace.edits import edited
from crag_core.trace.grounding.citation_check import pieces_of, summed_up
from crag_core.trace.grounding.claims import sentences
from crag_core.trace.grounding.quoted_answer import cited_in
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace


def check(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Measure a finished answer against what it was written from: by its words, or by asking a model if it is set so.

    An answer that cannot be measured, or no longer because somebody stopped it, is an answer all the same: the step is
    skipped then, and says why.
    """
    answer = trace.answer
    if parts.support is None or trace.support is not None or answer is None or answer.state is not AnswerState.COMPLETE:
        return None
    spans = sentences(answer.text)
    pieces = pieces_of(reroute(trace, trace.settings.policy).knowledge.excerpts, edited(trace).all_strips)
    said = [answer.text[start:end] for start, end in spans]
    try:
        found = parts.support.measure(said, pieces, run.cancel)
    except CragError as error:
        why, kind = f"not measured: {error.message}", type(error).__name__
        return Result({}, why, state=StepState.SKIPPED, hint=error.hint, error=kind)
    support = tuple(
        Support(start, end, backing.score, backing.pieces, cited_in(sentence))
        for (start, end), sentence, backing in zip(spans, said, found, strict=True)
    )
    usage = sum((backing.usage for backing in found), Usage())
    return Result({"support": support}, summed_up(support, trace.settings.support), usage)


def unmeasured(trace: Trace) -> CragError | None:
    """Why an answer could not be measured, `Stopped` where somebody stopped it; None where it was, or was not to be."""
    missed = (step for step in trace.steps if step.name == StepName.CHECK_ANSWER and step.error)
    step = next(missed, None) if trace.support is None else None
    return errors.kind_named(step.error)(step.summary, hint=step.hint) if step else None
