"""What is said to the process that writes to an index, and what it answers: JSON, and passages as Arrow has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crag_core.base.documents import Document, IndexVersion
from crag_core.retrieval.backends.backend import Backend


@dataclass(frozen=True)
class Write:
    """`call` of a part of the index that `open_backend(setting, folder)` gives, with the arguments that it takes.

    The part is the passages of `generation`, or the list of rows named `part`. The bytes of the frame are an Arrow
    stream of the passages to be added. `id` comes back in the answer.
    """

    setting: str
    folder: str
    call: str
    generation: IndexVersion | None = None
    part: str = ""
    ids: tuple[str, ...] = ()
    collection: str = ""
    documents: tuple[Document, ...] = ()
    generations: tuple[IndexVersion, ...] = ()
    id: int = 0


@dataclass(frozen=True)
class Answer:
    """`kind` is the name of the error that the call raised; "": it was carried out. A bug has its traceback."""

    id: int
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
    part: Any = backend.passages(write.generation) if write.generation else getattr(backend, write.part)
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
