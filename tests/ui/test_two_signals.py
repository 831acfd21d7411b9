"""Two signals on the screen: both numbers of every passage, and each best one against its own threshold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.evaluators.embedding import EmbeddingEvaluator
from tests.ui.conftest import ask, choose, header, put_thresholds, shown, thresholds

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"


@pytest.fixture
def scoring(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives the passages these (answering, topical), in rank order, under the name of the embedding evaluator."""

    def score(*pairs: tuple[float, float], reason: str = "answering {:.2f}, topical {:.2f}") -> None:
        original = EmbeddingEvaluator.grade

        def grade(self: EmbeddingEvaluator, question: str, passages: Sequence[Passage], cancel: Any) -> Any:
            grades = original(self, question, passages, cancel)
            return tuple(map(parted, grades, pairs)) if len(grades) == len(pairs) else grades

        def parted(one: Grade, pair: tuple[float, float]) -> Grade:
            parts = tuple(zip((ANSWERING, TOPICAL), pair, strict=True))
            return replace(one, score=sum(pair) / 2, parts=parts, reason=reason.format(*pair))

        monkeypatch.setattr(EmbeddingEvaluator, "grade", grade)

    return score


def asked(start: Start, policy: str) -> AppTest:
    app = choose(start(), policy=policy, evaluator="embedding")
    put_thresholds(app, (0.3, 0.5)).run()
    ask(app, PRICE)
    assert not app.exception
    return app


def picture(app: AppTest) -> Any:
    """What the browser is given to draw of the scores."""
    (found,) = (part.proto for part in app.get("bidi_component") if part.proto.component_name == "crag_score_line")
    return json.loads(found.json)


@pytest.mark.usefixtures("unfolded")
def test_a_question_on_the_subject_that_nothing_answers(start: Start, scoring: Callable[..., None]) -> None:
    scoring((0.31, 0.6), (0.1, 0.82), (0.05, 0.2))
    app = asked(start, "two-signal")
    text = shown(app)
    assert "AMBIGUOUS" in header(app)
    assert "Best answer 0.31 < bar 0.50, best subject 0.82 ≥ bar 0.30" in text
    assert "decides: best answer" in text and "decides: best subject" in text
    assert "CORRECT if answer bar ≤ 0.31" in text
    assert "INCORRECT if subject bar > 0.82" in text


def test_thresholds_of_two_scores_have_sliders_that_cross_and_others_one_range(
    start: Start, scoring: Callable[..., None]
) -> None:
    scoring((0.31, 0.6), (0.1, 0.82), (0.05, 0.2))
    app = put_thresholds(asked(start, "two-signal"), (0.9, 0.4)).run()
    assert [slider.label for slider in app.slider][:2] == ["Bar for an answer", "Bar for the subject"]
    told = "Best answer 0.31 < bar 0.40, best subject 0.82 < bar 0.90"
    assert told in shown(app)
    assert "INCORRECT" in header(app)
    assert [(mark["name"], mark["value"]) for mark in picture(app)["marks"]] == [("lower", 0.9), ("upper", 0.4)]
    choose(app.run(), policy="paper", evaluator="embedding")
    assert not app.exception and app.slider(key="thresholds").label == "Thresholds, lower and upper"
    assert {slider.key for slider in app.slider}.isdisjoint({"lower", "upper"})
    choose(app, policy="two-signal", evaluator="embedding")
    assert not app.exception and thresholds(app)[0] <= thresholds(app)[1], "those to start from"
