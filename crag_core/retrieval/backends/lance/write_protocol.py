"""Messages to the process that writes to an index, and its answers: JSON, and passages in Arrow's format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crag_core.base.documents import Document, IndexVersion
from crag_core.retrieval.backends.backend import Backend


@dataclass(frozen=True)
class Write:
    """A call of a part of the index that `open_backend(setting, folder)` gives, with its arguments.

    The part is the passages of `version`, or the list of rows whose table is named `part`; rows to put are named
    likewise. The bytes of the frame are an Arrow stream of the passages to add.
    """

    setting: str
    folder: str
    call: str
    version: IndexVersion | None = None
    part: str = ""
    ids: tuple[str, ...] = ()
    collection: str = ""
    documents: tuple[Document, ...] = ()
    generations: tuple[IndexVersion, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`kind` is the name of the error that the call raised; "": it was carried out. A bug has its traceback."""

    kind: str = ""
    message: str = ""
    hint: str = ""
    bug: str = ""


Send = Callable[[Write, bytes], None]
"""Carries a write out elsewhere; raises what the call raises, and `WriteLost` when whoever was at it died."""


def pack_rows(rows: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def unpack_rows(body: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(body).read_all()


def carry_out(write: Write, body: bytes, backend: Backend) -> None:
    """The write, here; `backend` is one of LanceDB's."""
    part: Any = backend.passages(write.version) if write.version else _rows(backend)[write.part]
    call = getattr(part, write.call)
    if write.call == "add_rows":
        call(unpack_rows(body))
    elif write.call == "put":
        call([*write.documents, *write.generations])
    elif write.call == "move":
        call(write.ids, write.collection)
    elif write.call in ("delete", "rehearse") or (write.part and write.call == "drop"):
        call(write.ids)
    else:
        call()


def _rows(backend: Backend) -> dict[str, Any]:
    return {"documents": backend.documents, "generations": backend.index_versions}
