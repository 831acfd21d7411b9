"""Questions that name a code, over tables of rows that differ in little else: right row, another one, or doubtful.

Run: python benchmarks/codes.py            (300 questions over three tables; some minutes)
     python benchmarks/codes.py --each 20
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
ROWS = 150
NAMES = ["valve", "pump", "hinge", "filter", "belt", "bearing", "gasket", "sensor", "relay", "hose"]


def tables(draw: random.Random) -> Iterator[tuple[str, list[str], list[list[str]], str]]:
    """Name, heads, rows and the question with {} for the code; the answer is the last cell."""
    parts = draw.sample(range(10_000, 99_999), ROWS)
    yield (
        "spares.csv",
        ["Part number", "Name", "Price EUR"],
        [[f"{n % 9 + 1}-{n // 100:04}-{n % 100:02}", draw.choice(NAMES), f"{n / 7:.2f}"] for n in parts],
        "What does part {} cost?",
    )
    yield (
        "errors.csv",
        ["Code", "Concerns", "Reset after minutes"],
        [[f"E-{n}", draw.choice(NAMES), str(draw.randint(2, 99))] for n in draw.sample(range(100, 999), ROWS)],
        "After how many minutes is error {} reset?",
    )
    yield (
        "invoices.csv",
        ["Invoice", "Customer", "Due on"],
        [[f"INV-2025-{n}", draw.choice(NAMES).title() + " Ltd", f"{n % 28 + 1} May"] for n in parts],
        "When is invoice {} due?",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=100, help="questions a table")
    each = parser.parse_args().each
    draw = random.Random(7)
    print("| table | questions | CORRECT, its row | CORRECT, another row | doubtful | row not retrieved |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        os.environ["CRAG_HOME"] = home
        made = list(tables(draw))
        for name, heads, rows, _ in made:
            Path(home, name).write_text("\n".join(";".join(row) for row in [heads, *rows]), "utf-8")
        files = [str(Path(home, name)) for name, *_ in made]
        subprocess.run([sys.executable, "-m", "crag_core", "ingest", *files], cwd=ROOT, check=True, capture_output=True)
        from crag_core.app.choice import Choice
        from crag_core.app.workbench import Workbench
        from crag_core.evaluators.policies import find_policy

        workbench = Workbench()
        policy = workbench.suited(find_policy("two-signal", workbench.config), "cross-encoder")
        engine = workbench.engine(Choice(policy, "cross-encoder"))
        for name, _, rows, question in made:
            told = Counter[str]()
            for code, *_, answer in draw.sample(rows, each):
                response = engine.query(question.format(code))
                record = response.metadata["crag"]
                is_own = code in str(response) and answer in str(response)
                told[record["decision"]["action"] + (" own" if is_own else "")] += 1
                told["lost"] += not any(code in passage["text"] for passage in record["passages"])
            doubtful = each - told["CORRECT own"] - told["CORRECT"]
            print(
                f"| {name} | {each} | {told['CORRECT own']} | {told['CORRECT']} | {doubtful} | {told['lost']} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
