"""Tiny models that check answers, with their tokenizers, saved as transformers saves them."""

from __future__ import annotations

import json
import string
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    PreTrainedTokenizerFast,
)

SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_LETTERS = [*string.ascii_lowercase, *string.digits, *string.punctuation]
NLI = {0: "contradiction", 1: "entailment", 2: "neutral"}


def save_entailment(folder: Path, labels: Mapping[int, str] = NLI, seed: int = 1, positions: int = 512) -> Path:
    """Of random weights; the same for a seed, whatever the labels are called."""
    torch.manual_seed(seed)
    BertForSequenceClassification(_config(folder, (), positions, labels=labels)).save_pretrained(folder)
    return folder


def save_spans(
    folder: Path, invented: Collection[str], labels: Mapping[int, str] | None = None, positions: int = 512
) -> Path:
    """Finds those words hallucinated, and no other, with 0.98: without layers, each token speaks for itself."""
    labels = labels or {0: "LABEL_0", 1: "LABEL_1"}
    config = _config(folder, invented, positions, labels=labels, num_hidden_layers=0)
    made = BertForTokenClassification(config)
    sign = torch.tensor([1.0, -1.0] * (config.hidden_size // 2))
    with torch.no_grad():
        for name, weights in made.named_parameters():
            weights.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        words = made.bert.embeddings.word_embeddings.weight
        words[:] = -sign
        for place in range(len(words) - len(invented), len(words)):
            words[place] = sign
        made.classifier.weight[1] = sign / config.hidden_size * 2
        made.classifier.weight[0] = -sign / config.hidden_size * 2
    made.save_pretrained(folder)
    return folder


def save_other(folder: Path) -> Path:
    """One that can check nothing."""
    BertForMaskedLM(_config(folder, (), 64)).save_pretrained(folder)
    return folder


def change_config(folder: Path, **more: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | more), "utf-8")
    return folder


def _config(folder: Path, words: Collection[str], positions: int, labels: Mapping[int, str] = {}, **more: Any) -> Any:
    """Word pieces of letters, and the words last."""
    pieces = [*SIGNS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *words]
    made = Tokenizer(models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=positions, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)  # fmt: skip
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    names = {"id2label": dict(labels), "label2id": {name: at for at, name in labels.items()}} if labels else {}
    return BertConfig(
        vocab_size=len(pieces), max_position_embeddings=positions, pad_token_id=0, initializer_range=0.5,
        intermediate_size=32, **sizes | names | more,
    )  # fmt: skip
