"""How well the best cosine routes questions: macro-F1 over a grid of thresholds on the labelled set `route_dev`.

Run: python benchmarks/embedding_thresholds.py  (needs the shared evaluation data, see CRAG_SHARED_DATA; about a minute)
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.evaluators.embedding import EmbeddingEvaluator
from crag_core.retrieval.embedding import HuggingFaceEmbedder

DATA = Path(os.environ.get("CRAG_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
ROUTES = {"correct": 2, "ambiguous_or_incorrect": 1, "incorrect": 0}


def main() -> None:
    folder = DATA / "dev" / "sets" / "route_dev"
    if not folder.exists():
        sys.exit("skipped: shared data not found")
    documents = [json.loads(line)["text"] for line in (folder / "corpus.jsonl").open()]
    questions = [json.loads(line) for line in (folder / "queries.jsonl").open()]
    embedder = HuggingFaceEmbedder()
    corpus = np.array(embedder.embed_texts(documents))
    asked = np.array(embedder.embed_texts([question["query"] for question in questions]))
    best = (asked @ corpus.T).max(axis=1)
    expected = np.array([ROUTES[question["route"]] for question in questions])
    grid = [
        (macro_f1(expected, route(best, lower, upper)), lower, upper)
        for lower in np.arange(0.20, 0.71, 0.05)
        for upper in np.arange(lower, 0.91, 0.05)
    ]
    card = EmbeddingEvaluator.card
    now = macro_f1(expected, route(best, card.lower, card.upper))
    print(f"{len(questions)} questions; defaults {card.lower:.2f} and {card.upper:.2f}: macro-F1 {now:.3f}")
    print("best of the grid:")
    for score, lower, upper in sorted(grid, reverse=True)[:5]:
        print(f"  lower {lower:.2f}  upper {upper:.2f}  macro-F1 {score:.3f}")


def route(best: np.ndarray, lower: float, upper: float) -> np.ndarray:
    return np.where(best >= upper, 2, np.where(best < lower, 0, 1))


def macro_f1(expected: np.ndarray, taken: np.ndarray) -> float:
    scores = []
    for label in range(3):
        hits = int(((expected == label) & (taken == label)).sum())
        total = int((expected == label).sum() + (taken == label).sum())
        scores.append(2 * hits / total if total else 0.0)
    return float(np.mean(scores))


if __name__ == "__main__":
    main()
