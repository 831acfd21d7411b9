"""From pairs to padded batches of about the same number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.pairs import Pair

MAX_TOKENS = 256
"""Of question and passage together; the passage gives way."""
BATCH_TOKENS = 2560
"""Padding included."""
_STEP = 16  # lengths are rounded up to it: a matrix of a new shape costs more to plan than the padding
_POOL = 600  # pairs sorted by length at a time, more for larger batches: little padding, and still a mixed order


def counter(path: Path) -> Callable[[str], int]:
    """Counts the tokens of a text, however long."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


@dataclass(frozen=True)
class Batch:
    """Rows of one or two wordings a pair, each tensor (rows, longest); `evidence` marks the tokens of the answer.

    `first` and `second` are the rows of the pairs that have two wordings; a row of `above` is to score above the one of
    `below`.
    """

    ids: Tensor
    attention: Tensor
    segments: Tensor
    evidence: Tensor
    answering: tuple[float | None, ...]
    topical: tuple[float | None, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    above: tuple[int, ...] = ()
    below: tuple[int, ...] = ()


def load_tokenizer(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
    return tokenizer


def encode(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Batch:
    """Every pair, after them those that they stand against, and after these those with a second wording in that one."""
    against = [(place, one) for place, pair in enumerate(pairs) for one in pair.against]
    every = [*pairs, *(one for _, one in against)]
    twice = [place for place, pair in enumerate(every) if pair.again]
    rows = [*((pair, pair.question) for pair in every), *((every[place], every[place].again) for place in twice)]
    again = {place: len(every) + number for number, place in enumerate(twice)}
    compared = [(place, len(pairs) + number) for number, (place, _) in enumerate(against)]
    compared += [(again[one], again[other]) for one, other in compared if one in again and other in again]
    found = tokenizer.encode_batch([(question[:600], pair.passage) for pair, question in rows])
    longest = _rounded(max(len(one.ids) for one in found))

    def padded(lists: list[list[int]]) -> Tensor:
        return torch.tensor([one + [0] * (longest - len(one)) for one in lists])

    return Batch(
        padded([one.ids for one in found]),
        padded([one.attention_mask for one in found]),
        padded([one.type_ids for one in found]),
        padded([_inside(pair, one) for (pair, _), one in zip(rows, found, strict=True)]),
        tuple(pair.answering for pair, _ in rows),
        tuple(pair.topical for pair, _ in rows),
        tuple(twice),
        tuple(range(len(every), len(rows))),
        tuple(above for above, _ in compared),
        tuple(below for _, below in compared),
    )


def _inside(pair: Pair, encoded: object) -> list[int]:
    """1 for each token of the passage that lies within the evidence."""
    start = pair.passage.find(pair.evidence) if pair.evidence else -1
    end = start + len(pair.evidence)
    places = zip(encoded.offsets, encoded.type_ids, strict=True)  # type: ignore[attr-defined]
    return [int(start >= 0 and side == 1 and a >= start and a < b <= end) for (a, b), side in places]


def batches(
    pairs: Sequence[Pair], random: Random, tokenizer: Tokenizer, tokens: int = BATCH_TOKENS
) -> Iterator[list[Pair]]:
    """All pairs once, those of about the same length together; so many tokens in a batch, padding included."""
    together = _POOL * max(tokens // BATCH_TOKENS, 1)
    for at in range(0, len(pairs), together):
        pool = pairs[at : at + together]
        lengths = _lengths(tokenizer, pool)
        found: list[list[Pair]] = [[]]
        rows = 0
        for place in sorted(range(len(pool)), key=lengths.__getitem__):
            pair = pool[place]
            more = sum(2 if one.again else 1 for one in (pair, *pair.against))
            if found[-1] and (rows + more) * _rounded(lengths[place]) > tokens:
                found.append([])
                rows = 0
            found[-1].append(pair)
            rows += more
        random.shuffle(found)
        yield from found


def _lengths(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[int]:
    """The tokens of the longest row of each pair."""
    rows = [
        (number, question[:600], one.passage)
        for number, pair in enumerate(pairs)
        for one in (pair, *pair.against)
        for question in filter(None, (one.question, one.again))
    ]
    found = [0] * len(pairs)
    encoded = tokenizer.encode_batch([(question, passage) for _, question, passage in rows])
    for (number, _, _), one in zip(rows, encoded, strict=True):
        found[number] = max(found[number], len(one.ids))
    return found


def _rounded(length: int) -> int:
    return -(-length // _STEP) * _STEP
