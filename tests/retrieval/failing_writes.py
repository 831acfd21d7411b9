"""Writers that die as the real one can, at a write that can be chosen; what they write is real, and written here."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from crag_core.base.errors import WriteLost
from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.backend import Backend
from crag_core.retrieval.backends.lance.backend import Write, carry_out, unpack_rows

LOST = WriteLost("The process that writes to the index ended (SIGABRT).", hint="Try again.")


class Writing:
    """`write` is a `Send`, which notes the `calls`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._opened: dict[str, Backend] = {}

    def write(self, write: Write, body: bytes) -> None:
        self.calls.append(write.call)
        carry_out(write, body, self.opened(write.folder))

    def opened(self, folder: str) -> Backend:
        return self._opened.setdefault(folder, open_backend("", Path(folder)))


class DyingAt(Writing):
    """At write number `step`, from 0, and at so many after it: before it is carried out, or `is_late`."""

    def __init__(self, step: int, times: int = 1, is_late: bool = False) -> None:
        super().__init__()
        self._steps = range(step, step + times)
        self._is_late = is_late

    def write(self, write: Write, body: bytes) -> None:
        is_fatal = len(self.calls) in self._steps
        if is_fatal and not self._is_late:
            self.calls.append(write.call)
            raise LOST
        super().write(write, body)
        if is_fatal:
            raise LOST


class Poisoned(Writing):
    """Dies over whatever handles the words of documents with one of these `ids`, when that is done for `calls`."""

    def __init__(self, ids: Collection[str], deadly: Collection[str]) -> None:
        super().__init__()
        self.ids = {*ids}
        self._deadly = {*deadly}

    def write(self, write: Write, body: bytes) -> None:
        if write.version and write.call in self._deadly and self.ids & self._handled(write, body):
            self.calls.append(write.call)
            raise LOST
        super().write(write, body)

    def _handled(self, write: Write, body: bytes) -> set[str]:
        assert write.version
        if write.call == "rehearse":
            return {*write.ids}
        if write.call == "add_rows":
            return {*unpack_rows(body)["doc_id"].to_pylist()}
        return {row.id for row in self.opened(write.folder).passages(write.version).documents()}
