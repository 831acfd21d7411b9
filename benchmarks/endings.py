"""Ctrl-C and SIGTERM at random moments: how long the program takes to end, how it ended, and what it left behind.

Each try starts the program in a home of its own, sends it one signal, and waits. `start` is the application during the
first half minute of its very first start, with a page open as soon as it answers; the signal may come before that. The
others begin when the work does: `ask`, a run whose answer a slow stand-in for Ollama writes, and `grade`, a labelled
set on the Tune page; `ingest`, `question`, `evaluate` and `compare` are commands.

Wanted: nothing aborts, no traceback, no process left, a run under way kept, and the slowest within ten seconds.

Run: python benchmarks/endings.py                          (5 tries of each kind; a quarter of an hour on two cores)
     python benchmarks/endings.py --kinds start --tries 100
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from websockets.exceptions import WebSocketException

sys.path.insert(0, str(Path(__file__).parent.parent))

from crag_core.storage.history import open_history
from tests.browser.conftest import ROOT, find_port
from tests.browser.visitor import Visitor
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

FIRST_S = 30.0
"""A signal to an application that starts comes within so many seconds."""
IN_WORK_S = 6.0
"""One to somebody at work comes so soon after the work has begun."""
IN_COMMAND_S = 20.0
PATIENCE_S = 60.0
"""Who has not ended by then is killed, and counted as one that did not end."""
SLOWEST_S = 10.0
ABORTED = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE, 134, 139}
WORDS = ("terminate called", "Fatal Python error", "Segmentation fault", "core dumped", "panicked at")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
QUESTION = "When does the ferry leave?"

Wait = Callable[[subprocess.Popen[bytes]], None]
"""Returns when the moment has come to send the signal."""


@dataclass(frozen=True)
class Ended:
    kind: str
    signal: signal.Signals
    after: float
    seconds: float
    code: int | None
    said: str
    left: int
    """Processes that it had started and that live on."""
    wrong: str = ""

    @property
    def fault(self) -> str:
        found = [word for word in WORDS if word in self.said]
        if self.code in ABORTED or found:
            return f"aborted ({self.code}; {', '.join(found)})"
        if self.code is None:
            return f"did not end within {PATIENCE_S:.0f} s"
        if "Traceback" in self.said or "Exception ignored" in self.said:
            return "traceback"
        return f"{self.left} processes left" if self.left else self.wrong


def attempt(
    kind: str, how: signal.Signals, command: list[str], home: Path, settings: dict[str, str], wait: Wait
) -> Ended:
    """One program, one signal."""
    defaults = {"CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OPENAI_BASE_URL": "", "CRAG_WEB": "off"}
    said_to = home.with_suffix(".log")
    with said_to.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **defaults, **settings}, stdout=log, stderr=log,
            start_new_session=True, preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        begun = time.monotonic()
        try:
            wait(process)
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            sent = time.monotonic()
            process.send_signal(how)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            seconds, code = time.monotonic() - sent, process.returncode
        finally:
            process.kill()
            process.wait()
    _, alive = psutil.wait_procs(children, timeout=3)
    for child in alive:
        child.kill()
    return Ended(kind, how, sent - begun, seconds, code, said_to.read_text("utf-8", "replace"), len(alive))


def pause(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Or until it ends by itself."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


# --- the application


MAKE_RUN = ["ui"]
STREAMLIT_RUN = ["streamlit", "run", "app.py"]
"""Python itself tells of a Ctrl-C that comes while it imports Streamlit."""


def app(program: list[str], port: int) -> list[str]:
    return [sys.executable, "-m", *program, "--server.port", str(port), "--server.headless", "true"]


def at_start(program: list[str], how: signal.Signals, home: Path, chance: random.Random) -> Ended:
    port, moment = find_port(), chance.uniform(0.0, FIRST_S)

    def wait(process: subprocess.Popen[bytes]) -> None:
        visiting = threading.Thread(target=look, args=(process, port), daemon=True)
        visiting.start()
        pause(process, moment)

    return attempt("start", how, app(program, port), home, {}, wait)


def look(
    process: subprocess.Popen[bytes], port: int, begin: Begin | None = None, has_begun: threading.Event | None = None
) -> None:
    """Open a page as soon as there is one, begin something there, and leave it open."""

    async def visit() -> None:
        visitor = Visitor(f"http://localhost:{port}", "V")
        await visitor.open()
        if begin and has_begun:
            await visitor.until(lambda: visitor.has("button", "Ask"))
            await visitor.settled()
            await begin(visitor)
            has_begun.set()
        while process.poll() is None and "disconnected by the server" not in visitor.errors:
            await asyncio.sleep(0.2)
        await visitor.close()

    if answers(process, port):
        with suppress(OSError, TimeoutError, WebSocketException):
            asyncio.run(visit())


def answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until it does; False where the program has ended."""
    while process.poll() is None:
        try:
            with urlopen(f"http://localhost:{port}/_stcore/health", timeout=2):
                return True
        except (URLError, OSError):
            pause(process, 0.1)
    return False


Begin = Callable[[Visitor], Awaitable[None]]


def at_work(
    kind: str, begin: Begin, program: list[str], how: signal.Signals, home: Path, chance: random.Random
) -> Ended:
    port, moment = find_port(), chance.uniform(0.0, IN_WORK_S)
    has_begun = threading.Event()

    def wait(process: subprocess.Popen[bytes]) -> None:
        visiting = threading.Thread(target=look, args=(process, port, begin, has_begun), daemon=True)
        visiting.start()
        if not has_begun.wait(PATIENCE_S * 3):
            raise TimeoutError(f"{kind}: the work did not begin")
        pause(process, moment)

    with slow_model() as settings:
        ended = attempt(kind, how, app(program, port), home, settings, wait)
    if kind != "ask":
        return ended
    kept = open_history("disk", home).search()
    is_kept = len(kept) == 1 and kept[0].question == QUESTION
    return ended if is_kept else replace(ended, wrong="the run under way is not kept")


