"""Words of a text for the full-text table, and the query of a question."""

from __future__ import annotations

import re
import unicodedata

from crag_core.base.text.codes import codes_of, spellings

# Written without spaces between words: Han, Hiragana, Katakana, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]+"
)
COMMON = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with "
        "what which who whom whose when where why how did does do had has have were he she his her its from also than "
        "can could would should been being i you we",
    )
)
"""English words that say nothing of a subject: they are searched for where a question has no others."""


def spaced(text: str) -> str:
    """The text with pairs of letters in place of words where these are written without spaces between."""
    return _UNSPACED.sub(_pairs, unicodedata.normalize("NFC", text))


def _pairs(found: re.Match[str]) -> str:
    run = found[0]
    return f" {' '.join(run[at : at + 2] for at in range(max(len(run) - 1, 1)))} "


def words_of(question: str) -> list[str]:
    """What is searched for, each once, codes also as a phrase; common words only where there are no others."""
    signs = ((sign if unicodedata.category(sign)[0] in "LNM" else " ") for sign in spaced(question).lower())
    words = list(dict.fromkeys("".join(signs).split()))
    exact = [spelled for code in codes_of(question) for spelled in spellings(code)]
    return list(dict.fromkeys([word for word in words if word not in COMMON] + exact)) or words


def query(words: list[str]) -> str:
    """Any of them, as FTS5 writes it: in quotes no word means anything else. One letter alone begins a pair."""
    return " OR ".join(f'"{word}"*' if _UNSPACED.fullmatch(word) and len(word) == 1 else f'"{word}"' for word in words)
