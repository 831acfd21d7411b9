"""Documents are parsed in processes of their own: a hostile file can neither crash, hang nor fill the application."""

from __future__ import annotations

from crag_core.errors import DocumentRefused
from crag_core.protocols import Cancel
from crag_core.retrieval.parse_pool import FILES_EACH, IDLE_SECONDS, WORKERS, ParsePool
from crag_core.retrieval.parse_process import ProcessLost, StartFailed, Task, TookTooLong
from crag_core.retrieval.parse_wire import Fault, Limits, Reply, unpack_pages
from crag_core.retrieval.readers import MAX_BYTES, Page, load_content

_SECONDS = 120.0
_MEMORY = 2 * 1024**3
# No text file may be larger than this, so none has more characters.
_CHARACTERS = MAX_BYTES
_MOST_TOLD = 2_000  # characters
_SPLIT = "Split the document into smaller files, or open it in its own program, save it again and add that."
_SAVE_AGAIN = "The file may be damaged: open it in its own program, save it again and add it."


class Parser:
    """Reads documents in at most `workers` processes, which start with the first file and end when nothing comes.

    Any thread may use it. Limits hold for one file: `seconds`, bytes of `memory` (where the system can limit it), and
    `characters` of text. `readers` is a module with `READERS` beside our own.
    """

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        memory: int = _MEMORY,
        characters: int = _CHARACTERS,
        workers: int = WORKERS,
        files_each: int = FILES_EACH,
        idle: float = IDLE_SECONDS,
        readers: str = "",
    ) -> None:
        self._limits = Limits(seconds, memory, characters=characters, readers=readers)
        self._pool = ParsePool(self._limits, workers, files_each, idle)

    def read(self, content: bytes, name: str, cancel: Cancel | None = None) -> tuple[Page, ...]:
        """As `readers.read_document`: pages that hold text, at least one, or `DocumentRefused`.

        It also refuses what goes over a limit and what breaks its parser. Raises `Stopped` once `cancel` is set.
        """
        if len(content) > MAX_BYTES:
            load_content(content, name)  # refuses it

        def unpack(reply: Reply, body: bytes) -> tuple[Page, ...]:
            if reply.fault:
                raise _refuse_size(name, reply.fault, self._limits)
            if reply.message:
                raise DocumentRefused(reply.message[:_MOST_TOLD], hint=reply.hint[:_MOST_TOLD])
            return unpack_pages(reply, body, self._limits.characters)

        try:
            return self._pool.ask(Task(name, content), unpack, cancel)
        except TookTooLong:
            raise DocumentRefused(
                f"{name}: reading it takes longer than {self._limits.seconds:g} seconds.", hint=_SPLIT
            ) from None
        except ProcessLost as lost:
            raise _refuse_lost(name, lost) from lost

    def close(self) -> None:
        """End all processes now; who is waiting for one, or comes later, gets `Stopped`."""
        self._pool.close()


def _refuse_lost(name: str, lost: ProcessLost) -> DocumentRefused:
    if isinstance(lost, StartFailed):
        return DocumentRefused(
            f"{name}: not read, since the process that parses documents {lost} before it saw the file.",
            hint="Add it again; if that does not help, close other programs or start the application again.",
        )
    return DocumentRefused(f"{name}: cannot be read, since the process that parsed it {lost}.", hint=_SAVE_AGAIN)


def _refuse_size(name: str, fault: Fault, limits: Limits) -> DocumentRefused:
    if fault is Fault.MEMORY:
        return DocumentRefused(
            f"{name}: reading it takes more than {limits.memory // 2**20:,} MB of memory.", hint=_SPLIT
        )
    return DocumentRefused(f"{name}: holds more than {limits.characters:,} characters of text.", hint=_SPLIT)
