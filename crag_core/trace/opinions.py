"""Who graded a run, and the same run as graded by another evaluator. Pure."""

from dataclasses import replace

from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.steps import Step, StepName
from crag_core.trace.trace import RunSettings, Trace

DEPEND_ON_OTHERS = ("signals",)
"""Evaluators whose grade of one passage is made from the passages beside it, so it does not hold in another company."""


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


def _named(steps: tuple[Step, ...], judge: str) -> tuple[Step, ...]:
    """The steps where evaluator `judge` decides: its own are grading, those of others second opinions. "": none."""
    own, others = StepName.GRADE, StepName.SECOND_OPINION
    names = (own, others)
    return tuple(
        replace(one, name=own if one.by == judge else others) if one.by and one.name in names else one for one in steps
    )


def with_evaluator(trace: Trace, evaluator: str, writer: str | None = None) -> Trace | None:
    """The same record with the grades of another evaluator that it holds, under its name; None where it holds none.

    The grades that it was decided by before become an opinion, so that the way back is the same, and the steps change
    their names with them. `settings.writer` becomes the model that these grades were made with. `writer` chooses
    between opinions of one evaluator by several models; None takes the first.
    """
    own = Opinion(trace.settings.evaluator, trace.settings.writer, ())
    if _is_by(own, evaluator, writer):
        return trace
    at = next((at for at, one in enumerate(trace.opinions) if _is_by(one, evaluator, writer)), None)
    return None if at is None else _decided(trace, at)


def decided_by(trace: Trace, card: EvaluatorCard, writer: str) -> Trace:
    """The record as this evaluator decides it: by its grades with that model, else by any; by none that it lacks."""
    found = with_evaluator(trace, card.name, writer) or with_evaluator(trace, card.name)
    return found or replace(_decided(trace, None), settings=replace(trace.settings, evaluator=card))


def with_grades_of(trace: Trace, settings: RunSettings) -> Trace:
    """The record as graded by the evaluator of `settings`: by nobody, where no grade in it holds under them."""
    if not same_judge(trace.settings, settings):
        places = (at for at, one in enumerate(trace.opinions) if same_judge(_settings_by(trace, one), settings))
        trace = _decided(trace, next(places, None))
    same_prompts = trace.settings.prompts == settings.prompts
    others = (one for one in trace.opinions if not _is_by(one, settings.evaluator.name, settings.writer))
    held = tuple(one for one in others if same_prompts or not one.evaluator.calls_model)
    return replace(trace, opinions=held)


def with_opinion(trace: Trace, opinion: Opinion) -> tuple[Opinion, ...]:
    same = (at for at, one in enumerate(trace.opinions) if _is_by(one, opinion.evaluator.name, opinion.writer))
    at = next(same, len(trace.opinions))
    return (*trace.opinions[:at], opinion, *trace.opinions[at + 1 :])


def grades_under(trace: Trace, settings: RunSettings) -> tuple[Grade, ...]:
    return next((one.grades for one in trace.opinions if same_judge(_settings_by(trace, one), settings)), ())


def _is_by(opinion: Opinion, evaluator: str, writer: str | None) -> bool:
    """Whether it is of that evaluator, by that model if it asks one (None: by any)."""
    card = opinion.evaluator
    return card.name == evaluator and (not card.calls_model or writer in (None, opinion.writer))


def _settings_by(trace: Trace, opinion: Opinion) -> RunSettings:
    return replace(
        trace.settings, evaluator=opinion.evaluator, writer=opinion.writer, writer_version=opinion.writer_version
    )


def _decided(trace: Trace, at: int | None) -> Trace:
    """The record as its opinion at this place decides it, or nobody; the grades that decided before are an opinion."""
    before, web = main_opinion(trace), trace.web
    chosen = None if at is None else trace.opinions[at]
    if at is None:
        opinions = with_opinion(trace, before) if before else trace.opinions
    else:
        opinions = trace.opinions[:at] + ((before,) if before else ()) + trace.opinions[at + 1 :]
    grades = chosen.grades if chosen else ()
    results = {passage.id for passage in trace.web_passages}
    corpus = tuple(grade for grade in grades if grade.passage_id not in results)
    of_web = tuple(grade for grade in grades if grade.passage_id in results)
    is_graded = bool(corpus) or (chosen is not None and not trace.all_passages)
    return replace(
        trace,
        settings=_settings_by(trace, chosen) if chosen else trace.settings,
        grades=corpus if is_graded else None,
        web=replace(web, grades=of_web or None) if web and (web.passages or chosen is None) else web,
        opinions=opinions,
        steps=_named(trace.steps, chosen.evaluator.name if chosen else ""),
    )


def main_opinion(trace: Trace) -> Opinion | None:
    """The grades that the run itself was decided by, as an opinion; None where it has graded nothing."""
    if trace.grades is None and (trace.web is None or trace.web.grades is None):
        return None
    settings = trace.settings
    return Opinion(settings.evaluator, settings.writer, trace.all_grades, settings.writer_version)
