"""What evaluators cost: milliseconds for twenty passages side by side, and the memory that loading one adds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median
from threading import Event

from benchmarks.contenders import MODEL, build
from benchmarks.tables import Cell, Table
from crag_core.base.data_files import DATA
from crag_core.base.protocols import Evaluator
from crag_core.base.types.passages import Passage
from crag_core.retrieval.embedding import HuggingFaceEmbedder

PASSAGES, TOKENS = 20, 200
TIMES = 15
ROOT = Path(__file__).parent.parent


def make_passages(tokenize: Callable[[str], Sequence[str]], count: int = PASSAGES) -> tuple[Passage, ...]:
    """Different passages of 200 tokens (a few more where the last word has several) from the sample corpus."""
    text = " ".join(path.read_text("utf-8") for path in sorted((DATA / "sample").glob("*.md")))
    words = cycle(text.split())
    passages = []
    for place in range(count):
        taken, tokens = [], 0
        while tokens < TOKENS:
            taken.append(next(words))
            tokens += len(tokenize(taken[-1]))
        passages.append(Passage(f"p{place}", " ".join(taken), f"source-{place}"))
    return tuple(passages)


def measure_speed(
    evaluators: Mapping[str, Evaluator],
    passages: tuple[Passage, ...],
    times: int = TIMES,
    in_runs: Mapping[str, Evaluator] | None = None,
) -> Table:
    """The median of `times` rounds in which each evaluator has its turn, so that a busy machine slows all alike.

    Passages have no cosine recorded, so that an evaluator which needs one embeds them; but for those `in_runs`, where
    the retriever has recorded it.
    """
    turns = {name: (evaluator, passages) for name, evaluator in evaluators.items()}
    recorded = tuple(replace(passage, scores=(("cosine", 0.5),)) for passage in passages)
    turns |= {f"{name}, cosines recorded": (evaluator, recorded) for name, evaluator in (in_runs or {}).items()}
    taken: dict[str, list[float]] = {name: [] for name in turns}
    for turn in range(times + 1):
        for name, (evaluator, given) in turns.items():
            started = time.perf_counter()
            # Another question for each, since the trained evaluator remembers what it has just read.
            evaluator.grade(f"What does rule {turn} say about the {len(name)} ferries?", given, Event())
            taken[name].append((time.perf_counter() - started) * 1000)
    middle = {name: median(each[1:]) for name, each in taken.items()}  # the first turn loads the models
    base = middle.get("embedding")
    rows: dict[str, dict[str, Cell]] = {
        name: {"median": f"{value:.1f} ms", "of embedding": f"{value / base:.2f}" if base else None}
        for name, value in middle.items()
    }
    return Table(f"{len(passages)} passages of {TOKENS} tokens, {times} times", rows)


def measure_memory(names: Sequence[str], folder: Path = MODEL) -> Table:
    """Each evaluator loaded and used once in a process of its own."""
    rows: dict[str, dict[str, Cell]] = {}
    for name in names:
        command = f"from benchmarks.cost import tell_memory; tell_memory({name!r}, {str(folder.absolute())!r})"
        done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"expected the memory of {name}, found an error:\n{done.stderr}")
        rows[name] = {"peak memory added": done.stdout.splitlines()[-1]}
    return Table("loading and one question", rows)


def tell_memory(name: str, folder: str) -> None:
    """Prints what the process grew by at its peak; Linux tells, elsewhere it is not known."""
    before = _resident("VmRSS")
    passages = (Passage("p", "The ferry to Vennick leaves at nine.", "source"),)
    build(name, HuggingFaceEmbedder(), Path(folder)).grade("When does the ferry leave?", passages, Event())
    after = _resident("VmHWM")
    print("not known here" if before is None or after is None else f"{(after - before) / 1024:.0f} MB")


def _resident(field: str) -> int | None:
    """Kilobytes. `resource` would count the parent's memory too, which a child inherits as its own peak."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return None
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:"))
