"""Recorded runs as JSONL and CSV, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from crag_core.base.errors import BadRecord, CragError
from crag_core.base.text.csv_cells import written
from crag_core.storage.history.run_summary import KeptRun
from crag_core.trace.trace import Trace
from ui.session.uploads import LARGEST_MB, read_record

MOST_RECORDS, MOST_EXPORTED_MB = 1000, 200
"""Of one file that leaves: it is made in memory."""
LARGEST_IMPORT_MB, MOST_LINES = 200, 5000
_MOST_SHOWN = 20
_COLUMNS = (
    "id", "kept", "question", "action", "score", "policy", "evaluator", "evaluator version", "model", "model version",
    "embedding model", "settings", "seconds", "model calls", "tokens", "route", "answer", "labelled chunks", "ended",
    "asked by", "imported",
)  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """The result of importing a file of records. `refused` has a sentence for each of the first refused lines."""

    taken: int = 0
    refused_count: int = 0
    refused: tuple[str, ...] = ()


def to_lines(traces: Iterable[Trace]) -> bytes:
    """One record a line, as many as one file may have; in ASCII, so that no text of a record ends a line."""
    made: list[bytes] = []
    size = 0
    for trace in traces:
        line = json.dumps(trace.to_dict(), separators=(",", ":")).encode("ascii") + b"\n"
        size += len(line)
        if made and (len(made) >= MOST_RECORDS or size > MOST_EXPORTED_MB * 2**20):
            break
        made.append(line)
    return b"".join(made)


def to_csv(runs: Iterable[KeptRun], zone: tzinfo) -> bytes:
    """With a mark in front that tells spreadsheets that it is UTF-8. No cell can be taken for a formula."""
    rows = (tuple(_values(run, zone)) for run in runs)
    return b"\xef\xbb\xbf" + written([_COLUMNS, *rows]).encode("utf-8", "replace")


def take_in(content: bytes, keep: Callable[[Trace], object], on_progress: Callable[[float], object]) -> Imported:
    """Give every record of the file to `keep`; a line that is no record is refused, and the others go in.

    Raises `BadRecord` for a file that is too large or empty, and whatever `keep` raises.
    """
    size = len(content) / 2**20
    lines = [(number, line) for number, line in enumerate(_lines(content), start=1) if line.strip()]
    if size > LARGEST_IMPORT_MB or len(lines) > MOST_LINES:
        raise BadRecord(
            f"This file has {size:.0f} MB and {len(lines):,} lines, expected at most {LARGEST_IMPORT_MB} MB and "
            f"{MOST_LINES:,} lines.",
            hint="Import it in parts.",
        )
    if not lines:
        raise BadRecord("This file is empty, expected one record a line.", hint="Choose a file that Export has saved.")
    refused = []
    for place, (number, line) in enumerate(lines, start=1):
        try:
            found = read_record(line)
        except CragError as error:
            refused.append(f"Line {number}: {error.message}")
        else:
            keep(found)
        on_progress(place / len(lines))
    return Imported(len(lines) - len(refused), len(refused), tuple(refused[:_MOST_SHOWN]))


def _lines(content: bytes) -> Sequence[bytes]:
    """A record that Share has saved has many lines, and is one record."""
    try:
        if isinstance(json.loads(content[: LARGEST_MB * 2**20]), dict):
            return [content]
    except (ValueError, RecursionError):
        pass
    return content.split(b"\n")


def _values(run: KeptRun, zone: tzinfo) -> Iterator[object]:
    kept = datetime.fromtimestamp(run.kept_at, zone).isoformat(sep=" ", timespec="seconds")
    yield from (run.id, kept, run.question, run.action.value if run.action else "")
    yield from ("" if run.score is None else run.score, run.policy, run.evaluator, run.evaluator_version)
    yield from (run.writer, run.writer_version, run.embedding, run.fingerprint)
    yield from (round(run.seconds, 3), run.calls, run.tokens)
    yield from (run.route.value if run.route else "", run.answer.value if run.answer else "", run.labelled)
    yield from (run.ending.value, run.asked_by, "yes" if run.is_imported else "no")
