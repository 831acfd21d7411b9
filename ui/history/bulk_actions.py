"""Delete, export and import on the History page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.storage.history.runs import KeptRun, Selection
from ui.compare.side_by_side import open_on_ask
from ui.history import history_state
from ui.history.history_state import Listed
from ui.history.import_export import LARGEST_IMPORT_MB, MOST_EXPORTED_MB, MOST_RECORDS, Imported
from ui.session import app_state
from ui.text import plain


def draw_actions(found: Listed, selected: Sequence[KeptRun]) -> None:
    """For what is selected, or for all that match where nothing is."""
    chosen, count = found.selection, found.count
    label = f"Delete {'all ' if 1 < count == found.of else ''}{counted(count, 'run')}"
    if selected:
        chosen = replace(found.selection, ids=tuple(run.id for run in selected))
        count, label = len(selected), f"Delete {counted(len(selected), 'selected run')}"
    if len(selected) == 1 and st.button("Open in Ask", icon=":material/open_in_new:", type="primary", key="history_go"):
        _open(selected[0])
    with st.popover("Export", icon=":material/download:", type="tertiary", disabled=not count):
        _draw_export(chosen, count)
    draw_import()
    st.button(
        label, icon=":material/delete:", type="tertiary", key="history_delete", disabled=not count,
        on_click=history_state.confirm, args=(chosen, count),
    )  # fmt: skip
    if (asked := history_state.to_confirm()) is not None:
        title = f"Delete {counted(asked[1], 'run')}?"
        st.dialog(title, icon=":material/delete:", on_dismiss=history_state.leave)(_draw_question)(*asked)


def _open(run: KeptRun) -> None:
    with suppress(CragError):  # its message is shown below the table
        if (trace := history_state.load(run)) is not None:
            open_on_ask(trace)


def draw_import() -> None:
    with st.popover("Import", icon=":material/upload:", type="tertiary"):
        st.caption(
            "A file of records that Export has saved, or one that Share has saved. What is here already stays as it is."
        )
        file = st.file_uploader(
            "Records", ["jsonl", "json"], key=f"history_file_{history_state.import_round()}",
            max_upload_size=LARGEST_IMPORT_MB,
        )  # fmt: skip
        if st.button("Import", type="primary", key="history_import", disabled=file is None) and file is not None:
            bar = st.progress(0.0, "Reading")
            try:
                history_state.import_file(file.getvalue(), lambda share: bar.progress(share, "Reading"))
            except CragError as error:
                bar.empty()
                st.error(plain(str(error)), icon=":material/error:", title="This file cannot be imported")
            else:
                st.rerun()


def draw_imported(done: Imported | None) -> None:
    """What became of a file, every refusal with its line."""
    if done is None:
        return
    if done.taken:
        st.success(f"{counted(done.taken, 'record')} imported.", icon=":material/check_circle:")
    if done.refused_count:
        more = done.refused_count - len(done.refused)
        lines = [*map(plain, done.refused), *([f"and {counted(more, 'other line')}"] if more else [])]
        st.error("  \n".join(lines), icon=":material/error:", title=f"{counted(done.refused_count, 'line')} refused")


def _draw_export(chosen: Selection, count: int) -> None:
    st.caption(f"{counted(count, 'run')}, newest first.")
    st.download_button(
        "Records (JSON Lines)", lambda: history_state.lines(chosen), "crag-runs.jsonl", "application/jsonl",
        icon=":material/data_object:", on_click="ignore", key="history_lines",
    )  # fmt: skip
    st.download_button(
        "Table (CSV)", lambda: history_state.table(chosen), "crag-runs.csv", "text/csv",
        icon=":material/table:", on_click="ignore", key="history_csv",
    )  # fmt: skip
    limit = f"the newest {MOST_RECORDS:,} runs, and {MOST_EXPORTED_MB} MB"
    st.caption(f"A file of records holds {limit} at most. Each of its lines opens again here, with every number.")


def _draw_question(chosen: Selection, count: int) -> None:
    whose = "its record and what was said of it" if count == 1 else "their records and what was said of them"
    st.markdown(
        f"This deletes **{counted(count, 'run')}** for good: {whose}, labels that Tune can learn from. "
        "Links to them lead nowhere then. Export first what you may need again."
    )
    with st.container(horizontal=True):
        if st.button(f"Delete {counted(count, 'run')}", type="primary", key="history_delete_now"):
            _delete(chosen)
        if st.button("Keep", key="history_keep"):
            history_state.leave()
            st.rerun()


def _delete(chosen: Selection) -> None:
    history_state.leave()
    with app_state.reporting():
        deleted = history_state.delete(chosen)
        st.toast(f"{counted(deleted, 'run')} deleted.", icon=":material/delete:")
    st.rerun()
