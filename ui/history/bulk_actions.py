"""Delete, export and import on the History page: recorded runs as JSON Lines, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from crag_core.app.uploads import LARGEST_MB, read_record
from crag_core.base.errors import BadRecord, CragError
from crag_core.base.text.display import counted
from crag_core.storage.history.runs import KeptRun, Selection
from crag_core.trace.trace import Trace
from ui.compare.side_by_side import open_on_ask
from ui.history import history_state
from ui.history.history_state import HistoryPage, Listed
from ui.session import app_state, run_job
from ui.session.keys import hand, kept, take
from ui.session.uploads import empty_uploader, uploader_key
from ui.shell.text import plain

MOST_RECORDS, MOST_EXPORTED_MB = 1000, 200
"""Of one file that leaves: it is made in memory."""
LARGEST_IMPORT_MB, MOST_LINES = 200, 5000
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Imported:
    """The result of importing a file of records. `refused` has a sentence for each of the first refused lines."""

    taken: int = 0
    refused_count: int = 0
    refused: tuple[str, ...] = ()


def to_lines(traces: Iterable[Trace]) -> bytes:
    """One record a line, as many as one file may have; in ASCII, so that no text of a record ends a line."""
    made: list[bytes] = []
    size = 0
    for trace in traces:
        line = json.dumps(trace.to_dict(), separators=(",", ":")).encode("ascii") + b"\n"
        size += len(line)
        if made and (len(made) >= MOST_RECORDS or size > MOST_EXPORTED_MB * 2**20):
            break
        made.append(line)
    return b"".join(made)


def take_in(content: bytes, keep: Callable[[Trace], object], on_progress: Callable[[float], object]) -> Imported:
    """Give every record of the file to `keep`; a line that is no record is refused, and the others go in.

    Raises `BadRecord` for a file that is too large or empty, and whatever `keep` raises.
    """
    size = len(content) / 2**20
    lines = [(number, line) for number, line in enumerate(_lines(content), start=1) if line.strip()]
    if size > LARGEST_IMPORT_MB or len(lines) > MOST_LINES:
        raise BadRecord(
            f"This file has {size:.0f} MB and {len(lines):,} lines, expected at most {LARGEST_IMPORT_MB} MB and "
            f"{MOST_LINES:,} lines.",
            hint="Import it in parts.",
        )
    if not lines:
        raise BadRecord("This file is empty, expected one record a line.", hint="Choose a file from Export.")
    refused = []
    for place, (number, line) in enumerate(lines, start=1):
        try:
            found = read_record(line)
        except CragError as error:
            refused.append(f"Line {number}: {error.message}")
        else:
            keep(found)
        on_progress(place / len(lines))
    return Imported(len(lines) - len(refused), len(refused), tuple(refused[:_MOST_SHOWN]))


def _lines(content: bytes) -> Sequence[bytes]:
    """A record that Share has saved has many lines, and is one record."""
    try:
        if isinstance(json.loads(content[: LARGEST_MB * 2**20]), dict):
            return [content]
    except (ValueError, RecursionError):
        pass
    return content.split(b"\n")


# --- the buttons ------------------------------------------------------------------------------------------------------


def draw_actions(found: Listed, selected: Sequence[KeptRun]) -> None:
    """For what is selected, or for all that match where nothing is."""
    chosen, count = found.selection, found.count
    label = f"Delete all {count:,} runs" if 1 < count == found.of else f"Delete {counted(count, 'run')}"
    if selected:
        chosen = replace(found.selection, ids=tuple(run.id for run in selected))
        count, label = len(selected), f"Delete {counted(len(selected), 'selected run')}"
    if len(selected) == 1 and st.button("Open in Ask", icon=":material/open_in_new:", type="primary", key="history_go"):
        with suppress(CragError):  # its message is shown below the table
            if (trace := history_state.load(selected[0])) is not None:
                open_on_ask(trace)
    _draw_export(chosen, count)
    draw_import()
    st.button(
        label, icon=":material/delete:", type="tertiary", key="history_delete", disabled=not count,
        on_click=history_state.confirm, args=(chosen, count),
    )  # fmt: skip
    if (asked := kept(HistoryPage).to_delete) is not None:
        title = f"Delete {counted(asked[1], 'run')}?"
        st.dialog(title, icon=":material/delete:", on_dismiss=history_state.leave)(_draw_question)(*asked)


def draw_import() -> None:
    with st.popover("Import", icon=":material/upload:", type="tertiary"):
        st.caption("A file from Export or Share. Runs that are here already stay unchanged.")
        file = st.file_uploader(
            "Records", ["jsonl", "json"], key=uploader_key("history_file"),
            max_upload_size=LARGEST_IMPORT_MB,
        )  # fmt: skip
        if st.button("Import", type="primary", key="history_import", disabled=file is None) and file is not None:
            bar = st.progress(0.0, "Reading")
            try:
                done = take_in(file.getvalue(), run_job.keep_import, lambda share: bar.progress(share, "Reading"))
            except CragError as error:
                bar.empty()
                st.error(plain(str(error)), icon=":material/error:", title="This file cannot be imported")
            else:
                hand("imported", done)
                empty_uploader("history_file")
                history_state.look_again()
                st.rerun()


def draw_imported() -> None:
    """What became of a file since the last redraw, every refusal with its line."""
    done: Imported | None = take("imported")
    if done is None:
        return
    if done.taken:
        st.success(f"{counted(done.taken, 'record')} imported.", icon=":material/check_circle:")
    if done.refused_count:
        more = done.refused_count - len(done.refused)
        lines = [*map(plain, done.refused), *([f"and {counted(more, 'other line')}"] if more else [])]
        st.error("  \n".join(lines), icon=":material/error:", title=f"{counted(done.refused_count, 'line')} refused")


def _draw_export(chosen: Selection, count: int) -> None:
    history, own = app_state.workbench().history, _own(chosen)  # now: a file is made without a session
    st.download_button(
        f"Export {counted(count, 'run')}", lambda: to_lines(history.export(own)), "crag-runs.jsonl",
        "application/jsonl", icon=":material/download:", type="tertiary", on_click="ignore", key="history_lines",
        disabled=not count,
        help=f"As JSON Lines, newest first: at most {MOST_RECORDS:,} runs, {MOST_EXPORTED_MB} MB. Import opens them "
        "again.",
    )  # fmt: skip


def _draw_question(chosen: Selection, count: int) -> None:
    st.markdown(
        f"Deletes **{counted(count, 'run')}** with records, feedback and labels. Links to them stop working. This "
        "cannot be undone: export first what you need."
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
        deleted = app_state.workbench().history.delete_all(_own(chosen))  # with their labels
        history_state.look_again()
        st.toast(f"{counted(deleted, 'run')} deleted.", icon=":material/delete:")
    st.rerun()


def _own(selection: Selection) -> Selection:
    """Nobody deletes or exports what they may not see."""
    own = history_state.scope()
    return selection if own is None else replace(selection, asked_by=own)
