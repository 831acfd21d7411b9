"""From trained weights to the file that ships: ONNX, its matrices as 8-bit integers, one scale an output channel."""

from __future__ import annotations

from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor

from training.model import RetrievalEvaluator

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("answering", "topical")
_OPSET = 17


class _WideInputs(torch.nn.Module):
    """The tokenizer's integers as they come."""

    def __init__(self, model: RetrievalEvaluator) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        return self.model(input_ids, attention_mask, token_type_ids)  # type: ignore[no-any-return]


def export(model: RetrievalEvaluator, path: Path) -> None:
    """Write `model` as 32-bit ONNX with free batch and length."""
    model.eval()
    ids = torch.tensor([[101, 2003, 102, 2054, 102], [101, 2003, 102, 2054, 102]])
    segments = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1]])
    free = {name: {0: "pairs", 1: "tokens"} for name in INPUTS} | {name: {0: "pairs"} for name in OUTPUTS}
    torch.onnx.export(
        _WideInputs(model),
        (ids, torch.ones_like(ids), segments),
        str(path),
        input_names=list(INPUTS),
        output_names=list(OUTPUTS),
        dynamic_axes=free,
        opset_version=_OPSET,
        dynamo=False,
    )


def quantize(full: Path, small: Path) -> None:
    """Per-channel: one scale for a whole matrix costs the scores visibly, one scale a channel does not."""
    quantize_dynamic(full, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
