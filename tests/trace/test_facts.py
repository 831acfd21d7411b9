"""The table of facts: what a change of settings costs of a recorded run, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.passages import Round
from crag_core.base.types.steps import Step, StepState
from crag_core.base.types.web import PageOutcome, WebPage
from crag_core.trace.facts import held, still_holding
from tests.builders import CARD, passages, policy, searched, trace, web_page

THEN = replace(trace(policy("paper")).settings, writer="a model", evaluator=replace(CARD, version="1"))
OF_MODEL = {"question_class", "sufficiency", "consolidations", "answer"}
OTHER = replace(CARD, name="other")


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"top_k": 3}, {"passages"}),
        ({"embedding": "another"}, {"passages"}),
        ({"collection": "harbour"}, {"passages"}),
        ({"pinned": ("d1",)}, {"passages"}),
        ({"search_too": True}, set()),
        ({"writer": "another"}, {*OF_MODEL, "rounds.not_made", "web.query_waits"}),
        ({"writer_version": "2"}, OF_MODEL),
        ({"prompts": "2"}, OF_MODEL),
        ({"strip_evaluator": OTHER}, {"strips"}),
        ({"strip_evaluator": replace(THEN.strip_evaluator, version="2")}, {"strips"}),
        ({"evaluator": OTHER}, {"grades"}),
        ({"evaluator": replace(CARD, version="2")}, {"grades"}),
        ({"web_mode": "ask"}, {"web.query_waits", "web.pages_wait"}),
        ({"policy": policy("two-signal")}, set()),
        ({"policy": policy("worst-chunk")}, {"web.query_waits"}),
    ],
)
def test_a_change_of_settings_costs_these_facts(changes: dict[str, Any], lost: set[str]) -> None:
    assert held(THEN, THEN) - held(THEN, replace(THEN, **changes)) == lost


def test_grades_by_a_model_depend_on_that_model_too() -> None:
    then = replace(THEN, evaluator=replace(CARD, calls_model=True), writer_version="1")
    for changes, holds in (({"writer": "b"}, False), ({"prompts": "2"}, False), ({"writer_version": "2"}, False)):
        assert ("grades" in held(then, replace(then, **changes))) is holds
    assert "grades" in held(then, replace(then, writer_version="")), "an unknown version may be any"


def test_a_round_that_had_nothing_new_to_ask_is_made_by_another_writer() -> None:
    run = replace(
        trace(policy("agentic"), passages=passages(3)), rounds=(Round(("refine",), (), "nothing new to ask"),)
    )
    same, other = (still_holding(run, replace(run.settings, writer=name)) for name in (run.settings.writer, "another"))
    assert same is not None and other is not None and (same.rounds, other.rounds) == (run.rounds, ())


def test_pages_that_wait_are_listed_anew_where_the_web_may_be_asked_otherwise() -> None:
    page = web_page("w1", "Fares rose.")
    waiting = replace(searched(page), pages=(WebPage("w1", page.url or "", PageOutcome.PENDING),))
    run = trace(policy("paper"), passages=passages(1), web=waiting)
    same, other = (still_holding(run, replace(run.settings, web_mode=mode)) for mode in ("auto", "off"))
    assert same is not None and other is not None and same.web == waiting
    assert other.web is not None and (other.web.passages, other.web.pages) == ((page,), None)


def test_steps_that_made_something_are_kept_and_skipped_ones_are_not() -> None:
    steps = (Step("retrieve", "1 chunk"), Step("grade", "not needed", StepState.SKIPPED), Step("answer", "written"))
    run = trace(policy("paper"), passages=passages(1), steps=steps)
    kept = still_holding(run, run.settings)
    assert kept is not None and kept.steps == steps[:1]
