"""The training loop: tokens seen, not time, decide when it ends, so that a slower machine learns the same.

What takes hours is saved on the way, and goes on from there to the same weights, to the bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from training.encoding import encode
from training.model import RetrievalEvaluator
from training.pairs import Pair

PEAK_RATE = 1e-4
WARM_UP = 0.03
"""Share of the tokens over which the rate rises; it then falls in a line to a twentieth."""
SMOOTHING = 0.04
TOPICAL_WEIGHT = 0.3
SAVED_AFTER = 50
"""Batches from one save to the next: some minutes, on one core."""

Report = Callable[[int, float], None]
"""(tokens seen, running loss)"""


class Learner:
    """Trains `model` over batches until `tokens` real (unpadded) tokens were seen in all calls of `learn` together."""

    def __init__(
        self,
        model: RetrievalEvaluator,
        tokenizer: Tokenizer,
        tokens: int,
        peak_rate: float = PEAK_RATE,
        smoothing: float = SMOOTHING,
    ) -> None:
        self._model, self._tokenizer, self._tokens = model, tokenizer, tokens
        self._peak_rate, self._smoothing = peak_rate, smoothing
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(self._weights, lr=0.0, weight_decay=0.01, fused=True)
        self._device = self._weights[0].device
        self._seen = 0
        self._batches = 0
        self._loss = 0.7

    def learn(self, batches: Iterable[Sequence[Pair]], until: float, report: Report) -> None:
        """Until the share `until` of all tokens is seen, or the batches are at their end."""
        self._model.train()
        for batch in batches:
            if self._seen >= until * self._tokens:
                return
            encoded = encode(self._tokenizer, [(pair.question, pair.passage) for pair in batch])
            ids, attention, segments = (tensor.to(self._device) for tensor in encoded)
            for group in self._optimizer.param_groups:
                group["lr"] = self._peak_rate * _pace(self._seen / self._tokens)
            with torch.autocast(self._device.type, dtype=torch.bfloat16):
                answering, topical = self._model(ids, attention, segments)
            loss = _loss(answering, [pair.answering for pair in batch], self._smoothing)
            loss = loss + TOPICAL_WEIGHT * _loss(topical, [pair.topical for pair in batch], self._smoothing)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self._seen += int(attention.sum())
            self._loss += 0.01 * (loss.item() - self._loss)
            self._batches += 1
            report(self._seen, self._loss)

    def go_on(self, batches: Iterable[Sequence[Pair]], report: Report, part: Path) -> None:
        """Learn to the end, from where the file `part` has it if there is one; `batches` are those of the beginning.

        SystemExit: `part` is of a training with other settings.
        """
        if part.is_file():
            self._load(part)

        def save_and_report(seen: int, loss: float) -> None:
            report(seen, loss)
            if self._batches % SAVED_AFTER == 0:
                self._save(part)

        self.learn(islice(batches, self._batches, None), 1.0, save_and_report)

    def train(self, batches: Iterable[Sequence[Pair]], out: Path) -> None:
        """Learn to the end, from where it was stopped if it was, and write the weights to `out`."""
        part = out.with_name(f"{out.name}.part")
        self.go_on(batches, Progress(self._tokens), part)
        torch.save(self._model.cpu().state_dict(), out)
        part.unlink(missing_ok=True)

    def _save(self, part: Path) -> None:
        state = {
            "made_of": self._made_of,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "counts": [self._seen, self._batches, self._loss],
        }
        beside = part.with_name(f".{part.name}")
        torch.save(state, beside)
        os.replace(beside, part)

    def _load(self, part: Path) -> None:
        state = torch.load(part, map_location=self._device, weights_only=True)
        if state["made_of"] != self._made_of:
            raise SystemExit(
                f"{part}: expected a training with {self._made_of}, found {state['made_of']}. Delete it to start again."
            )
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._seen, self._batches, self._loss = state["counts"]

    @property
    def _made_of(self) -> str:
        return f"{self._tokens} tokens, rate {self._peak_rate}, seed {torch.initial_seed()}"


class Progress:
    """Prints a line a hundred batches."""

    def __init__(self, tokens: int) -> None:
        self._tokens, self._started, self._calls = tokens, time.monotonic(), 0

    def __call__(self, seen: int, loss: float) -> None:
        self._calls += 1
        if self._calls % 100 == 0:
            minutes = (time.monotonic() - self._started) / 60
            print(f"{seen / self._tokens:6.1%}  {seen:>11,} tokens  {minutes:6.1f} min  loss {loss:.4f}", flush=True)


def _pace(share: float) -> float:
    return min(share / WARM_UP, 1.0) * max(0.05, 1.0 - max(share - WARM_UP, 0.0) / (1.0 - WARM_UP))


def _loss(logits: Tensor, labels: Sequence[float | None], smoothing: float) -> Tensor:
    known = torch.tensor([label is not None for label in labels], device=logits.device)
    wanted = torch.tensor([0.5 if label is None else label for label in labels], device=logits.device)
    wanted = wanted * (1.0 - smoothing) + smoothing / 2
    each = binary_cross_entropy_with_logits(logits.float(), wanted, reduction="none")
    return (each * known).sum() / len(labels)
