"""Options that several commands share, and the labelled sets and files that they name."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from crag_core.app.calibration import apart
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import read_input
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.cascade import SHOWN_FORM
from crag_core.evaluators.policies import DEFAULT
from crag_core.experiments.labelled.public_sets import read_set
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import Read, read_questions
from crag_core.experiments.logs.rows import LARGEST_MB
from crag_core.experiments.statistics.small_sets import few_tell

STREAM = "-"
"""In place of a file's name: standard input, or output."""


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", required=True, metavar="SET",
        help="a kept set by name, a CSV or JSONL file, or a folder with queries.jsonl and corpus.jsonl",
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


@dataclass(frozen=True)
class Opened:
    """A set, and the workbench with the documents that it is about; `judged` has the grades of files, by question."""

    labelled: LabelledSet
    workbench: Workbench
    judged: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def open_set(named: str, workbench: Workbench) -> Opened:
    """`named` is a kept set, a CSV or JSONL file, or a folder with queries.jsonl and its own corpus.jsonl.

    Such a corpus is indexed apart from the user's documents, once. Raises `BadRecord` with every row that is wrong,
    `UnknownName` where there is no such set.
    """
    path = Path(named)
    if named.strip() and os.path.isdir(named):  # False too for a path that the system does not take
        return _open_folder(path, workbench)
    if path.suffix.lower() in (".csv", ".jsonl", ".json", ".tsv", ".txt"):
        content = read_input(named, "labelled set", LARGEST_MB, "Name a file, a folder, or a set that is kept here.")
        read = read_questions(path.name, content)
    elif named in (known := workbench.experiments.set_names()):
        read = workbench.experiments.load_set(named)
    else:
        raise UnknownName.among("labelled set", named, known)
    return Opened(_checked(path.stem if path.suffix else named, read), workbench)


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
        message = "\n".join(f"  row {problem.row}: {problem.message}" for problem in read.problems[:20])
        more = f"\n  and {len(read.problems) - 20} more" if len(read.problems) > 20 else ""
        raise BadRecord(
            f"The labelled set {name!r} has {len(read.problems)} rows that cannot be used:\n{message}{more}"
        )
    if read.unlabelled:
        raise BadRecord(f"The set {name!r} has no labels.", hint="Label its questions on the Tune page.")
    if not read.questions:
        raise BadRecord(f"The labelled set {name!r} has no question.")
    return LabelledSet(name, read.questions)


def _open_folder(folder: Path, workbench: Workbench) -> Opened:
    def content(name: str) -> bytes:
        file = folder / name
        return file.read_bytes() if file.is_file() else b""

    if not (folder / "queries.jsonl").is_file():
        raise UnknownName(
            f"Expected queries.jsonl in the folder {folder}, found none.", hint="Name a folder of a set, or a file."
        )
    found = read_set(content("queries.jsonl"), content("corpus.jsonl"), content("qrels.tsv"))
    for remark in found.remarks:
        print(f"note: {remark}", file=sys.stderr)
    own = workbench
    if found.documents:
        own = apart(workbench, folder.name)
        _index(own, found.documents)
    return Opened(LabelledSet(folder.name, found.questions), own, found.graded)


def _index(workbench: Workbench, documents: tuple[tuple[str, str], ...]) -> None:
    """Those that are not there yet; what a kill interrupted is finished."""
    there = {document.name for document in workbench.store.documents()}
    missing = [(name, text.encode("utf-8")) for name, text in documents if name not in there and text.strip()]
    if missing:
        print(f"indexing {len(missing)} documents of the set", file=sys.stderr)
        workbench.store.ingest(missing)


def write_file(path: Path, text: str, what: str) -> None:
    try:
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise BadRecord(f"The {what} cannot be written to {path}: {error}.") from error
    print(f"written to {path}")
