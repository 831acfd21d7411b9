"""The command `compare`: a labelled set under several configurations, side by side."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from crag_core.app.choice import KEYS, Configuration, read_configurations
from crag_core.app.cli.options import add_set, count, interruptible, open_set, search_in, write_file
from crag_core.app.cli.tune import Progress
from crag_core.app.workbench import Workbench
from crag_core.base.errors import CragError
from crag_core.evaluators.policies import DEFAULT, PLAIN
from crag_core.experiments.batch import Keeper
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.run_configurations import Contender, run_set, warm_up
from crag_core.experiments.comparison.table import Table, to_csv, to_data, to_text
from crag_core.experiments.labelled.questions import LabelledQuestion, LabelledSet
from crag_core.pipeline.run import now
from crag_core.report.comparison import Comparison, described, render_comparison

_SEED = 4


def add_commands(commands: Any) -> None:
    parser = commands.add_parser("compare", help="run a labelled set under several configurations and measure them")
    add_set(parser)
    parser.add_argument(
        "--with", action="append", dest="configurations", metavar="CONFIGURATION",
        help=f"a policy or {PLAIN}, and key=value with commas between ({', '.join(KEYS)}); may be repeated, "
        f"the first is what the others are compared with; default: {PLAIN} and {DEFAULT}",
    )  # fmt: skip
    parser.add_argument("--limit", type=count, metavar="N", help="this many questions, drawn with a fixed seed")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every figure to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page to send to somebody")
    parser.set_defaults(command=compare)


def compare(options: argparse.Namespace) -> int:
    workbench = Workbench()
    wanted = read_configurations(options.configurations or [PLAIN, DEFAULT], workbench)  # before anything takes long
    labelled = open_set(options.set, workbench)
    collection = search_in("", labelled, workbench)
    wanted = tuple(replace(one, choice=replace(one.choice, collection=collection)) for one in wanted)
    questions = drawn(labelled.questions, options.limit)
    contenders = [
        Contender(workbench.engine(one.choice, observed=False, cached=False), outcome_log(one, workbench, questions))
        for one in wanted
    ]
    cancel = Event()
    with interruptible(cancel, "was run"):
        done = run_set(
            questions,
            contenders,
            time.perf_counter,
            recorded=workbench.recorded(questions),
            cancel=cancel,
            on_progress=Progress("run"),
            prepare=lambda: warm_up([one.engine for one in contenders], cancel),
        )
    table = Table(questions, {one.name: each.keeper.load() for one, each in zip(wanted, contenders, strict=True)})
    lines = {one.name: _described(one, workbench) for one in wanted}
    _write(options, table, Comparison(labelled.name, now(), lines, command_of(options)))
    print(heading(labelled, table))
    print(to_text(table))
    if done.failed:
        hint = "What was run is kept; the same command tries them again."
        raise CragError(f"{done.failed} of {done.total} questions could not be run, and are left out.", hint=hint)
    return 0


def drawn(questions: Sequence[LabelledQuestion], limit: int | None) -> tuple[LabelledQuestion, ...]:
    """At most `limit` of them, in their order; the same ones every time, and more with a higher limit."""
    if limit is None or limit >= len(questions):
        return tuple(questions)
    places = Random(_SEED).sample(range(len(questions)), len(questions))[:limit]
    return tuple(questions[place] for place in sorted(places))


def outcome_log(
    one: Configuration, workbench: Workbench, questions: Sequence[LabelledQuestion] = ()
) -> Keeper[Outcome]:
    """Where the outcomes of a configuration are kept, with the documents, or the logs, of now."""
    setup = workbench.setup(one.choice, workbench.corpus_of(questions, one.choice.collection))
    return workbench.experiments.outcomes(setup)


def _described(one: Configuration, workbench: Workbench) -> str:
    setup = workbench.setup(one.choice)
    return described(setup.settings, setup.web)


def heading(labelled: LabelledSet, table: Table) -> str:
    gains = f"; the second lines tell what is certainly gained over {table.names[0]}" if len(table.names) > 1 else ""
    return f"{labelled.name}: {len(table.questions)} questions, intervals of 95 %{gains}\n"


def command_of(options: argparse.Namespace) -> str:
    """The command that makes the page again; files by name only, since folders are private."""
    wanted = [("--with", one) for one in options.configurations or (PLAIN, DEFAULT)]
    more = [("--limit", str(options.limit))] if options.limit else []
    page = [("--html", options.html.name)] if options.html else []
    pairs = (("--set", Path(options.set).name or options.set), *wanted, *more, *page)
    return " ".join(("python -m crag_core compare", *(f"{key} {shlex.quote(value)}" for key, value in pairs)))


def _write(options: argparse.Namespace, table: Table, about: Comparison) -> None:
    wanted: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (options.csv, lambda: to_csv(table)),
        (options.json, lambda: json.dumps(to_data(table), indent=1) + "\n"),
        (options.html, lambda: render_comparison(table, about)),
    )
    for path, text in wanted:
        if path is not None:
            write_file(path, text(), "figures")
