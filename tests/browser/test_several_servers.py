"""Several processes of the application behind one address share everything, and one can be killed without loss."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from crag_core.base.data_files import DATA
from crag_core.base.documents import Document, Recipe
from crag_core.retrieval.backends.objects import ObjectBackend
from crag_core.retrieval.embedding import DEFAULT_MODEL
from crag_core.retrieval.index_writer import IndexWriter
from tests.browser.conftest import PATIENCE, ask, serve, upload
from tests.retrieval.fakes import write_prose
from tests.stand_ins.front_door import COOKIE, FrontDoor
from tests.stand_ins.postgres_server import PostgresServer
from tests.stand_ins.s3_server import S3Server

pytestmark = [pytest.mark.browser, pytest.mark.embedding, pytest.mark.exhaustive]

QUESTION = "How high is the tower of the lighthouse?"
OTHER_QUESTION = "What is a keeper of the lighthouse paid?"
SAMPLES = len(list((DATA / "sample").iterdir()))
FILES = 10


@dataclass(frozen=True)
class Common:
    """What all processes share: a place for documents, and a database for grades and runs."""

    environment: dict[str, str]
    postgres: PostgresServer

    def shelf(self) -> IndexWriter:
        """As none of the processes has it in memory."""
        return IndexWriter(ObjectBackend(self.environment["CRAG_STORE"]), Recipe(DEFAULT_MODEL))

    def documents(self) -> list[Document]:
        return self.shelf().rows()

    def passages(self) -> dict[str, int]:
        """Those that are there, by document."""
        return {row.id: row.passages for row in self.shelf().passages().documents()}

    def runs(self) -> set[str]:
        """The ids of those that are kept."""
        database = self.environment["CRAG_HISTORY"]
        if self.postgres.execute("SELECT to_regclass('crag_runs')", url=database) == [(None,)]:
            return set()
        return {str(run) for (run,) in self.postgres.execute("SELECT id FROM crag_runs", url=database)}

    def grades(self) -> list[tuple[object, ...]]:
        """With the time of each, which a second writing would change."""
        return self.postgres.execute(
            "SELECT key, expires_at FROM crag_grades ORDER BY key", url=self.environment["CRAG_CACHE"]
        )


@dataclass(frozen=True)
class Process:
    home: Path
    url: str

    def kill(self) -> None:
        """As the system does when memory runs out: nothing is said, and nothing tidied."""
        port = self.url.rpartition(":")[2]
        (found,) = [one for one in psutil.Process().children() if port in one.cmdline()]
        os.kill(found.pid, signal.SIGKILL)
        found.wait()

    def has_made(self, run_id: str) -> bool:
        log = self.home / "audit.jsonl"
        return log.exists() and run_id in log.read_text("utf-8")


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def common(s3: S3Server, postgres: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Common:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    places = {"CRAG_STORE": f"{s3.make_bucket()}/team", "CRAG_CACHE": postgres_url, "CRAG_HISTORY": postgres_url}
    return Common({**s3.environment, **places}, postgres)


@contextmanager
def started(common: Common, home: Path, *, with_samples: bool = False) -> Iterator[Process]:
    home.mkdir()
    if not with_samples:
        (home / "sample-indexed").touch()
    with serve(home, **common.environment) as url:
        yield Process(home, url)


@contextmanager
def two_started(common: Common, folder: Path, *, with_samples: bool = False) -> Iterator[list[Process]]:
    homes = (folder / "home-0", folder / "home-1")
    with ExitStack() as running:
        yield [running.enter_context(started(common, home, with_samples=with_samples)) for home in homes]


@pytest.fixture
def processes(common: Common, tmp_path: Path) -> Iterator[list[Process]]:
    with two_started(common, tmp_path) as found:
        yield found


@pytest.fixture
def door(processes: list[Process]) -> Iterator[FrontDoor]:
    with FrontDoor([process.url for process in processes]) as found:
        yield found


@pytest.fixture
def visitors(browser: Browser) -> Iterator[list[Page]]:
    """Two people, each with a browser of his own."""
    contexts = [browser.new_context(viewport={"width": 1440, "height": 1000}) for _ in range(2)]
    for context in contexts:
        context.set_default_timeout(PATIENCE)
    yield [context.new_page() for context in contexts]
    for context in contexts:
        context.close()


def server_of(page: Page) -> int:
    (number,) = [one["value"] for one in page.context.cookies() if one["name"] == COOKIE]
    return int(number)


def counted(page: Page, documents: int) -> Locator:
    """The head of the list of documents."""
    return page.get_by_role("heading", name=re.compile(rf"^{documents} documents?,"))


def wait_for_whole(common: Common, page: Page, documents: int) -> list[Document]:
    """The rows, once so many documents are in and none is on its way."""
    rows: list[Document] = []
    for _ in range(PATIENCE // 500):
        rows = common.documents()
        if len(rows) == documents and all(row.is_whole for row in rows):
            return rows
        page.wait_for_timeout(500)
    raise AssertionError(f"expected {documents} whole documents, found {[(row.name, row.state) for row in rows]}")


def open_documents(page: Page, url: str) -> None:
    """Once the start of the process is over."""
    page.goto(f"{url}/documents")
    expect(page.get_by_role("button", name="Index", exact=True)).to_be_visible()
    expect(page.get_by_text("Loading the embedding model")).to_have_count(0)


def asked(common: Common, page: Page, question: str) -> tuple[str, str]:
    """(the run, its verdict), once it is kept."""
    before = common.runs()
    page.get_by_role("link", name="Ask").click()
    ask(page, question)
    for _ in range(PATIENCE // 100):
        if new := common.runs() - before:
            (run,) = new
            page.wait_for_url(re.compile(f"run={run}"))
            assert run_of(page) == run
            return run, page.locator("h2").first.inner_text()
        page.wait_for_timeout(100)
    raise AssertionError("the run was never kept")


def run_of(page: Page) -> str:
    """Of the run that is shown, not of one under way."""
    expect(page.get_by_text("Retrieval: ")).to_be_visible()
    expect(page.get_by_role("heading", name="lighthouse.pdf").first).to_be_visible()
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    return re.findall("run=([0-9a-f]{12})", page.url)[0]


def test_two_visitors_of_two_processes_share_all_and_one_process_is_killed(
    common: Common, processes: list[Process], door: FrontDoor, visitors: list[Page], lighthouse: Path
) -> None:
    first, second = visitors
    for page in visitors:
        open_documents(page, door.url)
        expect(page.get_by_text("No documents yet")).to_have_count(1)  # two while the page moves
    assert [server_of(page) for page in visitors] == [0, 1]

    upload(first, door.url, lighthouse)
    second.reload()
    expect(counted(second, 1)).to_be_visible()

    run, verdict = asked(common, first, QUESTION)
    paid_for = common.grades()
    again, same_verdict = asked(common, second, QUESTION)
    assert paid_for and common.grades() == paid_for, "the second process took the grades of the first"
    assert again != run and same_verdict == verdict
    made_by = [[process.has_made(one) for process in processes] for one in (run, again)]
    assert made_by == [[True, False], [False, True]]

    first.get_by_role("button", name="Share").click()
    link = first.locator("[data-testid=stCode] code").filter(has_text="run=").inner_text()
    assert link.startswith(door.url)
    second.goto(link)
    assert run_of(second) == run and second.locator("h2").first.inner_text() == verdict

    processes[0].kill()
    killed_at = time.monotonic()
    first.reload()
    assert run_of(first) == run and server_of(first) == 1
    print(f"The page works again {time.monotonic() - killed_at:.1f} s after the kill.")
    assert first.locator("h2").first.inner_text() == verdict
    other, _ = asked(common, first, OTHER_QUESTION)
    assert processes[1].has_made(other)
    first.get_by_role("link", name="Documents").click()
    expect(counted(first, 1)).to_be_visible()


def test_files_that_a_killed_process_was_indexing_can_be_continued_by_the_next(
    common: Common, processes: list[Process], door: FrontDoor, visitors: list[Page], tmp_path: Path
) -> None:
    first, second = visitors
    files = [tmp_path / f"log-{number:02}.txt" for number in range(FILES)]
    for file in files:
        file.write_bytes(write_prose(file.stem))
    for page in visitors:
        open_documents(page, door.url)
    first.locator("input[type=file]").set_input_files(files)
    first.get_by_role("button", name=f"Index {FILES} files").click()
    expect(first.get_by_text(re.compile(rf"Indexing .* \([2-9] of {FILES}\)"))).to_be_visible()
    processes[0].kill()
    left = [row for row in common.documents() if not row.is_whole]
    assert left and len(common.documents()) == FILES
    second.reload()
    expect(counted(second, FILES - len(left))).to_be_visible()  # the others wait there
    with started(common, tmp_path / "home-2") as late:
        second.goto(f"{late.url}/documents")
        asked = re.compile(rf"{len(left)} files? w(as|ere) still to be indexed")
        expect(second.get_by_text(asked)).to_be_visible(timeout=3 * PATIENCE)
        second.get_by_role("button", name="Continue").click()
        expect(counted(second, FILES)).to_be_visible()
    rows = wait_for_whole(common, second, FILES)
    assert common.passages() == {row.id: row.passages for row in rows}


def test_two_fresh_processes_at_once_bring_the_sample_documents_in_once(
    common: Common, visitors: list[Page], tmp_path: Path
) -> None:
    with two_started(common, tmp_path, with_samples=True) as processes:
        for page, process in zip(visitors, processes, strict=True):
            page.goto(f"{process.url}/documents")
        rows = wait_for_whole(common, visitors[0], SAMPLES)
        assert len({row.name for row in rows}) == SAMPLES
        for page, process in zip(visitors, processes, strict=True):
            open_documents(page, process.url)
            expect(counted(page, SAMPLES)).to_be_visible()
    assert common.passages() == {row.id: row.passages for row in rows}
