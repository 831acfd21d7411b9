"""The real application in its own process, and a real Chromium to use it with."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from fpdf import FPDF
from playwright.sync_api import Browser, BrowserContext, Download, Locator, Page, TimeoutError, expect, sync_playwright

from crag_core.app import workbench
from crag_core.app.config import Config
from tests.word_embedder import WordEmbedder

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
PATIENCE = 180_000  # milliseconds; a busy machine is no failure
QUICK = "tests.browser.start"
LIGHT, DARK = LOOKS = [("light", 1440), ("dark", 800)]
"""Theme and width; contrast is a matter of the first, room of the second, so each stands here once."""


def one_look(look: tuple[str, int]) -> list[Any]:
    """Every look, for a page whose parts are seen in both elsewhere: the other one only in `make test-all`."""
    return [pytest.param(*one, marks=[pytest.mark.exhaustive] if one != look else []) for one in LOOKS]


expect.set_options(timeout=PATIENCE)


def find_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the browsers: in a profile that lasts, Chromium does not compile the scripts of a page at each visit."""
    return tmp_path_factory.mktemp("profiles")


@pytest.fixture(scope="module")  # Playwright keeps an event loop running as long as it lives
def contexts(profiles: Path) -> Iterator[Callable[[str], BrowserContext]]:
    """The browser of each person, by name."""
    running: dict[str, BrowserContext] = {}
    with sync_playwright() as playwright:

        def context_of(person: str) -> BrowserContext:
            if person not in running:
                running[person] = playwright.chromium.launch_persistent_context(
                    profiles / person, executable_path=find_browser(), args=FLAGS
                )
                running[person].set_default_timeout(PATIENCE)
            return running[person]

        yield context_of
        for context in running.values():
            context.close()


@pytest.fixture
def page(contexts: Callable[[str], BrowserContext]) -> Iterator[Page]:
    """A fresh page that fails the test when the page's own script throws."""
    with open_page(contexts("somebody")) as opened:
        yield opened


@pytest.fixture
def other_page(contexts: Callable[[str], BrowserContext]) -> Iterator[Page]:
    """In the browser of somebody else."""
    with open_page(contexts("somebody else")) as opened:
        yield opened


@contextmanager
def open_page(context: BrowserContext) -> Iterator[Page]:
    """A browser that remembers nothing of what was done before."""
    context.clear_cookies()
    opened = context.new_page()
    opened.set_viewport_size({"width": 1440, "height": 1000})
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    if opened.url.startswith("http"):
        opened.evaluate("localStorage.clear()")
    opened.close()
    assert errors == []


def look_at(page: Page, theme: str, width: int) -> None:
    """As somebody with that theme and a window of that width."""
    page.set_viewport_size({"width": width, "height": 1000})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]


