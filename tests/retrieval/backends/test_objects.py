"""An index in an object store: its faults, its lock, and processes that share it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from crag_core.base.errors import BadRecord, StoreUnavailable
from crag_core.retrieval.backends import objects as object_lock
from crag_core.retrieval.backends.objects import ObjectBackend
from crag_core.retrieval.index.store import PassageStore
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.dying import Killed, dying_at
from tests.retrieval.fakes import WordEmbedder, write_prose
from tests.stand_ins.s3_server import S3Server


@pytest.fixture
def place(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    yield f"{s3.make_bucket()}/team/index"
    s3.refusing = False


def open_store(place: str) -> PassageStore:
    return PassageStore(ObjectBackend(place), WordEmbedder())


@pytest.mark.parametrize("url", ["s3://", "s3://UPPER", "s3://key:secret@bucket", "s3://bucket/a b", "s3://bucket?x=1"])
def test_a_url_of_no_use_is_refused_without_being_told(url: str) -> None:
    with pytest.raises(BadRecord) as refused:
        ObjectBackend(url)
    assert "s3://BUCKET" in refused.value.message and "secret" not in str(refused.value)


def test_nothing_is_asked_before_it_is_used(place: str, s3: S3Server) -> None:
    before = len(s3.requests)
    open_store(place)
    assert len(s3.requests) == before


def test_everything_lies_under_its_folder(place: str, s3: S3Server) -> None:
    before = len(s3.requests)
    open_store(place).ingest([("seals.txt", write_prose("seals"))])
    written = {path for method, path in s3.requests[before:] if method == "PUT"}
    assert written and all("/team/index/" in path for path in written)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "does not answer"),
        ({"AWS_ENDPOINT_URL": "http://no-such-host.invalid"}, "does not answer"),
    ],
)
def test_a_store_that_is_away_is_told_soon_and_what_to_look_at(
    place: str, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], told: str
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    store = open_store(place)
    begun = time.monotonic()
    for use in (store.documents, lambda: store.ingest([("a.txt", b"Hello there.")])):
        with pytest.raises(StoreUnavailable, match=told) as fault:
            use()
        assert "AWS_ENDPOINT_URL" in fault.value.hint and "s3cret" not in str(fault.value)
    assert time.monotonic() - begun < 30


def test_a_bucket_that_is_not_there_is_told(place: str) -> None:
    store = open_store("s3://no-such-bucket-here/index")
    with pytest.raises(StoreUnavailable, match=r"NoSuchBucket|not found|Not found") as fault:
        store.ingest([("a.txt", b"Hello there.")])
    assert "Check the bucket" in fault.value.hint


@pytest.mark.exhaustive
def test_what_was_indexed_outlives_an_outage(place: str, s3: S3Server) -> None:
    store = open_store(place)
    store.ingest([("seals.txt", write_prose("seals"))])
    s3.refusing = True
    with pytest.raises(StoreUnavailable):
        store.search_keyword("seals", 1)
    s3.refusing = False
    assert store.search_keyword("seals", 1) and open_store(place).documents()


# --- the lock ---------------------------------------------------------------------------------------------------------


def test_a_holder_that_is_gone_from_this_machine_keeps_nobody_waiting(place: str) -> None:
    code = (
        "import os, signal, sys\n"
        "from crag_core.retrieval.backends.objects import ObjectBackend\n"
        "with ObjectBackend(sys.argv[1]).lock():\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, place], cwd=REPOSITORY, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    begun = time.monotonic()
    with ObjectBackend(place).lock():
        assert time.monotonic() - begun < 5


def test_a_holder_elsewhere_that_is_silent_is_taken_over_after_its_lease_and_not_before(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_lock, "LEASE", 1.0)
    silent = ObjectBackend(place)
    silent._lock._open().put("write.lock", b'{"owner": "another-machine/1/1"}')
    begun = time.monotonic()
    with silent.lock():
        assert time.monotonic() - begun >= 1.0


@pytest.mark.exhaustive
def test_who_holds_it_for_long_renews_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_lock, "LEASE", 1.0)
    monkeypatch.setattr(object_lock, "_RENEWED", 0.2)
    held: list[tuple[float, float]] = []

    def hold(number: int) -> None:
        with ObjectBackend(place).lock():
            begun = time.monotonic()
            time.sleep(2.0)
            held.append((begun, time.monotonic()))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(hold, range(2)))
    first, second = sorted(held)
    assert first[1] <= second[0]


def test_who_lost_it_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ObjectBackend(place)
    with pytest.raises(StoreUnavailable, match="took the index over"), backend.lock():
        backend._lock._open().put("write.lock", b'{"owner": "another-machine/1/1"}')


def test_a_lock_that_holds_nonsense_is_taken(place: str) -> None:
    backend = ObjectBackend(place)
    backend._lock._open().put("write.lock", b"\xff nonsense")
    with backend.lock():
        pass


# --- kills and several processes --------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("every", mostly(4, 1))
def test_dying_at_any_step_leaves_documents_whole_or_absent(
    place: str, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr("crag_core.retrieval.index.index_writer.is_alive", lambda owner, said_at: False)
    files = [(f"{topic}.txt", write_prose(topic, 30)) for topic in ("seals", "gulls")]
    for step in range(0, 100, every):
        here = f"{place}/{step}"
        try:
            with dying_at(step):
                open_store(here).ingest(files)
        except Killed:
            store = open_store(here)
            for document in store.documents():
                assert [one.ordinal for one in store.passages_of(document.id)] == list(range(document.passages))
            waiting = {row.name for row in store.listing()}
            store.finish_interrupted()
            assert {document.name for document in store.documents()} == waiting
        else:
            assert step > 5
            return
    raise AssertionError("more than 100 steps")


WORKER = """
import os, signal, sys
from crag_core.retrieval.backends.objects import ObjectBackend
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose

place, name, dies = sys.argv[1:]

def look(progress):
    if dies and progress.position == 3:
        os.kill(os.getpid(), signal.SIGKILL)

PassageStore(ObjectBackend(place), WordEmbedder()).ingest(
    [(f"{name}-{number}.txt", write_prose(f"{name} {number}", 40)) for number in range(5)], look
)
"""


@pytest.mark.exhaustive
def test_of_two_processes_one_is_killed_and_the_other_loses_nothing(place: str) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", WORKER, place, name, dies], cwd=REPOSITORY, env=dict(os.environ))
        for name, dies in (("one", ""), ("two", "dies"))
    ]
    assert [process.wait(timeout=120) for process in started] == [0, -signal.SIGKILL]
    store = open_store(place)
    assert {f"one-{number}.txt" for number in range(5)} <= {document.name for document in store.documents()}
    finished = store.finish_interrupted()
    assert {one.name for one in finished} <= {f"two-{number}.txt" for number in range(5)}
    assert len(store.documents()) == 10
    for document in store.documents():
        assert [one.ordinal for one in store.passages_of(document.id)] == list(range(document.passages))
