"""Tiny random models of each interface, with their tokenizers, saved as their libraries save them."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_LETTERS = [*string.ascii_lowercase, *string.digits, *string.punctuation]
WORDS = ["harbour", "dues", "ferry", "leaves", "ten", "paid", "leave", "days", "the", "at", "of", "is", "how", "many"]
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def save_encoder_tokenizer(folder: Path, longest: int = 64) -> int:
    """Word pieces of letters and a few words; how many there are."""
    pieces = [*SIGNS, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *WORDS]
    made = Tokenizer(models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", SIGNS.index("[CLS]")), ("[SEP]", 3)]
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=longest, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]",
    )  # fmt: skip
    wrapped.save_pretrained(folder)
    return len(pieces)


def bert_config(pieces: int, **more: Any) -> BertConfig:
    return BertConfig(
        vocab_size=pieces, max_position_embeddings=64, pad_token_id=0, initializer_range=0.5, **SIZES, **more
    )


def save_one_logit(folder: Path, seed: int = 1, labels: int = 1) -> Path:
    torch.manual_seed(seed)
    config = bert_config(save_encoder_tokenizer(folder), num_labels=labels)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def save_span(folder: Path, seed: int = 1) -> Path:
    torch.manual_seed(seed)
    BertForQuestionAnswering(bert_config(save_encoder_tokenizer(folder))).save_pretrained(folder)
    return folder


def save_yes_no(folder: Path, seed: int = 1) -> Path:
    torch.manual_seed(seed)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({sign: place for place, sign in enumerate([*alphabet, "yes", "no"])}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<|endoftext|>")
    wrapped.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    wrapped.save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=len(wrapped), max_position_embeddings=2048, head_dim=8, num_key_value_heads=2, initializer_range=0.5,
        **SIZES,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


def save_open_provence(folder: Path, seed: int = 1) -> Path:
    """As OpenProvenceEncoder.save_pretrained lays it out."""
    torch.manual_seed(seed)
    inner = bert_config(save_encoder_tokenizer(folder), num_labels=1)
    ranker = BertForSequenceClassification(inner)
    head = torch.nn.Linear(inner.hidden_size, 2)
    weights = {f"ranking_model.{name}": value.contiguous() for name, value in ranker.state_dict().items()}
    weights |= {f"pruning_head.classifier.{name}": value for name, value in head.state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    config = {
        "architectures": ["OpenProvenceForSequenceClassification"],
        "auto_map": {"AutoModel": "modeling_open_provence_standalone.OpenProvenceForSequenceClassification"},
        "model_type": "open_provence",
        "mode": "reranking_pruning",
        "base_model_config": inner.to_dict(),
        "pruning_config": {"hidden_size": inner.hidden_size, "num_labels": 2},
        "max_length": 64,
        "num_labels": 1,
        "default_threadshold": 0.25,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def save_provence(folder: Path, seed: int = 1) -> Path:
    """As naver's own class over DeBERTa-v2 lays it out."""
    torch.manual_seed(seed)
    config = DebertaV2Config(
        vocab_size=save_encoder_tokenizer(folder), max_position_embeddings=64, num_labels=1, type_vocab_size=0,
        pos_att_type=["p2c", "c2p"], relative_attention=True, initializer_range=0.5, **SIZES,
    )  # fmt: skip
    DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    head = torch.nn.Linear(config.hidden_size, 2)
    weights |= {f"token_classifier.{name}": value.detach() for name, value in head.state_dict().items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    told = json.loads((folder / "config.json").read_text())
    told |= {"architectures": ["Provence"], "auto_map": {"AutoModel": "modeling_provence.Provence"}}
    (folder / "config.json").write_text(json.dumps(told))
    return folder
