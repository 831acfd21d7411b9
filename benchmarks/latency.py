"""Every figure of speed that the design asks for, with its target, on this machine.

Run: python benchmarks/latency.py [--only deciding,grading,paths,calls,slider,start,tests] (needs requirements-dev.txt
and a Chromium for slider and start; about five minutes)

A machine that is busy with something else, or slower than two cores, misses targets: nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cost import make_passages
from benchmarks.deciding import milliseconds, recorded, seconds_of_surface
from benchmarks.tables import Table
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.base.types.decisions import Action
from crag_core.evaluators.policies import DEFAULT, default_evaluator, find_policy, suit
from crag_core.observability.metrics import own_retrieval_ms
from crag_core.pipeline.run import WebMode
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import measure
from crag_core.trace.trace import Trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
TIMES = 9
SOURDOUGH = {
    "url": "https://example.org/bread",
    "title": "Feeding a sourdough starter",
    "text": "A sourdough starter kept at room temperature should be fed once a day; in the fridge, once a week.",
}
"""What the sample documents say nothing of."""


@dataclass(frozen=True)
class Figure:
    """`target` None: only told. All in the unit that `unit` names."""

    name: str
    measured: float
    target: float | None
    unit: str
    told: str = ""


def deciding() -> Iterator[Figure]:
    trace = recorded(20)
    policy = trace.settings.policy.with_thresholds(0.3, 0.6, 0.4)
    yield Figure("reroute a run of 20 passages", milliseconds(lambda: reroute(trace, policy)), 1, "ms")
    for name in (DEFAULT, "agentic"):
        yield Figure(f"500 runs at 21 x 21 thresholds ({name})", seconds_of_surface(name), 0.5, "s")


def grading() -> Iterator[Figure]:
    """Twenty passages of 200 tokens, by the evaluator that ships, as in a run (cosines are recorded)."""
    with _indexed() as workbench:
        evaluator = workbench.evaluator("cross-encoder", None, cached=False)
        tokenize = workbench.find_embedder(workbench.embedder.name).tokenize
        passages = tuple(replace(one, scores=(("cosine", 0.5),)) for one in make_passages(tokenize))
        taken = []
        for turn in range(TIMES + 1):
            begun = time.perf_counter()
            evaluator.grade(f"What does rule {turn} say about the ferry?", passages, Event())
            taken.append(1000 * (time.perf_counter() - begun))
        yield Figure("grade 20 passages of 200 tokens", median(taken[1:]), 300, "ms", "trained evaluator")


def paths() -> Iterator[Figure]:
    """All sample questions, no grade from the cache, no language model, web results of forty words."""
    with _indexed() as workbench:
        for name in ("heuristic", DEFAULT):
            traces = _corrected(workbench, name)
            runs = [measure(trace, 0.0) for trace in traces]
            refined = [1000 * one.seconds for one in traces if one.decision and one.decision.action is Action.CORRECT]
            fast = [run.decided_ms for run in runs if run.action is Action.CORRECT]
            slow = [own_retrieval_ms(run) for run in runs if run.action not in (None, Action.CORRECT)]
            rows: tuple[tuple[str, list[object], float | None], ...] = (
                ("fast path, to the decision CORRECT", fast, 70.0),
                ("CORRECT, to refined evidence", refined, None),
                ("corrected path, to the evidence", [one for one in slow if one is not None], 450.0),
            )
            for title, found, target in rows:
                if found:
                    p50, p95 = np.quantile(found, (0.5, 0.95)).tolist()
                    yield Figure(f"{title}, p50 ({name})", p50, target, "ms", f"p95 {p95:.0f} ms")


def calls() -> Iterator[Figure]:
    """Model calls of a question on each route, answer included, with a model that writes it."""
    from tests.stand_ins.engines import ScriptedModel
    from tests.stand_ins.ollama_server import OllamaServer

    # One reply for all: rewritten, it finds what the web says of sourdough.
    model = ScriptedModel(lambda _: "Feed a sourdough starter once a day [1].")
    with OllamaServer(model) as server, _indexed(ollama_host=server.url) as workbench:
        policy = find_policy(DEFAULT, workbench.config)
        card = default_evaluator(policy, "extractive")
        for action, target, question, chosen in (
            (Action.CORRECT, 1, _questions()[0], policy.with_thresholds(0.0, 0.0)),
            (Action.AMBIGUOUS, 2, _questions()[0], policy.with_thresholds(0.0, 1.0)),
            (Action.INCORRECT, 2, "How often should I feed a sourdough starter?", policy),
        ):
            choice = Choice(chosen, card, f"ollama/{server.models[0]}", WebMode.AUTO)
            trace = workbench.engine(choice, observed=False).run(question)
            taken = trace.decision.action if trace.decision else None
            if taken is not action:
                raise RuntimeError(f"expected the route {action}, found {taken}: {trace.failure}")
            yield Figure(f"model calls of a question, {action}", trace.usage.calls, target, "calls")


def slider() -> Iterator[Figure]:
    from benchmarks.slider import measure_ours
    from tests.browser.conftest import open_browser

    with open_browser() as browser, tempfile.TemporaryDirectory() as folder:
        for name, taken in measure_ours(browser, Path(folder)).items():
            yield Figure(f"{name} to changed verdict", median(taken), 150, "ms", f"largest {max(taken):.0f} ms")


def start() -> Iterator[Figure]:
    """A home that is set up already: from the command to the answer of the server, and to the first page drawn."""
    from tests.browser.conftest import open_browser, serve

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as usual, what was compiled once is kept
    with open_browser() as browser, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sample-indexed").touch()
        served, drawn = [], []
        for _ in range(3):
            begun = time.perf_counter()
            with serve(home) as url:
                served.append(time.perf_counter() - begun)
                page = browser.new_page()
                page.goto(url)
                page.get_by_role("textbox", name="Your question").wait_for()
                drawn.append(time.perf_counter() - begun)
                page.close()
        yield Figure("command to first page", median(drawn), 3, "s", f"server answers after {median(served):.1f} s")
        yield Figure("command to the answer to a first question", median(map(_first_answer, [browser] * 3)), 8, "s")
        imported = [
            _seconds([sys.executable, "-c", "import crag_core.app.workbench, ui.shell.sidebar"]) for _ in range(3)
        ]
        yield Figure("import of the application", median(imported), None, "s", "interpreter included")


def _first_answer(browser: Browser) -> float:
    """Seconds, in a new home, about the samples; asked as soon as there is a field for it."""
    from tests.browser.conftest import PATIENCE, ask, serve

    with tempfile.TemporaryDirectory() as folder:
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.set_default_timeout(PATIENCE)
        begun = time.perf_counter()
        with serve(Path(folder)) as url:
            page.goto(url)
            ask(page, "How many days of paid leave do full-time staff receive?")
            page.get_by_role("heading", name="Answered").wait_for()
            return time.perf_counter() - begun


def tests() -> Iterator[Figure]:
    """The tests of the pure core and of the order of steps that load no model, in two processes."""
    folders = ["tests/decision", "tests/trace", "tests/pipeline", "tests/experiments"]
    how = ["-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "worksteal", "-m", "not embedding and not model"]
    taken = _seconds([sys.executable, "-m", "pytest", *how, *folders])
    yield Figure("unit tests offline", taken, 60, "s", " ".join(folders))


PARTS: dict[str, Callable[[], Iterator[Figure]]] = {
    "deciding": deciding, "grading": grading, "paths": paths, "calls": calls, "slider": slider, "start": start,
    "tests": tests,
}  # fmt: skip


@contextmanager
def _indexed(**settings: object) -> Iterator[Workbench]:
    """The sample documents in a fresh home, and an offline web with results as long as those of search engines."""
    documents = sorted((DATA / "sample").iterdir())
    with tempfile.TemporaryDirectory() as home:
        web = "\n".join(json.dumps(page) for page in [SOURDOUGH, *_snippets(documents)])
        (Path(home) / "web.jsonl").write_text(web, "utf-8")
        plain = {"cache": "off", "history": "off", "audit": "off", "ollama_host": "127.0.0.1:9"}
        plain |= {"web_providers": "snapshot", "web_snapshot": home}
        workbench = Workbench(Config(**{"home": Path(home), **plain, **settings}))  # type: ignore[arg-type]
        workbench.store.ingest([(path.name, path) for path in documents])
        yield workbench


def _snippets(documents: list[Path]) -> Iterator[dict[str, str]]:
    """Forty words each, from those documents that are plain text."""
    for path in documents:
        if path.suffix in {".md", ".txt"}:
            words = path.read_text("utf-8").split()
            for start in range(0, len(words), 40):
                url = f"https://example.org/{path.name}?{start}"
                yield {"url": url, "title": path.stem, "text": " ".join(words[start : start + 40])}


def _corrected(workbench: Workbench, name: str) -> list[Trace]:
    policy = find_policy(name, workbench.config)
    evaluator = default_evaluator(policy, "extractive")
    choice = Choice(suit(policy, evaluator), evaluator, web=WebMode.AUTO)
    pipeline = workbench.engine(choice, observed=False)
    questions = _questions()
    pipeline.correct(pipeline.begin(questions[0]))  # loads the models
    return [pipeline.correct(pipeline.begin(question)) for question in questions]


def _questions() -> list[str]:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def _seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"expected {' '.join(command)} to succeed, found:\n{(done.stdout + done.stderr)[-2000:]}")
    return time.perf_counter() - begun


def _row(figure: Figure) -> dict[str, str]:
    digits = max(0, 2 - math.floor(math.log10(figure.measured))) if figure.measured > 0 else 0
    is_met = figure.target is None or figure.measured <= figure.target
    return {
        "measured": f"{figure.measured:.{digits}f} {figure.unit}",
        "target": "–" if figure.target is None else f"{figure.target:g} {figure.unit}",
        "": "" if figure.target is None else "met" if is_met else "missed",
        "of": figure.told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    chosen = parser.parse_args().only.split(",")
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; known: {', '.join(PARTS)}")
    found = [figure for name in chosen for figure in PARTS[name]()]
    print(Table("figure", {figure.name: _row(figure) for figure in found}))


if __name__ == "__main__":
    main()
