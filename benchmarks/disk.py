"""What documents and runs take of the disk: python benchmarks/disk.py [--questions 20]

Indexes the sample documents into a folder of its own, asks sample questions under two policies without a model, and
prints bytes a passage, a run, a run's grades and a run's lines in the audit log.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.evaluators.policies import OWN_JUDGE, find_policy, suit

POLICIES = ("two-signal", "paper")


def measure(home: Path, questions: list[str]) -> None:
    workbench = Workbench(Config(home=home))
    workbench.store.ingest((path.name, path) for path in sorted((DATA / "sample").iterdir()))
    passages, files = workbench.store.count(), sum(row.size for row in workbench.store.documents())
    print(f"{passages} passages: {(_size(home) - files) / passages / 1000:.1f} kB each, and the files once")
    for name in POLICIES:
        policy = suit(find_policy(name, workbench.config), OWN_JUDGE)
        for question in questions:
            workbench.history.save(workbench.engine(Choice(policy, OWN_JUDGE)).run(question))
    runs = workbench.history.count()
    with closing(sqlite3.connect(home / "crag.db")) as database:
        for name in ("crag_runs", "crag_kept_grades", "crag_audit"):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            held = " + ".join(f"length(CAST(coalesce({column}, '') AS BLOB))" for column in columns)
            (size,) = database.execute(f"SELECT sum({held}) FROM {name}").fetchone()
            print(f"{name}: {size / runs / 1000:.1f} kB a run, of {runs} runs")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    options = parser.parse_args()
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()[: options.questions]
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), [json.loads(line)["question"] for line in lines])


if __name__ == "__main__":
    main()
