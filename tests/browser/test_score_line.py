"""The picture of the scores in a real browser: a mark moved by hand and by keys, and a point that leads to its card."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import SETTLED
from tests.browser.conftest import ROOT, serve
from tests.matrix import diagonal

pytestmark = pytest.mark.browser

SCRIPT = """
import time
from dataclasses import replace
import streamlit as st
from crag_core.base.serialization import to_plain
from crag_core.view.run_view import view_run
from crag_core.view.score_line import picture
from tests.builders import graded, policy, trace, twice
from ui.run import verdict

st.set_page_config(layout="wide")
asked = st.query_params
if "scores" in asked:
    scores = [None if one == "x" else float(one) for one in asked["scores"].split(",")]
    is_two = asked["policy"] == "two-signal"
    found, grades = twice(*[one and (one, 1 - one) for one in scores]) if is_two else graded(*scores)
    found = tuple(replace(one, source=f"environmental-report-{n}.pdf", page=n) for n, one in enumerate(found, 1))
    for at in asked.get_all("at"):
        of = policy(asked["policy"]).with_thresholds(*map(float, at.split(",")))
        drawn = picture(view_run(trace(of, passages=found, grades=grades), of))
        more = {"can_move": True, "step": verdict.STEP, "page": verdict.PAGE}
        verdict._score_line(key=at, data=to_plain(drawn) | more, on_moved_change=lambda: None)
    st.stop()

found, grades = graded(0.83, 0.52, None, 0.1)
found = (replace(found[0], source="<img src=x onerror=alert(1)>.md", page=7), *found[1:])
run = trace(policy("paper"), passages=found, grades=grades)
log = st.session_state.setdefault("log", [])

def move(lower, upper, done):
    st.session_state["at"] = (lower, upper)
    log.append((lower, upper, done))

@st.fragment
def draw():
    time.sleep(float(asked.get("slow", 0)))
    of = policy("paper").with_thresholds(*st.session_state.get("at", (0.4, 0.6)))
    verdict.draw_scores(view_run(run, of), move)
    st.write(f"Told {len(log)} times, last {log[-1] if log else None}")

draw()
for rank, passage in enumerate(found, start=1):
    st.header(f"Card {rank}", anchor=f"passage-{rank}")
    st.write("Text. " * 600)
