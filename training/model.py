"""The retrieval evaluator as a network: one encoder reads question and passage together, small heads score them."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForSequenceClassification

LAYERS = 11
"""Of the base's twelve, the lowest: without the last its scores stay the same (correlation 0.9999)."""
SHARE = 0.3
"""Weight of the base's own score of relevance in both heads before training."""


class RetrievalEvaluator(nn.Module):
    """(ids, attention, segments), each (batch, tokens) -> (answering, topical, places).

    Segment 0 is the question, segment 1 the passage. `answering` adds to a linear score of the first token, pooled,
    the log-sum-exp of a score of every token of the passage, `places`: a passage answers where one place in it does.
    `topical` reads the first token and the means of both texts.
    """

    def __init__(self, folder: Path | str, layers: int = LAYERS) -> None:
        super().__init__()
        # The eager form of attention trains faster on a CPU than the fused one, whose backward pass is slow.
        attention = "sdpa" if torch.cuda.is_available() else "eager"
        ranker = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation=attention)
        self.encoder = ranker.bert
        self.encoder.encoder.layer = self.encoder.encoder.layer[:layers]
        width = self.encoder.config.hidden_size
        self.place = nn.Linear(width, 1)
        self.whole = nn.Linear(width, 1)
        self.about = nn.Linear(width, 1)
        self.means = nn.Sequential(nn.Linear(4 * width, width // 4), nn.Tanh(), nn.Linear(width // 4, 1))
        nn.init.normal_(self.place.weight, std=0.02)
        nn.init.zeros_(self.place.bias)
        with torch.no_grad():
            for head in (self.whole, self.about):
                head.weight.copy_(ranker.classifier.weight * SHARE)
                head.bias.copy_(ranker.classifier.bias * SHARE)

    def forward(self, ids: Tensor, attention: Tensor, segments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        read = self.encoder(input_ids=ids, attention_mask=attention, token_type_ids=segments)
        hidden, pooled = read.last_hidden_state.float(), read.pooler_output.float()
        of_passage = segments.float() * attention.float()
        asked = attention.float() - of_passage
        places = self.place(hidden).squeeze(-1) - (1.0 - of_passage) * 1e4
        answering = torch.logsumexp(places, dim=1) + self.whole(pooled).squeeze(-1) - 4.0
        passage, question = _mean(hidden, of_passage), _mean(hidden, asked)
        pair = torch.cat([passage, question, passage * question, (passage - question).abs()], dim=1)
        return answering, (self.about(pooled) + self.means(pair)).squeeze(-1), places


class TextEmbedder(nn.Module):
    """The embedding model as it is: (ids, attention), each (batch, tokens) -> vectors of length 1, (batch, width)."""

    def __init__(self, folder: Path | str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False)

    def forward(self, ids: Tensor, attention: Tensor) -> Tensor:
        hidden = self.encoder(input_ids=ids, attention_mask=attention).last_hidden_state
        return nn.functional.normalize(_mean(hidden, attention.float()), dim=1)


def load_weights(model: RetrievalEvaluator, path: Path) -> None:
    """What `training.train` wrote: every weight, or in 16 bits those that learnt, beside which the base's stay.

    SystemExit: they are others.
    """
    stored = {name: one.float() for name, one in torch.load(path, weights_only=True, map_location="cpu").items()}
    frozen = {name for name, _ in model.encoder.embeddings.named_parameters(prefix="encoder.embeddings")}
    missing, unknown = model.load_state_dict(stored, strict=False)
    if unknown or set(missing) - frozen:
        told = ", ".join([*unknown, *sorted(set(missing) - frozen)][:3])
        raise SystemExit(f"{path}: expected weights of training.train, found unknown or missing ones: {told}.")


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    return (hidden * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1.0)


def open_model(folder: Path, layers: int = LAYERS) -> RetrievalEvaluator:
    """A network on the base in `folder`, on a GPU where there is one.

    Without dropout, and with the word embeddings frozen: they keep what the base knows about rare words, and a step is
    faster.
    """
    model = RetrievalEvaluator(folder, layers)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0  # type: ignore[assignment]
    for weight in model.encoder.embeddings.parameters():
        weight.requires_grad_(False)
    return model.to("cuda" if torch.cuda.is_available() else "cpu")
