"""Writes to an index in a child process, so that a crash of its engine does not take the application down."""

from __future__ import annotations

import os
import subprocess
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crag_core.base.errors import BadRecord, CragError, StoreUnavailable, WriteLost, kind_named
from crag_core.base.serialization import from_plain
from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.lance.backend import Write, carry_out
from crag_core.retrieval.sandbox.child import BadFrame, serve
from crag_core.retrieval.sandbox.process_pool import ProcessLost, ProcessPool, StartFailed, start_isolated

# In an index of an early release a text of 10 MB may take the memory of so many, or of the 8192 of Lance's default.
_BATCH, _ROWS_AT_ONCE = "LANCE_DEFAULT_BATCH_SIZE", "256"
# The application is trusted; more than this does not fit into a frame.
_MOST_REQUEST = 2**32 - 1
_MOST_TOLD = 10_000  # characters


@dataclass(frozen=True)
class Answer:
    """`kind` is the name of the error that the call raised; "": it was carried out. A bug has its traceback."""

    kind: str = ""
    message: str = ""
    hint: str = ""
    bug: str = ""


class Writer(ProcessPool):
    """A process that starts with the first write; any thread may write, to any index.

    A second process starts only where two write at the same time.
    """

    def __init__(self, idle: float = 60.0) -> None:
        super().__init__("writes to the index", idle, is_last=True)

    def write(self, write: Write, body: bytes) -> None:
        """Raises what the call raises; `WriteLost` where the process died, after which it is done or not, all or
        nothing; `Stopped` once this was closed. What was written until then is whole."""
        try:
            # A process uses the address and the keys of an object store that it was started with.
            keys = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
            answer = self._exchange(self._take(_start, keys), write, body, _read_answer, write.call)
        except StartFailed as failed:
            raise StoreUnavailable(
                f"Nothing was written to the index, since the process that writes to it {failed}.",
                hint="Try again; if that does not help, close other programs or start the application again.",
            ) from failed
        except ProcessLost as lost:
            message = f"The process that writes to the index {lost}."
            raise WriteLost(message, hint="Try again; what was indexed before is safe.") from lost
        if answer.bug:
            raise RuntimeError(f"{write.call}: {answer.bug}")
        if answer.kind:
            raise kind_named(answer.kind)(answer.message, hint=answer.hint)


def _start() -> subprocess.Popen[bytes]:
    return start_isolated(__name__, "", {_BATCH: _ROWS_AT_ONCE, **os.environ})


def _read_answer(header: Any, body: bytes) -> Answer:
    try:
        return from_plain(Answer, header)
    except BadRecord as error:
        raise BadFrame(str(error)) from error


# --- in the process that writes; it ends when its stdin does, and so never outlives the application and its lock ---


def main(arguments: list[str]) -> None:
    opened: dict[tuple[str, str], Backend] = {}
    serve(lambda header, body: (_answer(from_plain(Write, header), body, opened), b""), _MOST_REQUEST, _MOST_REQUEST)


def _answer(write: Write, body: bytes, opened: dict[tuple[str, str], Backend]) -> Answer:
    try:
        place = write.setting, write.folder
        if place not in opened:
            opened[place] = open_backend(write.setting, Path(write.folder))
        carry_out(write, body, opened[place])
    except CragError as error:
        return Answer(type(error).__name__, error.message, error.hint)
    except Exception:
        return Answer(bug=traceback.format_exc()[-_MOST_TOLD:])
    return Answer()
