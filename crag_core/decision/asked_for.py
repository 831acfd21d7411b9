"""Chunks that cannot answer what a question names or compares, whatever an evaluator reads there.

A chunk without the code that the question names, where another chunk holds it, does not answer; one without a sentence
that has both of two things asked for together answers half of it at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from crag_core.base.text.codes import codes_of, has_code, other_code
from crag_core.base.text.comparisons import says_both, two_things
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, Passage

HALF = 0.5


def without_code(question: str, passages: Sequence[Passage]) -> dict[str, str]:
    """Why a passage does not answer, by its id: "the question names 7-0064-18, this chunk 7-0064-16".

    Its headings and the name of its file count. A code that no passage holds says nothing.
    """
    texts = {one.id: f"{one.source}\n{one.section}\n{one.text}" for one in passages}
    found: dict[str, str] = {}
    for code in codes_of(question):
        lacking = [id_ for id_, text in texts.items() if not has_code(text, code)]
        for id_ in lacking if len(lacking) < len(texts) else ():
            found.setdefault(id_, f"the question names {code}, this chunk {other_code(texts[id_], code) or 'does not'}")
    return found


def grades_as_asked(question: str, passages: Sequence[Passage], grades: Sequence[Grade]) -> tuple[Grade, ...]:
    """The grades, with *answering* lowered to 0 or 0.5 for passages that cannot answer; their reason says why.

    Those of evaluators that do not tell *answering* from *topical* stay as they are.
    """
    why = without_code(question, passages)
    limits = {id_: (0.0, told) for id_, told in why.items()}
    if things := two_things(question):
        told = "the question asks for {} and {} together, no sentence here has both".format(*things)
        limits |= {one.id: (HALF, told) for one in passages if one.id not in why and not says_both(one.text, things)}
    return tuple(
        _lowered(grade, *limits[grade.passage_id]) if grade.passage_id in limits else grade for grade in grades
    )


def strips_as_asked(question: str, passages: Sequence[Passage], strips: Sequence[Strip]) -> tuple[Strip, ...]:
    """The strips; those of passages without the code that is asked for score 0."""
    why = without_code(question, passages)
    return tuple(replace(strip, score=0.0) if strip.score and strip.passage_id in why else strip for strip in strips)


def _lowered(grade: Grade, most: float, why: str) -> Grade:
    read = dict(grade.parts).get(ANSWERING)
    if grade.score is None or read is None or read <= most:
        return grade
    parts = tuple((name, most if name == ANSWERING else value) for name, value in grade.parts)
    reason = f"{why}: answering {most:.2f} in place of {read:.2f}; {grade.reason}"
    return replace(grade, score=fmean(value for _, value in parts), parts=parts, reason=reason)
