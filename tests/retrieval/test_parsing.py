"""Parsing in processes of their own: the same as in ours for every file, and no file harms us or the next file."""

from __future__ import annotations

import ast
import gc
import json
import logging
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.retrieval.chunking.split import cut_document
from crag_core.retrieval.chunking.text_splitter import Cut
from crag_core.retrieval.readers import Page, read_document
from crag_core.retrieval.sandbox.documents import DocumentProcesses
from crag_core.retrieval.sandbox.messages import (
    BadFrame,
    Limits,
    check_reply,
    pack_chunks,
    pack_pages,
    unpack_chunks,
    unpack_pages,
)
from crag_core.retrieval.sandbox.process import KEPT_VARIABLES
from tests.matrix import mostly
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.processes import children, frame, is_alive, wait_until

BAD = "tests.retrieval.bad_readers"
GOOD = b"A good file."
MEGABYTE = 2**20
Outcome = tuple[Page, ...] | tuple[str, str]
linux = pytest.mark.skipif(sys.platform != "linux", reason="skipped: only Linux has this")


@pytest.fixture(scope="module")
def parser() -> Iterator[DocumentProcesses]:
    """Shared, since no file may make a difference to the next one."""
    made = DocumentProcesses(Limits(readers=BAD, seconds=60, memory=400 * MEGABYTE, characters=10_000_000))
    yield made
    made.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[DocumentProcesses]:
    """As the application has it."""
    made = DocumentProcesses()
    yield made
    made.close()


@pytest.fixture(scope="module")
def hasty() -> Iterator[DocumentProcesses]:
    made = DocumentProcesses(Limits(readers=BAD, seconds=0.5))
    yield made
    made.close()


def refuse(parser: DocumentProcesses, name: str, content: bytes = b"any") -> str:
    with pytest.raises(DocumentRefused) as refusal:
        parser.read(content, name)
    assert refusal.value.message.startswith(f"{name}: ") and refusal.value.hint
    return refusal.value.message


def reads_good(parser: DocumentProcesses) -> bool:
    return parser.read(GOOD, "good.txt") == (Page(GOOD.decode()),)


def outcome_of(read: Callable[[bytes, str], Outcome], content: bytes, name: str) -> Outcome:
    """The pages, or what the refusal says."""
    try:
        return read(content, name)
    except DocumentRefused as refusal:
        return refusal.message, refusal.hint


def tell(parser: DocumentProcesses, content: bytes = b"/nowhere/file") -> dict[str, Any]:
    (page,) = parser.read(content, "a.tell")
    told: dict[str, Any] = json.loads(page.text)
    return told


# --- the same as in our process -------------------------------------------------------------------------------------


def test_a_shared_document_of_each_kind_gives_the_same_as_in_our_process(
    plain: DocumentProcesses, shared_documents: Path
) -> None:
    folders = (sorted((shared_documents / folder).iterdir()) for folder in ("ok", "hostile"))
    files = [file for folder in folders for file in {file.suffix: file for file in folder}.values()]
    refused = 0
    for file in files:
        outcome = outcome_of(plain.read, file.read_bytes(), file.name)
        assert outcome == outcome_of(read_document, file.read_bytes(), file.name), file.name
        refused += not isinstance(outcome[0], Page)
    assert 2 < refused < len(files) - 8


# --- what files can do ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.crash", "SIGSEGV"),
        ("a.leave", "exit status 0"),
        ("a.killed", "memory of the machine is full"),
        ("a.flood", "more than 10,000,000 characters"),
        pytest.param("a.eat", "needs more than 400 MB of memory", marks=linux),
        pytest.param("a.blame", "needs more than 400 MB of memory", marks=linux),
        pytest.param("a.malloc", "needs more than 400 MB of memory", marks=linux),
    ],
)
def test_a_file_that_breaks_its_parser_is_refused_and_the_next_is_read(
    parser: DocumentProcesses, name: str, reason: str
) -> None:
    with pytest.raises(DocumentRefused) as refusal:
        parser.read(b"any", name)
    assert reason in refusal.value.message
    assert ("may be damaged" in str(refusal.value)) == (name in ("a.crash", "a.leave"))
    assert reads_good(parser)


@pytest.mark.parametrize("name", ["a.sleep", "a.hold"])
def test_a_file_that_takes_too_long_is_refused_and_the_next_is_read(hasty: DocumentProcesses, name: str) -> None:
    assert reads_good(hasty)
    assert "longer than 0.5 seconds" in refuse(hasty, name)
    assert reads_good(hasty)


@pytest.mark.parametrize(
    "garbage",
    [
        *mostly(b"\xff" * 100, frame(b"{"), frame(b"7")),
        frame(b"{}"),
        *mostly(frame(b"[" * 100_000), frame(b'"\xff"'), frame(b"9" * 10_000)),
        struct.pack(">II", 2, 2**31) + b"{}",
    ],
)
def test_garbage_in_place_of_a_reply_is_refused(parser: DocumentProcesses, garbage: bytes) -> None:
    assert "made no sense" in refuse(parser, "a.garbage", garbage.hex().encode())
    assert reads_good(parser)


