"""Whether two runs or steps used the same evaluator. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from crag_core.base.types import EvaluatorCard, Step, StepName
from crag_core.trace.trace import RunSettings, Trace

DEPEND_ON_OTHERS = ("signals",)
"""Evaluators whose grade of one passage is made from the passages beside it, so it does not hold in another company."""

_SIGNED = re.compile(r"\b(graded by .+?)(?:, \d+ (?:from the cache|not graded))*$")
_LONGEST = 200


def made_by(card: EvaluatorCard) -> tuple[str, str]:
    return card.name, card.version


def judge_of(settings: RunSettings) -> tuple[str, ...]:
    """Who graded: grades by a model hold for that model, in that version, and its prompt only."""
    made = made_by(settings.evaluator)
    asked = (settings.writer, settings.writer_version, settings.prompts)
    return (*made, *asked) if settings.evaluator.calls_model else made


def same_judge(one: RunSettings, other: RunSettings) -> bool:
    """Whether grades made under one hold under the other; an unknown version of a model may be any."""
    if not (one.writer_version and other.writer_version):
        one, other = replace(one, writer_version=""), replace(other, writer_version="")
    return judge_of(one) == judge_of(other)


def graded_by(card: EvaluatorCard) -> str:
    """What the summary of a step says of who graded."""
    return f"graded by {card.title.lower()}"


def renamed_steps(trace: Trace, judge: EvaluatorCard | None) -> tuple[Step, ...]:
    """The steps as `judge` now decides: his are those of grading, those of the evaluator before a second opinion.

    None: nobody decides.
    """
    names: dict[tuple[str, str], str] = {(StepName.GRADE, graded_by(trace.settings.evaluator)): StepName.SECOND_OPINION}
    if judge:
        names[StepName.SECOND_OPINION, graded_by(judge)] = StepName.GRADE
    return tuple(replace(step, name=names.get((step.name, _signature(step)), step.name)) for step in trace.steps)


def _signature(step: Step) -> str:
    found = _SIGNED.search(step.summary[-_LONGEST:])
    return found.group(1) if found else ""
