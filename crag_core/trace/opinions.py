"""Who graded a run; the grades of several evaluators on the same passages, and the action of each alone. Pure."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepName
from crag_core.decision.decide import chunk_action
from crag_core.decision.policy import Policy
from crag_core.trace.edits import edited
from crag_core.trace.reroute import decision_path_of
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


Suited = Callable[[EvaluatorCard], Policy]  # the policy with the thresholds to judge an evaluator by


# --- opinions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What one evaluator alone leads to under `policy`, not yet for good where it has left passages `ungraded`."""

    evaluator: EvaluatorCard
    writer: str
    policy: Policy
    decision: Decision
    ungraded: int


@dataclass(frozen=True)
class Row:
    """One passage under two evaluators, by the facts: no pin counts.

    `bands` are the actions that each grade would lead to if this passage were the only one, None where it is not
    graded. `gap` is the distance of the two scores, None unless there are two.
    """

    passage: Passage
    grades: tuple[Grade | None, Grade | None]
    bands: tuple[Action | None, Action | None]

    @property
    def gap(self) -> float | None:
        one, other = (grade.score if grade else None for grade in self.grades)
        return None if one is None or other is None else abs(one - other)

    @property
    def is_apart(self) -> bool:
        return None not in self.bands and self.bands[0] is not self.bands[1]


@dataclass(frozen=True)
class Disagreement:
    """The run's evaluator (`main`) beside another one; `rows` with the largest gap first, those without one last.

    `correlation` is Kendall's tau-b of the scores, in -1..1: do both put the passages in the same order? None where
    that cannot be said, with fewer than two passages or all scores alike.
    """

    main: Verdict
    other: Verdict
    rows: tuple[Row, ...]
    correlation: float | None

    @property
    def apart(self) -> int:
        return sum(row.is_apart for row in self.rows)

    @property
    def compared(self) -> int:
        return sum(row.gap is not None for row in self.rows)


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
    """The opinions with this one, which takes the place of an older one of the same evaluator and model."""
    is_same = [_is_by(one, opinion.evaluator.name, opinion.writer) for one in trace.opinions]
    if not any(is_same):
        return (*trace.opinions, opinion)
    at = is_same.index(True)
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


def disagreement(trace: Trace, suited: Suited) -> tuple[Disagreement, ...]:
    """One for each opinion in the record, in its order. What is dropped is left out of it."""
    facts = edited(replace(trace, edits=replace(trace.edits, pinned=())))
    main = main_opinion(facts) or Opinion(facts.settings.evaluator, facts.settings.writer, ())
    verdict = _verdict(trace, suited)
    found = []
    for at, opinion in enumerate(facts.opinions):
        other = _verdict(_decided(trace, at), suited)
        rows = _rows(facts, (main, opinion), (verdict.policy, other.policy))
        pairs = [(one.score, two.score) for one, two in (row.grades for row in rows) if one and two]
        scores = [(one, two) for one, two in pairs if one is not None and two is not None]
        found.append(Disagreement(verdict, other, rows, rank_correlation(scores)))
    return tuple(found)


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Kendall's tau-b: (concordant - discordant) / sqrt(pairs not tied on one side x pairs not tied on the other)."""
    order = [(_sign(a[0] - b[0]), _sign(a[1] - b[1])) for a, b in combinations(pairs, 2)]
    untied = math.sqrt(sum(one != 0 for one, _ in order) * sum(other != 0 for _, other in order))
    return sum(one * other for one, other in order) / untied if untied else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _verdict(trace: Trace, suited: Suited) -> Verdict:
    settings = trace.settings
    policy = suited(settings.evaluator)
    decision_path = decision_path_of(trace, policy)
    return Verdict(settings.evaluator, settings.writer, policy, decision_path.decision, len(decision_path.ungraded))


def _rows(trace: Trace, opinions: tuple[Opinion, Opinion], policies: tuple[Policy, Policy]) -> tuple[Row, ...]:
    passages = trace.every_passage
    one, other = ({grade.passage_id: grade for grade in opinion.grades} for opinion in opinions)
    alone = [_alone(policy, opinion.evaluator) for policy, opinion in zip(policies, opinions, strict=True)]
    rows = []
    for passage in passages:
        grades = one.get(passage.id), other.get(passage.id)
        if grades != (None, None):
            bands = chunk_action(alone[0], passage, grades[0]), chunk_action(alone[1], passage, grades[1])
            rows.append(Row(passage, grades, bands))
    return tuple(sorted(rows, key=lambda row: -1.0 if row.gap is None else row.gap, reverse=True))


def _alone(policy: Policy, card: EvaluatorCard) -> Policy:
    """The policy as it bands one passage. Where thresholds are those of a weighted sum, the evaluator's own serve."""
    if policy.scores_the_set:
        policy = policy.with_thresholds(card.lower, card.upper)
    kind = "two_signals" if policy.compares_two_scores else "best"
    return replace(policy, score=kind, ungraded=None, skip=(), low_variance_promotes=False)