def test_a_reply_beyond_the_last_is_not_taken_for_the_next_file() -> None:
    parser = DocumentProcesses(Limits(readers=BAD))
    assert parser.read(b"any", "a.forge") == (Page("forged"),), "what a file makes of itself is its own affair"
    assert reads_good(parser)
    parser.close()


def test_printing_breaks_nothing_and_only_the_log_hears_of_it(
    parser: DocumentProcesses, caplog: pytest.LogCaptureFixture
) -> None:
    assert parser.read(b"any", "a.chatter") == (Page("read, and stdin held 0 bytes"),)
    with caplog.at_level(logging.DEBUG, "crag_core"):
        assert "last line" not in refuse(parser, "a.crash")
    assert "the last line <b>of it</b>" in caplog.text
    kept = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert kept and not any("last line" in line for line in kept), "a library may quote the document"


def test_the_harm_that_a_file_did_is_not_laid_to_the_next(parser: DocumentProcesses) -> None:
    assert parser.read(b"any", "a.later") == (Page("fine so far"),)
    assert parser.read(b"any", "b.fine") == (Page("as good as new"),)


def test_what_a_file_starts_ends_with_its_process() -> None:
    parser = DocumentProcesses(Limits(readers=BAD))
    (page,) = parser.read(b"any", "a.spawn")
    numbers = ast.literal_eval(page.text.removeprefix("spawned "))
    assert os.geteuid() or numbers, "root may start processes"
    parser.close()
    wait_until(lambda: not any(is_alive(number) for number in numbers))


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        ({"numbers": []}, b""),
        ({"numbers": [1, 2]}, b"abc"),
        ({"numbers": [1, 2]}, b"a\0b\0c"),
        ({"numbers": [0]}, b"abc"),
        ({"numbers": [True]}, b"abc"),
        ({"numbers": [1], "more": 1}, b"abc"),
        ({"numbers": [1], "is_out_of_memory": "no"}, b"abc"),
        ({"numbers": [1], "id": 8}, b"abc"),
        ({"numbers": [None]}, b"\xff\xfe\xfd"),
        ({"numbers": [None]}, b" \n "),
        ({"numbers": [None]}, b"abcdefghijk"),
        ("a text", b""),
    ],
)
def test_only_a_sound_reply_is_taken(reply: Any, body: bytes) -> None:
    with pytest.raises(BadFrame):
        header = {"id": 7, "left_out": [""] * len(reply["numbers"]), **reply} if isinstance(reply, dict) else reply
        unpack_pages(check_reply(header, 7), body, 10)


def test_what_was_left_out_comes_with_pages_and_with_chunks() -> None:
    pages = (Page("seen", 1), Page("", 2, "no text, only a picture"))
    assert unpack_pages(*pack_pages(7, pages), 20) == pages
    made = cut_document(pages, "a.pdf", Cut(tokenize=str.split))
    assert unpack_chunks(*pack_chunks(7, made), Cut(), Limits()) == made
    assert made.left_out == "Left out: page 2: no text, only a picture."


# --- what it is kept from -------------------------------------------------------------------------------------------


def test_it_knows_no_secrets_and_loads_nothing_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "CRAG_TAVILY_KEY", "PYTHONPATH", "PYTHONSTARTUP", "HTTPS_PROXY", "LD_PRELOAD"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_TIME", "C")
    parser = DocumentProcesses(Limits(readers=BAD))
    told = tell(parser)
    assert "secret" not in json.dumps([told["environment"], told["argv"]]) and told["environment"]["LC_TIME"] == "C"
    assert set(told["environment"]) <= {*KEPT_VARIABLES, "LC_TIME", "LC_CTYPE", "OPENBLAS_NUM_THREADS"}
    heavy = {"torch", "llama_index", "streamlit", "lancedb", "numpy", "pandas", "PIL", "httpx", "asyncio"}
    assert not heavy & {*told["modules"]}
    parser.close()


@linux
def test_it_stands_behind_and_apart(parser: DocumentProcesses, tmp_path: Path) -> None:
    target = tmp_path / "taken"
    told = tell(parser, str(target).encode())
    assert told["group"] == told["pid"] != os.getpgid(0), "Ctrl-C in the terminal does not reach it"
    assert told["nice"] == min(os.nice(0) + 5, 19)
    assert told["open"] < 12
    assert told["file"] == "OSError" and not (target.exists() and target.read_bytes())
    limits = Path(f"/proc/{told['pid']}/limits").read_text()
    assert [line.split()[-3] for line in limits.splitlines() if "data size" in line] == [str(400 * MEGABYTE)]
    if (
        subprocess.run(["unshare", *(["-r"] if os.geteuid() else []), "-n", "true"], capture_output=True).returncode
        == 0
    ):
        assert [line.split(":")[0].strip() for line in told["network"].splitlines() if ":" in line] == ["lo"]


