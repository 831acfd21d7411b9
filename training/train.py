"""Train the evaluator: `python -m training.train --base BASE --out FOLDER` writes weights.pt.

Stopped, the same command goes on from what it saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from training.encoding import Batch, batches, counter, encode, load_tokenizer
from training.everyday import FOLDER, is_kept_apart, read_everyday, read_near_misses
from training.learning import Learner
from training.mixture import Mixture
from training.model import open_model
from training.options import parse, parser
from training.pairs import Row, read_rows, set_apart

FILE = "weights.pt"
TOKENS = 100_000_000
LATIN = ("de", "es", "ro", "tr", "vi", "fr", "pt", "no")
"""The vocabulary of the base knows no other scripts."""


def main() -> None:
    options = parser(__doc__, tokens=TOKENS)
    options.add_argument("--everyday", type=Path, default=FOLDER, help="folder of the everyday documents")
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
        for some in batches(mixture.epoch(number, documents), order, tokenizer):
            yield encode(tokenizer, some)

    given.out.mkdir(parents=True, exist_ok=True)
    Learner(open_model(given.base), given.tokens).train(epoch, given.out / FILE)


def read_training_rows(data: Path) -> list[Row]:
    """Every row that shares nothing with those that are measured."""
    measured = [row for path in sorted(data.glob("dev/pairs/*.gz")) for row in read_rows(path)]
    return set_apart(list(_rows(data / "train")), measured)


def _rows(folder: Path) -> Iterator[Row]:
    for path in (folder / "train_en.jsonl.gz", folder / "train_multi.jsonl.gz", *sorted(folder.glob("extra/*.gz"))):
        yield from (row for row in read_rows(path) if row.lang in ("en", *LATIN))


if __name__ == "__main__":
    main()
