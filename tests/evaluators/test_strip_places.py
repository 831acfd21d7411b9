"""Strips scored from one reading of their chunk, on a model so small that the scores are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from crag_core.base.types.knowledge import Strip
from crag_core.decision.refine import decompose
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator, CrossEncoderStripEvaluator
from crag_core.evaluators.shared.pair_encoder import open_reader
from tests.evaluators.tiny_evaluator import SENTENCE, make_evaluator
from tests.fakes import passage

QUESTION = "When does the ferry leaves?"
CHUNK = "The coat leaves the ferry. The ferry leaves Vennick at nine. The last coat leaves the ferry."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_evaluator(tmp_path / "retrieval-evaluator")


@pytest.fixture
def scorer(folder: Path) -> CrossEncoderStripEvaluator:
    return CrossEncoderStripEvaluator(folder)


def score(scorer: CrossEncoderStripEvaluator, *texts: str, question: str = QUESTION) -> tuple[Sequence[Strip], str]:
    chunks = [passage(number, text) for number, text in enumerate(texts, start=1)]
    return scorer.score(question, [(chunk, decompose(chunk)) for chunk in chunks], Event())


def count_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, model: str = "_session") -> list[tuple[int, ...]]:
    """What a model, the cross-encoder or the `_embedder`, is run on from now on."""
    reader = open_reader(folder, (folder / "evaluator.json").read_bytes())
    runs: list[tuple[int, ...]] = []
    session = getattr(reader, model)

    class Counting:
        def run(self, outputs: list[str], inputs: dict[str, object]) -> list[object]:
            runs.append(tuple(inputs["input_ids"][0]))  # type: ignore[index]
            return list(session.run(outputs, inputs))

    monkeypatch.setattr(reader, model, Counting())
    return runs


def test_a_strip_scores_what_its_chunk_answers_times_how_near_it_is_to_the_best(tmp_path: Path) -> None:
    folder = make_evaluator(tmp_path / "long", tokens=64)  # one window
    (grade,) = CrossEncoderEvaluator(folder).grade(QUESTION, [passage(1, CHUNK)], Event())
    strips, why = score(CrossEncoderStripEvaluator(folder), CHUNK)
    # WordPieces of the three sentences: 6, 7 and 7, worth 0 each but for "nine", which is worth 4.
    odds = [math.log(6), math.log(math.exp(4.0) + 6), math.log(7)]
    chances = [1 / (1 + math.exp(SENTENCE["behind"] * (odds[1] - one) - SENTENCE["bias"])) for one in odds]
    answering = dict(grade.parts)["answering"]
    assert [strip.score for strip in strips] == pytest.approx([answering * chance for chance in chances])
    assert why == ""


def test_a_chunk_that_was_graded_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, vectors = (count_runs(folder, monkeypatch, model) for model in ("_session", "_embedder"))
    judge = CrossEncoderEvaluator(folder)
    scorer = CrossEncoderStripEvaluator(folder)
    judge.grade(QUESTION, [passage(1, CHUNK), passage(2, "The coat.")], Event())
    assert len(runs) == 3, "two windows of the long one"
    assert len(vectors) == 4, "and the question"
    score(scorer, CHUNK, "The coat.")
    assert (len(runs), len(vectors)) == (3, 4)
    score(scorer, CHUNK, question="Does the ferry leaves?")
    assert len(runs) == 5, "another question is another reading"


def test_what_stands_in_a_later_window_is_scored_as_in_the_first(scorer: CrossEncoderStripEvaluator) -> None:
    filler = "The coat leaves the ferry. " * 6
    strips, _ = score(scorer, filler + "The ferry leaves Vennick at nine.")
    assert max(strips, key=lambda strip: strip.score or 0.0) is strips[-1]
