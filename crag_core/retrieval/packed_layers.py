"""The linear layers of a model in oneDNN's own memory layout: the same products, in about half of the time.

PyTorch multiplies single precision by MKL, which on AMD processors uses half of the width of AVX-512. oneDNN uses all
of it, and reorders the weights once instead of at each call. Vectors differ in the seventh decimal at most.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

_X86 = ("x86_64", "amd64")


def pack_linear_layers(model: Module) -> int:
    """Replaces all of `model`, which is used for inference only from then on; how many, 0 where that is not possible.

    Only for models known to call their layers and nothing else of them. Weights are single precision on a processor.
    """
    import torch

    layers = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.Linear)
    ]
    are_usual = all(one.weight.device.type == "cpu" and one.weight.dtype == torch.float32 for *_, one in layers)
    if not are_usual or not is_supported():
        return 0
    for parent, name, layer in layers:
        setattr(parent, name, _pack(layer))
    return len(layers)


def is_supported() -> bool:
    """Elsewhere PyTorch's own products are the faster ones, or oneDNN is missing."""
    import torch

    is_there = all(hasattr(torch.ops.mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight"))
    return platform.machine().lower() in _X86 and bool(torch._C._has_mkldnn) and is_there


def _pack(layer: Linear) -> Module:
    import torch

    # Here, since importing this module loads no PyTorch.
    class PackedLinear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach())
            self.bias = None if layer.bias is None else layer.bias.detach()

        def forward(self, given: Tensor) -> Tensor:
            made: Tensor = torch.ops.mkldnn._linear_pointwise(given, self.weight, self.bias, "none", [], "")
            return made

    return PackedLinear()
