"""Labelled questions from the feedback on the Ask page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crag_core.base.types.decisions import Action
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin
from crag_core.trace.feedback import About, Label


@dataclass(frozen=True)
class Overruled:
    """A label that contradicts the one of the same question that holds, which says `kept`.

    `wanted` None: it only said that `kept` is wrong, perhaps later than the one that holds.
    """

    question: str
    wanted: Action | None
    created: str
    kept: Action


@dataclass(frozen=True)
class FromFeedback:
    """`unspecific` counts labels that call a route wrong and do not say which one is right: they are not used."""

    questions: tuple[LabelledQuestion, ...]
    overruled: tuple[Overruled, ...]
    unspecific: int


def questions_from(labels: Iterable[Label]) -> FromFeedback:
    """One question for each that people named the right route of, the oldest first.

    The newest label that names a route holds, of equally old ones the last. What was said of answers and passages is
    not used: a wrong answer does not tell which route had been right.
    """
    routes = (label for label in labels if label.about is About.ROUTE and cleaned(label.question))
    latest: dict[str, Label] = {}
    for label in sorted(routes, key=lambda label: label.created):
        latest.pop(label.key, None)  # to correct oneself is no contradiction
        latest[label.key] = label
    said: dict[str, list[Label]] = {}
    for label in latest.values():
        said.setdefault(cleaned(label.question), []).append(label)
    questions: list[LabelledQuestion] = []
    overruled: list[Overruled] = []
    for question, of_it in said.items():
        specific = [(label, label.wanted) for label in of_it if label.wanted is not None]
        if specific:
            newest, wanted = specific[-1]
            questions.append(_question(question, newest, wanted))
            overruled += _overruled(question, of_it, wanted)
    unspecific = sum(label.wanted is None for of_it in said.values() for label in of_it)
    return FromFeedback(tuple(questions), tuple(overruled), unspecific)


def _question(question: str, label: Label, wanted: Action) -> LabelledQuestion:
    policy, date = cleaned(label.policy), cleaned(label.created)[:10]
    note = f"Said on {date}, with the policy {policy}."
    return LabelledQuestion(question, Expected(wanted.value), origin=Origin.FEEDBACK, note=note)


def _overruled(question: str, labels: Iterable[Label], kept: Action) -> Iterable[Overruled]:
    for label in labels:
        disagrees = label.action is kept if label.wanted is None else label.wanted is not kept
        if disagrees:
            yield Overruled(question, label.wanted, label.created, kept)
