"""Train the student: `python -m training.train --out FOLDER` writes student.pt, from the shared training data alone.

It first learns from labelled pairs of all sources and a large number of made-up questions, then mostly from questions
that people wrote; by then the model so far finds the sentence that holds an answer, which is then taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

import torch
from tokenizers import Tokenizer

from training.encoding import encode, endless, load_tokenizer
from training.learning import Learner, Progress
from training.mixture import BROAD, HUMAN, Locate, Mixture, Recipe, locate_by_words
from training.model import RetrievalEvaluator, answering_logits, freeze_embeddings, open_model
from training.options import base_folder, parse, parser
from training.pairs import Pair, read_rows

FILE = "student.pt"
PARTS = ((BROAD, 0.25), (HUMAN, 1.0))
"""Each recipe with the share of the tokens at which it ends."""
LATIN = ("de", "es", "ro", "tr", "vi", "fr")
"""The vocabulary of the base knows no other scripts."""


class SentenceScorer:
    """Finds the sentence that holds the answer by the model so far, half and half with the words in common."""

    def __init__(self, model: RetrievalEvaluator, tokenizer: Tokenizer) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._found: dict[tuple[str, str], list[int]] = {}

    def __call__(self, question: str, passage: str, spans: Sequence[tuple[int, int]]) -> list[int]:
        key = (question, passage)
        if key not in self._found:
            self._found[key] = self._order(question, passage, spans)
        return self._found[key]

    def _order(self, question: str, passage: str, spans: Sequence[tuple[int, int]]) -> list[int]:
        scores = answering_logits(self._model, encode(self._tokenizer, [(question, passage[a:b]) for a, b in spans]))
        by_words = locate_by_words(question, passage, spans)
        return sorted(range(len(spans)), key=lambda i: -float(scores[i]) + 0.5 * by_words.index(i))


def main() -> None:
    options = parse(parser(__doc__, tokens=8_000_000))
    base = base_folder(options.base)
    tokenizer = load_tokenizer(base / "tokenizer.json")
    model = open_model(base)
    freeze_embeddings(model)
    rows = read_rows(options.data / "train" / "train_en.jsonl.gz")
    foreign = [row for row in read_rows(options.data / "train" / "train_multi.jsonl.gz") if row.lang in LATIN]
    mixture = Mixture(rows, foreign, options.seed)
    learner = Learner(model, tokenizer, options.tokens)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Progress(options.tokens)
    for recipe, until in PARTS:
        locate = locate_by_words if recipe is BROAD else SentenceScorer(model, tokenizer)
        epoch = partial(_epoch, mixture, recipe, locate)
        learner.learn(endless(epoch, options.seed), until, report)
    torch.save(model.cpu().state_dict(), options.out / FILE)


def _epoch(mixture: Mixture, recipe: Recipe, locate: Locate, random: Random) -> list[Pair]:
    return mixture.epoch(recipe, locate)


if __name__ == "__main__":
    main()
