"""The command `import-log`: the log of another RAG system as a set, and the stage at which its questions went wrong."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from crag_core.app import retrieval_logs
from crag_core.app.choice import Request, choose
from crag_core.app.cli.options import STREAM, add_choice, write_file
from crag_core.app.cli.tune import grade_questions
from crag_core.app.retrieval_logs import Imported, judged
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import read_input
from crag_core.base.errors import BadRecord, WrongUse
from crag_core.base.text.display import counted, shortened
from crag_core.evaluators.policies import known_card
from crag_core.experiments.labelled.questions import word
from crag_core.experiments.logs.findings import findings, lines, to_csv
from crag_core.experiments.logs.names import FIELDS, MEANINGS
from crag_core.experiments.logs.read import SHAPES, ReadLog, described, read_log
from crag_core.experiments.logs.rows import LARGEST_MB
from crag_core.pipeline.run import now
from crag_core.report.stages.page import render_stages

_SHOWN = 20


def add_commands(commands: Any) -> None:
    parser = commands.add_parser("import-log", help="take the log of another RAG system, and find its faults by stage")
    parser.add_argument("file", metavar="FILE", help=f'JSONL, JSON or CSV; "{STREAM}": standard input')
    parser.add_argument("--shape", choices=tuple(SHAPES), help="default: what the file looks like")
    parser.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN",
        help=f"read a field from this column, or path with dots ({', '.join(FIELDS)}); may be repeated",
    )  # fmt: skip
    parser.add_argument("--name", metavar="NAME", help="of the log and its set; default: that of the file")
    parser.add_argument("--preview", action="store_true", help="show what would be read, and keep nothing")
    parser.add_argument(
        "--stages", action="store_true", help="grade every record, and print the stage at which each went wrong"
    )
    parser.add_argument("--csv", type=Path, metavar="OUT", help="with --stages: write a row a record to this file")
    parser.add_argument("--html", type=Path, metavar="OUT", help="with --stages: write a page to send to somebody")
    add_choice(parser)
    parser.set_defaults(command=import_log)


def import_log(options: argparse.Namespace) -> int:
    for option in ("csv", "html"):
        if getattr(options, option) and not options.stages:
            raise WrongUse(f"--{option} goes with --stages.")
    content = read_input(options.file, "log", LARGEST_MB, "Name the file that your tool has exported.")
    read = read_log(content, options.shape or "", _mapping(options.map))
    print(f"{SHAPES[read.shape].title if read.shape else 'not read'}: {described(read)}")
    if options.preview:
        print(preview(read))
    told = [f"row {problem.row} refused: {problem.message}" for problem in read.problems[:_SHOWN]]
    if len(read.problems) > _SHOWN:
        told.append(f"and {len(read.problems) - _SHOWN:,} more rows refused")
    for line in (*told, *(f"note: {remark}" for remark in read.remarks)):
        print(line, file=sys.stderr)
    if read.failure:
        raise BadRecord(read.failure)
    if options.preview:
        return 0
    workbench = Workbench()
    found = retrieval_logs.keep(read, options.name or Path(options.file).stem.strip("-") or "log", workbench)
    print(_kept(found))
    if options.stages:
        _stages(found, options, workbench)
    return 0


def preview(read: ReadLog) -> str:
    rows = [f"  {MEANINGS[field]:<28}{source}" for field, source in read.mapping]
    for one in read.records[:3]:
        texts = [("    chunk", chunk.text) for chunk in one.contexts[:2]]
        texts += [("    answer", one.answer), *(("    right", text) for text in one.references[:1])]
        told = [(f"row {one.row}", one.question), *texts]
        rows += [f"{name}: {shortened(' '.join(text.split()), 90)}" for name, text in told if text]
    return "\n".join(rows)


def _kept(found: Imported) -> str:
    message = [f"kept as the log {found.log.name!r}: {retrieval_logs.summary(found)}"]
    if found.labelled:
        counts = ", ".join(f"{count} {word(label)}" for label, count in found.labelled.counts.items())
        message.append(f"labelled set {found.labelled.name!r}: {counts}")
        message.append(f"next: evaluate --set {found.labelled.name!r}, tune or compare with the same option")
    return "\n".join(message)


def _stages(found: Imported, options: argparse.Namespace, workbench: Workbench) -> None:
    choice = choose(workbench, Request.of(options))
    conditions = grade_questions(found.log.gradable, workbench.engine(choice, observed=False), workbench)
    told = findings(judged(found.log, conditions, workbench), choice.policy)
    count = counted(len(told.pairs), "record")
    print(f"\nstages of {count} under the policy {choice.policy.name}, evaluator {choice.evaluator}")
    print("\n".join(lines(told)))
    if not told.is_known:
        print("The log does not say what is right: by scores and support, records are doubtful at most.")
    if options.csv:
        write_file(options.csv, to_csv(told), "stages")
    if options.html:
        evaluator = known_card(choice.evaluator).title
        write_file(options.html, render_stages(found.log.name, told, evaluator, now()), "page")


def _mapping(pairs: list[str]) -> dict[str, str]:
    """ "FIELD=" reads the field from nothing."""
    found = {}
    for pair in pairs:
        field, sign, column = pair.partition("=")
        if not sign:
            raise WrongUse(f"Expected FIELD=COLUMN for --map, found {pair!r}.", hint=f"Fields: {', '.join(FIELDS)}.")
        found[field.strip()] = column.strip()
    return found
