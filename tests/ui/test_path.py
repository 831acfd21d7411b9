"""The path as it is drawn: plain text only, the right lines, and a component that behaves in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.path.run_path import run_path
from tests.browser.conftest import contexts, page, profiles
from tests.fakes import QUESTION, Bench, FakeModel
from ui.run.path import path_data

__all__ = ["contexts", "page", "profiles"]

Draw = Callable[[Any], None]

PARTS = Path(__file__).parents[2] / "ui" / "parts"


def asked(**bench: Any) -> Trace:
    return Bench(**bench).pipeline.run(QUESTION)


def data_of(trace: Trace) -> dict[str, Any]:
    policy = trace.settings.policy
    return path_data(run_path(trace, reroute(trace, policy)), policy)


def lines(data: dict[str, Any]) -> dict[str, str]:
    return {f"{line['from']} {line['to']}": line["how"] for line in data["lines"]}


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    return [text for one in value for text in texts(one)] if isinstance(value, list) else [value]


# --- what the component is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("best", "on", "off"),
    [
        (0.9, {"route refine", "refine assemble"}, {"route rewrite", "grade_web assemble", "route again"}),
        (0.5, {"route refine", "refine assemble", "route rewrite", "grade_web assemble"}, {"again retrieve"}),
        (0.1, {"route refine", "route rewrite", "grade_web assemble"}, {"refine assemble", "route again"}),
    ],
)
def test_lines_follow_the_way_of_the_decision(best: float, on: set[str], off: set[str]) -> None:
    how = lines(data_of(asked(best=best, model=FakeModel())))
    assert {name: how[name] for name in on} == dict.fromkeys(on, "on")
    assert {name: how[name] for name in off} == dict.fromkeys(off, "off")
    assert how["retrieve grade"] == how["grade route"] == how["assemble answer"] == "on"


def test_every_state_has_a_word_and_a_shape_besides_its_colour() -> None:
    waiting = {stage["id"]: stage for stage in data_of(asked(best=0.5, web=WebMode.ASK))["stages"]}
    assert (waiting["search"]["state"], waiting["search"]["icon"]) == ("waiting", "wait")
    assert waiting["search"]["tip"] == "Search web, waiting: waits for your approval"
    correct = {stage["id"]: stage for stage in data_of(asked(best=0.9))["stages"]}
    assert correct["search"]["tip"] == "Search web, not taken: not needed: CORRECT"
    assert (correct["route"]["shown"], correct["route"]["tone"]) == ("CORRECT", "green")
    assert correct["route"]["tip"] == "Route: CORRECT, overall 0.90. best chunk 0.90 ≥ upper 0.60"


# --- the component in a browser -------------------------------------------------------------------------------------

HARNESS = """async ([source, css, html]) => {
  const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  const host = document.body.appendChild(document.createElement("div"));
  const root = host.attachShadow({ mode: "open" });
  root.innerHTML = `<style>${css}</style>${html}`;
  const below = document.body.appendChild(document.createElement("h2"));
  Object.assign(below, { id: "scores", textContent: "Scores" });
  below.style.marginTop = "3000px";
  window.draw = (data) => { window.leave = module.default({ data, parentElement: root }); };
  window.path = root.querySelector(".path");
}"""
HTML = '<div class="frame"><nav class="path"><ol role="list"></ol></nav></div>'


@pytest.fixture
def draw(page: Page) -> Draw:
    """Draws data with the component, in a shadow root as Streamlit does."""
    page.set_viewport_size({"width": 1000, "height": 700})
    sources = [(PARTS / f"path.{kind}").read_text("utf-8") for kind in ("js", "css")]
    page.evaluate(HARNESS, [*sources, HTML])
    return lambda data: page.evaluate("data => window.draw(data)", data)


@pytest.mark.browser
def test_a_click_leads_to_the_evidence(page: Page, draw: Draw) -> None:
    draw(data_of(asked(best=0.9)))
    page.get_by_role("button", name="Grade, 3 graded").press("Enter")
    page.wait_for_function("window.scrollY > 1000")
    assert page.evaluate("document.activeElement.id") == "scores"


@pytest.mark.browser
def test_it_is_low_where_there_is_room_and_never_wider_than_its_place(page: Page, draw: Draw) -> None:
    data = data_of(asked(best=0.5, model=FakeModel()))
    draw(data)
    assert page.evaluate("window.path.getBoundingClientRect().height") <= 150
    for width in (860, 640, 400, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.wait_for_function("window.path.querySelectorAll('.line').length === 11")
