"""Train the student: `python -m training.train --out FOLDER` writes student.pt, from the shared training data alone.

It first learns from labelled pairs of all sources and a large number of made-up questions, then mostly from questions
that people wrote; by then the model so far finds the sentence that holds an answer, which is then taken away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random

import torch
from tokenizers import Tokenizer

from training.encoding import batches, encode, load_tokenizer
from training.learning import Learner
from training.mixture import BROAD, HUMAN, Locate, Mixture, Recipe, locate_by_words
from training.model import RetrievalEvaluator, freeze_embeddings, open_model
from training.options import base_folder, parser
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

    @torch.no_grad()
    def _order(self, question: str, passage: str, spans: Sequence[tuple[int, int]]) -> list[int]:
        self._model.eval()
        device = next(self._model.parameters()).device
        encoded = encode(self._tokenizer, [(question, passage[a:b]) for a, b in spans])
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores, _ = self._model(*(tensor.to(device) for tensor in encoded))
        by_words = locate_by_words(question, passage, spans)
        return sorted(range(len(spans)), key=lambda i: -float(scores[i]) + 0.5 * by_words.index(i))


def main() -> None:
    options = parser(__doc__, tokens=8_000_000).parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
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
        learner.learn(_endless(mixture, recipe, locate, options.seed), until, report)
    torch.save(model.cpu().state_dict(), options.out / FILE)


def _endless(mixture: Mixture, recipe: Recipe, locate: Locate, seed: int) -> Iterator[list[Pair]]:
    random = Random(seed)
    while True:
        yield from batches(mixture.epoch(recipe, locate), random)


class Progress:
    """Prints a line a hundred batches."""

    def __init__(self, tokens: int) -> None:
        self._tokens, self._started, self._calls = tokens, time.monotonic(), 0

    def __call__(self, seen: int, loss: float) -> None:
        self._calls += 1
        if self._calls % 100 == 0:
            minutes = (time.monotonic() - self._started) / 60
            print(f"{seen / self._tokens:6.1%}  {seen:>11,} tokens  {minutes:6.1f} min  loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
