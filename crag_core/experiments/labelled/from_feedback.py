"""Labelled questions from the feedback on the Ask page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from crag_core.base.types.decisions import Action
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin
from crag_core.trace.feedback import About, Label


@dataclass(frozen=True)
class FromFeedback:
    """`overruled` has, for every label that contradicts the one that holds, its question and what holds.

    `unspecific` counts labels that call a route wrong and do not say which one is right: they are not used.
    """

    questions: tuple[LabelledQuestion, ...]
    overruled: tuple[tuple[str, Action], ...]
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
    said: dict[str, list[Label]] = defaultdict(list)
    for label in latest.values():
        said[cleaned(label.question)].append(label)
    questions: list[LabelledQuestion] = []
    overruled: list[tuple[str, Action]] = []
    for question, of_it in said.items():
        named = [label for label in of_it if label.wanted is not None]
        if named and (kept := named[-1].wanted):
            note = f"Said on {cleaned(named[-1].created)[:10]}, with the policy {cleaned(named[-1].policy)}."
            questions.append(LabelledQuestion(question, Expected(kept.value), origin=Origin.FEEDBACK, note=note))
            overruled += [(question, kept) for label in of_it if _contradicts(label, kept)]
    unspecific = sum(label.wanted is None for label in latest.values())
    return FromFeedback(tuple(questions), tuple(overruled), unspecific)


def _contradicts(label: Label, kept: Action) -> bool:
    return label.action is kept if label.wanted is None else label.wanted is not kept
