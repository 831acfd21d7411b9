"""Who is still at work on a document."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crag_core.base.documents import Document, Recipe, State
from crag_core.retrieval.backends.backend import name_content, now
from crag_core.retrieval.backends.disk import FolderBackend
from crag_core.retrieval.backends.worker_lease import LEASE, is_alive, name_self
from crag_core.retrieval.index.index_writer import IndexWriter
from tests.retrieval.conftest import REPOSITORY

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=9)


def test_this_process_is_alive_however_long_it_was_silent() -> None:
    assert is_alive(name_self(), LONG_AGO, NOW) and is_alive(f"{name_self()}/4f", LONG_AGO, NOW)


def test_another_process_of_this_machine_is_alive_until_it_ends() -> None:
    code = "from crag_core.retrieval.backends.worker_lease import name_self; print(name_self(), flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    owner = process.stdout.readline().strip()
    assert is_alive(owner, LONG_AGO, NOW)
    process.kill()
    process.communicate()
    assert not is_alive(owner, NOW, NOW)


@pytest.mark.parametrize("owner", ["", "nonsense", f"{platform.node()}//", f"{platform.node()}/x/1"])
def test_an_owner_that_is_none_has_its_lease_and_no_more(owner: str) -> None:
    assert not is_alive(owner, NOW - LEASE, NOW)


def test_a_number_that_was_given_again_is_another_process() -> None:
    node, number, started = name_self().split("/")
    assert not is_alive(f"{node}/{number}/1{started}", NOW, NOW)


def test_a_process_of_another_machine_is_alive_for_its_lease() -> None:
    owner = "another-machine/1/1700000000/4f"
    assert is_alive(owner, NOW - LEASE + timedelta(seconds=1), NOW) and not is_alive(owner, NOW - LEASE, NOW)


def test_one_word_of_an_owner_keeps_all_that_it_is_at_work_on(tmp_path: Path) -> None:
    shelf = IndexWriter(FolderBackend(tmp_path), Recipe("words"))
    owner, old = "another-machine/1/1700000000/4f", (datetime.now(UTC) - 2 * LEASE).isoformat()
    waiting = [Document(name_content(text), "a.txt", owner=owner, changed_at=old) for text in (b"one", b"two")]
    shelf.register([(waiting[0], b"one"), (waiting[1], b"two")])
    shelf._catalogue.put([Document(waiting[1].id, "a.txt", state=State.INDEXING, owner=owner, changed_at=now())])
    assert shelf.claim("me") == []
    shelf._catalogue.put([waiting[1]])
    assert {row.id for row in shelf.claim("me")} == {row.id for row in waiting}
    assert {row.owner for row in shelf.rows()} == {"me"}
