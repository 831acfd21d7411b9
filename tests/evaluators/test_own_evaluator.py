"""The trained evaluator in whole runs: the default, absent, altered, trained again, before other scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench, build_pipeline
from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.evaluators import shipped
from crag_core.evaluators.policies import OWN_JUDGE, default_evaluator, suit
from crag_core.pipeline.pipeline import raise_failure
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.evaluators.tiny_evaluator import make_evaluator
from tests.matrix import diagonal
from tests.word_embedder import WordEmbedder

QUESTION = "When does the ferry to Vennick leave?"
DOCUMENTS = {
    "ferry.txt": "The ferry leaves Vennick at nine. The last ferry leaves at ten.",
    "coats.txt": "The last coat leaves the ferry. Bring the coat.",
}
"""In words that the tiny evaluator knows too."""

READ_BY_NOBODY = {
    "Japanese": (
        "フェリーは何時に出発しますか",
        "ヴェニック行きのフェリーは午前九時に出発します。冬は十時になります。",
        "フェリーでは犬は無料で乗船できます。",
    ),
    "Chinese": ("渡轮几点出发？", "前往文尼克的渡轮上午九点出发。冬天改为十点。", "狗可以免费乘渡轮。"),
    "Arabic": (
        "متى تغادر العبارة؟",
        "تغادر العبارة إلى فينيك الساعة التاسعة صباحا. في الشتاء تغادر في العاشرة.",
        "يمكن اصطحاب الكلاب مجانا.",
    ),
}
"""A question, a document that answers it, and one that does not."""


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """As after the first start, with an index made without the embedding model."""
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    made = Workbench(Config(home=tmp_path / "home"))
    ingest(made, DOCUMENTS)
    return made


def ingest(workbench: Workbench, documents: dict[str, str]) -> None:
    workbench.store.ingest([(name, text.encode()) for name, text in documents.items()])


def choose(workbench: Workbench, policy: str = "paper", evaluator: str = "") -> Choice:
    found = workbench.policies[policy]
    judge = evaluator or default_evaluator(found, "extractive")
    return Choice(suit(found, judge), judge)


def run(workbench: Workbench, policy: str = "paper", evaluator: str = "", question: str = QUESTION) -> Trace:
    return workbench.engine(choose(workbench, policy, evaluator)).run(question)


def scores(found: tuple[Grade, ...] | tuple[Strip, ...] | None) -> list[float]:
    """All of them there."""
    assert found
    return [score for one in found if (score := one.score) is not None or pytest.fail(f"without a score: {one}")]


# --- the default ----------------------------------------------------------------------------------------------------


def test_who_chooses_nothing_is_judged_by_it_and_both_parts_are_recorded(workbench: Workbench) -> None:
    trace = build_pipeline(settings=workbench.config).run(QUESTION)
    assert trace.failure is None and trace.answer is not None
    assert trace.settings.evaluator.name == trace.settings.strip_evaluator.name == OWN_JUDGE == "cross-encoder"
    assert trace.grades is not None and len(trace.grades) == len(DOCUMENTS)
    for grade in trace.grades:
        parts = dict(grade.parts)
        assert set(parts) == {ANSWERING, TOPICAL} and grade.two_signals == (parts[ANSWERING], parts[TOPICAL])
        assert grade.score == pytest.approx((parts[ANSWERING] + parts[TOPICAL]) / 2)
    assert trace.usage.calls == 0
    assert Trace.from_json(trace.to_json()) == trace


# --- absent, altered, trained again ---------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trained evaluator of this test's own."""
    made = make_evaluator(tmp_path / "evaluator")
    monkeypatch.setattr(shipped, "EVALUATOR_FOLDER", made)
    return made


def test_without_its_files_a_run_ends_at_grading_and_says_what_to_do(workbench: Workbench, folder: Path) -> None:
    shutil.rmtree(folder)
    trace = run(workbench)
    assert trace.passages and trace.grades is None and trace.decision is None and trace.answer is None
    assert trace.failure is not None and trace.failure.name == "grade"
    assert trace.failure.summary.startswith("The trained evaluator is ")
    assert trace.failure.hint == "Restore data/models/retrieval-evaluator from the repository."
    with pytest.raises(EvaluatorUnavailable, match="Step 'grade' failed"):
        raise_failure(trace)


# --- scripts that it cannot read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "script"), diagonal(["paper", "two-signal", "worst-chunk", "rank-weighted", "agentic"], READ_BY_NOBODY)
)
def test_what_it_cannot_read_is_not_graded_and_quoted_all_the_same(
    no_weights: None, workbench: Workbench, policy: str, script: str
) -> None:
    question, answering, other = READ_BY_NOBODY[script]
    for document in workbench.store.documents():
        workbench.store.delete_all([document.id])
    ingest(workbench, {"a.txt": answering, "b.txt": other, "c.txt": other * 2})
    trace = run(workbench, policy, question=question)
    assert trace.failure is None and trace.decision is not None and trace.answer is not None
    assert (trace.decision.action, trace.decision.reason) == (Action.AMBIGUOUS, "no chunk could be graded")
    assert trace.web is None, "that alone sends nothing to the web"
    assert trace.grades is not None
    for grade in trace.grades:
        assert grade.score is None and "“Language model”" in grade.cause
    assert trace.strips and all(strip.score is None for strip in trace.strips)
    summary = next(step.summary for step in trace.steps if step.name == "score strips")
    assert summary.startswith(f"0 of {len(trace.strips)} sentences scored by trained evaluator")
    assert "Latin script" in summary and "Choose" not in summary, "nobody chooses who scores strips"
    routed = reroute(trace, trace.settings.policy)
    assert {excerpt.passage.id for excerpt in routed.knowledge.excerpts} == {found.id for found in trace.passages or ()}
    assert trace.answer.state is AnswerState.COMPLETE
    assert answering.partition("。")[0].partition(". ")[0] in trace.answer.text


def test_policies_that_need_a_model_fall_back_to_it_and_their_thresholds_are_its_own(workbench: Workbench) -> None:
    card = build.known_card(OWN_JUDGE)
    for name in ("worst-chunk", "rank-weighted", "agentic"):
        chosen = choose(workbench, name)
        assert chosen.evaluator == OWN_JUDGE
        assert chosen.policy.thresholds == (card.lower, card.upper, card.strip_cutoff)
