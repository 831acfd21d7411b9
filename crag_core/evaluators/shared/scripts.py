"""Whether a text is in the script that the trained evaluator was trained on."""

from __future__ import annotations

import unicodedata
from collections import Counter

from crag_core.evaluators.shared.windows import Pieces

_MOST = 0.5


def why_unread(pieces: Pieces, what: str) -> str:
    """Why the evaluator does not judge this text (`what` names it); the empty string when it does.

    Most of Chinese and Thai is unknown to its vocabulary. Of Greek, Cyrillic, Arabic and others the vocabulary has the
    single letters and no words, so there the letters are counted.
    """
    unknown, other = pieces.unknown / max(len(pieces.ids), 1), share_of_other_scripts(pieces.text)
    if max(unknown, other) <= _MOST:
        return ""
    letters, signs = (
        f"{other:.0%} of the letters of this {what} are of another",
        f"{unknown:.0%} of this {what} is unknown",
    )
    return f"The trained evaluator reads Latin script, and {letters if other > _MOST else signs}."


def share_of_other_scripts(text: str) -> float:
    """Share of the letters that are not Latin; 0 for a text without letters."""
    letters = {sign: count for sign, count in Counter(text).items() if sign.isalpha()}
    other = sum(count for sign, count in letters.items() if "LATIN" not in unicodedata.name(sign, ""))
    return other / sum(letters.values()) if letters else 0.0
