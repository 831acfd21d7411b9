"""From weights to the files that ship: ONNX, their matrices as 8-bit integers, one scale an output channel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor

from crag_core.evaluators.shared.pair_encoder import EMBEDDER_INPUTS, EMBEDDER_OUTPUTS, INPUTS, OUTPUTS, PLACES
from training.model import RetrievalEvaluator, TextEmbedder

_OPSET = 17


def export(model: RetrievalEvaluator, path: Path) -> None:
    """Write `model` as 32-bit ONNX with free batch and length."""
    ids = torch.tensor([[101, 2003, 102, 2054, 102], [101, 2003, 102, 2054, 102]])
    segments = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1]])
    _export(model, (ids, torch.ones_like(ids), segments), INPUTS, OUTPUTS, path)


def export_embedder(embedder: TextEmbedder, path: Path) -> None:
    """Write `embedder` as 32-bit ONNX with free batch and length."""
    ids = torch.tensor([[101, 2003, 2054, 102], [101, 2003, 2054, 102]])
    _export(embedder, (ids, torch.ones_like(ids)), EMBEDDER_INPUTS, EMBEDDER_OUTPUTS, path)


def _export(
    model: torch.nn.Module, example: tuple[Tensor, ...], inputs: Sequence[str], outputs: Sequence[str], path: Path
) -> None:
    model.eval()
    by_token = {*inputs, PLACES}
    free = {name: {0: "rows", 1: "tokens"} if name in by_token else {0: "rows"} for name in (*inputs, *outputs)}
    torch.onnx.export(
        model,
        example,
        str(path),
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes=free,
        opset_version=_OPSET,
        dynamo=False,
    )


def quantize(full: Path, small: Path) -> None:
    """Per-channel: one scale for a whole matrix costs the scores visibly, one scale a channel does not."""
    quantize_dynamic(full, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
