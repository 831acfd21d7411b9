"""Labelled questions from the feedback on the Ask page."""

from __future__ import annotations

from collections.abc import Iterable

from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin
from crag_core.trace.feedback import About, Label


def questions_from(labels: Iterable[Label]) -> tuple[tuple[LabelledQuestion, ...], int]:
    """One question for each that people named the right route of, the oldest first; and how many labels call a route
    wrong and do not say which one is right, so that they are not used.

    The newest label that names a route holds, of equally old ones the last. What was said of answers and passages is
    not used: a wrong answer does not tell which route had been right.
    """
    routes = (label for label in labels if label.about is About.ROUTE and cleaned(label.question))
    latest: dict[str, Label] = {}
    for label in sorted(routes, key=lambda label: label.created):
        latest.pop(label.key, None)  # as new as its last correction
        latest[label.key] = label
    found: dict[str, LabelledQuestion] = {}
    for label in latest.values():
        if label.wanted is not None:
            question = cleaned(label.question)
            note = f"Said on {cleaned(label.created)[:10]}, with the policy {cleaned(label.policy)}."
            found[question] = LabelledQuestion(
                question, Expected(label.wanted.value), origin=Origin.FEEDBACK, note=note
            )
    return tuple(found.values()), sum(label.wanted is None for label in latest.values())
