"""Disagreement: another evaluator beside the one that decided, what it costs, where both differ, and deciding by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamlit.testing.v1 import AppTest

from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.decision.policy import Policy
from crag_core.evaluators import cards
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from tests.builders import graded_by_its_own
from tests.ui.drawn import a_run, drawn, said
from ui.run.opinions import draw_opinions

EMBEDDING, JUDGE, BATCH = (cards()[name] for name in ("embedding", "llm", "llm-batch"))


def page(
    run: Trace, policy: Policy, evaluators: Sequence[EvaluatorCard], acts: Any = None, has_model: bool = True
) -> None:
    told: list[tuple[str, str]] = acts if acts is not None else []
    draw_opinions(
        view_run(run, policy),
        lambda: evaluators,
        lambda name: told.append(("ask", name)),
        lambda name: told.append(("adopt", name)),
        suited=lambda card: policy.with_thresholds_for(card, run.settings.strip_evaluator),
        has_model=has_model,
    )


def judged(card: EvaluatorCard, *scores: float | None, reason: str = "it names the dues") -> Opinion:
    grades = tuple(
        Grade(f"p{n}", score, reason=reason if score is not None else "", cause="" if score else "no score in it")
        for n, score in enumerate(scores, start=1)
    )
    return Opinion(card, "ollama/small", grades)


def graded(*scores: float, opinions: tuple[Opinion, ...] = ()) -> tuple[Trace, Policy]:
    """A run under `paper`, graded by hand, at 0.4 and 0.6."""
    run, chosen = a_run(len(scores), "paper", opinions=opinions)
    grades = tuple(Grade(f"p{n}", score) for n, score in enumerate(scores, start=1))
    return graded_by_its_own(run, grades), chosen.with_thresholds(0.4, 0.6)


def opened(
    run: Trace, policy: Policy, evaluators: Sequence[EvaluatorCard] = (EMBEDDING, JUDGE), **more: Any
) -> AppTest:
    app = drawn(page, run=run, policy=policy, evaluators=evaluators, **more)
    app.session_state[f"opinions_{len(run.other_opinions)}"] = True
    app.run()
    assert not app.exception
    return app


def rows(app: AppTest) -> list[dict[str, str]]:
    (table,) = app.table
    found = table.value.to_dict("records")
    return [{str(name).replace("\\", ""): str(cell).replace("\\", "") for name, cell in row.items()} for row in found]


# Asking


def test_evaluators_are_offered_with_their_cost_and_asked_by_name() -> None:
    acts: list[tuple[str, str]] = []
    run, chosen = graded(*[0.5] * 6)
    app = opened(run, chosen, (EMBEDDING, JUDGE, BATCH), acts=acts)
    assert app.selectbox[0].options == [
        "Embedding similarity · 0 LLM calls",
        f"{JUDGE.title} · 6 LLM calls",
        f"{BATCH.title} · 2 LLM calls",
    ]
    app.selectbox[0].set_value("llm").run()
    assert app.button[0].label == "Grade with this one too (6 LLM calls)"
    app.button[0].click().run()
    assert acts == [("ask", "llm")]


def test_judge_without_a_model_cannot_be_asked_and_says_what_helps() -> None:
    run, chosen = graded(0.5)
    app = opened(run, chosen, (JUDGE,), has_model=False)
    assert app.button[0].disabled and "choose one in the sidebar" in said(app)
    assert not opened(run, chosen, (JUDGE,)).button[0].disabled
    assert not opened(run, chosen, (EMBEDDING,), has_model=False).button[0].disabled


# Disagreeing


def test_opinion_opens_the_drawer_and_stands_beside_the_grades() -> None:
    run, chosen = graded(0.9, 0.5, 0.5, opinions=(judged(JUDGE, 0.95, 0.1, None),))
    app = drawn(page, run=run, policy=chosen, evaluators=(JUDGE,))
    text = said(app)
    assert "**By hand** → :green[" in text and f"**{JUDGE.title} (small)** alone →" in text
    assert "1 of 2 chunks in different bands (≠); same route." in text
    first, second, third = rows(app)
    assert first["Chunk"] == "≠ 2. file-2.md" and first["Gap"] == "0.40", "the largest gap first"
    assert "**0.50** :orange[" in first["By hand"]
    assert (
        "**0.10** :red[" in first[f"{JUDGE.title} (small)"] and "it names the dues" in first[f"{JUDGE.title} (small)"]
    )
    assert (second["Chunk"], second["Gap"]) == ("1. file-1.md", "0.05")
    none_graded, _ = graded(0.9, 0.5, opinions=(judged(JUDGE, 0.95, 0.1),))
    assert " 0 chunks" not in said(drawn(page, run=none_graded, policy=chosen, evaluators=(JUDGE,)))
    assert third["Gap"] == "–" and ":orange[not graded] no score in it" in third[f"{JUDGE.title} (small)"]


def test_decide_by_the_other_one() -> None:
    acts: list[tuple[str, str]] = []
    run, chosen = graded(0.5, opinions=(judged(EMBEDDING, 0.7), judged(JUDGE, 0.2)))
    app = drawn(page, run=run, policy=chosen, evaluators=(), acts=acts)
    found = [button for button in app.button if button.label == "Decide by this one"]
    assert len(found) == 2
    found[1].click().run()
    assert acts == [("adopt", "llm")]
