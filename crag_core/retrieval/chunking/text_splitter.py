"""Splits text by paragraphs, lines, sentences, clauses, words and letters, as LlamaIndex's SentenceSplitter does.

A test holds it to the same chunks as LlamaIndex's `SentenceSplitter`, with two differences: a chunk is bounded in
characters as well, and any text takes linear time. Sentences end where NLTK's untrained Punkt ends them (Kiss and
Strunk, Unsupervised Multilingual Sentence Boundary Detection, 2006): our own, since NLTK loads NumPy, SciPy and pandas,
which the process that reads documents does without; a test holds both to the same sentences.
"""

from __future__ import annotations

import re
import string
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

Count = Callable[[str], int]
"""How many tokens a text has."""
Tokenize = Callable[[str], Sequence[Any]]
"""The tokens of a text; only their number is used."""

# Where a sentence that is too long on its own may be cut. Unlike LlamaIndex's, it loses no character and no decimals.
CLAUSE = r"(?s).+?(?:[,.;:!?](?=\s)|[。．！？、，；]|\Z)"
_CLAUSE = re.compile(CLAUSE)
# English has 4 to 6 characters per token, the most of 160 documents of all kinds is 9. More is no text: to BERT a word
# of over 100 letters, whatever its length, is one unknown token, and white space is none.
CHARACTERS_A_TOKEN = 16
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


@dataclass(frozen=True)
class Cut:
    """The length of chunks, in tokens of `tokenize`; None: LlamaIndex's own count. Up to `overlap` of them repeat the
    end of the chunk before.

    `tokenizer` is a file of the same tokenizer, for a process without the model; "": there is none.
    """

    tokens: int = 220
    overlap: int = 30
    tokenize: Tokenize | None = None
    tokenizer: str = ""

    @property
    def characters(self) -> int:
        """The most in a chunk; half of that at most repeat the end of the one before."""
        return CHARACTERS_A_TOKEN * self.tokens


class Piece(NamedTuple):
    text: str
    tokens: int


def split_text(text: str, size: Cut, count: Count) -> Iterator[tuple[int, str]]:
    """Chunks with their offsets, in reading order, without white space at their ends; nothing else is lost."""
    return _merge(_cut(text, 0, size, count), size)


def split_lines(text: str) -> Iterator[str]:
    """Sentences, none of which crosses a line: a list item or a table row has no full stop to end it."""
    for line in text.splitlines(keepends=True):
        if line.isspace():
            yield line
        else:
            yield from split_sentences(line)


def _cut(text: str, depth: int, size: Cut, count: Count) -> Iterator[Piece]:
    if (tokens := _tokens(text, size, count)) is not None:
        yield Piece(text, tokens)
        return
    for at, split in enumerate(_SPLITS[depth:], depth):
        parts = split(text)
        begun = [*islice(parts, 2)]
        if len(begun) > 1:
            for part in chain(begun, parts):
                yield from _cut(part, at + 1, size, count)
            return
    for block in _blocks(text, size):
        # One unknown word may have few tokens.
        if len(block) < len(text) and (tokens := _tokens(block, size, count)) is not None:
            yield Piece(block, tokens)
        else:
            # A letter of more tokens than fit a chunk cannot be cut; the model reads a part of them.
            yield from (Piece(letter, min(count(letter), size.tokens)) for letter in block)


def _tokens(text: str, size: Cut, count: Count) -> int | None:
    """None where they, or the characters, are too many for a chunk."""
    if len(text) > size.characters:
        return None
    tokens = count(text)
    return tokens if tokens <= size.tokens else None


def _blocks(text: str, size: Cut) -> Iterator[str]:
    length = -(-len(text) // -(-len(text) // size.characters))
    return (text[start : start + length] for start in range(0, len(text), length))


def _merge(pieces: Iterable[Piece], size: Cut) -> Iterator[tuple[int, str]]:
    offset = tokens = characters = 0
    chunk: deque[Piece] = deque()
    is_new = True
    for piece in pieces:
        if not is_new and not _fits(tokens, characters, piece, size):
            yield from _close(chunk, offset)
            chunk, tokens, characters = _repeat(chunk, size)
            is_new = True
        while chunk and not _fits(tokens, characters, piece, size):  # what would be repeated
            first = chunk.popleft()
            tokens, characters = tokens - first.tokens, characters - len(first.text)
        chunk.append(piece)
        tokens, characters = tokens + piece.tokens, characters + len(piece.text)
        offset += len(piece.text)
        is_new = False
    yield from _close(chunk, offset)


def _fits(tokens: int, characters: int, piece: Piece, size: Cut) -> bool:
    return tokens + piece.tokens <= size.tokens and characters + len(piece.text) <= size.characters


def _repeat(chunk: deque[Piece], size: Cut) -> tuple[deque[Piece], int, int]:
    repeated: deque[Piece] = deque()
    tokens = characters = 0
    for piece in reversed(chunk):
        if tokens + piece.tokens > size.overlap or characters + len(piece.text) > size.characters // 2:
            break
        repeated.appendleft(piece)
        tokens, characters = tokens + piece.tokens, characters + len(piece.text)
    return repeated, tokens, characters


def _close(chunk: Sequence[Piece] | deque[Piece], end: int) -> Iterator[tuple[int, str]]:
    text = "".join(piece.text for piece in chunk)
    if shown := text.strip():
        yield end - len(text.lstrip()), shown


def split_paragraphs(text: str) -> Iterator[str]:
    return _split_before(text, "\n\n")


def split_clauses(text: str) -> Iterator[str]:
    return (found[0] for found in _CLAUSE.finditer(text))


def split_words(text: str) -> Iterator[str]:
    return _split_before(text, " ")


def _split_before(text: str, separator: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(separator, start + len(separator) if text.startswith(separator, start) else start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end


_SPLITS: tuple[Callable[[str], Iterator[str]], ...] = (split_paragraphs, split_lines, split_clauses, split_words)


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
