"""What deciding again costs, on made-up runs and graded questions: one run, and a grid of thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np

from benchmarks.measures import SEED
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.decision.refine import decompose
from crag_core.decision.signals import NAMES, RERANK
from crag_core.evaluators.policies import find_policy, known_card, suit
from crag_core.experiments.labelled.graded import Case, ScoredQuestion
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.thresholds.objective import Objective, losses, surface
from crag_core.experiments.thresholds.threshold_board import Board, grid
from crag_core.trace.trace import RunSettings, Trace

JUDGE = "cross-encoder"
STEPS, PASSAGES = 21, 6
_KINDS = {Expected.CORRECT: 1.0, Expected.UNANSWERABLE: 0.0, Expected.INCORRECT: -1.0}


def made_up(count: int) -> list[Case]:
    """As many answerable questions as others, with two signals a passage from overlapping bells; the same each time."""
    draw, kinds = np.random.default_rng(SEED), list(_KINDS)
    return [_made_up(f"Question {n}?", kinds[0] if n % 2 else kinds[1 + n // 2 % 2], draw) for n in range(count)]


def _made_up(text: str, expected: Expected, draw: np.random.Generator) -> Case:
    asked = LabelledQuestion(text, expected)
    names = [f"p{place}" for place in range(PASSAGES)]
    cosines = draw.uniform(0.2, 0.9, PASSAGES)
    passages = tuple(
        Passage(name, "", f"{name}.md", found_by=("dense",), scores=(("cosine", float(cosine)),))
        for name, cosine in zip(names, cosines, strict=True)
    )
    parts = 1 / (1 + np.exp(-draw.normal(_KINDS[expected], 1.5, (PASSAGES, 2))))
    grades = tuple(
        Grade(name, float(both.mean()), parts=((ANSWERING, float(both[0])), (TOPICAL, float(both[1]))))
        for name, both in zip(names, parts, strict=True)
    )
    signals = tuple((name, float(draw.uniform())) for name in NAMES if name != RERANK)
    return Case(asked, ScoredQuestion(asked.key, text, passages, grades, signals))


def seconds_of_surface(policy: str, questions: int = 500, times: int = 3) -> float:
    """The median for every cell of the grid under a policy."""
    cases, card, axis = made_up(questions), known_card(JUDGE), grid(STEPS)
    suited = suit(find_policy(policy), JUDGE)
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        board = Board(suited, cases, card)
        surface(board, losses(board, Objective()), axis, axis)
        taken.append(time.perf_counter() - started)
    return median(taken)


def recorded(passages: int) -> Trace:
    """A made run: `passages` of eight sentences each, with scores spread over the scale."""
    text = " ".join(f"Sentence number {n} of this passage says something about the ferry." for n in range(8))
    found = tuple(Passage(f"p{n}", text.replace("ferry", f"ferry {n}"), f"file-{n}.md") for n in range(passages))
    grades = tuple(Grade(passage.id, (n + 1) / (passages + 1)) for n, passage in enumerate(found))
    pieces = [strip for passage in found for strip in decompose(passage)]
    strips = tuple(replace(strip, score=(n % 97) / 97) for n, strip in enumerate(pieces))
    card = known_card("embedding")
    settings = RunSettings(
        find_policy("paper"), card, card, "all-MiniLM-L6-v2", "extractive", "off", passages, "1", "0"
    )
    opinion = Opinion(card, settings.writer, grades)
    return Trace("run", "now", "When?", settings, passages=found, opinions=(opinion,), strips=strips)


def milliseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(200):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)
