"""Uploads: bounds what Streamlit holds of them in memory.

Streamlit limits one file, but not their number: a session may send more through a widget, or by requests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

import streamlit as st
from starlette.exceptions import HTTPException
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from crag_core.app.uploads import MOST_FILES, MOST_MB


def uploader_key(name: str) -> str:
    """The key of an uploader, another one after `empty_uploader`, so that it is drawn without its files."""
    return f"{name}_{st.session_state.setdefault(f'{name}_round', 0)}"


def empty_uploader(name: str) -> None:
    st.session_state[f"{name}_round"] += 1


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
