"""The training loop: tokens seen, not time, decide when it ends, so that a slower machine learns the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
            report(self._seen, self._loss)


def _pace(share: float) -> float:
    return min(share / WARM_UP, 1.0) * max(0.05, 1.0 - max(share - WARM_UP, 0.0) / (1.0 - WARM_UP))


def _loss(logits: Tensor, labels: Sequence[float | None], smoothing: float) -> Tensor:
    known = torch.tensor([label is not None for label in labels], device=logits.device)
    wanted = torch.tensor([0.5 if label is None else label for label in labels], device=logits.device)
    wanted = wanted * (1.0 - smoothing) + smoothing / 2
    each = binary_cross_entropy_with_logits(logits.float(), wanted, reduction="none")
    return (each * known).sum() / len(labels)
