"""What is taken from outside, within limits: a recorded run as JSON, files to index."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from crag_core.base.documents import LARGEST_FILE_MB
from crag_core.base.errors import BadRecord
from crag_core.pipeline.run import LONGEST_QUESTION
from crag_core.trace.trace import Trace

LARGEST_MB = 20
"""Of a recorded run."""
MOST_PASSAGES = 1000
MOST_FILES, MOST_MB = 20_000, 1024
_HALF = re.compile("[\ud800-\udfff]")
_HINT = "Choose the JSON file that Share has saved for a run."


def whole(text: str) -> str:
    """Half a character of a pair, which UTF-8 cannot write, becomes the replacement character."""
    return _HALF.sub("\ufffd", text)


def read_record(content: bytes) -> Trace:
    """The run in an exported file; raises `BadRecord`."""
    if len(content) > LARGEST_MB * 2**20:
        raise BadRecord(f"This file has {len(content) / 2**20:.1f} MB, expected at most {LARGEST_MB}.", hint=_HINT)
    try:
        trace = Trace.from_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadRecord(f"This is not a recorded run: not UTF-8 text ({error.reason}).", hint=_HINT) from None
    except BadRecord as error:
        raise BadRecord(error.message, hint=error.hint or _HINT) from None
    _check_passages(trace)
    if len(trace.question) > LONGEST_QUESTION:
        text = f"The question has {len(trace.question):,} characters, expected at most {LONGEST_QUESTION:,}."
        raise BadRecord(text, hint=_HINT)
    return trace


def check_files(files: Sequence[tuple[str, bytes]]) -> None:
    """Raises `BadRecord` for more than is taken at once, or in one file."""
    for name, content in files:
        if len(content) > LARGEST_FILE_MB * 2**20:
            raise BadRecord(
                f"{name}: {len(content) / 2**20:.1f} MB, expected at most {LARGEST_FILE_MB} MB.",
                hint="Split the document into smaller files and add those.",
            )
    size = sum(len(content) for _, content in files)
    if len(files) > MOST_FILES or size > MOST_MB * 2**20:
        raise BadRecord(
            f"Expected at most {MOST_FILES:,} files and {MOST_MB:,} MB at a time, found {len(files):,} files and "
            f"{size / 2**20:,.0f} MB.",
            hint="Add them in parts, or use the command ingest.",
        )


def _check_passages(trace: Trace) -> None:
    """Cards, points and marks are distinguished by these ids."""
    shown = trace.every_passage
    if len(shown) > MOST_PASSAGES:
        raise BadRecord(f"This run has {len(shown)} chunks, expected at most {MOST_PASSAGES}.", hint=_HINT)
    found = [retrieval.passages for later in trace.rounds for retrieval in later.retrievals]
    for passages in (trace.passages or (), *found, shown):
        _check_ids("passages", (passage.id for passage in passages))
    _check_ids("strips", (strip.id for strip in trace.all_strips))


def _check_ids(what: str, ids: Iterable[str]) -> None:
    for id_, times in Counter(ids).items():
        if times > 1 or not id_:
            raise BadRecord(f"run.{what}: expected an id of its own for each, found {id_!r} {times} times.", hint=_HINT)
