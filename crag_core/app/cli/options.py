"""Options that several commands share, and the labelled sets and files that they name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from crag_core.app.workbench import Workbench
from crag_core.base.data_files import read_input
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.text.display import counted
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.cascade import SHOWN_FORM
from crag_core.evaluators.policies import DEFAULT
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import Read, read_questions
from crag_core.experiments.logs.rows import LARGEST_MB
from crag_core.experiments.statistics.small_sets import few_tell

STREAM = "-"
"""In place of a file's name: standard input, or output."""


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", required=True, metavar="SET",
        help="a kept set by name, or a CSV or JSONL file",
    )  # fmt: skip


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Policy, thresholds, evaluator, model, and what is searched."""
    parser.add_argument("--policy", help=f"the name of a file in data/policies; default: {DEFAULT}")
    parser.add_argument(
        "--preset", metavar="NAME",
        help="thresholds of the policy's file, such as conservative, or tuned ones by name or path",
    )  # fmt: skip
    parser.add_argument(
        "--evaluator",
        help=f"{', '.join(EVALUATORS)}, a calibrated hf:NAME, or two: {SHOWN_FORM}; default: what fits the policy",
    )
    parser.add_argument(
        "--model", help='"extractive", "ollama/NAME" or "openai/NAME"; default: CRAG_MODEL or extractive'
    )
    add_thresholds(parser)
    parser.add_argument(
        "--top-k", type=int, choices=range(1, 21), metavar="1..20", help="chunks to retrieve; default: CRAG_TOP_K"
    )
    parser.add_argument("--collection", default="", metavar="NAME", help="search only there; default: everywhere")


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lower", type=share, metavar="0..1", help="lower threshold; default: that of the policy")
    parser.add_argument("--upper", type=share, metavar="0..1", help="upper threshold; default: that of the policy")
    parser.add_argument(
        "--cutoff", type=share, metavar="0..1", help="only sentences above it are kept; default: that of the policy"
    )
    parser.add_argument(
        "--sentences", type=limit, metavar="N", help='sentences kept at most, or "all"; default: that of the policy'
    )


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"expected 0 to 1, found {text}")
    return value


def confidence(text: str) -> float:
    if not 0.0 < (value := share(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"expected more than 0 and less than 1, found {text}")
    return value


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text!r}")
    return int(text)


def limit(text: str) -> int:
    """0: no limit."""
    return 0 if text == "all" else count(text)


# --- labelled sets ----------------------------------------------------------------------------------------------------


def open_set(named: str, workbench: Workbench) -> LabelledSet:
    """`named` is a kept set, or a CSV or JSONL file.

    Raises `BadRecord` with every row that is wrong, `UnknownName` where there is no such set.
    """
    path, known = Path(named), workbench.experiments.set_names()
    if path.suffix.lower() in (".csv", ".jsonl", ".json", ".tsv", ".txt") or (named not in known and path.is_file()):
        content = read_input(named, "labelled set", LARGEST_MB, "Name a file, or a set that is kept here.")
        read = read_questions(path.name, content)
    elif named in known:
        read = workbench.experiments.load_set(named)
    else:
        raise UnknownName.among("labelled set", named, known)
    return _checked(path.stem if path.suffix else named, read)


@contextmanager
def interruptible(cancel: Event, done: str) -> Iterator[None]:
    """Around the questions of a set, of which what was `done` is kept: Ctrl-C stops them, and the exit code is 130."""
    try:
        yield
    except KeyboardInterrupt:
        cancel.set()
        print(f"\nstopped; what {done} is kept, and the same command continues from there", file=sys.stderr)
        raise SystemExit(130) from None


def search_in(asked: str, labelled: LabelledSet, workbench: Workbench) -> str:
    """The collection to search for a set: the one that was asked for, else the one that its labels speak of."""
    chosen = asked or labelled.collection
    check_collection(chosen, workbench)
    if elsewhere := labelled.elsewhere(chosen):
        print(f"note: {elsewhere} Labels may not hold there.", file=sys.stderr)
    return chosen


def check_collection(name: str, workbench: Workbench) -> None:
    """Raises `UnknownName` for a collection that holds no document; "" means all."""
    if name:
        known = {document.collection for document in workbench.store.documents()}
        if name not in known:
            raise UnknownName.among("collection", name, known)


def _checked(name: str, read: Read) -> LabelledSet:
    for remark in filter(None, (*read.remarks, few_tell(read.questions))):
        print(f"note: {remark}", file=sys.stderr)
    if read.problems:
        message = "\n".join(f"  {problem.told}" for problem in read.problems[:20])
        more = f"\n  and {len(read.problems) - 20} more" if len(read.problems) > 20 else ""
        rows = counted(len(read.problems), "row")
        what = f"has {rows} that cannot be used" if read.problems[-1].row else "is refused"
        raise BadRecord(f"The labelled set {name!r} {what}:\n{message}{more}")
    if read.unlabelled:
        raise BadRecord(f"The set {name!r} has no labels.", hint="Label its questions on the Tune page.")
    if not read.questions:
        raise BadRecord(f"The labelled set {name!r} has no question.")
    return LabelledSet(name, read.questions)


def write_file(path: Path, text: str, what: str) -> None:
    try:
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise BadRecord(f"The {what} cannot be written to {path}: {error}.") from error
    print(f"written to {path}")
