"""What a second reader of a given accuracy gains, asked only about the chunks in doubt: simulated on labelled routes.

Run: python benchmarks/second_opinion.py --limit 300  (needs the shared evaluation data, see CRAG_SHARED_DATA)

The reader says rightly, with its accuracy, whether a question is answered: 0.9 for the best of its chunks in doubt if
it says yes, 0.1 for all others. Intervals are 95 %, of the gain by 2000 resamples of the questions.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import contenders
from benchmarks.measures import SEED, Estimate, macro_f1, macro_f1_estimate, share
from benchmarks.nearest import RememberingEmbedder
from benchmarks.readers import READERS
from benchmarks.routing import ROUTES, confusion
from benchmarks.sets import Question, Source
from benchmarks.tables import Cell, Table
from crag_core.base.types import Action, Grade, SecondGrade
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy, SecondOpinion
from crag_core.decision.second_opinion import in_doubt
from crag_core.evaluators.policies import find_policy
from crag_core.retrieval.embedding import HuggingFaceEmbedder

DATA = Path(os.environ.get("CRAG_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
ACCURACIES = (0.75, 0.80, 0.90)
READER = "llm"
_TAKEN = {Action.CORRECT: 0, Action.AMBIGUOUS: 1, Action.INCORRECT: 2}
_DRAWS = 2000


def main(arguments: Sequence[str] | None = None) -> None:
    folder = DATA / "dev" / "sets" / "route_dev"
    if not folder.is_dir():
        print("skipped: shared data not found")
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=1446, help="questions, drawn with a fixed seed")
    parser.add_argument(
        "--band", type=float, nargs=2, default=None, help="low and high; 0.15 about the upper threshold"
    )
    chosen = parser.parse_args(arguments)
    embedder = RememberingEmbedder(HuggingFaceEmbedder(), lambda text: print(text, file=sys.stderr, flush=True))
    (task,) = READERS["route_dev"](Source(folder, chosen.limit, embedder))
    evaluator = contenders.build(contenders.CROSS_ENCODER, embedder)
    contenders.remember(task, embedder)
    graded = contenders.grade(evaluator, task, embedder, lambda _: None)
    policy = find_policy("two-signal").suited_to(evaluator.card, evaluator.card)
    low, high = chosen.band or (max(policy.upper - 0.15, 0.0), min(policy.upper + 0.15, 1.0))
    print(measure(replace(policy, second_opinion=SecondOpinion(READER, (low, high))), task.questions, graded.grades))


def measure(policy: Policy, questions: Sequence[Question], grades: Sequence[tuple[Grade, ...]]) -> Table:
    """One row without a second reader, and one for each accuracy."""
    expected = np.array([ROUTES[question.label] for question in questions])
    alone = take(policy, questions, grades)
    rows: dict[str, dict[str, Cell]] = {"no second reader": {"macro-F1": macro_f1_estimate(confusion(expected, alone))}}
    asked = sum(bool(in_doubt(policy, one.passages, own)) for one, own in zip(questions, grades, strict=True))
    chunks = sum(len(in_doubt(policy, one.passages, own)) for one, own in zip(questions, grades, strict=True))
    for accuracy in ACCURACIES:
        taken = take(policy, questions, read_again(policy, questions, grades, accuracy))
        rows[f"{accuracy:.0%} right"] = {
            "macro-F1": macro_f1_estimate(confusion(expected, taken)),
            "gain": gain(expected, alone, taken),
            "questions asked": share(asked, len(questions)),
            "chunks a question": chunks / len(questions),
        }
    low, high = policy.second_opinion.band if policy.second_opinion else (0.0, 0.0)
    return Table(f"band {low:.2f} to {high:.2f}", rows)


def read_again(
    policy: Policy, questions: Sequence[Question], grades: Sequence[tuple[Grade, ...]], accuracy: float
) -> list[tuple[Grade, ...]]:
    """The grades with what the reader says of the chunks in doubt: one word a question, no to all but the best."""
    rng = random.Random(SEED)
    found = []
    for question, own in zip(questions, grades, strict=True):
        is_right = rng.random() < accuracy
        says_yes = (question.label == "correct") == is_right
        scores = {grade.passage_id: grade.part("answering") or 0.0 for grade in own}
        doubtful = sorted((one.id for one in in_doubt(policy, question.passages, own)), key=lambda id_: -scores[id_])
        second = {
            id_: SecondGrade(READER, 0.3, 0.7, 0.9 if says_yes and not at else 0.1) for at, id_ in enumerate(doubtful)
        }
        found.append(tuple(replace(grade, second=second.get(grade.passage_id)) for grade in own))
    return found


def take(policy: Policy, questions: Sequence[Question], grades: Sequence[tuple[Grade, ...]]) -> np.ndarray[Any, Any]:
    made = (decide(policy, one.passages, own) for one, own in zip(questions, grades, strict=True))
    return np.array([_TAKEN[decision.action] for decision in made])


def gain(expected: np.ndarray[Any, Any], before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> Estimate:
    """In macro-F1, with the interval of the same questions drawn again for both."""
    rng, count = np.random.default_rng(SEED), len(expected)
    drawn = [rng.integers(count, size=count) for _ in range(_DRAWS)]

    def difference(at: np.ndarray[Any, Any]) -> float:
        one, other = (macro_f1(confusion(expected[at], taken[at])) for taken in (before, after))
        return float(other - one)

    low, high = np.quantile([difference(at) for at in drawn], (0.025, 0.975))
    return Estimate(difference(np.arange(count)), float(low), float(high))


if __name__ == "__main__":
    main()
