"""Words and token estimates, also for scripts without spaces."""

from __future__ import annotations

import re

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"  # kana and Han: no spaces between words
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’\-.][^\W_{_UNSPACED}]+)*")
_UNSPACED_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def words(text: str) -> list[str]:
    """Lower-case words in order; a run without spaces (Japanese, Chinese) gives its overlapping character pairs."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _UNSPACED_CHARACTER.match(word):
            found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            found.append(word)
    return found


def estimate_tokens(text: str) -> int:
    """Words x 1.3, rounded down (description 000); a character of an unspaced script counts as a word."""
    unspaced = len(_UNSPACED_CHARACTER.findall(text))
    return int((len(_UNSPACED_CHARACTER.sub(" ", text).split()) + unspaced) * 1.3)


def fold(text: str) -> str:
    """One case and single spaces, to look for one text in another however its lines were broken."""
    return " ".join(text.casefold().split())


def storable(text: str) -> str:
    """Without the characters that no database keeps as text: zeros, and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)
