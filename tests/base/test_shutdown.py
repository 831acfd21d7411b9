"""The end of the process: what goes on is stopped and waited for within bounds, and nothing is torn down under it."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from crag_core.base.concurrency.shutdown import Background

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_all_are_stopped_at_once_and_those_that_others_use_come_last() -> None:
    background, said = Background(), []
    together = threading.Barrier(2)

    def stop(name: str) -> None:
        together.wait(20)
        said.append(f"stop {name}")

    background.at_end(lambda: said.append("stop last"), lambda seconds: said.append("finish last"), is_last=True)
    background.at_end(lambda: stop("one"), lambda seconds: said.append("finish one"))
    background.at_end(lambda: stop("two"), lambda seconds: said.append("finish two"))
    background.close(seconds=20)
    assert set(said[:4]) == {"stop one", "stop two", "finish one", "finish two"}
    assert said[4:] == ["stop last", "finish last"]
    background.close()
    assert len(said) == 6, "a second end finds nothing to do"


def test_what_hangs_and_what_fails_keeps_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    background, wakes, finished = Background(), threading.Event(), []

    def fail() -> None:
        raise ValueError("a bug")

    background.at_end(wakes.wait)
    background.at_end(fail, finished.append)
    background.at_end(lambda: None, finished.append)
    background.at_end(fail, is_last=True)
    began = time.monotonic()
    background.close(seconds=0.3, more=0.2)
    assert time.monotonic() - began > 0.4
    assert len(finished) == 2 and all(0 <= seconds <= 0.3 for seconds in finished)
    assert len(caplog.records) == 2
    wakes.set()


# --- processes of their own

SERVES = """
import threading
from crag_core.base.concurrency import shutdown as closing
closing.end_on_signals()
closing.at_end({stop})
threading.Thread(target=threading.Event().wait, daemon={daemon}).start()
print("up", flush=True)
threading.Event().wait()
"""
COMMAND = """
import sys, threading, time
from crag_core.base.concurrency import shutdown as closing
closing.at_end(lambda: print("closed", flush=True))
def command():
    print("up", flush=True)
    try:
        {work}
    except KeyboardInterrupt as interruption:
        {then}
closing.run(command)
"""


def start(program: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    listens = (  # whoever starts the tests in the background, or with nohup, has them ignored
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", listens + program], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=stderr
    )
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Not by `communicate`, which would miss what was read together with the first line."""
    assert process.stdout is not None and process.stderr is not None
    said = process.stdout.read(), process.stderr.read()
    process.wait(30)
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_process_ends_by_the_signal_itself_once_all_is_closed(number: signal.Signals) -> None:
    with start(SERVES.format(stop="lambda: print('closed', flush=True)", daemon=False)) as process:
        process.send_signal(number)
        assert rest(process) == ("closed\n", "")
        assert process.returncode == -number


@pytest.mark.parametrize(
    ("work", "then", "code"),
    [
        ("return 3", "pass", 3),
        ("sys.exit(2)", "pass", 2),
        ("threading.Thread(target=threading.Event().wait).start(); return 0", "pass", 0),
    ],
)
def test_a_command_that_is_done_ends_with_its_code_whatever_still_runs(work: str, then: str, code: int) -> None:
    with start(COMMAND.format(work=work, then=then)) as process:
        assert rest(process) == ("closed\n", "") and process.returncode == code


@pytest.mark.parametrize(
    ("work", "then"),
    [
        ("time.sleep(60)", "raise"),
        ("time.sleep(60)", "return 130"),
        ("time.sleep(60)", "raise ImportError('half a module') from interruption"),
        pytest.param("time.sleep(60)", "time.sleep(60)", marks=pytest.mark.exhaustive),  # a library that swallows it
    ],
)
def test_a_command_that_is_interrupted_ends_with_130_and_without_a_traceback(work: str, then: str) -> None:
    with start(COMMAND.format(work=work, then=then)) as process:
        process.send_signal(signal.SIGINT)
        assert rest(process) == ("closed\n", "") and process.returncode == 130
