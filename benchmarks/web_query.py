"""What to send to the web where no language model writes the query.

In how many questions of a hundred a page with the answer is among the first five results of an offline web, which holds
the set's documents beside 6,119 other pages: for the question as it is, for its keywords, and for the first three and
ten of them.

    python benchmarks/web_query.py --sets route_dev,nq_dev,selqa_dev
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluator import DATA, show
from benchmarks.held_out import BESIDE, WEB, read_rows, write_web
from benchmarks.measures import share
from benchmarks.tables import Cell, Table
from crag_core.evaluators.shipped import signal_meter
from crag_core.pipeline.web_stages import keyword_query
from crag_core.websearch.snapshot import Snapshot

SETS = "route_dev,nq_dev,selqa_dev"
RESULTS = 5


def keywords(question: str, most: int | None = None) -> str:
    found = keyword_query(question, signal_meter().keywords)
    return " ".join(found.split()[:most])


FORMS: Mapping[str, Callable[[str], str]] = {
    "the question": lambda question: question,
    "its keywords": keywords,
    "the first ten": lambda question: keywords(question, 10),
    "the first three": lambda question: keywords(question, 3),
}


def measure(sets: Path, name: str, into: Path) -> Table:
    """By form of the query, with the pages written into the folder `into`."""
    answers: dict[str, set[str]] = defaultdict(set)
    for line in (sets / name / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if grade == "2":
            answers[question].add(f"https://web.example/{document}")
    asked = [row for row in read_rows(sets / name / "queries.jsonl") if row["query_id"] in answers]
    pages = [*read_rows(sets / name / "corpus.jsonl"), *read_rows(sets / BESIDE / "corpus.jsonl")]
    web, never = Snapshot(str(write_web(into / WEB, pages))), threading.Event()

    def finds(query: str, wanted: set[str]) -> bool:
        return any(found.url in wanted for found in web.search(query, RESULTS, never).passages)

    rows: dict[str, dict[str, Cell]] = {}
    for form, write in FORMS.items():
        hits = sum(finds(write(row["query"]), answers[row["query_id"]]) for row in asked)
        rows[form] = {f"hit@{RESULTS}": share(hits, len(asked))}
    return Table(f"{name}: {len(asked)} questions", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=SETS)
    for name in parser.parse_args().sets.split(","):
        with tempfile.TemporaryDirectory() as into:
            show({name: measure(DATA / "dev" / "sets", name, Path(into))})


if __name__ == "__main__":
    main()
