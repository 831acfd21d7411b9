"""A labelled set under configurations: what was run stays in a home, and the same command goes on from there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from benchmarks.evaluator import tell
from benchmarks.held_out import HeldOut
from benchmarks.public_sets import EvaluationSet, index, read_set
from crag_core.app.choice import Configuration
from crag_core.app.cli.compare import drawn, outcome_log
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.experiments.batch import SetProgress
from crag_core.experiments.comparison.run_configurations import Contender, run_set, warm_up
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

HOME = Path(__file__).parent.parent / "build" / "quality-home"
SMALL = "small"
"""The small real model of the tests in place of a model's name: fluent, without judgement, the same everywhere."""

_REPLY = 120  # tokens of a reply that asks for no limit; the small model goes on and on


@dataclass(frozen=True)
class Opened:
    """A set, and the workbench with the documents that it is about."""

    found: EvaluationSet
    workbench: Workbench

    @property
    def labelled(self) -> LabelledSet:
        return self.found.labelled


def open_held_out(held: HeldOut, home: Path, ollama: str = "") -> Opened:
    """The set with its documents indexed and its offline web, where it has one."""
    settings = Config(home=home, ollama_host=ollama, calls_at_once=1, model_timeout=600.0)
    if held.web:
        settings = Config(**{**vars(settings), "web_providers": "snapshot", "web_snapshot": str(held.web)})
    found = read_set(held.folder)
    return Opened(found, index(found, Workbench(settings)))


@contextmanager
def serving(model: str) -> Iterator[tuple[str, str]]:
    """A model as `Choice` names it, and where Ollama answers for it ("": as usual)."""
    if model != SMALL:
        yield model or EXTRACTIVE, ""
        return
    from tests.stand_ins.ollama_server import MODEL, OllamaServer
    from tests.stand_ins.real_model import RealModel

    with OllamaServer(RealModel(max_tokens=_REPLY)) as server:
        yield f"ollama/{MODEL}", server.url


def run_configurations(opened: Opened, wanted: Sequence[Configuration], limit: int | None) -> Table:
    """The first of `wanted` is what the others are compared with."""
    workbench = opened.workbench
    contenders = [
        Contender(workbench.engine(one.choice, observed=False, cached=False), outcome_log(one, workbench))
        for one in wanted
    ]
    return run_contenders(opened, [one.name for one in wanted], contenders, limit)


def run_contenders(opened: Opened, names: Sequence[str], contenders: Sequence[Contender], limit: int | None) -> Table:
    """`names` are those of the contenders, in their order."""
    questions = drawn(opened.labelled.questions, limit)

    def progress(now: SetProgress) -> None:
        if now.left is not None and now.done % 20 == 0:
            tell(f"{opened.labelled.name}: {now.done} of {now.total}, about {now.left / 60:.0f} minutes left")

    def prepare() -> None:
        warm_up([one.engine for one in contenders], Event())

    run_set(questions, contenders, time.perf_counter, judged=opened.found.judged, on_progress=progress, prepare=prepare)
    return Table(questions, {name: one.keeper.load() for name, one in zip(names, contenders, strict=True)})
