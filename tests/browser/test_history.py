"""The History page in a real browser: filter by an address, open exactly, compare two, delete, export, import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from crag_core.base.data_files import DATA
from crag_core.storage.history import HistoryStore
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.browser.axe import SETTLED, check
from tests.browser.conftest import QUICK, download, serve

DAY, MIDDLE = 86400.0, 17
HEAD, ROW, FIRST_COLUMN = 35, 35, 18
"""Pixels of Streamlit's table, which is drawn on a canvas."""


def recorded() -> list[Trace]:
    return [Trace.from_json(path.read_text("utf-8")) for path in sorted((DATA / "runs").glob("*.json"))]


def moved(taken: Trace) -> Trace:
    """The same run as it would have been taken under other thresholds."""
    policy = taken.settings.policy.with_thresholds(0.215, 0.905)
    other = replace(taken, settings=replace(taken.settings, policy=policy))
    return replace(other, decision=reroute(other, policy).decision)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "sample-indexed").touch()
    return folder


@pytest.fixture(scope="module")
def history(home: Path) -> HistoryStore:
    """30 runs of three kinds, a day apart, the newest now; what a test deletes it brings back."""
    import time

    days = iter(range(29, -1, -1))
    store = HistoryStore(home / "crag.db", clock=lambda: time.time() - next(days) * DAY)
    made = recorded()
    for number in range(30):
        one = made[number % len(made)]
        if number == 29:
            one = moved(one)
        store.save(replace(one, id=f"run-{number}"))
    return store


@pytest.fixture(scope="module")
def url(history: HistoryStore, home: Path) -> Iterator[str]:
    with serve(home, program=QUICK) as address:
        yield address


def select(page: Page, place: int) -> None:
    expect(page.get_by_test_id("stDataFrame")).to_have_count(1)  # for a moment there are the old one and the new
    page.evaluate(SETTLED)
    box = page.get_by_test_id("stDataFrame").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + FIRST_COLUMN, box["y"] + HEAD + ROW * place + MIDDLE)


def test_find_open_compare_delete_export_and_import(
    page: Page, url: str, history: HistoryStore, tmp_path: Path
) -> None:
    question = recorded()[0].question
    # The first visit of all: nobody has been on another page of this server.
    found = re.compile("[1-9] of 30 runs")
    words = question[:20].upper().replace(" ", "+")
    page.goto(f"{url}/history?history_text={words}&history_when=30+days&history_ended=Sideways")
    expect(page.get_by_role("heading", name=found)).to_be_visible()
    expect(page).to_have_url(re.compile("history_text=(?!.*Sideways)"))
    page.reload()
    expect(page.get_by_role("heading", name=found)).to_be_visible()
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)  # its cells could be formulas
    page.get_by_role("button", name="Clear filter").click()
    expect(page.get_by_role("heading", name="30 runs", exact=True)).to_be_visible()

    check(page, "all runs")

    # Open the newest exactly as it was taken, thresholds included.
    select(page, 0)
    expect(page.get_by_text("settings " + history.search(limit=1)[0].fingerprint)).to_be_visible()
    page.get_by_role("button", name="Open in Ask").click()
    expect(page.get_by_label("Your question")).to_have_value(history.search(limit=1)[0].question)
    expect(page.get_by_text("replay Original run")).to_be_visible()
    expect(page.get_by_text("0.215").first).to_be_visible()
    expect(page.get_by_text("0.905").first).to_be_visible()

    # Two beside each other.
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("heading", name="30 runs", exact=True)).to_be_visible()
    select(page, 0)
    expect(page.get_by_role("button", name="Delete 1 selected run")).to_be_visible()
    select(page, 3)
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible()
    expect(page.get_by_text("Settings that differ")).to_be_visible()
    expect(page.get_by_role("cell", name=re.compile("lower 0.215"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"of them not in every answer|All received the same"))).to_be_visible()

    # What leaves, and comes back after it was deleted.
    lines = Path(download(page, "Export 2 runs").path()).read_bytes()
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["run-29", "run-26"]
    page.get_by_role("button", name="Delete 2 selected runs").click()
    expect(page.get_by_text("Deletes 2 runs with records")).to_be_visible()
    check(page, "two runs, and deleting")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Deletes 2 runs with records")).to_be_hidden()
    assert history.count() == 30
    page.get_by_role("button", name="Delete 2 selected runs").click()
    page.get_by_role("button", name="Delete 2 runs for good").click()
    expect(page.get_by_role("heading", name="28 runs", exact=True)).to_be_visible()
    file = tmp_path / "records.jsonl"
    file.write_bytes(lines + b"not a record\n")
    page.get_by_role("button", name="Import").click()
    page.locator("input[type=file]").set_input_files([str(file)])
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("2 records imported.")).to_be_visible()
    expect(page.get_by_text("Line 3: This is not a recorded run")).to_be_visible()
    expect(page.get_by_role("heading", name="30 runs", exact=True)).to_be_visible()
    assert history.load("run-29") == Trace.from_json(lines.splitlines()[0].decode())
