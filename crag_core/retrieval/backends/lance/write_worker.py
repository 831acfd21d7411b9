"""The process that writes to an index: requests come over its stdin, answers leave over its stdout.

Started by `write_process`. It ends when its stdin does, and so never outlives the application and its lock.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from crag_core.base.errors import CragError
from crag_core.base.serialization import from_plain
from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.lance.write_protocol import Answer, Write, carry_out
from crag_core.retrieval.sandbox.child_setup import Frame, listen, set_first_to_kill, take_pipes
from crag_core.retrieval.sandbox.protocol import write_frame

# The application is trusted; more than this does not fit into a frame.
_MOST_REQUEST = 2**32 - 1
_MOST_TOLD = 10_000  # characters


def main(arguments: list[str]) -> None:
    try:
        _run()
    except BaseException:
        traceback.print_exc()
        # At once: clearing up closes the pipes first, and the application would not wait to see how we end.
        os._exit(1)


def _run() -> None:
    requests_from, answers_to = take_pipes()
    set_first_to_kill()
    requests: SimpleQueue[Frame] = SimpleQueue()
    Thread(target=listen, args=(requests_from, requests, _MOST_REQUEST, _MOST_REQUEST), daemon=True).start()
    write_frame(answers_to, Answer())
    opened: dict[tuple[str, str], Backend] = {}
    while True:
        header, body = requests.get()
        write_frame(answers_to, _answer(from_plain(Write, header), body, opened))


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


if __name__ == "__main__":
    main(sys.argv[1:])