"""
"""A picture whose marks can be moved, or one of these scores for each pair of thresholds that the address has."""

OVERLAPS = """() => {
  const wanted = ".name, .flag, .told, .tick, .row > .value, .row-name > *, .inline, .mark, .title";
  const pictures = [], walk = (node) => {
    for (const child of [...(node.shadowRoot?.children ?? []), ...node.children]) {
      if (child.matches(".scores")) pictures.push(child);
      walk(child);
    }
  };
  walk(document.body);
  const told = ({ element }) => `${element.className} ${element.textContent}`;
  return pictures.map((picture) => {
    const labels = [...picture.querySelectorAll(wanted)].filter((one) => !one.closest(".legend"));
    const shown = labels.map((element) => {
      const range = document.createRange();
      range.selectNodeContents(element);
      const isText = element.matches(".value, .told, .tick");
      return { element, box: (isText ? range : element).getBoundingClientRect() };
    }).filter(({ box }) => box.width > 0 && box.height > 0);
    const found = shown.filter(({ box }) => box.left < -1 || box.right > innerWidth + 1).map(told);
    shown.forEach((one, at) => shown.slice(at + 1).forEach((other) => {
      const isPart = one.element.contains(other.element) || other.element.contains(one.element);
      if (isPart || (one.element.matches(".mark") && other.element.matches(".mark"))) return;
      const [a, b] = [one.box, other.box];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) found.push(`${told(one)} over ${told(other)}`);
    }));
    return found;
  });
}"""
"""Of each picture the labels that stand over another one or out of the page; marks may stand over marks."""

SEEN = """flag => { window.seen = []; new MutationObserver(() => window.seen.push(Number(flag.ariaValueNow)))
  .observe(flag, {attributes: true, attributeFilter: ["aria-valuenow"]}); }"""
"""Keeps every value that a mark is drawn at."""


@pytest.fixture(scope="module")
def picture_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("picture")
    script = folder / "picture.py"
    script.write_text(SCRIPT, "utf-8")
    with serve(folder, script, PYTHONPATH=str(ROOT)) as url:
        yield url


def mark(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=f"{name} threshold")


def drag(page: Page, name: str, by: int) -> None:
    """Take a mark and move it by so many pixels; the hand stays on it."""
    box = mark(page, name).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=20)


def test_a_mark_moved_by_hand_decides_again_while_it_moves(page: Page, picture_url: str) -> None:
    page.goto(picture_url)
    words = page.locator("p.unseen")
    expect(words).to_contain_text("CORRECT: best chunk 0.83 ≥ upper 0.60. Chunk 1 decides.")
    drag(page, "upper", 330)
    expect(words).to_contain_text("AMBIGUOUS")  # while the hand is on it
    expect(page.get_by_text("CORRECT if upper ≤ 0.83")).to_be_visible()
    drawn = float(mark(page, "upper").get_attribute("aria-valuenow") or 0)
    assert drawn > 0.85
    page.mouse.up()
    expect(page.get_by_text(f"last (0.4, {drawn}, True)")).to_be_visible()
    assert mark(page, "upper").get_attribute("aria-valuetext") == f"upper {drawn:.3f}".rstrip("0").ljust(10, "0")


def test_a_mark_never_jumps_back_to_where_a_slow_page_believes_it_is(page: Page, picture_url: str) -> None:
    page.goto(f"{picture_url}/?slow=0.4")
    expect(mark(page, "upper")).to_be_visible()
    mark(page, "upper").evaluate(SEEN)
    drag(page, "upper", 100)
    page.wait_for_timeout(300)
    page.mouse.move(10_000, 0, steps=8)
    page.mouse.up()
    expect(page.get_by_text("last (0.4, 1.0, True)")).to_be_visible()
    seen = page.evaluate("window.seen")
    assert seen == sorted(seen) and seen[-1] == 1.0
    told = int(page.get_by_text("Told").inner_text().split()[1])
    assert told <= len(set(seen)), "not one message a pixel"


def test_keys_move_a_mark_and_no_mark_passes_the_other(page: Page, picture_url: str) -> None:
    page.goto(picture_url)
    presses = (("ArrowRight", "0.605"), ("ArrowUp", "0.61"), ("ArrowLeft", "0.605"), ("PageUp", "0.655"))
    for key, value in (*presses, ("End", "1"), ("Home", "0.4"), ("ArrowLeft", "0.4")):
        mark(page, "upper").press(key)
        expect(mark(page, "upper")).to_have_attribute("aria-valuenow", value)
    expect(page.get_by_text("last (0.4, 0.4, True)")).to_be_visible()
    mark(page, "lower").press("End")
    mark(page, "lower").press("PageDown")
    expect(page.get_by_text("last (0.35, 0.4, True)")).to_be_visible()
    expect(mark(page, "lower")).to_have_attribute("aria-valuemax", "0.4")
    expect(mark(page, "lower")).to_be_focused()


def test_a_point_says_what_it_is_and_leads_to_its_card(page: Page, picture_url: str) -> None:
    page.goto(picture_url)
    point = page.get_by_role("button", name="Chunk 1,")
    point.hover()
    tip = page.locator(".tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("Chunk 1, <img src=x onerror=alert(1)>.md, page 7")
    expect(tip).to_contain_text("score 0.83")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    point.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    third = page.get_by_role("button", name="Chunk 3, p3.txt. not graded. the reply holds no score")
    expect(third).to_be_focused()
    expect(tip).to_contain_text("the reply holds no score")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Card 3")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Card 3")).to_be_focused()
    expect(page.locator(".unseen table tbody tr")).to_have_count(4)


SCORES = {
    "ends": "1.0,0.0,0.95,0.96,0.5,0.03",
    "ungraded": "0.83,0.52,x,0.1",
    "twenty": ",".join(f"{n / 19:.3f}" for n in range(20)),
    "close": "0.95,0.951,0.949,0.6997",
}
PLACES = [(0.4, 0.6), (0.0, 1.0), (0.5, 0.505), (0.0, 0.0), (1.0, 1.0), (0.0, 0.005), (0.995, 1.0)]


@pytest.mark.parametrize(("name", "scores"), diagonal(["paper", "two-signal"], SCORES))
def test_no_label_stands_over_another_wherever_scores_and_thresholds_are(
    page: Page, picture_url: str, name: str, scores: str
) -> None:
    places = [*PLACES, *([(0.9, 0.2)] if name == "two-signal" else [])]
    given = {"policy": name, "scores": SCORES[scores], "at": [f"{lower},{upper}" for lower, upper in places]}
    page.goto(f"{picture_url}/?{urlencode(given, doseq=True)}")
    expect(page.locator(".axis")).to_have_count(len(places) * (1 if name == "paper" else 2))
    for width in (1200, 800, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(SETTLED)
        assert dict(zip(places, page.evaluate(OVERLAPS), strict=True)) == {at: [] for at in places}, width
