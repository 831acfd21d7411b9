"""Train the evaluator: `python -m training.train --base BASE --out FOLDER` writes weights.pt.

Stopped, the same command goes on from what it saved.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training.base import load_graph
from training.encoding import BATCH_TOKENS, Batch, batches, counter, encode, load_tokenizer
from training.everyday import FOLDER, is_kept_apart, read_everyday, read_near_misses
from training.learning import PEAK_RATE, Epoch, Learner
from training.mixture import Mixture
from training.model import open_model
from training.options import parse, parser
from training.pairs import Row, read_rows, set_apart, unpack_rows

FILE = "weights.pt"
PACKED = "train/rows.json.xz"
TOKENS = 100_000_000
LATIN = ("de", "es", "ro", "tr", "vi", "fr", "pt", "no")
"""The vocabulary of the base knows no other scripts."""


def main() -> None:
    options = parser(__doc__, tokens=TOKENS)
    options.add_argument("--everyday", type=Path, default=FOLDER, help="folder of the everyday documents")
    options.add_argument(
        "--minutes", type=float, help="stop after these at the latest; no two trainings are the same then"
    )
    options.add_argument("--batch", type=int, default=BATCH_TOKENS, help="tokens of a batch, padding included")
    options.add_argument("--rate", type=float, default=PEAK_RATE, help="the highest rate of learning")
    options.add_argument("--start", type=Path, help="the 8-bit graph of an evaluator to train on; without: the base")
    options.add_argument("--builders", type=int, default=0, help="processes that make epochs ahead; 0: none")
    given = parse(options)
    tokenizer = load_tokenizer(given.base / "tokenizer.json")
    rows = read_training_rows(given.data)
    english = [row for row in rows if row.lang == "en"]
    foreign = [row for row in rows if row.lang != "en"]
    mixture = Mixture(english, foreign, counter(given.base / "tokenizer.json"), given.seed)
    documents = read_everyday(given.everyday) + read_near_misses(given.data / "train" / "everyday2")
    documents = [one for one in documents if not is_kept_apart(one)]

    def epoch(number: int) -> Iterator[Batch]:
        order = Random(f"order {number}")
        for some in batches(mixture.epoch(number, documents), order, tokenizer, given.batch):
            yield encode(tokenizer, some)

    built = build_ahead(epoch, given.builders) if given.builders else epoch
    model = open_model(given.base)
    if given.start:
        load_graph(model, given.start)
    learner = Learner(model, given.tokens, given.rate, given.minutes)
    given.out.mkdir(parents=True, exist_ok=True)
    learner.train(built, given.out / FILE)


def build_ahead(epoch: Epoch, builders: int) -> Epoch:
    """The same epochs, each made whole in one of so many processes before it is asked for."""
    global _epoch
    _epoch = epoch
    pool = ProcessPoolExecutor(builders, get_context("fork"))
    under_way: dict[int, Future[list[dict[str, Any]]]] = {}

    def order(first: int) -> None:
        for number in range(first, first + builders + 2):
            if number not in under_way:
                under_way[number] = pool.submit(_build, number)

    def built(number: int) -> Iterator[Batch]:
        order(number)
        for batch in under_way.pop(number).result():
            made: dict[str, Any] = {
                name: torch.from_numpy(one) if isinstance(one, np.ndarray) else one for name, one in batch.items()
            }
            yield Batch(**made)

    # Now, before anything is put on a GPU, which a process that is forked off then cannot use.
    order(0)
    # What is under way when the training ends is of no use.
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return built


_epoch: Epoch


def _build(number: int) -> list[dict[str, Any]]:
    """As arrays, since tensors would be sent as one open file each."""
    return [
        {name: one.numpy() if isinstance(one, Tensor) else one for name, one in vars(batch).items()}
        for batch in _epoch(number)
    ]


def read_training_rows(data: Path) -> list[Row]:
    """Every row that shares nothing with those that are measured, from the shared data or what was packed of it."""
    if (data / PACKED).is_file():
        return unpack_rows(data / PACKED)
    measured = [row for path in sorted(data.glob("dev/pairs/*.gz")) for row in read_rows(path)]
    return set_apart(list(_rows(data / "train")), measured)


def _rows(folder: Path) -> Iterator[Row]:
    for path in (folder / "train_en.jsonl.gz", folder / "train_multi.jsonl.gz", *sorted(folder.glob("extra/*.gz"))):
        yield from (row for row in read_rows(path) if row.lang in ("en", *LATIN))


if __name__ == "__main__":
    main()
