"""How well a language model's P(yes) of one token and the score that it writes tell what answers, and what they cost.

Run: python benchmarks/judges.py                      (needs the shared evaluation data, see CRAG_SHARED_DATA)
     python benchmarks/judges.py --model ollama/NAME --limit 100   (yours; the default is the small one of the tests)

Chunks of route_dev: those that answer a question, those of its subject that do not, and those of another subject. Each
is graded once by `llm-logprob` and once by `llm`. AUROC has DeLong's interval; the rank correlation is Kendall's tau-b,
kappa that of "at least 0.5".
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from threading import Event

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.agreement import SMALL, opened
from benchmarks.evaluator import DATA, show, tell
from benchmarks.measures import SEED, auroc, kappa_estimate
from benchmarks.nearest import RememberingEmbedder
from benchmarks.sets import Source
from benchmarks.tables import Cell, Table
from crag_core.base.protocols import Evaluator, LanguageModel
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.judges.llm import LLMEvaluator
from crag_core.evaluators.judges.llm_logprob import LLMLogprobEvaluator
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.trace.opinions import rank_correlation

ANSWERS, ON_TOPIC, ELSEWHERE = "answers", "on topic", "another subject"
HALF = 0.5


@dataclass(frozen=True)
class Pair:
    question: str
    passage: Passage
    label: str


def main(arguments: Sequence[str] | None = None) -> None:
    folder = DATA / "dev" / "sets" / "route_dev"
    if not folder.is_dir():
        print("skipped: shared data not found")
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default=SMALL, help=f"{SMALL}, ollama/NAME or openai/NAME")
    parser.add_argument("--limit", type=int, default=20, help="chunks of each of the three kinds")
    chosen = parser.parse_args(arguments)
    pairs = read_pairs(folder, chosen.limit)
    with opened(chosen.model) as model:
        graded = {one.card.name: grade(one, pairs) for one in evaluators(model)}
    show({"judges": Table(f"{chosen.model}, {len(pairs)} chunks", measure(pairs, graded))})


def evaluators(model: LanguageModel) -> tuple[Evaluator, Evaluator]:
    return LLMEvaluator(model), LLMLogprobEvaluator(model)


def read_pairs(folder: Path, limit: int) -> list[Pair]:
    """At most `limit` of each kind, drawn with a fixed seed; one of another subject has the question of another."""
    source = Source(folder, sys.maxsize, RememberingEmbedder(HuggingFaceEmbedder()))
    draw = random.Random(SEED)
    found: dict[str, list[Pair]] = {ANSWERS: [], ON_TOPIC: []}
    for row in source.rows:
        for document, label in source.judged.get(row["query_id"], {}).items():
            kind = ANSWERS if label == 2 else ON_TOPIC
            found[kind].append(Pair(row["query"], source.passage(document), kind))
    drawn = {kind: draw.sample(some, min(limit, len(some))) for kind, some in found.items()}
    others = [one.passage for one in draw.sample(found[ANSWERS], min(limit, len(found[ANSWERS])))]
    drawn[ELSEWHERE] = [
        replace(one, passage=other, label=ELSEWHERE)
        for one, other in zip(drawn[ANSWERS], others, strict=False)
        if one.passage.text != other.text
    ]
    return [pair for some in drawn.values() for pair in some]


def grade(evaluator: Evaluator, pairs: Sequence[Pair]) -> list[Grade]:
    started = time.perf_counter()
    grades = [evaluator.grade(pair.question, [pair.passage], Event())[0] for pair in pairs]
    tell(f"{evaluator.card.name}: {len(pairs)} chunks graded in {time.perf_counter() - started:.0f} s")
    return grades


def measure(pairs: Sequence[Pair], graded: Mapping[str, Sequence[Grade]]) -> dict[str, dict[str, Cell]]:
    """A row for each evaluator, and how far they agree on the chunks that both have graded."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, grades in graded.items():
        scored = [one.score for one in grades if one.score is not None]
        rows[name] = {
            f"{ANSWERS} / {ELSEWHERE}": _told(pairs, grades, ELSEWHERE),
            f"{ANSWERS} / {ON_TOPIC}": _told(pairs, grades, ON_TOPIC),
            "not graded": str(len(grades) - len(scored)),
            "different scores": str(len({round(score, 4) for score in scored})),
            "tokens written": f"{fmean(one.usage.completion_tokens for one in grades):.1f}",
            "tokens read": f"{fmean(one.usage.prompt_tokens for one in grades):.0f}",
            "s a chunk": f"{fmean(one.seconds for one in grades):.2f}",
        }
    one, other = graded.values()
    both = [(a.score, b.score) for a, b in zip(one, other, strict=True) if a.score is not None and b.score is not None]
    if both:
        table = np.zeros((2, 2), dtype=int)
        for first, second in both:
            table[int(first >= HALF), int(second >= HALF)] += 1
        rows["both"] = {"rank correlation": rank_correlation(both), "kappa": kappa_estimate(table)}
    return rows


def _told(pairs: Sequence[Pair], grades: Sequence[Grade], other: str) -> Cell:
    """AUROC of what answers from the other kind."""
    some = [
        (one.score, pair.label == ANSWERS)
        for pair, one in zip(pairs, grades, strict=True)
        if one.score is not None and pair.label in (ANSWERS, other)
    ]
    return auroc([score for score, _ in some], [label for _, label in some])


if __name__ == "__main__":
    main()
