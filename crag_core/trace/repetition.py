"""Whether a sentence says of what an earlier question asked for what a follow-up asks of another thing. Pure."""

from __future__ import annotations

from crag_core.base.text.words import COMMON_WORDS
from crag_core.trace.grounding.claims import terms_of

_COMMON = terms_of(" ".join(COMMON_WORDS))


def speaks_of_before(sentence: str, before: str, now: str) -> bool:
    """Whether it names something that only the question `before` asks for, and nothing that only this one, `now`, does.

    It has to name something of what both ask, too.
    """
    then, today, said = terms_of(before) - _COMMON, terms_of(now) - _COMMON, terms_of(sentence)
    return all(said & one for one in (then & today, then - today)) and not said & (today - then)
