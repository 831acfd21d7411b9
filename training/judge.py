"""Let the teacher judge: `python -m training.judge --base TEACHER_BASE --out FOLDER` writes judged.jsonl.

It reads teacher.pt. Each line is a pair with a probability to learn: the teacher's, drawn towards the label where
there is one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer

from training.close_ups import to_judge
from training.encoding import encode, load_tokenizer
from training.model import RetrievalEvaluator, answering_logits, open_model
from training.options import parse, parser
from training.pairs import Pair, read_rows
from training.teacher import FILE as TEACHER

FILE = "judged.jsonl"
TRUST = 0.7
"""Weight of the teacher beside a label."""
_POOL, _BATCH = 512, 12


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=25_500, help="pairs to judge at most")
    given = parse(options)
    model = open_model(given.base)
    model.load_state_dict(torch.load(given.out / TEACHER, weights_only=True))
    tokenizer = load_tokenizer(given.base / "tokenizer.json")
    pairs = to_judge(read_rows(given.data / "train" / "train_en.jsonl.gz"), Random(given.seed))[: given.pairs]
    lines = [json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in judge(model, tokenizer, pairs)]
    (given.out / FILE).write_text("".join(lines), "utf-8")


def judge(model: RetrievalEvaluator, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """`pairs` in order, `answering` as it is to be learnt."""
    started = time.monotonic()
    for at in range(0, len(pairs), _POOL):
        pool = pairs[at : at + _POOL]
        yield from (
            _drawn(pair, probability) for pair, probability in zip(pool, _read(model, tokenizer, pool), strict=True)
        )
        print(f"{at + len(pool):>7,} of {len(pairs):,}  {(time.monotonic() - started) / 60:6.1f} min", flush=True)


def read_judged(path: Path) -> list[Pair]:
    """The pairs of a file that `main` wrote."""
    return [Pair(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _drawn(pair: Pair, probability: float) -> Pair:
    known = probability if pair.answering is None else TRUST * probability + (1.0 - TRUST) * pair.answering
    return replace(pair, answering=round(known, 4))


def _read(model: RetrievalEvaluator, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[float]:
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].question) + len(pairs[i].passage))
    found = [0.0] * len(pairs)
    for at in range(0, len(order), _BATCH):
        chosen = order[at : at + _BATCH]
        logits = answering_logits(model, encode(tokenizer, [(pairs[i].question, pairs[i].passage) for i in chosen]))
        for i, probability in zip(chosen, torch.sigmoid(logits).tolist(), strict=True):
            found[i] = probability
    return found


if __name__ == "__main__":
    main()
