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
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from training.encoding import Batch
from training.model import RetrievalEvaluator

PEAK_RATE = 1e-4
WARM_UP, FALL = 0.01, 0.3
"""Shares of the tokens over which the rate rises, and over which it falls in a line to a fiftieth."""
SMOOTHING = 0.04
TOPICAL_WEIGHT, PLACE_WEIGHT, WORDING_WEIGHT, AGAINST_WEIGHT = 0.3, 0.15, 0.03, 0.5
"""Of the losses beside the one of answering: being on the subject, where the answer stands, the squared difference
between two wordings of a question, and how far a pair does not score above those that it stands against."""
MARGIN = 1.0
"""Log-odds by which it is to score above them."""
LONGEST_AVERAGE = 0.999
"""The average of the weights, which is what ships, forgets a thousandth of itself a step."""
MARKS = (9_000_000, 20_000_000, 40_000_000, 70_000_000)
"""Tokens seen at which the averaged weights are kept, in 16-bit numbers, for the learning curve; as at the end."""
SAVED_AFTER = 5
"""Minutes from one save to the next."""

Epoch = Callable[[int], Iterable[Batch]]
"""The batches of the epoch with this number."""


class Learner:
    """Trains `model` over epochs until `tokens` real (unpadded) tokens are seen, or for so many `minutes`.

    With minutes the rate follows the clock where that is ahead of the tokens, and no two trainings are the same.
    """

    def __init__(
        self, model: RetrievalEvaluator, tokens: int, rate: float = PEAK_RATE, minutes: float | None = None
    ) -> None:
        self._model, self._tokens, self._rate, self._minutes = model, tokens, rate, minutes
        self._weights: list[Tensor] = [weight for weight in model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(self._weights, lr=0.0, weight_decay=0.01, fused=True)
        self._device = self._weights[0].device
        self._seen = 0
        self._epoch = 0
        self._batches = 0
        self._steps = 0
        self._loss = 0.7
        self._average = [weight.detach().clone() for weight in self._weights]

    def train(self, epoch: Epoch, out: Path) -> None:
        """Learn to the end, from where it was stopped if it was, and write the averaged weights to `out`.

        SystemExit: what was stopped is a training with other settings.
        """
        part = out.with_name(f"{out.name}.part")
        if part.is_file():
            self._load(part)
        started = saved = time.monotonic()

        def share() -> float:
            of_time = (time.monotonic() - started) / (60 * self._minutes) if self._minutes else 0.0
            return max(self._seen / self._tokens, of_time)

        self._model.train()
        while share() < 1.0:
            for batch in islice(epoch(self._epoch), self._batches, None):
                if (so_far := share()) >= 1.0:
                    break
                before = self._seen
                self._learn(batch, so_far)
                self._batches += 1
                for mark in MARKS:
                    if before < mark <= self._seen:
                        self._keep(out.with_name(f"{out.stem}-{mark // 1_000_000}M{out.suffix}"))
                if self._batches % 100 == 0:
                    self._report(time.monotonic() - started)
                if time.monotonic() - saved > 60 * SAVED_AFTER:
                    self._save(part)
                    saved = time.monotonic()
            else:
                self._epoch, self._batches = self._epoch + 1, 0
        for weight, average in zip(self._weights, self._average, strict=True):
            weight.data.copy_(average)
        self._keep(out.with_name(f"{out.stem}-end{out.suffix}"))
        torch.save(self._model.cpu().state_dict(), out)
        part.unlink(missing_ok=True)

    def _learn(self, batch: Batch, share: float) -> None:
        """`share` of the training is over."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * pace(share)
        inputs = (tensor.to(self._device) for tensor in (batch.ids, batch.attention, batch.segments))
        with torch.autocast(self._device.type, dtype=torch.bfloat16):
            answering, topical, places = self._model(*inputs)
        loss = _loss(answering, batch.answering) + TOPICAL_WEIGHT * _loss(topical, batch.topical)
        loss = loss + PLACE_WEIGHT * _place_loss(places, batch.evidence.to(self._device))
        if batch.first:
            apart = answering[list(batch.first)] - answering[list(batch.second)]
            loss = loss + WORDING_WEIGHT * apart.square().clamp(max=16.0).sum() / len(answering)
        if batch.above:
            ahead = answering[list(batch.above)] - answering[list(batch.below)]
            loss = loss + AGAINST_WEIGHT * softplus(MARGIN - ahead).sum() / len(answering)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self._steps += 1
        with torch.no_grad():
            new = 1.0 - min(LONGEST_AVERAGE, self._steps / (self._steps + 9))
            torch._foreach_lerp_(self._average, self._weights, new)
        self._seen += int(batch.attention.sum())
        self._loss += 0.01 * (loss.item() - self._loss)

    def _report(self, seconds: float) -> None:
        told = f"{self._seen / self._tokens:6.1%}  {self._seen:>11,} tokens  epoch {self._epoch}"
        print(f"{told}  {seconds / 60:6.1f} min  loss {self._loss:.4f}", flush=True)

    def _keep(self, path: Path) -> None:
        """The averaged weights of what learns."""
        names = [name for name, weight in self._model.named_parameters() if weight.requires_grad]
        torch.save({name: one.half().cpu() for name, one in zip(names, self._average, strict=True)}, path)

    def _save(self, part: Path) -> None:
        state = {
            "made_of": self._made_of,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "average": self._average,
            "counts": [self._seen, self._epoch, self._batches, self._steps, self._loss],
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
        self._average = state["average"]
        self._seen, self._epoch, self._batches, self._steps, self._loss = state["counts"]

    @property
    def _made_of(self) -> str:
        return f"rate {self._rate}, seed {torch.initial_seed()}"


def pace(share: float) -> float:
    """The rate, as a share of its peak, when this share of the tokens is seen."""
    return min(share / WARM_UP, 1.0, max(0.02, (1.0 - share) / FALL))


def _loss(logits: Tensor, labels: Sequence[float | None]) -> Tensor:
    known = torch.tensor([label is not None for label in labels], device=logits.device)
    wanted = torch.tensor([0.5 if label is None else label for label in labels], device=logits.device)
    wanted = wanted * (1.0 - SMOOTHING) + SMOOTHING / 2
    each = binary_cross_entropy_with_logits(logits.float(), wanted, reduction="none")
    return (each * known).sum() / len(labels)


def _place_loss(places: Tensor, evidence: Tensor) -> Tensor:
    """How little of the weight of all places lies on the evidence, over the rows that have one."""
    shown = evidence.bool()
    whole = torch.logsumexp(places, dim=1)
    inside = torch.logsumexp(places.masked_fill(~shown, -1e4), dim=1)
    return ((whole - inside) * shown.any(1)).sum() / len(places)
