"""Teach the evaluator what the teacher saw: `python -m training.distil --out FOLDER` writes weights.pt.

It reads student.pt and judged.jsonl. Two of three pairs are the teacher's, the third comes from the human recipe, so
that whole passages, topics and other corpora are not forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch

from training.encoding import endless, load_tokenizer
from training.judge import FILE as JUDGED
from training.judge import read_judged
from training.learning import Learner
from training.mixture import HUMAN, Mixture
from training.model import freeze_embeddings, open_model
from training.options import base_folder, parse, parser
from training.pairs import Pair, read_rows
from training.train import FILE as STUDENT

FILE = "weights.pt"
PEAK_RATE = 6e-5


def main() -> None:
    options = parse(parser(__doc__, tokens=4_000_000))
    base = base_folder(options.base)
    model = open_model(base)
    model.load_state_dict(torch.load(options.out / STUDENT, weights_only=True))
    freeze_embeddings(model)
    mixture = Mixture(read_rows(options.data / "train" / "train_en.jsonl.gz"), [], options.seed)
    tokenizer = load_tokenizer(base / "tokenizer.json")
    learner = Learner(model, tokenizer, options.tokens, PEAK_RATE, smoothing=0.0)
    judged = read_judged(options.out / JUDGED)
    learner.train(endless(lambda random: _epoch(judged, mixture, random), options.seed), options.out / FILE)


def _epoch(judged: Sequence[Pair], mixture: Mixture, random: Random) -> list[Pair]:
    pairs = [*judged, *mixture.epoch(HUMAN)[: len(judged) // 2]]
    random.shuffle(pairs)
    return pairs


if __name__ == "__main__":
    main()
