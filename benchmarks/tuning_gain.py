"""What thresholds chosen on one half of a graded set save on the other half, against those that are published."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measures import Estimate
from benchmarks.tables import Cell, Table
from crag_core.app.cli.options import open_set
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.policies import find_policy, suit
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.graded import Case, cases
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.recommend import Compared, Recommendation, compare, halves, recommend
from crag_core.experiments.thresholds.threshold_board import Board, Prices

POLICIES = ("paper", "two-signal")
LIMIT = 0.10
SHIPPED = "shipped"
FEW = 60
"""Questions, as somebody has them who has just begun."""


@dataclass(frozen=True)
class Wish:
    """An objective with the confidence that a limit is to be kept with; None: only on what was seen."""

    name: str
    objective: Objective
    confidence: float | None = None


WISHES = (
    Wish("default costs", Objective()),
    Wish("costs, wrong=2", Objective(Costs(wrong=2.0))),
    Wish("costs, wrong=10", Objective(Costs(wrong=10.0))),
    Wish(f"confidently wrong <= {LIMIT:.0%}, as seen", Objective(most_wrong=LIMIT)),
    Wish(f"confidently wrong <= {LIMIT:.0%}, 95 % confidence", Objective(most_wrong=LIMIT), 0.95),
)


class Range(Estimate):
    """A middle between two ends that may lie on either side of 0."""

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True)
class GradedSet:
    cases: tuple[Case, ...]
    judge: EvaluatorCard


def grade(folder: Path, home: Path, evaluator: str, tell: Callable[[str], None]) -> GradedSet:
    """The set in `folder`, graded once: what a home holds already is not graded again."""
    opened = open_set(str(folder), Workbench(Config(home=home)))
    policy = suit(find_policy(POLICIES[0]), evaluator)
    pipeline = opened.workbench.engine(Choice(policy, evaluator))  # which policy makes no difference to a grade
    book = opened.workbench.experiments.scores(opened.workbench.conditions(pipeline))

    def progress(now: SetProgress) -> None:
        if now.left is not None and now.done % 100 == 0:
            tell(f"graded {now.done} of {now.total}, about {now.left:.0f} s left")

    questions = opened.labelled.questions
    workers = opened.workbench.scoring_workers
    score(questions, pipeline, book, time.monotonic, workers=workers, on_progress=progress)
    return GradedSet(cases(questions, book.load()), pipeline.settings.evaluator)


def measure_gain(graded: GradedSet, name: str, halvings: int = 20) -> dict[str, Table]:
    """Of one policy: the first halving in full, and the gains of all halvings."""
    policy = suit(find_policy(name), graded.judge.name)
    board, others = Board(policy, graded.cases, graded.judge), published(name, graded.judge.name)
    found = {
        wish.name: [
            recommend(board, wish.objective, others=others, confidence=wish.confidence, seed=seed)
            for seed in range(halvings)
        ]
        for wish in WISHES
    }
    title = f"{name}, {len(board)} questions"
    return {
        "one": Table(f"{title}, one halving", {name: _one(each[0]) for name, each in found.items()}),
        "many": Table(
            f"{title}, {halvings} halvings, median (range)",
            {wish.name: _many(found[wish.name], wish.objective.most_wrong) for wish in WISHES},
        ),
    }


def measure_halvings(sets: Mapping[str, GradedSet], name: str, halvings: int = 10) -> Table:
    """By set, and by how many questions of one half are tuned with: what the other half costs under yours (shipped) and
    under what is recommended, the mean and the range of all halvings, and how often it costs more."""
    found: dict[str, dict[str, Cell]] = {}
    for title, graded in sets.items():
        board = Board(suit(find_policy(name), graded.judge.name), graded.cases, graded.judge)
        for few in (FEW, None):
            rows = [_halved(board, seed, few) for seed in range(halvings)]
            gains = [own - recommended for own, recommended, _ in rows]
            found[f"{title}, {len(board) // 2 if few is None else few} questions"] = {
                "yours": _spread([own for own, _, _ in rows]),
                "recommended": _spread([recommended for _, recommended, _ in rows]),
                "gain": Range(sum(gains) / len(gains), min(gains), max(gains)),
                "keep yours": f"{sum(kept for _, _, kept in rows)} of {halvings}",
                "worse": f"{sum(gain < -1e-9 for gain in gains)} of {halvings}",
            }
    return Table(f"{name}, {halvings} halvings, cost on the half that the tuner never saw", found)


def _halved(board: Board, seed: int, few: int | None) -> tuple[float, float, bool]:
    """The cost of yours and of the recommended pair on the other half, and whether yours is kept."""
    first = halves(board, seed)
    seen, unseen = board.part(first), board.part(~first)
    if few is not None:
        seen = seen.part(np.random.default_rng(seed).permutation(len(seen)) < few)
    found, own = recommend(seen, Objective(), seed=seed), board.policy.thresholds[:2]
    named = (("yours", *own), ("recommended", found.lower, found.upper))
    costs = [one.cost for one in compare(unseen, Objective(), Prices(), named)]
    return costs[0], costs[1], (found.lower, found.upper) == own


def published(name: str, evaluator: str) -> tuple[tuple[str, float, float], ...]:
    """What the policy starts from with this evaluator, and its presets; those of the same thresholds as one."""
    policy = find_policy(name)
    start = suit(policy, evaluator)
    presets = sorted(policy.presets, key=lambda preset: (preset.lower, preset.upper))
    same = groupby(presets, key=lambda preset: (preset.lower, preset.upper))
    named = (("/".join(preset.name for preset in some), *at) for at, some in same)
    return (SHIPPED, start.lower, start.upper), *named


def _one(found: Recommendation) -> dict[str, Cell]:
    if found.why_not:
        return {"refused": found.why_not}
    own, *others = found.compared
    cells: dict[str, Cell] = {"lower": f"{own.lower:.3f}", "upper": f"{own.upper:.3f}", "cost": f"{own.cost:.3f}"}
    cells |= {"confidently wrong": own.rates.confidently_wrong, "web": own.rates.web}
    return cells | {f"gain over {one.name}": _gain(one) for one in others}


def _gain(one: Compared) -> Cell:
    return None if one.saved is None else Range(one.saved.value, one.saved.low, one.saved.high)


def _many(found: Sequence[Recommendation], limit: float | None) -> dict[str, Cell]:
    """Medians with the least and the most of all halvings that gave thresholds."""
    made = [one for one in found if not one.why_not]
    cells: dict[str, Cell] = {"thresholds": f"{len(made)} of {len(found)}"}
    if not made:
        return cells
    own = [one.compared[0] for one in made]
    rates = [one.rates.confidently_wrong.value for one in own if one.rates.confidently_wrong]
    cells |= {"lower": _spread([one.lower for one in own]), "upper": _spread([one.upper for one in own])}
    cells |= {
        "confidently wrong": _spread(rates),
        "web": _spread([one.rates.web.value for one in own if one.rates.web]),
    }
    cells["limit broken"] = None if limit is None else f"{sum(rate > limit for rate in rates)} of {len(rates)}"
    by_name = [{known.name: known.saved for known in one.compared} for one in made]
    for name in (other.name for other in made[0].compared):
        gains = [saved.value for saved in (each.get(name) for each in by_name) if saved]
        if len(gains) == len(made):
            cells[f"gain over {name}"] = Range(median(gains), min(gains), max(gains))
    return cells


def _spread(values: Sequence[float]) -> Estimate:
    return Estimate(median(values), min(values), max(values))
