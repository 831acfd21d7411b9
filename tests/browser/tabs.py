"""Real tabs of Chromium at an application under load: they ask one question after the other, and tell what they see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Page, TimeoutError, async_playwright

from tests.browser.conftest import FLAGS, PATIENCE, find_browser
from tests.browser.crowd import Asked, Tally

AWAKE = ["--disable-background-timer-throttling", "--disable-renderer-backgrounding"]
"""A tab in the background ticks as one in front does: each stands for somebody who looks at it."""
NEVER = 30_000  # milliseconds after which a question that was typed has not become a run
BLANK = "document.getElementById('root').innerHTML.length < 500"
BEGUN = "before => {BLANK} || ![null, '', before].includes(new URLSearchParams(location.search).get('run'))"
OVER = "run => {BLANK} || !!(document.querySelector(`.st-key-answer_card_${run}`) && document.querySelector('h2'))"


async def visit(url: str, count: int, questions: Sequence[str], tally: Tally, until: float) -> None:
    """So many tabs, until that moment of the monotonic clock; what goes wrong is among the errors of `tally`."""
    if not count:
        return
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=[*FLAGS, *AWAKE])
        pages = [await (await browser.new_context()).new_page() for _ in range(count)]
        await asyncio.gather(*(_stay(f"T{n}", one, url, questions, tally, until) for n, one in enumerate(pages)))
        await browser.close()


async def _open(page: Page, url: str) -> None:
    await page.goto(url, timeout=NEVER * 10)
    await page.get_by_label("Your question").wait_for(timeout=NEVER * 10)


async def _stay(tag: str, page: Page, url: str, questions: Sequence[str], tally: Tally, until: float) -> None:
    page.on("pageerror", lambda error: tally.errors.append(f"{tag}: {error}"))
    page.set_default_timeout(PATIENCE)
    await _open(page, url)
    turn = 0
    while time.monotonic() < until:
        turn += 1
        problem = await _ask(tag, page, f"{questions[turn % len(questions)]} ({tag} {turn})", tally)
        if problem:
            tally.errors.append(f"{tag}, question {turn}: {problem}")
            await _open(page, url)


async def _ask(tag: str, page: Page, question: str, tally: Tally) -> str:
    """What went wrong, "": nothing."""
    before, start = _run_of(page), time.perf_counter()
    box = page.get_by_label("Your question")
    await box.fill(question)
    await box.press("Enter")
    try:
        await page.wait_for_function(_js(BEGUN), arg=before, polling=100, timeout=NEVER)
    except TimeoutError:
        return "typed and never run"
    run_id = _run_of(page)
    try:
        await page.wait_for_function(_js(OVER), arg=run_id, polling=100)
    except TimeoutError:
        return f"run {run_id} has no end on the page"
    if await page.evaluate(BLANK):
        return "the page is blank"
    tally.asked.append(Asked(tag, run_id, question, "finished", time.perf_counter() - start, over_at=time.time()))
    return ""


def _run_of(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("run", [""])[0]


def _js(look: str) -> str:
    return look.replace("{BLANK}", BLANK)
