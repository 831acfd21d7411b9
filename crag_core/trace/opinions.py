"""The same run as graded by another evaluator, and what one more evaluator says of it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.steps import StepName
from crag_core.trace.trace import RunSettings, Trace

DEPEND_ON_OTHERS = ("signals",)
"""Evaluators whose grade of one passage is made from the passages beside it, so it does not hold in another company."""


def with_evaluator(trace: Trace, evaluator: str, writer: str | None = None) -> Trace | None:
    """The same record decided by another evaluator whose grades it holds; None where it holds none.

    `settings.writer` becomes the model that these grades were made with. `writer` chooses between opinions of one
    evaluator by several models; None takes the first.
    """
    if _is_by(Opinion(trace.settings.evaluator, trace.settings.writer, ()), evaluator, writer):
        return trace
    found = next((one for one in trace.opinions if _is_by(one, evaluator, writer)), None)
    return None if found is None else _decided_by(trace, trace.settings.by(found))


def decided_by(trace: Trace, card: EvaluatorCard, writer: str) -> Trace:
    """The record as this evaluator decides it: by its grades with that model, else by any; by none that it lacks."""
    found = with_evaluator(trace, card.name, writer) or with_evaluator(trace, card.name)
    return found or _decided_by(trace, replace(trace.settings, evaluator=card))


def with_grades_of(trace: Trace, settings: RunSettings) -> Trace:
    """The record as graded by the evaluator of `settings`, or by nobody, with what holds of the others."""
    same_prompts, card = trace.settings.prompts == settings.prompts, settings.evaluator
    held = tuple(
        replace(one, grades=tuple(grade for grade in one.grades if grade.passage_id in trace.numbers))
        for one in trace.opinions
        if trace.settings.by(one).same_judge(settings)
        or (not _is_by(one, card.name, settings.writer) and (same_prompts or not one.evaluator.calls_model))
    )
    return _decided_by(replace(trace, opinions=held), settings)


def with_opinion(trace: Trace, opinion: Opinion) -> tuple[Opinion, ...]:
    """With this one in place of an earlier one by that evaluator, which never is the one that decides for another."""
    decides, by = trace.settings.same_judge(trace.settings.by(opinion)), opinion.evaluator.name
    alike = [one for one in trace.opinions if (one is trace.deciding) is decides and _is_by(one, by, opinion.writer)]
    return tuple(opinion if one in alike else one for one in trace.opinions) + (() if alike else (opinion,))


def with_grades(trace: Trace, grades: Iterable[Grade]) -> tuple[Opinion, ...]:
    """The opinions with these grades by the evaluator that decides, each in place of an earlier one."""
    known = {grade.passage_id: grade for grade in (*trace.all_grades, *grades)}
    kept = tuple(known[passage.id] for passage in trace.every_passage if passage.id in known)
    settings = trace.settings
    return with_opinion(trace, Opinion(settings.evaluator, settings.writer, kept, settings.writer_version))


def grades_under(trace: Trace, settings: RunSettings) -> tuple[Grade, ...]:
    return next((one.grades for one in trace.opinions if trace.settings.by(one).same_judge(settings)), ())


def _is_by(opinion: Opinion, evaluator: str, writer: str | None) -> bool:
    """Whether it is of that evaluator, by that model if it asks one (None: by any)."""
    card = opinion.evaluator
    return card.name == evaluator and (not card.calls_model or writer in (None, opinion.writer))


def _decided_by(trace: Trace, settings: RunSettings) -> Trace:
    """The record as the evaluator of `settings` decides it: its own steps are grading, those of others opinions."""
    made = replace(trace, settings=settings)
    if trace.settings.same_judge(settings):
        return made
    judge = settings.evaluator.name if made.deciding else ""
    names = {True: StepName.GRADE, False: StepName.SECOND_OPINION}
    steps = (
        replace(one, name=names[one.by == judge]) if one.by and one.name in names.values() else one
        for one in trace.steps
    )
    return replace(made, steps=tuple(steps))
