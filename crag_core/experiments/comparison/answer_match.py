"""An answer against known answers: exact match and token F1 as in SQuAD, and containment.

Rajpurkar et al. 2016 (EMNLP): lower case, without punctuation and English articles; F1 over the tokens that both have,
the best over the known answers. A run of Japanese or Chinese is compared sign by sign.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from crag_core.trace.grounding.quoted_answer import CITATION

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_SIGN = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f])")


def exact(text: str, answers: Sequence[str]) -> float:
    """1 where `text` is one of the answers; `answers` not empty."""
    return float(any(tokens(text) == tokens(answer) for answer in answers))


def token_f1(text: str, answers: Sequence[str]) -> float:
    """In 0..1, of the answer that fits best."""
    return max(_f1(tokens(text), tokens(answer)) for answer in answers)


def contains(text: str, answers: Sequence[str]) -> float:
    """1 where the tokens of an answer stand in `text` one after the other."""
    said = f" {' '.join(tokens(text))} "
    return float(any(f" {' '.join(wanted)} " in said for answer in answers if (wanted := tokens(answer))))


def tokens(text: str) -> list[str]:
    """Normalised, without citations such as [1]; an article that stands alone is what is said, and stays."""
    composed = unicodedata.normalize("NFC", CITATION.sub(" ", text).lower())
    plain = "".join(sign for sign in composed if sign.isspace() or unicodedata.category(sign)[0] not in "PSC")
    spaced = _SIGN.sub(r" \1 ", plain)
    return _ARTICLE.sub(" ", spaced).split() or spaced.split()


def _f1(one: list[str], other: list[str]) -> float:
    if not one or not other:
        return float(one == other)
    shared = (Counter(one) & Counter(other)).total()
    return 2 * shared / (len(one) + len(other))
