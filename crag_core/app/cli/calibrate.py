"""The command `calibrate`: an evaluator of somebody else gets thresholds of its own."""

from __future__ import annotations

import argparse
import sys
from threading import Event

from crag_core.app.calibration import SAMPLE, calibrate
from crag_core.app.cli.options import interruptible, open_set
from crag_core.app.cli.tune import Progress
from crag_core.app.workbench import Workbench
from crag_core.base.text.display import counted, readable
from crag_core.evaluators.named.names import SHOWN_FORMS, parse_name
from crag_core.experiments.evaluators import KeptEvaluator


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "calibrate", help="grade a labelled set once with a model from Hugging Face, and choose thresholds for it"
    )
    parser.add_argument("evaluator", metavar="hf:NAME", help=SHOWN_FORMS)
    parser.add_argument(
        "--set", metavar="SET",
        help=f"a kept set by name, or a CSV or JSONL file; default: {SAMPLE}, the "
        "questions about the sample documents, for which nothing of yours is indexed or changed",
    )  # fmt: skip
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    name = str(parse_name(options.evaluator))
    workbench = Workbench()
    labelled = open_set(options.set, workbench) if options.set not in (None, SAMPLE) else None
    cancel = Event()
    with interruptible(cancel, "is graded"):
        kept = calibrate(
            workbench, name, labelled, cancel=cancel, on_progress=Progress("graded"),
            tell=lambda line: print(line, file=sys.stderr),
        )  # fmt: skip
    print(told(kept))
    return 0


def told(kept: KeptEvaluator) -> str:
    lower, upper = readable(kept.lower, kept.upper)
    return "\n".join(
        [
            f"{kept.name}: revision {kept.revision[:12]}",
            f"calibrated on {counted(kept.curve.questions, 'question')} of {kept.labelled}: AUROC {kept.apart}, "
            f"{kept.seconds * 1000:.0f} ms a chunk",
            f"lower {lower}, upper {upper} ({kept.reason})",
            *([kept.remark] if kept.remark else []),
            f"use it: crag-explorer ask --evaluator '{kept.name}' …, or choose it in the sidebar",
        ]
    )
