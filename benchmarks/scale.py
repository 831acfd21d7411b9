"""Searching 1,000, 100,000 and 200,000 passages: p50, p95, memory, disk, and what making the index costs.

Texts are sentences of the sample documents in new mixtures; vectors lie between those of real sentences that are near
each other, with some noise. So the figures are about size, not about quality: for that see docs/quality.md. Each size
is made once, in build/scale, and measured by a process of its own, so that its memory is that of searching alone.

With --postgres the vectors are in the pgvector of a PostgreSQL that is started for it, through CRAG_VECTOR_STORE, and
questions are also asked through CRAG_RETRIEVER; all in one process, so that its memory is not told.

Run: python benchmarks/scale.py [--sizes 1000,100000,200000] [--postgres]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))


from crag_core.base.documents import Document, Recipe
from crag_core.base.text.sentences import split
from crag_core.retrieval.chunking.split import Chunk
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.index.index_file import IndexFile
from crag_core.retrieval.index.index_writer import IndexWriter
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import read_document

ROOT = Path(__file__).parent.parent
SIZES = (1_000, 100_000, 200_000)
FOLDER = ROOT / "build" / "scale"
QUESTIONS, LIMIT, SEED = 100, 24, 7
"""`LIMIT` is what a search for six passages asks each engine for."""
_PER_DOCUMENT = 50
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


def make(writer: IndexWriter, size: int) -> dict[str, float]:
    """Fill an index with `size` passages; seconds that it took."""
    stuff = read_stuff()
    rng, draw = np.random.default_rng(SEED), random.Random(SEED)
    adding = 0.0
    for start in range(0, size, _PER_DOCUMENT):
        texts = [" ".join(draw.choices(stuff.sentences, k=_SENTENCES)) for _ in range(_PER_DOCUMENT)]
        vectors = [array("f", vector) for vector in make_vectors(stuff, _PER_DOCUMENT, rng)]
        embedded = list(zip(map(Chunk, texts), vectors, strict=True))
        row = Document(f"{start:032x}", f"{start}.txt")
        begun = time.perf_counter()
        writer.register([(row, b"")])
        with writer.file.reading() as database:
            version = writer.current(database)
        writer.write(row, embedded, version)
        adding += time.perf_counter() - begun
    return {"adding": adding}


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def make_questions() -> list[str]:
    stuff, draw = read_stuff(), random.Random(SEED + 1)
    return [
        " ".join([*draw.sample(draw.choice(stuff.sentences).split(), 3), "harbour", "the"]) for _ in range(QUESTIONS)
    ]


def measure(store: PassageStore) -> dict[str, Any]:
    """Milliseconds of every search, and the largest memory of this process, in MB."""
    asked = make_vectors(read_stuff(), QUESTIONS, np.random.default_rng(SEED + 1)).tolist()
    words = make_questions()
    empty = _memory()
    first = timed(lambda: store.search_dense(asked[0], LIMIT))
    store.search_keyword(words[0], LIMIT)
    return {
        "first": first,
        "exact": [1000 * timed(lambda vector=vector: store.search_dense(vector, LIMIT)) for vector in asked],
        "keyword": [1000 * timed(lambda text=text: store.search_keyword(text, LIMIT)) for text in words],
        "memory": _memory(),
        "of which before": empty,
        "disk": sum(path.stat().st_size for path in Path(store.place).rglob("*") if path.is_file()) / 1e6,
    }


HNSW = (
    "SET maintenance_work_mem = '1GB'; CREATE INDEX ON data_my_rag USING hnsw (embedding vector_cosine_ops);"
    "ALTER DATABASE postgres SET hnsw.ef_search = 100; ALTER DATABASE postgres SET hnsw.iterative_scan = strict_order"
)


def measure_postgres(size: int) -> None:
    """By comparing every vector, and after that by an approximate index."""
    from crag_core.app.config import Config
    from crag_core.app.workbench import Workbench
    from tests.stand_ins.postgres_server import PostgresServer

    with PostgresServer() as server, tempfile.TemporaryDirectory() as home:
        os.environ["MY_RAG_DATABASE"] = server.url.replace("postgresql:", "postgresql+psycopg:")
        own = Config(home=Path(home), cache="off", vector_store="examples.own_engine:vectors")
        made, exact = make(Workbench(own).store._writer, size), list[set[str]]()
        vectors = make_vectors(read_stuff(), QUESTIONS, np.random.default_rng(SEED + 1)).tolist()
        for name in ("exact", "HNSW"):
            if name == "HNSW":
                made = {"adding": timed(lambda: server.execute(HNSW))}
            kept = Workbench(own)
            engine = Workbench(replace(own, vector_store="", retriever="examples.own_engine:retriever")).own_engine
            assert engine is not None
            (room,) = server.execute("SELECT pg_total_relation_size('data_my_rag') / 1e6")[0]
            print(line_of(size, made, measure(kept.store)), f"{name}, and {room:.0f} MB in PostgreSQL")
            found = [{hit.passage.id for hit in kept.store.search_dense(one, LIMIT)} for one in vectors]
            exact = exact or found
            same = [len(one & other) for one, other in zip(found, exact, strict=True)]
            print(f"of the nearest {LIMIT}: {np.mean(same) / LIMIT:.0%}")
            for way, ask in (
                ("CRAG_VECTOR_STORE", lambda text, kept=kept: kept.retriever.retrieve(text, 6)),
                ("CRAG_RETRIEVER", engine.retriever(6).retrieve),
            ):
                times = [1000 * timed(lambda text=text, ask=ask: ask(text)) for text in make_questions()]
                print(f"a question through {way}, ms: {told(times[1:])}, first {times[0]:.0f}")


def _memory() -> float:
    """The most that this process ever held, in MB; `getrusage` would count what its parent held when it was made."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def told(times: Sequence[float]) -> str:
    return f"{np.percentile(times, 50):.1f} / {np.percentile(times, 95):.1f}"


def line_of(size: int, made: dict[str, float], found: dict[str, Any]) -> str:
    memory = f"{found['memory']:.0f} ({found['of which before']:.0f})"
    cells = [f"{size:,}", told(found["exact"]), told(found["keyword"]), f"{found['first']:.1f}", memory]
    return "| " + " | ".join([*cells, f"{found['disk']:.0f}", f"{made['adding']:.0f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--postgres", action="store_true", help="vectors in a PostgreSQL with pgvector")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(PassageStore(options.measure, HuggingFaceEmbedder("benchmark")))))
        return
    print("| chunks | by vectors, ms p50 / p95 | by words | first, s | MB (before) | disk, MB | s to make |")
    print("|---|---|---|---|---|---|---|")
    for size in map(int, options.sizes.split(",")):
        if options.postgres:
            measure_postgres(size)
            continue
        folder = FOLDER / str(size)
        made = folder / "made.json"
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            made.write_text(json.dumps(make(IndexWriter(IndexFile(folder / "index"), Recipe("benchmark")), size)))
        command = [sys.executable, __file__, "--measure", str(folder / "index")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        print(line_of(size, json.loads(made.read_text()), json.loads(done.stdout)), flush=True)


if __name__ == "__main__":
    main()
