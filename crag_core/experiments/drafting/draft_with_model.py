"""Drafted questions in the words of a language model, where there is one; what it cannot do stays as it was drafted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.errors import CragError
from crag_core.base.protocols import Cancel, LanguageModel
from crag_core.base.text.words import fold
from crag_core.base.types import Passage
from crag_core.experiments.drafting.draft import sentence_of
from crag_core.experiments.drafting.wording import QUESTION_SCHEMA, ask_for_question, read_draft
from crag_core.experiments.labelled.questions import LabelledQuestion

_AT_ONCE = 8


def reword(
    drafted: Sequence[LabelledQuestion], passages: Sequence[Passage], model: LanguageModel, cancel: Cancel
) -> tuple[LabelledQuestion, ...]:
    """Each question that was made from a sentence, as `model` asks for it; the others as they are.

    A reply that cannot be used leaves the question as it was. Raises `CragError` where the model is away.
    """
    folded = [(fold(passage.text), passage.text) for passage in passages]
    found = {place: sentence for place, one in enumerate(drafted) if (sentence := sentence_of(one))}
    reworded = dict(enumerate(drafted))
    places = list(found)
    for start in range(0, len(places), _AT_ONCE):
        some = places[start : start + _AT_ONCE]
        chats = [ask_for_question(found[place], _around(found[place], folded)) for place in some]
        for place, reply in zip(some, model.complete_all(chats, cancel, QUESTION_SCHEMA), strict=True):
            if isinstance(reply, CragError):
                raise reply
            if isinstance(reply, Exception):
                continue
            if draft := read_draft(reply.text, found[place]):
                reworded[place] = _reworded(drafted[place], *draft, model.name)
    return tuple({one.key: one for one in reworded.values()}.values())


def _around(sentence: str, folded: Sequence[tuple[str, str]]) -> str:
    looked_for = fold(sentence)
    return next((text for low, text in folded if looked_for in low), sentence)


def _reworded(one: LabelledQuestion, question: str, answer: str, by: str) -> LabelledQuestion:
    answers = (answer,) if one.expected.is_answerable else ()
    return replace(one, question=question, answers=answers, note=f"{one.note} Worded by {by}.")
