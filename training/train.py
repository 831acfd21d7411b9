"""Train the evaluator: `python -m training.train --base BASE --out FOLDER` writes weights.pt.

Stopped, the same command goes on from what it saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from training.encoding import counter, load_tokenizer
from training.everyday import FOLDER, is_kept_apart, read_everyday, read_near_misses
from training.learning import Learner
from training.mixture import Mixture
from training.model import open_model
from training.options import parse, parser
from training.pairs import Pair, Row, read_rows, set_apart

FILE = "weights.pt"
TOKENS = 100_000_000
LATIN = ("de", "es", "ro", "tr", "vi", "fr", "pt", "no")
"""The vocabulary of the base knows no other scripts."""


def main() -> None:
    options = parser(__doc__, tokens=TOKENS)
    options.add_argument("--everyday", type=Path, default=FOLDER, help="folder of the everyday documents")
    given = parse(options)
    tokenizer = load_tokenizer(given.base / "tokenizer.json")
    measured = [row for path in sorted(given.data.glob("dev/pairs/*.gz")) for row in read_rows(path)]
    rows = set_apart(list(_rows(given.data / "train")), measured)
    english = [row for row in rows if row.lang == "en"]
    foreign = [row for row in rows if row.lang != "en"]
    mixture = Mixture(english, foreign, counter(given.base / "tokenizer.json"), given.seed)
    learner = Learner(open_model(given.base), tokenizer, given.tokens)
    given.out.mkdir(parents=True, exist_ok=True)

    documents = read_everyday(given.everyday) + read_near_misses(given.data / "train" / "everyday2")
    documents = [one for one in documents if not is_kept_apart(one)]

    def epoch(number: int) -> list[Pair]:
        return mixture.epoch(number, documents)

    learner.train(epoch, given.out / FILE)


def _rows(folder: Path) -> Iterator[Row]:
    for path in (folder / "train_en.jsonl.gz", folder / "train_multi.jsonl.gz", *sorted(folder.glob("extra/*.gz"))):
        yield from (row for row in read_rows(path) if row.lang in ("en", *LATIN))


if __name__ == "__main__":
    main()
