"""Searching 1,000, 100,000 and 1,000,000 passages: p50, p95, recall, memory, disk, and what making the indexes costs.

Texts are sentences of the sample documents in new mixtures; vectors lie between those of real sentences that are near
each other, with some noise. So the figures are about size, not about quality: for that see docs/quality.md. Each size
is made once, in build/scale, and measured by a process of its own, so that its memory is that of searching alone.

Run: python benchmarks/scale.py [--sizes 1000,100000,1000000] [--store postgresql://…]
(1,000,000 passages take about 8 GB of disk and half an hour)
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.backend import Passages
from crag_core.retrieval.index.ann_index import measure_recalls, refresh

from crag_core.base.documents import Document, Recipe, State
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.text.sentences import split
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.index_writer import IndexWriter
from crag_core.retrieval.readers import read_document

ROOT = Path(__file__).parent.parent
SIZES = (1_000, 100_000, 1_000_000)
FOLDER = ROOT / "build" / "scale"
QUESTIONS, LIMIT, SEED = 100, 24, 7
"""`LIMIT` is what a search for six passages asks each engine for."""
_PER_DOCUMENT, _PER_WRITE = 50, 2_000
_SENTENCES = 8


@dataclass(frozen=True)
class Stuff:
    """Real sentences with their vectors, of unit length, and for each the places of those nearest to it."""

    sentences: Sequence[str]
    vectors: np.ndarray
    near: np.ndarray


def read_stuff() -> Stuff:
    kept = FOLDER / "sentences.npz"
    if kept.exists():
        found = np.load(kept)
        return Stuff([str(one) for one in found["sentences"]], found["vectors"], found["near"])
    pages = [page for path in sorted((ROOT / "data" / "sample").iterdir()) for page in read_document(path)]
    cut = (page.text[start:end] for page in pages for start, end in split(page.text))
    sentences = sorted({text for text in cut if len(text.split()) > 4})
    vectors = np.asarray(HuggingFaceEmbedder().embed_texts(sentences), dtype=np.float32)
    near = np.argsort(-(vectors @ vectors.T), axis=1)[:, :20]
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez(kept, sentences=sentences, vectors=vectors, near=near)
    return Stuff(sentences, vectors, near)


def make_vectors(stuff: Stuff, count: int, rng: np.random.Generator) -> np.ndarray:
    first = rng.integers(len(stuff.vectors), size=count)
    second = stuff.near[first, rng.integers(stuff.near.shape[1], size=count)]
    share = rng.random((count, 1), dtype=np.float32)
    mixed = share * stuff.vectors[first] + (1 - share) * stuff.vectors[second]
    mixed += rng.normal(scale=0.02, size=mixed.shape).astype(np.float32)
    unit: np.ndarray = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return unit.astype(np.float32)


def make_nodes(stuff: Stuff, size: int) -> Iterator[list[Any]]:
    """Batches of nodes as the splitter makes them, with vectors."""
    import_llama_index()
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    rng, draw = np.random.default_rng(SEED), random.Random(SEED)
    for start in range(0, size, _PER_WRITE):
        count = min(_PER_WRITE, size - start)
        nodes = []
        for number, vector in enumerate(make_vectors(stuff, count, rng), start):
            document, ordinal = f"{number // _PER_DOCUMENT:032x}", number % _PER_DOCUMENT
            node = TextNode(
                id_=f"{document}-{ordinal}",
                text=" ".join(draw.choices(stuff.sentences, k=_SENTENCES)),
                metadata={
                    "file_name": f"{document}.txt", "page_label": "", "ordinal": ordinal, "section": "", "pages": 0,
                    "characters": 0, "indexed_at": "2026-01-01",
                },
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)},
            )  # fmt: skip
            node.embedding = vector.tolist()
            nodes.append(node)
        yield nodes


def make(store: str, folder: Path, size: int) -> dict[str, float]:
    """Fill an index with `size` passages; seconds for adding, for the keyword index and for the approximate one."""
    backend = open_backend(store, folder)
    index_writer = IndexWriter(backend, Recipe("benchmark"))
    passages, stuff = index_writer.passages(), read_stuff()
    adding = 0.0
    for nodes in make_nodes(stuff, size):
        ids = {node.ref_doc_id: "main" for node in nodes}
        begun = time.perf_counter()
        with backend.lock():
            passages.add(nodes, ids)
        adding += time.perf_counter() - begun
    with backend.lock():
        rows = [
            Document(f"{number:032x}", f"{number:032x}.txt", state=State.INDEXED, passages=_PER_DOCUMENT)
            for number in range(size // _PER_DOCUMENT)
        ]
        backend.documents.put(rows)
    tidying = timed(passages.tidy)
    indexing = timed(lambda: refresh(index_writer, index_writer.versions.current()))
    return {"adding": adding, "keywords": tidying, "approximate": indexing}


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def measure(store: str, folder: Path) -> dict[str, Any]:
    """Milliseconds of every search, the recall, and the largest memory of this process, in MB."""
    index_writer = IndexWriter(open_backend(store, folder), Recipe("benchmark"))
    now, stuff = index_writer.versions.current(), read_stuff()
    passages = index_writer.passages(now)
    rng, draw = np.random.default_rng(SEED + 1), random.Random(SEED + 1)
    asked = make_vectors(stuff, QUESTIONS, rng).tolist()
    words = [" ".join([*draw.sample(draw.choice(stuff.sentences).split(), 3), "harbour", "the"]) for _ in asked]
    empty = _memory()
    quick, found = _search(passages, asked)
    words_ms = [1000 * timed(lambda text=text: passages.search_keyword(text, LIMIT)) for text in words]
    memory = _memory()
    exact_ms, exact = _search(passages, asked, exact=True)
    return {
        "effort": now.effort,
        "recall": fmean(measure_recalls(found, exact)),
        "approximate": quick if now.effort else [],
        "exact": exact_ms,
        "keyword": words_ms,
        "memory": memory,
        "of which before": empty,
        "disk": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
    }


def _search(
    passages: Passages, asked: Sequence[Sequence[float]], exact: bool = False
) -> tuple[list[float], list[list[str]]]:
    passages.search_dense(asked[0], LIMIT, exact=exact)
    times, found = [], []
    for vector in asked:
        begun = time.perf_counter()
        hits = passages.search_dense(vector, LIMIT, exact=exact)
        times.append(1000 * (time.perf_counter() - begun))
        found.append([hit.passage.id for hit in hits])
    return times, found


def _memory() -> float:
    """The most that this process ever held, in MB; `getrusage` would count what its parent held when it was made."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def line_of(size: int, made: dict[str, float], found: dict[str, Any]) -> str:
    def told(times: Sequence[float]) -> str:
        return f"{np.percentile(times, 50):.1f} / {np.percentile(times, 95):.1f}" if times else "–"

    recall = f"{found['recall']:.3f}" if found["effort"] else "1 (exact)"
    cost = f"{made['adding']:.0f} + {made['keywords']:.0f} + {made['approximate']:.0f}" if made else "–"
    memory = f"{found['memory']:.0f} ({found['of which before']:.0f})"
    cells = [f"{size:,}", told(found["approximate"]), told(found["exact"]), told(found["keyword"]), recall, memory]
    return "| " + " | ".join([*cells, f"{found['disk']:.0f}", cost]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--store", default="disk")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.store, options.measure)))
        return
    print("| passages | approximate, ms p50 / p95 | exact | by words | recall | MB (before) | disk, MB | s to make |")
    print("|---|---|---|---|---|---|---|---|")
    for size in map(int, options.sizes.split(",")):
        folder = FOLDER / str(size)
        told = folder / "made.json"
        if not told.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            told.write_text(json.dumps(make(options.store, folder / "index", size)))
        command = [sys.executable, __file__, "--store", options.store, "--measure", str(folder / "index")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        print(line_of(size, json.loads(told.read_text()), json.loads(done.stdout)), flush=True)


if __name__ == "__main__":
    main()