# --- stopping -------------------------------------------------------------------------------------------------------


def test_a_stop_ends_it_at_once(parser: DocumentProcesses) -> None:
    number = tell(parser)["pid"]
    cancel = threading.Event()
    timer = threading.Timer(0.2, cancel.set)
    timer.start()
    with pytest.raises(Stopped):
        parser.read(b"any", "a.sleep", cancel)
    assert not is_alive(number)
    assert reads_good(parser)
    with pytest.raises(Stopped):
        parser.read(GOOD, "good.txt", cancel)


def test_closing_stops_who_is_reading_and_who_comes_later() -> None:
    parser = DocumentProcesses(Limits(readers=BAD))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(parser.read, b"any", "a.sleep")
        wait_until(lambda: any(process.served for process in parser._processes))
        parser.close()
        assert isinstance(running.exception(20), Stopped)
    with pytest.raises(Stopped):
        parser.read(GOOD, "good.txt")


# --- how many, and for how long -------------------------------------------------------------------------------------


def test_two_at_a_time_and_never_more() -> None:
    parser, most = DocumentProcesses(Limits(readers=BAD)), 0
    before = set(children())
    with ThreadPoolExecutor(6) as pool:
        names = [f"a{n}.txt" if n % 5 else f"a{n}.crash" for n in range(8)]
        works = [pool.submit(outcome_of, parser.read, GOOD, name) for name in names]
        while not all(work.done() for work in works):
            most = max(most, len(set(children()) - before))
            time.sleep(0.005)
        numbers = {tell(parser)["pid"]}
    assert most == 2
    assert [work.result() == (Page(GOOD.decode()),) for work in works] == ["txt" in name for name in names]
    assert len(numbers) == 1
    parser.close()
    assert set(children()) <= before, "not even a zombie is left"


def test_one_is_used_again_until_it_has_read_its_share() -> None:
    parser = DocumentProcesses(Limits(readers=BAD), files_each=3)
    numbers = [tell(parser)["pid"] for _ in range(7)]
    assert [numbers.count(number) for number in dict.fromkeys(numbers)] == [3, 3, 1]
    assert not is_alive(numbers[0])
    parser.close()


def test_an_idle_one_ends_and_the_next_file_gets_another(caplog: pytest.LogCaptureFixture) -> None:
    parser = DocumentProcesses(Limits(readers=BAD, idle=0.2))
    number = tell(parser)["pid"]
    wait_until(lambda: not is_alive(number))
    assert reads_good(parser)
    assert not caplog.records, "nothing went wrong"
    parser.close()


def test_a_parser_that_nobody_holds_leaves_nothing() -> None:
    parser = DocumentProcesses(Limits(readers=BAD))
    number = tell(parser)["pid"]
    del parser
    gc.collect()
    assert number not in children()


def test_one_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with_nothing = DocumentProcesses(Limits(readers="no_such_module"))
    assert "exit status 1) before it had started" in refuse(with_nothing, "a.txt")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "could not be started (No such file" in refuse(DocumentProcesses(), "a.txt")


# --- when we end ----------------------------------------------------------------------------------------------------

PARENT = f"""
import signal, sys, time
from crag_core.retrieval.sandbox.documents import DocumentProcesses
from crag_core.retrieval.sandbox.messages import Limits
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts the tests in the background has it ignored
parser = DocumentProcesses(Limits(readers={BAD!r}, seconds=3))
print(parser.read(b"/nowhere/file", "a.tell")[0].text, flush=True)
if sys.argv[1] == "idle":
    time.sleep(40)
elif sys.argv[1]:
    parser.read(b"any", sys.argv[1])
"""


def start_parent(task: str) -> tuple[subprocess.Popen[str], int]:
    """A process that parses, and the number of the one that does it for it."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, task],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    line = parent.stdout.readline()
    assert line, parent.communicate(timeout=60)[1]
    return parent, json.loads(line)["pid"]


@pytest.mark.parametrize("task", ["idle", *mostly("a.sleep", "a.hold")])
def test_it_ends_when_its_application_is_killed(task: str) -> None:
    parent, number = start_parent(task)
    time.sleep(0.3)  # for the file to be on its way; if it is not, this asks for less, and is still so
    parent.kill()
    parent.communicate(timeout=20)
    wait_until(lambda: not is_alive(number))


def test_it_ends_with_the_interpreter() -> None:
    parent, number = start_parent("")
    assert parent.communicate(timeout=20)[1] == "" and parent.returncode == 0
    assert not is_alive(number)
