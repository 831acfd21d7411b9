"""Parses and chunks documents in child processes, within limits of time, memory and size."""

from __future__ import annotations

from collections.abc import Callable

from crag_core.base.errors import DocumentRefused
from crag_core.base.protocols import Cancel
from crag_core.retrieval.chunking.limits import MAX_CHUNKS, cut_here, refuse_chunks
from crag_core.retrieval.chunking.split import Chunks, Cut
from crag_core.retrieval.readers import MAX_BYTES, Page, load_content
from crag_core.retrieval.sandbox.pool import FILES_EACH, IDLE_SECONDS, WORKERS, ParsePool, Value
from crag_core.retrieval.sandbox.process import ProcessLost, StartFailed, Task, TookTooLong
from crag_core.retrieval.sandbox.protocol import Cutting, Fault, Limits, Reply, unpack_chunks, unpack_pages

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
    `characters` of text, `chunks` of it. `readers` is a module with `READERS` beside our own.
    """

    def __init__(
        self,
        *,
        seconds: float = _SECONDS,
        memory: int = _MEMORY,
        characters: int = _CHARACTERS,
        chunks: int = MAX_CHUNKS,
        workers: int = WORKERS,
        files_each: int = FILES_EACH,
        idle: float = IDLE_SECONDS,
        readers: str = "",
    ) -> None:
        self._limits = Limits(seconds, memory, characters=characters, readers=readers, chunks=chunks)
        self._pool = ParsePool(self._limits, workers, files_each, idle)

    def read(self, content: bytes, name: str, cancel: Cancel | None = None) -> tuple[Page, ...]:
        """As `readers.read_document`: pages that hold text, at least one, or `DocumentRefused`.

        It also refuses what goes over a limit and what breaks its parser. Raises `Stopped` once `cancel` is set.
        """

        def unpack(reply: Reply, body: bytes) -> tuple[Page, ...]:
            return unpack_pages(reply, body, self._limits.characters)

        return self._ask(Task(name, content), unpack, cancel)

    def cut(self, content: bytes, name: str, cut: Cut, cancel: Cancel) -> Chunks:
        """The same, cut into chunks within the same limits, of which there may not be too many either.

        Where the embedding model has no tokenizer that a process without it could load, they are cut in this one.
        """
        if not cut.tokenizer:
            return cut_here(self.read(content, name, cancel), name, cut, cancel)
        cutting = Cutting(cut.tokens, cut.overlap, cut.tokenizer)

        def unpack(reply: Reply, body: bytes) -> Chunks:
            return unpack_chunks(reply, body, cut.size, self._limits)

        return self._ask(Task(name, content, cutting=cutting), unpack, cancel)

    def close(self) -> None:
        """End all processes now; who is waiting for one, or comes later, gets `Stopped`."""
        self._pool.close()

    def _ask(self, task: Task, unpack: Callable[[Reply, bytes], Value], cancel: Cancel | None) -> Value:
        name = task.name
        if len(task.content) > MAX_BYTES:
            load_content(task.content, name)  # refuses it

        def unpack_sound(reply: Reply, body: bytes) -> Value:
            if reply.fault:
                raise _refuse_size(name, reply, self._limits)
            if reply.message:
                raise DocumentRefused(reply.message[:_MOST_TOLD], hint=reply.hint[:_MOST_TOLD])
            return unpack(reply, body)

        try:
            return self._pool.ask(task, unpack_sound, cancel)
        except TookTooLong:
            raise DocumentRefused(
                f"{name}: reading it takes longer than {self._limits.seconds:g} seconds.", hint=_SPLIT
            ) from None
        except ProcessLost as lost:
            raise _refuse_lost(name, lost) from lost


def _refuse_lost(name: str, lost: ProcessLost) -> DocumentRefused:
    if isinstance(lost, StartFailed):
        return DocumentRefused(
            f"{name}: not read, since the process that parses documents {lost} before it saw the file.",
            hint="Add it again; if that does not help, close other programs or start the application again.",
        )
    return DocumentRefused(f"{name}: cannot be read, since the process that parsed it {lost}.", hint=_SAVE_AGAIN)


def _refuse_size(name: str, reply: Reply, limits: Limits) -> DocumentRefused:
    if reply.fault is Fault.CHUNKS:
        return refuse_chunks(name, reply.found, limits.chunks)
    if reply.fault is Fault.MEMORY:
        return DocumentRefused(
            f"{name}: reading it takes more than {limits.memory // 2**20:,} MB of memory.", hint=_SPLIT
        )
    return DocumentRefused(f"{name}: holds more than {limits.characters:,} characters of text.", hint=_SPLIT)
