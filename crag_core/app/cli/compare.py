"""The command `compare`: a labelled set under several configurations, side by side."""

from __future__ import annotations

import argparse
import json
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from crag_core.app.choice import KEYS, Configuration, read_configurations
from crag_core.app.cli.options import Opened, add_set, count, interruptible, open_set, search_in, write_file
from crag_core.app.cli.tune import Progress
from crag_core.app.workbench import Workbench
from crag_core.base.errors import CragError, UnknownName
from crag_core.evaluators.policies import DEFAULT, PLAIN
from crag_core.experiments.batch import Controls, Keeper
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.run_configurations import Contender, WarmUp, run_set
from crag_core.experiments.comparison.setups import Earlier, earlier_results, listed
from crag_core.experiments.comparison.table import Table, to_csv, to_data, to_text
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.pipeline.run import WebMode, now
from crag_core.report.comparison.page import Comparison, described, render_comparison

_SEED = 4


def add_commands(commands: Any) -> None:
    """The subcommand, with its options."""
    parser = commands.add_parser("compare", help="run a labelled set under several configurations and measure them")
    add_set(parser)
    parser.add_argument(
        "--with", action="append", dest="configurations", metavar="CONFIGURATION",
        help=f"a policy or {PLAIN}, and key=value with commas between ({', '.join(KEYS)}); may be repeated, "
        f"the first is what the others are compared with; default: {PLAIN} and {DEFAULT}",
    )  # fmt: skip
    parser.add_argument("--limit", type=count, metavar="N", help="this many questions, drawn with a fixed seed")
    parser.add_argument(
        "--earlier", action="store_true",
        help="run nothing, list what is kept of this set from before something was changed",
    )  # fmt: skip
    parser.add_argument(
        "--beside", action="append", default=[], metavar="ID",
        help="put an earlier result, as --earlier lists it, beside the configurations; may be repeated",
    )  # fmt: skip
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every figure to this file")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page to send to somebody")
    parser.set_defaults(command=compare)


def compare(options: argparse.Namespace) -> int:
    workbench = Workbench()
    wanted = read_configurations(options.configurations or [PLAIN, DEFAULT], workbench)  # before anything takes long
    opened = open_set(options.set, workbench)
    collection = search_in("", opened.labelled, opened.workbench)
    wanted = tuple(replace(one, choice=replace(one.choice, collection=collection)) for one in wanted)
    questions = drawn(opened.labelled.questions, options.limit)
    earlier = find_earlier(questions, wanted, opened.workbench) if options.earlier or options.beside else ()
    if options.earlier:
        print(overview(earlier, len(questions)))
        return 0
    beside = pick(options.beside, earlier)
    controls, warm_up = Controls(), WarmUp()
    contenders = [
        Contender(
            opened.workbench.engine(one.choice, observed=False, cached=False),
            outcome_log(one, opened.workbench, questions),
        )
        for one in wanted
    ]
    with interruptible(controls, "was run"):
        done = run_set(
            questions,
            contenders,
            time.perf_counter,
            judged=opened.judged,
            recorded=opened.workbench.recorded(questions),
            controls=controls,
            on_progress=Progress("run"),
            prepare=lambda: warm_up([one.engine for one in contenders], controls.cancel),
        )
    experiments = opened.workbench.experiments
    results = {one.name: contender.keeper.load() for one, contender in zip(wanted, contenders, strict=True)}
    table = Table(questions, results | {one.name: experiments.outcomes(one.kept).load() for one in beside})
    if beside and not table.questions:
        raise CragError("No question was run under all of them.", hint="Put fewer earlier results beside each other.")
    _write(options, table, _describe(options, opened, wanted, beside), beside)
    print(heading(opened, table))
    for one in beside:
        print(one.remark)
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
    return workbench.experiments.outcomes(replace(setup, name=one.name, created=now()))


def heading(opened: Opened, table: Table) -> str:
    gains = f"; the second lines tell what is certainly gained over {table.names[0]}" if len(table.names) > 1 else ""
    return f"{opened.labelled.name}: {len(table.questions)} questions, intervals of 95 %{gains}\n"


def command_of(options: argparse.Namespace) -> str:
    """The command that makes the page again; files by name only, since folders are private."""
    wanted = [("--with", one) for one in options.configurations or (PLAIN, DEFAULT)]
    more = [("--limit", str(options.limit))] if options.limit else []
    page = [("--html", options.html.name)] if options.html else []
    then = [("--beside", one) for one in options.beside]
    pairs = (("--set", Path(options.set).name or options.set), *wanted, *then, *more, *page)
    return " ".join(("python -m crag_core compare", *(f"{key} {shlex.quote(value)}" for key, value in pairs)))


def _describe(
    options: argparse.Namespace, opened: Opened, wanted: Sequence[Configuration], beside: Sequence[Earlier]
) -> Comparison:
    here = opened.workbench
    lines = {one.name: described(here.engine(one.choice, observed=False).settings, _asked(one, here)) for one in wanted}
    lines |= {one.name: described(one.kept.setup.settings, one.kept.setup.web) for one in beside}
    remarks = [one.remark for one in beside]
    return Comparison(opened.labelled.name, now(), lines, command_of(options), remarks)


def _asked(one: Configuration, workbench: Workbench) -> str:
    """Who is asked for pages of the web."""
    return "" if one.choice.web is WebMode.OFF else workbench.searcher.identity


def _write(options: argparse.Namespace, table: Table, about: Comparison, beside: Sequence[Earlier]) -> None:
    data = to_data(table) | ({"earlier": listed(beside)} if beside else {})
    wanted: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (options.csv, lambda: to_csv(table)),
        (options.json, lambda: json.dumps(data, indent=1) + "\n"),
        (options.html, lambda: render_comparison(table, about)),
    )
    for path, text in wanted:
        if path is not None:
            write_file(path, text(), "figures")


# --- earlier results ------------------------------------------------------------------------------------------------


def find_earlier(
    questions: Sequence[LabelledQuestion], wanted: Sequence[Configuration], workbench: Workbench
) -> tuple[Earlier, ...]:
    """Kept results that hold some of `questions` and are none of `wanted`, the newest first."""
    experiments = workbench.experiments
    present = {
        one.name: workbench.setup(one.choice, workbench.corpus_of(questions, one.choice.collection)) for one in wanted
    }
    keys = {asked.key for asked in questions}
    return earlier_results(
        experiments.setups(), keys, present, datetime.now(), lambda one: experiments.outcomes(one).load().keys()
    )


def pick(ids: Sequence[str], found: Sequence[Earlier]) -> tuple[Earlier, ...]:
    """Those with these ids, each once; `UnknownName` lists what there is."""
    return tuple(dict.fromkeys(_pick(id_, found) for id_ in ids))


def overview(found: Sequence[Earlier], total: int) -> str:
    """A line for each, with its id; `total` questions are in the set."""
    if not found:
        return "no earlier results"
    rows = [("id", "configuration and day", "questions", "unlike")]
    rows += [
        (one.kept.id, one.name, f"{len(one.asked)} of {total}", f"{one.like}: {', '.join(one.differs)}")
        for one in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _pick(wanted: str, found: Sequence[Earlier]) -> Earlier:
    near = [one for one in found if wanted and one.kept.fingerprint.startswith(wanted.lower())]
    if len(near) != 1:
        known = "".join(f"\n  {one.kept.id}  {one.name}" for one in found) or " none of this set."
        raise UnknownName(f"Unknown earlier result {wanted!r}.", hint=f"Known:{known}")
    return near[0]
