"""How well every evaluator that needs no language model does on every development set, how fast, and with what memory.

Run: python benchmarks/evaluator.py  (needs the shared evaluation data, see CRAG_SHARED_DATA; 15 minutes by estimate)
     python benchmarks/evaluator.py --sets route_dev,squad2_dev --evaluators embedding --limit 200 --json report.json

Intervals are 95 %. "From" reads: the chance that the first outscores the second (AUROC, DeLong's interval with the
passages of one question taken together); shares have Wilson's interval, ratios and macro-F1 that of 2000 resamples.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import contenders, cost
from benchmarks.findings import measure_task
from benchmarks.nearest import RememberingEmbedder
from benchmarks.readers import LIMITS, READERS, USUAL_LIMIT
from benchmarks.sets import Source, Task, open_source
from benchmarks.tables import Table
from crag_core.base.protocols import Evaluator
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named.names import is_named
from crag_core.retrieval.embedding import HuggingFaceEmbedder

DATA = Path(os.environ.get("CRAG_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main(arguments: Sequence[str] | None = None) -> None:
    if not (DATA / "dev" / "sets").is_dir():
        print("skipped: shared data not found")
        return
    chosen = _parse(arguments)
    bare = HuggingFaceEmbedder()
    embedder = RememberingEmbedder(bare, tell)
    names = chosen.evaluators
    evaluators = {name: contenders.build(name, embedder, chosen.model) for name in names}
    report: dict[str, Any] = {"sets": {}}
    for name in chosen.sets:
        source = open_source(DATA / "dev", name, chosen.limit or LIMITS.get(name, USUAL_LIMIT), embedder)
        if source:
            report["sets"][name] = measure_set(source, name, evaluators, embedder)
        else:
            print(f"\n## {name}\n\nskipped: this set is not in the shared data")
    if not chosen.no_cost:
        passages = cost.make_passages(bare.tokenize)
        timed = {name: contenders.build(name, bare, chosen.model) for name in names}
        in_runs = {
            name: contenders.build(name, bare, chosen.model, trusts_cosines=True)
            for name in names
            if name == contenders.CROSS_ENCODER
        }
        speed = cost.measure_speed(timed, passages, in_runs=in_runs)
        tables = {"speed": speed, "memory": cost.measure_memory(names, chosen.model)}
        report |= show(tables)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")


def measure_set(
    source: Source, name: str, evaluators: Mapping[str, Evaluator], embedder: RememberingEmbedder
) -> dict[str, Any]:
    """Prints the tables of one set; the same values as plain data."""
    drawn = "" if len(source.rows) == source.total else f", drawn from {source.total}"
    print(f"\n## {name}: {len(source.rows)} questions{drawn}")
    report: dict[str, Any] = {"questions": len(source.rows), "of": source.total}
    tasks = [task.trimmed() for task in READERS[name](source)]
    graded: dict[str, contenders.Graded] = {}
    read: list[tuple[str, Sequence[Passage]]] = []
    for task in (task for task in tasks if task.questions):
        before, read = read, [(question.text, question.passages) for question in task.questions]
        if read == before:  # under other labels
            report |= show(measure_task(task, graded))
            continue
        graded = {}
        if any(contenders.reads_cosines(which) for which in evaluators):
            contenders.remember(task, embedder)
        for which, evaluator in evaluators.items():
            started = time.perf_counter()
            graded[which] = contenders.grade(evaluator, task, embedder, tell)
            tell(f"{name}: {which} graded {count_passages(task)} passages in {time.perf_counter() - started:.0f} s")
        report |= show(measure_task(task, graded))
        if told := contenders.left_out(graded):
            print(f"\n{told}")
    return report


def count_passages(task: Task) -> int:
    return sum(len(question.passages) for question in task.questions)


def show(tables: Mapping[str, Table]) -> dict[str, Any]:
    for table in tables.values():
        print(f"\n{table}", flush=True)
    return {name: table.plain() for name, table in tables.items()}


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _names(known: Iterable[str], named: bool = False) -> Callable[[str], list[str]]:
    """`named`: those of others by name too, such as hf:/a/folder."""

    def split(text: str) -> list[str]:
        found = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        for name in found:
            if name not in known and not (named and is_named(name)):
                raise argparse.ArgumentTypeError(f"expected names out of {', '.join(known)}, found {name!r}")
        return found

    return split


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=_names(READERS), default=list(READERS), help="names with commas between; all")
    parser.add_argument(
        "--evaluators",
        type=_names(contenders.NAMES, named=True),
        default=list(contenders.NAMES),
        help="names, hf:… too; all of ours",
    )
    parser.add_argument("--limit", type=int, help="questions of a set, drawn with a fixed seed")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--model", type=Path, default=contenders.MODEL, help="folder of the trained evaluator")
    parser.add_argument("--no-cost", action="store_true", help="leave out milliseconds and memory")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
