"""From pairs to padded batches of about the same number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from training.pairs import Pair

MAX_TOKENS = 256
"""Of passage and question together; the passage gives way."""
BATCH_TOKENS = 2048
"""Padding included."""
_STEP = 16  # lengths are rounded up to it: a matrix of a new shape costs more to plan than the padding
_POOL = 400  # pairs sorted by length at a time: little padding, and still a mixed order


def load_tokenizer(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, strategy="only_first")
    return tokenizer


def encode(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor]:
    """(question, passage) pairs as (ids, attention, segments), each (pairs, longest)."""
    found = tokenizer.encode_batch([(passage, question[:600]) for question, passage in pairs])
    longest = _rounded(max(len(one.ids) for one in found))

    def padded(rows: list[list[int]]) -> Tensor:
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    return (
        padded([one.ids for one in found]),
        padded([one.attention_mask for one in found]),
        padded([_segments(one.sequence_ids) for one in found]),
    )


def _segments(belongs: list[int | None]) -> list[int]:
    """1 from the first piece of the question on; bases without segments of their own get the same."""
    start = belongs.index(1) if 1 in belongs else len(belongs)
    return [0] * start + [1] * (len(belongs) - start)


def batches(pairs: Sequence[Pair], random: Random) -> Iterator[list[Pair]]:
    """All pairs once, those of about the same length together."""
    for at in range(0, len(pairs), _POOL):
        pool = sorted(pairs[at : at + _POOL], key=_length)
        found: list[list[Pair]] = [[]]
        for pair in pool:
            if found[-1] and (len(found[-1]) + 1) * _rounded(_length(pair)) > BATCH_TOKENS:
                found.append([])
            found[-1].append(pair)
        random.shuffle(found)
        yield from found


def endless(epoch: Callable[[Random], Sequence[Pair]], seed: int) -> Iterator[list[Pair]]:
    """Batches of one epoch after the other, from one stream of random numbers."""
    random = Random(seed)
    while True:
        yield from batches(epoch(random), random)


def _length(pair: Pair) -> int:
    return min(int((len(pair.passage) + len(pair.question)) / 4.3) + 5, MAX_TOKENS)


def _rounded(length: int) -> int:
    return -(-length // _STEP) * _STEP
