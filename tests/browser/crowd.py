"""Many visitors of one process of the application at the same time, and what became of each of their questions."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.request import urlopen

import psutil

from crag_core.base.data_files import DATA
from crag_core.base.types.steps import StepState
from crag_core.evaluators.shipped import signal_meter
from crag_core.storage.history import open_history
from crag_core.trace.standalone import stands_alone
from crag_core.trace.trace import Trace
from crag_core.view.score_words import reason_of
from crag_core.view.verdict_lines import chip
from tests.browser.visitor import Visitor
from tests.stand_ins.local_server import wait_until

PAGES = ("Compare", "Tune", "Policies", "Documents")
"""Where visitors look in between, each at another one."""
NO_MODEL = "Quotations, no model"
ENDINGS = ("finished", "stopped", "reloaded", "left")


@dataclass(frozen=True)
class Asked:
    """One question of one visitor; `ending` is what the visitor did while it ran, seconds are until the verdict."""

    tag: str
    run_id: str
    question: str
    ending: str
    seconds: float | None = None
    page: str = ""
    """What was read there in the end, where somebody stayed to read it."""
    over_at: float | None = None
    """When the page showed the end of the run, by the clock of the machine."""


@dataclass
class Tally:
    asked: list[Asked] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    script_runs: int = 0
    late: Counter[str] = field(default_factory=Counter)
    """As of `Visitor`."""


@dataclass(frozen=True)
class Size:
    """What a process takes now: MB, threads, open files, seconds of processor."""

    now: float
    most: float
    threads: int
    files: int
    processor: float


def size_of(process: psutil.Process) -> Size:
    lines = Path(f"/proc/{process.pid}/status").read_text("utf-8").splitlines()
    most = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
    taken = process.cpu_times()
    now = process.memory_info().rss / 1e6
    return Size(now, most, process.num_threads(), process.num_fds(), taken.user + taken.system)


def process_at(url: str) -> psutil.Process:
    """That of this test which serves there."""
    port = url.rpartition(":")[2]

    def is_there(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):  # of another test, and ended meanwhile
            return port in process.cmdline()
        return False

    (found,) = filter(is_there, psutil.Process().children())
    return found


def sample_questions() -> list[str]:
    """Without what points at something: that is a later question of a conversation, and waits for the visitor."""
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    asked = [str(json.loads(line)["question"]) for line in lines]
    return [question for question in asked if stands_alone(question, signal_meter().stop_words)]


async def visit(
    url: str, sessions: int, rounds: int, *, is_mixed: bool = False, has_model: bool = False, first: int = 0,
    each: Callable[[Tally], None] = lambda tally: None, tally: Tally | None = None, until: float = math.inf,
) -> Tally:  # fmt: skip
    """So many visitors at once ask so many questions each; `each` is called after every one.

    `is_mixed`: some stop their runs, some load the page again in the middle, some leave for good and others come.
    `has_model`: half of them have answers quoted without it. `first` is the number of the first visitor. Nobody asks
    after `until`, of the monotonic clock.
    """
    tally = Tally() if tally is None else tally
    questions = sample_questions()

    async def stay(number: int) -> None:
        tag, nth, habit = f"V{number:03d}", number, ENDINGS[number % 4] if is_mixed else "finished"
        for part in _stays(rounds, habit):
            async with _visitor(url, tag, tally) as visitor:
                if has_model and number // 4 % 2:
                    await visitor.choose("Answers written by", NO_MODEL)
                    await visitor.settled()
                for turn, ending in part:
                    if time.monotonic() > until:
                        return
                    nth += sessions
                    question = f"{questions[nth % len(questions)]} ({tag}R{turn:03d})"
                    tally.asked.append(await _ask(visitor, question, ending, slides=habit != "reloaded"))
                    each(tally)

    results = await asyncio.gather(*(stay(number) for number in range(first, first + sessions)), return_exceptions=True)
    tally.errors += [f"{type(one).__name__}: {one}" for one in results if isinstance(one, BaseException)]
    return tally


def _stays(rounds: int, ending: str) -> list[list[tuple[int, str]]]:
    """The rounds of each tab, with their endings: the habit at every other one. Who leaves comes back in a new tab."""
    turns = [(turn, ending if turn % 2 else "finished") for turn in range(rounds)]
    if ending != "left":
        return [turns]
    return [turns[start : start + 2] for start in range(0, rounds, 2)]


@asynccontextmanager
async def _visitor(url: str, tag: str, tally: Tally) -> AsyncIterator[Visitor]:
    visitor = Visitor(url, tag)
    try:
        await visitor.open()
        await visitor.settled()
        await visitor.until(lambda: visitor.has("button", "Ask"))
        yield visitor
    finally:
        await visitor.close()
        tally.errors += [f"{tag}: {error}" for error in visitor.errors]
        tally.places += visitor.places
        tally.script_runs += visitor.runs
        tally.late += visitor.late


async def _ask(visitor: Visitor, question: str, ending: str, slides: bool) -> Asked:
    """`slides`: moves a slider afterwards; not where the page is loaded again, for a browser, and not a `Visitor`,
    keeps the values of sliders in its address.
    """
    before, start = visitor.run_id, time.perf_counter()
    await visitor.ask(question)
    await visitor.until(lambda: visitor.run_id not in ("", before))
    await visitor.settled()
    asked = Asked(visitor.tag, visitor.run_id, question, ending)
    if ending == "left":
        await visitor.close()
        return asked
    if ending == "stopped" and visitor.has("button", "Stop"):
        await visitor.press("Stop")
    if ending == "reloaded":
        await visitor.reload()
        await visitor.settled()
    await visitor.until(lambda: visitor.has_verdict or _is_over(visitor))
    seconds = time.perf_counter() - start
    await visitor.until(lambda: _is_over(visitor))
    over_at = time.time()
    await visitor.settled()
    page = visitor.text
    if ending == "finished" and slides:
        await visitor.slide("Bar for an answer", 0.6 + len(page) % 30 / 100)
        await visitor.settled()
    if ending == "finished":
        for name in (PAGES[int(visitor.tag[1:]) % len(PAGES)], "Ask"):
            await visitor.turn_to(name)
            await visitor.settled()
    return replace(asked, seconds=seconds, page=page, over_at=over_at)


def lateness(tally: Tally, home: Path) -> list[float]:
    """Seconds from the end of each run, which is when it is kept, until its page showed it."""
    history = open_history("disk", home)
    kept = ((asked.over_at, history.find(asked.run_id)) for asked in tally.asked)
    return [over_at - found.kept_at for over_at, found in kept if over_at and found]


def _reason(trace: Trace) -> str:
    """As the page says it beside the verdict; "" where nothing was decided."""
    decision = trace.decision
    return chip(decision, reason_of(decision, trace.settings.policy)).reason if decision else ""


def _is_over(visitor: Visitor) -> bool:
    return not (visitor.has("button", "Stop") or visitor.has("button", "Stopping…"))


def wait_until_idle(metrics_port: int, patience: float = 60.0) -> bool:
    """Whether nobody waits in line by then, as the metrics tell."""

    def is_idle() -> bool:
        with urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as reply:
            return "crag_runs_waiting 0.0" in reply.read().decode()

    return wait_until(is_idle, patience)


def problems(tally: Tally, home: Path) -> list[str]:
    """What is not as it should be: each run kept once, under its own question, and its page showed its own verdict."""
    history = open_history("disk", home)
    found = [*tally.errors]
    ids = [asked.run_id for asked in tally.asked]
    if len(set(ids)) != len(ids):
        found.append(f"expected {len(ids)} different runs, found {len(set(ids))}")
    for asked in tally.asked:
        trace = history.load(asked.run_id)
        if trace is None:
            found.append(f"{asked.tag}: run {asked.run_id} ({asked.ending}) is not kept")
            continue
        if trace.question != asked.question:
            found.append(f"{asked.tag}: run {asked.run_id} is of {trace.question!r}, expected {asked.question!r}")
        is_whole = trace.answer is not None and trace.failure is None
        if not is_whole and not (asked.ending == "stopped" and trace.steps[-1].state is StepState.STOPPED):
            found.append(f"{asked.tag}: run {asked.run_id} ({asked.ending}) ended with {trace.steps[-1:]}")
        reason = _reason(trace)
        if asked.page and reason not in asked.page:
            told = f"{asked.tag}: its page ({asked.ending}) does not show “{reason}”"
            found.append(f"{told}, but\n{asked.page[-1000:]}")
    if history.count() != len(ids):
        found.append(f"expected {len(ids)} runs in the history, found {history.count()}")
    return found
