"""What indexing a PDF of 100 dense pages takes, and what each way to embed costs beside the others.

Sentences of the sample documents in new mixtures, so that any machine has the same file. The ways to embed take turns
in one run and are compared by processor time, which a busy machine changes little; the whole is also told in seconds.

Run: python benchmarks/indexing.py [--pages 100] [--rounds 3] [--chunks 64] (needs requirements-dev.txt; about two
minutes on two quiet cores)
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.tables import Table
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA
from crag_core.base.documents import Progress
from crag_core.base.text.sentences import split
from crag_core.retrieval.chunking.split import Cut, cut_document
from crag_core.retrieval.embedding import BATCH, HuggingFaceEmbedder, find_default_model
from crag_core.retrieval.readers import read_document

SEED = 11
CHARACTERS = 6_500
"""On a page: ten-point type without a blank line, as in an annual report."""


def print_pages(pages: int, characters: int = CHARACTERS) -> bytes:
    """A PDF of so many pages, each full of sentences in paragraphs."""
    from fpdf import FPDF

    draw = random.Random(SEED)
    sentences = _read_sentences()
    pdf = FPDF()
    pdf.set_font("times", size=10)
    pdf.set_auto_page_break(False)
    for _ in range(pages):
        pdf.add_page()
        left = characters
        while left > 0:
            paragraph = " ".join(draw.choices(sentences, k=draw.randint(3, 9)))[: left + 40]
            pdf.multi_cell(0, 4.1, paragraph, align="J", new_x="LMARGIN", new_y="NEXT")
            left -= len(paragraph)
    return bytes(pdf.output())


def _read_sentences() -> list[str]:
    texts = [path.read_text("utf-8") for path in sorted((DATA / "sample").glob("*.md"))]
    found = [" ".join(text[start:end].split()) for text in texts for start, end in split(text)]
    # The fonts that every reader has hold Latin letters only.
    plain = [one.encode("latin-1", "ignore").decode("latin-1") for one in found]
    return [one for one in plain if len(one) > 40 and not one.startswith(("#", "|"))]


@dataclass(frozen=True)
class Way:
    """How texts are embedded: by which model, how many at once, and whether those of about one length go together."""

    name: str
    model: Any
    batch: int
    by_length: bool = False


def compare_ways(texts: Sequence[str], rounds: int) -> dict[str, float]:
    """Milliseconds of processor time a chunk, each way in turn, the median of some rounds."""
    packed = HuggingFaceEmbedder(threads=1)._load()
    # Under a name that is not the default's its layers stay those of PyTorch.
    unpacked = HuggingFaceEmbedder(str(find_default_model()), threads=1, offline=True)._load()
    ways = [
        Way("plain layers, batches of 16", unpacked, 16),
        Way(f"plain layers, batches of {BATCH}", unpacked, BATCH),
        Way("packed layers, batches of 16", packed, 16),
        Way(f"packed layers, batches of {BATCH}", packed, BATCH),
        Way(f"packed layers, batches of {BATCH} by length", packed, BATCH, by_length=True),
    ]
    taken: dict[str, list[float]] = {way.name: [] for way in ways}
    for turn in range(rounds + 1):
        for way in ways:
            way.model.embed_batch_size = way.batch
            ordered = sorted(texts, key=len) if way.by_length else texts
            begun = time.process_time()
            for start in range(0, len(ordered), way.batch):
                way.model.get_text_embedding_batch(list(ordered[start : start + way.batch]))
            if turn:  # the first warms up
                taken[way.name].append(1000 * (time.process_time() - begun) / len(texts))
    return {name: median(found) for name, found in taken.items()}


def show_ways(title: str, texts: Sequence[str], rounds: int) -> None:
    found = compare_ways(texts, rounds)
    first = next(iter(found.values()))
    rows = {name: {"ms of CPU a chunk": taken, "times as fast": first / taken} for name, taken in found.items()}
    print(Table(title, rows), end="\n\n", flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, seconds, and seconds of processor time, of all child processes too."""
    begun, used = time.perf_counter(), _used()
    return work(), time.perf_counter() - begun, _used() - used


def _used() -> float:
    import psutil

    own = psutil.Process()
    total = 0.0
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def index_whole(content: bytes) -> dict[str, dict[str, float | str | None]]:
    """The application's own way, from the file to the last chunk in the index."""
    with tempfile.TemporaryDirectory() as home:
        workbench = Workbench(Config(home=Path(home)))
        workbench.find_embedder(workbench.embedder.name).load()
        begun, told = time.perf_counter(), list[tuple[float, Progress]]()
        work = lambda: workbench.store.ingest(  # noqa: E731
            [("report.pdf", content)], lambda progress: told.append((time.perf_counter() - begun, progress))
        )
        (outcome,), seconds, used = timed(work)
    read = next(at for at, one in told if one.passages)
    first = next((at for at, one in told if one.page), None)
    return {
        "file kept, read and cut": {"seconds": read, "CPU seconds": None},
        "first chunks searchable after": {"seconds": first, "CPU seconds": None},
        f"all {outcome.passages} chunks searchable after": {"seconds": seconds, "CPU seconds": used},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunks", type=int, default=64, help="chunks that each way embeds in a round")
    options = parser.parse_args()
    content = print_pages(options.pages)
    pages, reading, _ = timed(lambda: read_document(content, "report.pdf"))
    tokenize = HuggingFaceEmbedder().tokenize
    tokenize("")
    cut, cutting, _ = timed(lambda: cut_document(pages, "report.pdf", Cut(tokenize=tokenize)))
    print(f"{len(pages)} pages, {cut.characters:,} characters, {len(cut.chunks)} chunks", end="; ")
    print(f"in this process: read in {reading:.2f} s, cut in {cutting:.2f} s\n", flush=True)
    texts = [chunk.text for chunk in cut.chunks[: options.chunks]]
    show_ways("dense pages", texts, options.rounds)
    draw = random.Random(SEED)
    # As slides, tables and short sections give them.
    mixed = [text[: draw.choice((60, 120, 250, 500, len(text)))] for text in texts]
    show_ways("chunks of mixed lengths", mixed, options.rounds)
    print(Table(f"PDF of {options.pages} pages", index_whole(content)))


if __name__ == "__main__":
    main()
