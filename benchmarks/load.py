"""Many people at one process of the application: time until the verdict, errors, memory, processor, the line.

Starts the application in a home of its own with the sample documents, and opens so many sessions in its own WebSocket
protocol. Each asks its own questions one after the other without a pause for thought, moves a slider, and looks at the
other pages. Nothing that comes may hold another's question; every run must be kept once, with its own verdict on its
page. Where a model is wanted, a stand-in for Ollama writes each reply in so many seconds, for every other visitor.

Run: python benchmarks/load.py                              (25 sessions, 2 rounds: a minute)
     python benchmarks/load.py --at-once 1 2 4 8            (which CRAG_RUNS_AT_ONCE suits this machine)
     python benchmarks/load.py --rounds 60                  (1,500 runs, as in an hour of one question a minute)
     python benchmarks/load.py --mixed --model 2            (with stops, reloads, tabs that close, a slow model)
     python benchmarks/load.py --sessions 30 --tabs 4 --minutes 10   (with tabs of Chromium; Ollama is away)
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.browser import crowd, tabs
from tests.browser.conftest import ROOT, find_port, serve
from tests.browser.crowd import Size, Tally, size_of
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

REPLY = "It leaves at nine in the morning, as the timetable says [1]."
EVERY = 100
LATE = 3.0
"""Seconds after its end within which a run must be shown."""


@contextmanager
def writing(seconds: float) -> Iterator[dict[str, str]]:
    """A model that takes so long for each reply, as settings; 0: none is there."""
    if not seconds:
        yield {}
        return
    pieces = -(-len(REPLY) // 4)
    with OllamaServer(ScriptedModel(lambda messages: REPLY, delay_s=seconds / pieces)) as server:
        yield {"OLLAMA_HOST": server.url, "CRAG_MODEL": f"ollama/{MODEL}"}


def told(label: str, tally: Tally, late: list[float], clock: float, before: Size, after: Size) -> str:
    seconds = [asked.seconds for asked in tally.asked if asked.seconds is not None]
    cuts = quantiles(seconds, n=20)
    return (
        f"| {label} | {len(tally.asked)} | {len(tally.asked) / clock:.2f} | {median(seconds):.1f} / {cuts[-1]:.1f} "
        f"| {median(late):.1f} / {quantiles(late, n=20)[-1]:.1f} / {max(late):.1f} | {max(tally.places, default=0)} "
        f"| {(after.processor - before.processor) / len(tally.asked):.2f} | {after.now:.0f} / {after.most:.0f} "
        f"| {after.threads} / {after.files} |"
    )


def run(options: argparse.Namespace, at_once: int) -> list[str]:
    """One line of the table printed; what was wrong is given back."""
    sizes: list[str] = []
    port = find_port()
    with tempfile.TemporaryDirectory() as folder, writing(options.model) as settings:
        home = Path(folder)
        settings |= {"CRAG_RUNS_AT_ONCE": str(at_once), "CRAG_METRICS_PORT": str(port)}
        with serve(home, ROOT / "app.py", **settings) as url:
            process = crowd.process_at(url)
            warm = asyncio.run(crowd.visit(url, 1, 1))  # the documents are in, and the models loaded
            before, begun = size_of(process), time.perf_counter()

            def each(tally: Tally) -> None:
                if len(tally.asked) % EVERY == 0:
                    sizes.append(curve(len(tally.asked), time.perf_counter() - begun, process))
                    print(sizes[-1], file=sys.stderr, flush=True)

            tally = Tally()

            async def everybody() -> None:
                rounds, until = options.rounds, math.inf
                if options.minutes:
                    rounds, until = 100_000, time.monotonic() + 60 * options.minutes
                visitors = crowd.visit(
                    url, options.sessions, rounds, is_mixed=options.mixed, has_model=bool(options.model), each=each,
                    first=1, tally=tally, until=until,
                )  # fmt: skip
                await asyncio.gather(visitors, tabs.visit(url, options.tabs, crowd.sample_questions(), tally, until))

            asyncio.run(everybody())
            clock = time.perf_counter() - begun
            is_idle = crowd.wait_until_idle(port)
            late = crowd.lateness(tally, home)
            print(told(str(at_once), tally, late, clock, before, size_of(process)), flush=True)
        frozen = [f"a run was shown {seconds:.1f} s after its end" for seconds in late if seconds > LATE]
        missed = f"{tally.late['ask']} ticks were missed, {tally.late['redraw']} of them lost"
        print(f"{missed}; {len(frozen)} of {len(late)} ends late", file=sys.stderr)
        tally.asked += warm.asked
        wrong = crowd.problems(tally, home) + warm.errors + frozen
    return wrong if is_idle else [*wrong, "somebody still waits in line"]


def curve(count: int, seconds: float, process: psutil.Process) -> str:
    size = size_of(process)
    return (
        f"{count} runs, {seconds:.0f} s: {size.now:.0f} MB (most {size.most:.0f}), {size.threads} threads, "
        f"{size.files} files"
    )


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--sessions", type=int, default=25)
    reading.add_argument("--rounds", type=int, default=2)
    reading.add_argument("--minutes", type=float, default=0.0, help="in place of rounds")
    reading.add_argument("--tabs", type=int, default=0, help="so many of a real browser, with --minutes")
    reading.add_argument("--at-once", type=int, nargs="+", default=[2], help="CRAG_RUNS_AT_ONCE, one or several")
    reading.add_argument("--model", type=float, default=0.0, help="seconds of a stand-in model for a reply; 0: none")
    reading.add_argument("--mixed", action="store_true", help="some stop, some reload, some leave for good")
    options = reading.parse_args()
    print(f"{options.sessions} sessions, {options.rounds} rounds; load of the machine {psutil.getloadavg()[0]:.1f}\n")
    print(
        "| at once | runs | runs a second | s until the verdict p50 / p95 | s from end to page p50 / p95 / most "
        "| longest line | core-seconds a run | MB now / most | threads / files |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    wrong = [f"at once {at_once}: {problem}" for at_once in options.at_once for problem in run(options, at_once)]
    print(f"\n{len(wrong)} errors")
    print("\n".join(problem[:500] for problem in wrong[:20]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
