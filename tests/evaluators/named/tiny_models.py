"""Tiny random models of each interface, with their tokenizers, saved as their libraries save them.

PyTorch and transformers take seconds to import, so that only the functions that need them do it.
"""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
_LETTERS = [*string.ascii_lowercase, *string.digits, *string.punctuation]
WORDS = ["harbour", "dues", "ferry", "leaves", "ten", "paid", "leave", "days", "the", "at", "of", "is", "how", "many"]
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def save_encoder_tokenizer(folder: Path, longest: int = 64) -> int:
    """Word pieces of letters and a few words; how many there are."""
    from transformers import PreTrainedTokenizerFast

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


def save_one_logit(folder: Path, seed: int = 1, labels: int = 1) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=save_encoder_tokenizer(folder), max_position_embeddings=64, pad_token_id=0, initializer_range=0.5,
        num_labels=labels, **SIZES,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def save_yes_no(folder: Path, seed: int = 1) -> Path:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

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