@contextmanager
def serve(home: Path, script: Path = ROOT / "app.py", *, program: str = "ui", **environment: str) -> Iterator[str]:
    """A Streamlit script, the application unless told otherwise, as a user starts it, on a free port; its URL.

    `program`: what starts the application, `QUICK` where a test is not about the embedding model.
    """
    port = str(find_port())
    start = [program] if script == ROOT / "app.py" else ["streamlit", "run", str(script)]
    command = [sys.executable, "-m", *start, "--server.port", port, "--server.headless", "true"]
    defaults = {"CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OPENAI_BASE_URL": "", "CRAG_WEB": "off"}
    log = (home / "app.log").open("w")
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **defaults, **environment}, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        url = f"http://localhost:{port}"
        _wait_for(lambda: process.poll() is not None or _answers(f"{url}/_stcore/health"))
        assert process.poll() is None, (home / "app.log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def index_texts(home: Path, **texts: str) -> None:
    quick_home(home, *((f"{name}.txt", text.encode()) for name, text in texts.items()))


def quick_home(home: Path, *files: tuple[str, bytes]) -> workbench.Workbench:
    """A home whose first start is over, with these files in its index, for an application that is `QUICK`."""
    (home / "sample-indexed").touch()
    with patch.object(workbench, "HuggingFaceEmbedder", WordEmbedder):
        made = workbench.Workbench(Config(home=home))
        made.store.ingest(files)
    return made


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def metrics_port() -> int:
    """Where `empty_app` serves its metrics."""
    return find_port()


@pytest.fixture(scope="session")
def empty_app(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[str]:
    """The application without any document: its first start is over, the sample documents were removed."""
    home = tmp_path_factory.mktemp("home")
    (home / "sample-indexed").touch()
    with serve(home, CRAG_METRICS_PORT=str(metrics_port)) as url:
        yield url


HOSTILE = (
    "Visit https://evil.example or mail eve@evil.example <img src=x onerror=alert(1)> :red[boo] "
    "[click](https://evil.example)"
)


@pytest.fixture(scope="session")
def lighthouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document of two pages, the same each time."""
    pdf = FPDF()
    pdf.set_creation_date(datetime(2025, 1, 1, tzinfo=UTC))
    pdf.set_font("Helvetica", size=12)
    for text in (
        "The lighthouse of Skerry Point was built in 1854. Its lamp was electrified in 1931.",
        f"The keeper is paid 31 crowns a week. The tower is 42 metres high and has 196 steps. {HOSTILE}",
    ):
        pdf.add_page()
        pdf.multi_cell(0, 8, text)
    path = tmp_path_factory.mktemp("documents") / "lighthouse.pdf"
    pdf.output(str(path))
    return path


_indexed: set[tuple[str, bytes]] = set()
"""Contents of files that are in the index of the application at an address; no test removes one."""


def index_files(page: Page, files: Any) -> None:
    """Choose the files on the page of documents, and have them indexed."""
    index = page.get_by_role("button", name=re.compile("Index [0-9]+ file"))
    while not index.is_visible():  # the end of the first start draws the page anew, with another uploader
        expect(page.locator("input[type=file]")).to_have_count(1)  # two while the page moves
        page.locator("input[type=file]").set_input_files(files)
        with suppress(TimeoutError):
            index.wait_for(timeout=5_000)
    index.click()


def upload(page: Page, url: str, *files: Path) -> None:
    """Open the page of documents and index what an earlier test has not; returns once each has its outcome."""
    page.goto(f"{url}/documents")
    expect(page.get_by_role("button", name="Index", exact=True)).to_be_visible()
    expect(page.get_by_text("Reading the index")).to_have_count(0)
    contents = {(url, file.read_bytes()) for file in files}
    if contents <= _indexed:
        return
    index_files(page, [str(file) for file in files])
    expect(page.get_by_text(re.compile(r"indexed, \d+ chunk|already indexed")).first).to_be_visible()
    _indexed.update(contents)


def ask(page: Page, question: str) -> None:
    page.get_by_label("Your question").fill(question)
    page.get_by_test_id("stFormSubmitButton").get_by_role("button").click()


def stop_button(page: Page) -> Locator:
    """Ours: Streamlit has one in its head where a page takes long."""
    return page.get_by_test_id("stBaseButton-secondary").filter(has_text="Stop")


_STYLED = """() => [...document.querySelectorAll("style")].some(
  (one) => one.textContent.includes("st-key-answer_coming"))"""


def settled(page: Page) -> None:
    """Waits until the page is drawn as a whole; its style comes with a part of Streamlit that may load later."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_function(_STYLED, timeout=PATIENCE)


def download(page: Page, name: str) -> Download:
    """What the button offers. Streamlit forgets a file when the redraw ends that offers it anew."""
    settled(page)
    with page.expect_download() as offered:
        page.get_by_role("button", name=name).click()
    return offered.value


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


def _wait_for(condition: Callable[[], bool], tries: int = 3000) -> None:
    import threading

    pause = threading.Event()
    for _ in range(tries):
        if condition():
            return
        pause.wait(0.1)
    raise TimeoutError("the application did not start within five minutes")