async def ask(visitor: Visitor) -> None:
    await visitor.ask(QUESTION)
    await visitor.until(lambda: visitor.has("button", "Stop"))


async def grade(visitor: Visitor) -> None:
    await visitor.turn_to("Tune")
    await _press(visitor, "Use ")
    await _press(visitor, "Grade ")
    await visitor.until(lambda: visitor.has("button", "Pause"))


async def _press(visitor: Visitor, beginning: str) -> None:
    await visitor.until(lambda: bool(_labels(visitor, beginning)))
    await visitor.settled()
    await visitor.press(_labels(visitor, beginning)[0])


def _labels(visitor: Visitor, beginning: str) -> list[str]:
    found = [one.label for one in visitor.elements("button") if one.label.startswith(beginning)]
    return [label for label in found if label.endswith("questions")]


@contextmanager
def slow_model() -> Iterator[dict[str, str]]:
    """Writes for half a minute."""
    with OllamaServer(ScriptedModel(lambda messages: "It leaves at nine [1]. " * 20, delay_s=0.3)) as server:
        yield {"OLLAMA_HOST": server.url, "CRAG_MODEL": f"ollama/{MODEL}"}


# --- the commands

SAMPLE = ROOT / "data" / "sample"
SET = str(ROOT / "data" / "questions" / "sample.jsonl")
COMMANDS = {
    "ingest": ["ingest", str(SAMPLE)],
    "question": ["ask", QUESTION],
    "evaluate": ["evaluate", "--set", SET],
    "compare": ["compare", "--set", SET],
}


def command(kind: str, program: list[str], how: signal.Signals, home: Path, chance: random.Random) -> Ended:
    moment = chance.uniform(0.0, IN_COMMAND_S)
    ended = attempt(
        kind,
        how,
        [sys.executable, "-m", "crag_core", *COMMANDS[kind]],
        home,
        {},
        lambda process: pause(process, moment),
    )
    if ended.code not in (0, -how, 128 + how):
        return replace(ended, wrong=f"exit code {ended.code}")
    return ended


# --- all of them

Try = Callable[[list[str], signal.Signals, Path, random.Random], Ended]
KINDS: dict[str, Try] = {
    "start": at_start,
    "ask": partial(at_work, "ask", ask),
    "grade": partial(at_work, "grade", grade),
    **{kind: partial(command, kind) for kind in COMMANDS},
}
NEW_HOMES = ("start", "ingest")


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    reading.add_argument("--tries", type=int, default=5, help="of each kind")
    reading.add_argument("--seed", type=int, default=1)
    reading.add_argument("--pause", type=float, default=0.0, help="seconds between two tries")
    reading.add_argument("--plain", action="store_true", help="start it by streamlit run, not as make run does")
    options = reading.parse_args()
    program = STREAMLIT_RUN if options.plain else MAKE_RUN
    chance, all_ended = random.Random(options.seed), []
    print(f"load of the machine {psutil.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / "filled"
        if set(options.kinds) - set(NEW_HOMES):
            environment = {**os.environ, "CRAG_HOME": str(filled)}
            subprocess.run(
                [sys.executable, "-m", "crag_core", "ingest", str(SAMPLE)], cwd=ROOT, env=environment, check=True,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            (filled / "sample-indexed").touch()
        for number in range(options.tries):
            for kind in options.kinds:
                home = Path(folder) / f"{kind}-{number}"
                home.mkdir() if kind in NEW_HOMES else shutil.copytree(filled, home)
                ended = KINDS[kind](program, SIGNALS[number % 2], home, chance)
                all_ended.append(ended)
                print(line(number, ended), file=sys.stderr, flush=True)
                shutil.rmtree(home)
                time.sleep(options.pause)
    print(f"load of the machine {psutil.getloadavg()[0]:.1f}\n")
    print(
        "| kind | signal | tries | aborted | traceback | did not end | other faults | s median / slowest | exit codes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in options.kinds:
        for how in SIGNALS:
            if some := [ended for ended in all_ended if (ended.kind, ended.signal) == (kind, how)]:
                print(row(kind, how, some))
    faults = [ended for ended in all_ended if ended.fault or ended.seconds > SLOWEST_S]
    print(f"\n{len(faults)} of {len(all_ended)} with a fault or slower than {SLOWEST_S:.0f} s")
    sys.exit(bool(faults))


def line(number: int, ended: Ended) -> str:
    told = (
        f"{number} {ended.kind} {ended.signal.name} after {ended.after:.1f} s: {ended.seconds:.1f} s, code {ended.code}"
    )
    last = "\n".join(f"    {one}" for one in ended.said.splitlines()[-25:])
    return f"{told}, {ended.fault}\n{last}" if ended.fault else told


def row(kind: str, how: signal.Signals, some: list[Ended]) -> str:
    faults = Counter(ended.fault.split(" (")[0].split(" within")[0] for ended in some if ended.fault)
    named = [faults.pop(name, 0) for name in ("aborted", "traceback", "did not end")]
    codes = ", ".join(f"{code}: {count}" for code, count in Counter(ended.code for ended in some).items())
    seconds = [ended.seconds for ended in some]
    counts = " | ".join(map(str, (len(some), *named, sum(faults.values()))))
    return f"| {kind} | {how.name} | {counts} | {median(seconds):.1f} / {max(seconds):.1f} | {codes} |"


if __name__ == "__main__":
    main()
