"""What a question, and adding a passage, cost a process of the application: seconds of a core, waiting, memory.

The sample documents are asked all questions of data/questions/sample.jsonl, with the default policy and evaluator,
without a language model, first one at a time, then four at once as four visitors would. The grade cache is off: every
question is new to it.

Run: python benchmarks/capacity.py (a minute)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.evaluators.policies import DEFAULT, default_evaluator, find_policy, suit
from crag_core.pipeline.run import Run

AT_ONCE = (1, 4)


def ask_all(workbench: Workbench, questions: Sequence[str], at_once: int) -> tuple[list[float], float, float]:
    """(seconds of each question, seconds of processor time and of the clock for all)."""
    policy = find_policy(DEFAULT, workbench.config)
    evaluator = default_evaluator(policy, "extractive")
    choice = Choice(suit(policy, evaluator), evaluator)

    def ask(question: str) -> float:
        begun = time.perf_counter()
        workbench.engine(choice).run(question, Run())
        return time.perf_counter() - begun

    ask(questions[0])
    processor, clock = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        taken = list(pool.map(ask, questions))
    return taken, time.process_time() - processor, time.perf_counter() - clock


def memory() -> float:
    """What this process holds now, in MB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def main() -> None:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    with tempfile.TemporaryDirectory() as home:
        workbench = Workbench(Config(home=Path(home), cache="off", history="off", audit="off", web="off"))
        workbench.find_embedder(workbench.embedder.name).load()
        begun = time.perf_counter()
        workbench.store.ingest([(path.name, path) for path in sorted((DATA / "sample").iterdir())])
        speed = workbench.store.count() / (time.perf_counter() - begun)
        print(f"{workbench.store.count()} passages indexed, {speed:.0f} a second\n")
        print("| at once | questions | ms p50 / p95 | core-seconds a question | questions a second | MB |")
        print("|---|---|---|---|---|---|")
        for at_once in AT_ONCE:
            taken, processor, clock = ask_all(workbench, questions, at_once)
            p95 = quantiles(taken, n=20)[-1]
            print(
                f"| {at_once} | {len(taken)} | {1000 * median(taken):.0f} / {1000 * p95:.0f} "
                f"| {processor / len(taken):.2f} | {len(taken) / clock:.1f} | {memory():.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
