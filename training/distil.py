"""Teach the evaluator what the teacher saw: `python -m training.distil --out FOLDER` writes weights.pt.

It reads student.pt and judged.jsonl. Two of three pairs are the teacher's, the third comes from the human recipe, so
that whole passages, topics and other corpora are not forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import torch

from training.encoding import batches, load_tokenizer
from training.judge import FILE as JUDGED
from training.judge import read_judged
from training.learning import Learner
from training.mixture import HUMAN, Mixture
from training.model import freeze_embeddings, open_model
from training.options import base_folder, parser
from training.pairs import Pair, read_rows
from training.train import FILE as STUDENT
from training.train import Progress

FILE = "weights.pt"
PEAK_RATE = 6e-5


def main() -> None:
    options = parser(__doc__, tokens=4_000_000).parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    base = base_folder(options.base)
    model = open_model(base)
    model.load_state_dict(torch.load(options.out / STUDENT, weights_only=True))
    freeze_embeddings(model)
    mixture = Mixture(read_rows(options.data / "train" / "train_en.jsonl.gz"), [], options.seed)
    tokenizer = load_tokenizer(base / "tokenizer.json")
    learner = Learner(model, tokenizer, options.tokens, PEAK_RATE, smoothing=0.0)
    pairs = _endless(read_judged(options.out / JUDGED), mixture, options.seed)
    part = options.out / f"{FILE}.part"
    learner.go_on(pairs, Progress(options.tokens), part)
    torch.save(model.cpu().state_dict(), options.out / FILE)
    part.unlink(missing_ok=True)


def _endless(judged: Sequence[Pair], mixture: Mixture, seed: int) -> Iterator[list[Pair]]:
    random = Random(seed)
    while True:
        pairs = [*judged, *mixture.epoch(HUMAN)[: len(judged) // 2]]
        random.shuffle(pairs)
        yield from batches(pairs, random)


if __name__ == "__main__":
    main()
