"""Uploads: reads a recorded run from a file, and bounds what is taken at once and what Streamlit holds in memory.

Streamlit limits one file, but not their number: a session may send more through a widget, or by requests of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from threading import Lock

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from crag_core.base.documents import LARGEST_FILE_MB
from crag_core.base.errors import BadRecord
from crag_core.pipeline.run import LONGEST_QUESTION
from crag_core.trace.trace import Trace

LARGEST_MB = 20
MOST_PASSAGES = 1000
MOST_FILES, MOST_MB = 20_000, 1024
_HALF = re.compile("[\ud800-\udfff]")
_HINT = "Choose the JSON file that Share has saved for a run."


def uploader_key(name: str) -> str:
    """The key of an uploader, another one after `empty_uploader`, so that it is drawn without its files."""
    return f"{name}_{st.session_state.setdefault(f'{name}_round', 0)}"


def empty_uploader(name: str) -> None:
    st.session_state[f"{name}_round"] += 1


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
                hint="Split it; of a ZIP, add the unpacked folder, or use the command ingest.",
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


# --- what is held in memory -------------------------------------------------------------------------------------------


MOST_MB_IN_ALL = 2 * MOST_MB
# What Streamlit keeps of a file beside its bytes, so that empty ones count as well.
_BESIDE = 2_000


@st.cache_resource(show_spinner=False)
def bound() -> None:
    """From now on, for all sessions; a file too many is answered with 413, and those before it stay."""
    files = _find_files()
    if files is not None:
        # Sessions and the server hold this very object, so none can be put in its place.
        setattr(files, "add_file", bounded(files, MOST_FILES, MOST_MB * 2**20, MOST_MB_IN_ALL * 2**20))  # noqa: B010


def bounded(
    files: MemoryUploadedFileManager, most: int, size: int, in_all: int
) -> Callable[[str, UploadedFileRec], None]:
    """In place of `files.add_file`.

    A session may hold `most` files of `size` bytes, and no more bytes than are left of `in_all`: the more sessions hold
    much, the less each of them may, and there is always something left for one that comes.
    """
    add, lock = files.add_file, Lock()

    def add_bounded(session_id: str, file: UploadedFileRec) -> None:
        with lock:
            # A copy, since a page may remove files meanwhile.
            held = {one.file_id: _size_of(one) for one in [*files.file_storage.get(session_id, {}).values()]}
            others = _count_all(files) - sum(held.values())
            held[file.file_id] = _size_of(file)
            if len(held) > most or sum(held.values()) > min(size, (in_all - others) / 2):
                raise HTTPException(
                    413, "This session holds too many files: index those that are there, or remove them."
                )
            add(session_id, file)

    return add_bounded


def forget(uploaded: Iterable[UploadedFile]) -> None:
    """What was taken from a widget that is not drawn again; Streamlit would hold it until the session ends."""
    files, here = _find_files(), get_script_run_ctx()
    if files is not None and here is not None:
        for one in uploaded:
            files.remove_file(here.session_id, one.file_id)


def _find_files() -> MemoryUploadedFileManager | None:
    """None without a server, and for what is not Streamlit's own."""
    files = get_instance().uploaded_file_mgr if exists() else None
    return files if isinstance(files, MemoryUploadedFileManager) else None


def _count_all(files: MemoryUploadedFileManager) -> int:
    return sum(stat.byte_length for stats in files.get_stats().values() for stat in stats)


def _size_of(file: UploadedFileRec) -> int:
    return len(file.data) + len(file.name) + _BESIDE
