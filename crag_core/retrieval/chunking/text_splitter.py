"""Splits text by paragraphs, lines, sentences, clauses, words and letters, as LlamaIndex's SentenceSplitter does.

A test holds it to the same chunks, with three differences: sentences end where those of strips do, a chunk is bounded
in characters as well, and any text takes linear time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from crag_core.base.text.sentences import sentences

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
        later = [start for start, _ in sentences(line, 0, len(line))[1:]]
        yield from (line[start:end] for start, end in pairwise([0, *later, len(line)]))


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


def _split_clauses(text: str) -> Iterator[str]:
    return (found[0] for found in _CLAUSE.finditer(text))


def _split_before(separator: str, text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(separator, start + len(separator) if text.startswith(separator, start) else start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end


_SPLITS: tuple[Callable[[str], Iterator[str]], ...] = (
    partial(_split_before, "\n\n"),
    split_lines,
    _split_clauses,
    partial(_split_before, " "),
)
