"""Decisions over HTTP against the same calls in one process: requests a second, and milliseconds until the decision.

Starts `crag-explorer serve` and sends it /route with so many clients at once, each one after the other on a connection
of its own; then makes the same calls to the service's own method in this process, one after the other. Every question
is another one, so that no grade comes from the cache. Ratios are against the calls in this process.

Run: python benchmarks/service.py [--requests 300] [--contexts 6]     (a minute)
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from threading import Event
from typing import Any

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.tables import Cell, Table
from crag_core.app.choice import Request, choose
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA
from crag_core.service import schemas
from crag_core.service.service import Service
from tests.service.parts import Served, serve

CLIENTS = (1, 10, 100)


def contexts(count: int) -> list[dict[str, Any]]:
    """Paragraphs of the sample documents, of forty words and more."""
    texts = (path.read_text("utf-8") for path in sorted((DATA / "sample").glob("*.md")))
    found = (part.strip() for text in texts for part in text.split("\n\n") if len(part.split()) >= 40)
    return [{"id": f"{place}", "text": text} for place, text in enumerate(itertools.islice(found, count))]


def questions() -> Iterator[str]:
    return (f"What does rule {number} say about the ferry?" for number in itertools.count())


def in_process(count: int, given: list[dict[str, Any]], asked: Iterator[str]) -> tuple[list[float], float]:
    """Seconds of each call, and of all."""
    with tempfile.TemporaryDirectory() as folder:
        workbench = Workbench(Config(home=Path(folder), ollama_host="127.0.0.1:9"))
        service = Service(workbench, choose(workbench, Request()))
        call(service, given, next(asked))
        begun = time.perf_counter()
        seconds = [call(service, given, next(asked)) for _ in range(count)]
        return seconds, time.perf_counter() - begun


def call(service: Service, given: list[dict[str, Any]], question: str) -> float:
    begun = time.perf_counter()
    asked = schemas.RouteRequest.model_validate({"question": question, "contexts": given})
    service.route(asked, Event()).model_dump_json()
    return time.perf_counter() - begun


async def over_http(
    served: Served, clients: int, count: int, given: list[dict[str, Any]], asked: Iterator[str]
) -> tuple[list[float], float]:
    left, seconds = iter(range(count)), list[float]()

    async def one() -> None:
        async with httpx.AsyncClient(
            base_url=served.url, headers=served.headers, timeout=120, trust_env=False
        ) as client:
            for _ in left:
                begun = time.perf_counter()
                reply = await client.post("/route", json={"question": next(asked), "contexts": given})
                reply.raise_for_status()
                seconds.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return seconds, time.perf_counter() - begun


def row(seconds: list[float], clock: float, base: dict[str, Cell] | None, memory: float | None) -> dict[str, Cell]:
    found: dict[str, Cell] = {
        "requests a second": len(seconds) / clock,
        "p50 ms": 1000 * median(seconds),
        "p95 ms": 1000 * quantiles(seconds, n=20)[-1],
    }
    for name in ("requests a second", "p50 ms", "p95 ms"):
        now, then = found[name], (base or found)[name]
        assert isinstance(now, float) and isinstance(then, float)
        found[f"{name}, ratio"] = now / then
    return found | {"MB": memory}


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--requests", type=int, default=300, help="of each line")
    reading.add_argument("--contexts", type=int, default=6, help="chunks of each request")
    options = reading.parse_args()
    given, asked = contexts(options.contexts), questions()
    base = row(*in_process(options.requests, given, asked), None, None)
    rows = {"in this process, one after the other": base}
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "home", CRAG_LOG="off") as served:
        process = psutil.Process(served.process.pid)
        asyncio.run(over_http(served, 1, 5, given, asked))
        for clients in CLIENTS:
            seconds, clock = asyncio.run(over_http(served, clients, options.requests, given, asked))
            rows[f"over HTTP, {clients} at once"] = row(seconds, clock, base, process.memory_info().rss / 2**20)
    print(f"{len(given)} contexts a request, {options.requests} requests a line; load {psutil.getloadavg()[0]:.1f}\n")
    print(Table("/route", rows))


if __name__ == "__main__":
    main()
