"""What the record of a run says when the program ended while it was under way. Pure."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.types import AnswerState, Step, StepState
from crag_core.trace.trace import Trace


def program_ended(trace: Trace, step: str = "") -> Trace:
    """The record of a run that was stopped for it, or with `step`, at which it was, of one that did not even stop.

    One that came to its end all the same stays as it is.
    """
    if step and trace.is_unfinished and trace.failure is None:
        return replace(trace, steps=(*trace.steps, Step(step, "The program was ended.", StepState.STOPPED)))
    answer = trace.answer
    if answer is not None and answer.state is AnswerState.STOPPED:
        answer = replace(answer, message=_not_by_you(answer.message))
    return replace(trace, steps=tuple(map(_describe, trace.steps)), answer=answer)


def _describe(step: Step) -> Step:
    return replace(step, summary=_not_by_you(step.summary)) if step.state is StepState.STOPPED else step


def _not_by_you(words: str) -> str:
    return words.replace("Stopped by you", "The program was ended").replace("stopped by you", "the program was ended")
