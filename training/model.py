"""The retrieval evaluator as a network: one encoder reads passage and question together, two small heads score them."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModel


class RetrievalEvaluator(nn.Module):
    """(ids, attention, segments), each (batch, tokens) -> (answering, topical) logits, each (batch,).

    Segment 0 is the passage, segment 1 the question. `answering` adds to a linear score of the first token and the
    mean of the passage's tokens the log-mean-exp of a score of every token of the passage: a passage answers where
    one place in it does. `topical` reads the two means alone.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__()
        # The eager form of attention trains a quarter faster on a CPU than the fused one, whose backward pass is slow.
        self.encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)
        self._tells_segments = hasattr(self.encoder.embeddings, "token_type_embeddings")
        width = self.encoder.config.hidden_size
        self.place = nn.Linear(width, 1)
        self.whole = nn.Linear(3 * width, 1)
        self.about = nn.Sequential(nn.Linear(4 * width, width // 4), nn.Tanh(), nn.Linear(width // 4, 1))
        for layer in (self.place, self.whole):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, ids: Tensor, attention: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        told_apart = {"token_type_ids": segments} if self._tells_segments else {}
        hidden = self.encoder(input_ids=ids, attention_mask=attention, **told_apart).last_hidden_state.float()
        asked = segments.float() * attention.float()
        of_passage = attention.float() - asked
        passage, question = _mean(hidden, of_passage), _mean(hidden, asked)
        places = self.place(hidden).squeeze(-1) - (1.0 - of_passage) * 1e4
        peak = torch.logsumexp(places, dim=1)
        answering = peak + self.whole(torch.cat([hidden[:, 0], passage, question], dim=1)).squeeze(-1)
        pair = torch.cat([passage, question, passage * question, (passage - question).abs()], dim=1)
        return answering - 4.0, self.about(pair).squeeze(-1)


class TextEmbedder(nn.Module):
    """The base as it comes: (ids, attention), each (batch, tokens) -> vectors of length 1, (batch, width)."""

    def __init__(self, folder: Path | str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)

    def forward(self, ids: Tensor, attention: Tensor) -> Tensor:
        hidden = self.encoder(input_ids=ids, attention_mask=attention).last_hidden_state
        return nn.functional.normalize(_mean(hidden, attention.float()), dim=1)


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    return (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1.0)


def open_model(folder: Path) -> RetrievalEvaluator:
    """A network on the base in `folder`, on a GPU where there is one.

    Without dropout: small data seen a few times needs the speed more than the noise.
    """
    model = RetrievalEvaluator(folder)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0  # type: ignore[assignment]
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


@torch.no_grad()
def answering_logits(model: RetrievalEvaluator, encoded: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Of pairs that `training.encoding.encode` made."""
    model.eval()
    device = next(model.parameters()).device
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits: tuple[Tensor, Tensor] = model(*(tensor.to(device) for tensor in encoded))
    return logits[0].float()


def freeze_embeddings(model: RetrievalEvaluator) -> None:
    """Half of the weights; frozen they keep what the base knows about rare words, and a step is faster."""
    for weight in model.encoder.embeddings.parameters():
        weight.requires_grad_(False)


def freeze_layers(model: RetrievalEvaluator, count: int) -> None:
    """The lowest `count` layers, which know words rather than questions."""
    for layer in model.encoder.encoder.layer[:count]:
        for weight in layer.parameters():
            weight.requires_grad_(False)
