"""Embed the sample documents and questions once, so that a first question need not wait for the model.

Run after a change of data/sample, data/questions or the length of chunks: python -m training.sample_vectors
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from crag_core.app import config
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.sample_vectors import DIGEST, FILE, digest_of


def sample_texts(home: Path) -> list[str]:
    """Every chunk as it is embedded, then the questions; `home` becomes one with the sample in it."""
    files = [(path.name, path) for path in sorted((DATA / "sample").iterdir())]
    store = Workbench(replace(config.load(), home=home)).store
    store.ingest(files, lambda progress: None)
    chunks = [passage.text for document in store.listing() for passage in store.passages_of(document.id)]
    asked = [
        json.loads(line)["question"]
        for path in sorted((DATA / "questions").glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [*dict.fromkeys([*chunks, *asked])]


def embed(texts: Sequence[str]) -> dict[str, Sequence[float]]:
    return dict(zip(texts, HuggingFaceEmbedder().embed_texts(texts), strict=True))


def write_vectors(vectors: dict[str, Sequence[float]], path: Path = FILE) -> None:
    """`vectors`: by text; of length 1."""
    digests = np.frombuffer(b"".join(map(digest_of, vectors)), dtype=np.uint8).reshape(-1, DIGEST)
    np.savez_compressed(path, digests=digests, vectors=np.array(list(vectors.values()), dtype=np.float32))


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_vectors(embed(sample_texts(Path(folder))))
