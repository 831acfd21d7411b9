"""Relevance of evidence to a labelled question: 0 not, 1 related, 2 answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from crag_core.base.text.words import fold, words
from crag_core.base.types import Origin, Passage
from crag_core.experiments.comparison.rank_metrics import ANSWERS
from crag_core.experiments.labelled.questions import LabelledQuestion

_NONE: Mapping[str, int] = MappingProxyType({})
_LONGEST = 12
_SAID_ANYWHERE = frozenset({"yes", "no", "true", "false"})
_IN_A_NUMBER = re.compile(r"\d[.,]\d")


def spans(asked: LabelledQuestion) -> tuple[str, ...]:
    """The known answers that can be looked for in a text: up to twelve words, and more than yes or no."""
    found = ((fold(answer), words(answer)) for answer in asked.answers)
    return tuple(answer for answer, said in found if 0 < len(said) <= _LONGEST and " ".join(said) not in _SAID_ANYWHERE)


def of_documents(asked: LabelledQuestion, judged: Mapping[str, int] = _NONE) -> dict[str, int]:
    """Grades by file name, those above 0, from `judged` or else from the one document that the labels name, if any.

    No document answers a question that is expected not to be answered; it is related at most.
    """
    most = ANSWERS if asked.expected.is_answerable else 1
    known = judged or ({asked.document: ANSWERS} if asked.document else _NONE)
    return {name: min(grade, most) for name, grade in known.items() if grade > 0}


def of_passage(passage: Passage, asked: LabelledQuestion, judged: Mapping[str, int] = _NONE) -> int | None:
    """None where the labels do not tell.

    A passage of a document that answers is only related where the known answers can be looked for and none stands in
    it. A web page is judged by its text alone. Nothing answers a question that is expected not to be answered,
    whatever stands in a passage.
    """
    graded, wanted = of_documents(asked, judged), spans(asked)
    text = fold(passage.text)
    answers = asked.expected.is_answerable and any(_stands_in(answer, text) for answer in wanted)
    if passage.origin is Origin.WEB or not graded:
        return (ANSWERS if answers else 0) if wanted else None
    grade = graded.get(passage.source, 0)
    return 1 if grade == ANSWERS and wanted and not answers else grade


def _stands_in(answer: str, text: str) -> bool:
    """Not as a part of a longer word or number, where words have ends: in scripts with small and capital letters."""
    at = text.find(answer)
    while at >= 0 and (_is_cut(text, at) or _is_cut(text, at + len(answer))):
        at = text.find(answer, at + 1)
    return at >= 0


def _is_cut(text: str, at: int) -> bool:
    is_word = all(sign.isdigit() or sign.lower() != sign.upper() for sign in (text[at - 1 : at], text[at : at + 1]))
    number = (_IN_A_NUMBER.fullmatch(text, max(start, 0), start + 3) for start in (at - 2, at - 1))
    return is_word or any(number)
