"""A recorded run out of a file that somebody chose: refused, with the reason, unless all of it can be shown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from crag_core.errors import BadRecord
from crag_core.trace import Trace

LARGEST_MB = 20
MOST_PASSAGES = 1000
_HALF = re.compile("[\ud800-\udfff]")
_HINT = "Choose the JSON file that Share has saved for a run."


def read_record(content: bytes) -> Trace:
    """The run in an exported file; raises `BadRecord`.

    Half a character of a pair, which no screen can take, becomes the replacement character.
    """
    if len(content) > LARGEST_MB * 2**20:
        raise BadRecord(f"This file has {len(content) / 2**20:.1f} MB, expected at most {LARGEST_MB}.", hint=_HINT)
    try:
        trace = Trace.from_json(content.decode("utf-8-sig"))
        written = trace.to_json()
        if _HALF.search(written):
            trace = Trace.from_json(_HALF.sub("\ufffd", written))
    except UnicodeDecodeError as error:
        raise BadRecord(f"This is not a recorded run: not UTF-8 text ({error.reason}).", hint=_HINT) from None
    except BadRecord as error:
        raise BadRecord(error.message, hint=error.hint or _HINT) from None
    _check_passages(trace)
    return trace


def _check_passages(trace: Trace) -> None:
    """Cards, points and marks are told apart by these ids."""
    web = trace.web.passages if trace.web else ()
    shown = (*trace.all_passages, *web)
    if len(shown) > MOST_PASSAGES:
        raise BadRecord(f"This run has {len(shown)} passages, expected at most {MOST_PASSAGES}.", hint=_HINT)
    found = [retrieval.passages for later in trace.rounds for retrieval in later.retrievals]
    for passages in (trace.passages or (), *found, shown):
        _check_ids("passages", (passage.id for passage in passages))
    strips = (*(trace.strips or ()), *((trace.web.strips if trace.web else None) or ()))
    _check_ids("strips", (strip.id for strip in strips))


def _check_ids(what: str, ids: Iterable[str]) -> None:
    for id_, times in Counter(ids).items():
        if times > 1 or not id_:
            raise BadRecord(f"run.{what}: expected an id of its own for each, found {id_!r} {times} times.", hint=_HINT)
