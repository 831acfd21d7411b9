"""Train the teacher: `python -m training.teacher --base TEACHER_BASE --out FOLDER` writes teacher.pt.

The same network as the evaluator on a base of five times the weights: too slow to ship, and better at telling an answer
from what merely sounds like one.
"""

from __future__ import annotations

from random import Random

from training.close_ups import lessons
from training.encoding import endless, load_tokenizer
from training.learning import Learner
from training.model import freeze_embeddings, freeze_layers, open_model
from training.options import parse, parser
from training.pairs import read_rows

FILE = "teacher.pt"
PEAK_RATE = 5e-5
FROZEN_LAYERS = 3


def main() -> None:
    options = parse(parser(__doc__, tokens=1_600_000))
    if not options.base:
        raise SystemExit("--base: expected the folder that training.teacher_base makes. Give it.")
    model = open_model(options.base)
    freeze_embeddings(model)
    freeze_layers(model, FROZEN_LAYERS)
    pairs = lessons(read_rows(options.data / "train" / "train_en.jsonl.gz"), Random(options.seed))
    learner = Learner(model, load_tokenizer(options.base / "tokenizer.json"), options.tokens, PEAK_RATE)
    options.out.mkdir(parents=True, exist_ok=True)
    learner.train(endless(lambda random: pairs, options.seed), options.out / FILE)


if __name__ == "__main__":
    main()
