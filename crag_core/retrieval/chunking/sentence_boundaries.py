"""Sentence boundaries as NLTK's untrained Punkt finds them, which LlamaIndex's splitter uses.

Kiss and Strunk, Unsupervised Multilingual Sentence Boundary Detection, 2006. Our own, since NLTK loads NumPy, SciPy and
pandas, which the process that reads documents does without; a test holds both to the same sentences.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from itertools import chain, pairwise

_CLOSING = "[)\";}\\]*:@'({\\[\u2018\u2019\u201c\u201d\u00ab\u00bb!?]"
_DASHES_OR_DOTS = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
_END = re.compile(rf"[.?!](?=(?P<after>{_CLOSING}|\s+(?P<next>\S+)))")
_WORD = re.compile(
    rf"{_DASHES_OR_DOTS}|(?![(\"`{{\[:;&#*@)}}\]\-,])\S+?(?=\s|$|{_CLOSING}|{_DASHES_OR_DOTS}|"
    rf",(?=$|\s|{_CLOSING}|{_DASHES_OR_DOTS}))|\S"
)
# These end the sentence before them.
_CLOSED = re.compile("[\"')\\]}\u2018\u2019\u201c\u201d\u00ab\u00bb]+?(?:\\s+|(?=--)|$)", re.MULTILINE)
_INITIAL = re.compile(r"[^\W\d]\.")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*\.?")
_INSIDE = (";", ":", ",", ".", "!", "?")
_SPACE = re.compile(f"[{string.whitespace}]")


def split_sentences(text: str) -> Iterator[str]:
    """All of the text, white space too; none where there is nothing else."""
    return (text[start:end] for start, end in pairwise(chain(_find_starts(text), [len(text)])))


def _find_starts(text: str) -> Iterator[int]:
    moved = 0
    for (start, end), (following, stop) in pairwise(chain(_spans(text), [(-1, -1)])):
        closed = _CLOSED.match(text, following, stop) if following >= 0 else None
        if closed or start + moved < end:
            yield start + moved
        moved = closed.end() - following if closed else 0


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found, context in _possible_ends(text):
        if _holds_end(context):
            yield start, found.end()
            start = found.start("next") if found["next"] else found.end()
    yield start, len(text.rstrip())


def _possible_ends(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each with the words before and after it; of several at the end of one word the last."""
    last: re.Match[str] | None = None
    start = end = 0  # of the word before the last one
    for found in _END.finditer(text):
        space = max((match.start() for match in _SPACE.finditer(text, end + 1, found.start())), default=0)
        begins = space + 1 if space else start
        if last and end <= begins:
            yield last, text[start:end] + last[0] + last["after"]
        last, start, end = found, begins, found.start()
    if last:
        yield last, text[start:end] + last[0] + last["after"]


def _holds_end(context: str) -> bool:
    words = [word for line in context.split("\n") if line.strip() for word in _WORD.findall(line)]
    return any(_ends(word, following) for word, following in pairwise(words))


def _ends(word: str, following: str) -> bool:
    if word in ("?", "!"):
        return True
    if not word.endswith(".") or word.endswith(".."):
        return False
    is_initial = bool(_INITIAL.fullmatch(word))
    if not is_initial and not _NUMBER.fullmatch(word.lower()):
        return True
    if following in _INSIDE or following[0].islower():
        return False
    return not (is_initial and following[0].isupper())
