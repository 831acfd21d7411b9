"""Keys of uploaders that can be emptied, and files that are given back before the session ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile


def uploader_key(name: str) -> str:
    """The key of an uploader, another one after `empty_uploader`, so that it is drawn without its files."""
    return f"{name}_{_rounds()[name]}"


def empty_uploader(name: str) -> None:
    _rounds()[name] += 1


def _rounds() -> Counter[str]:
    found: Counter[str] = st.session_state.setdefault("upload_rounds", Counter())
    return found


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
