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
from ui.history.history_state import Listed
from ui.session import app_state, run_job
from ui.session.keys import hand, take
from ui.session.uploads import empty_uploader, uploader_key
from ui.shell.text import first_lines, plain

MOST_RECORDS, MOST_EXPORTED_MB = 1000, 200
"""Of one file that leaves: it is made in memory."""
LARGEST_IMPORT_MB, MOST_LINES = 200, 5000
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Imported:
    """The result of importing a file of records. `refused` has a sentence for each line that is none."""

    taken: int
    refused: tuple[str, ...]


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
    return Imported(len(lines) - len(refused), tuple(refused))


def _lines(content: bytes) -> Sequence[bytes]:
    """A record that Share has saved has many lines, and is one record."""
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(content[: LARGEST_MB * 2**20]), dict):
            return [content]
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
    history = app_state.workbench().history  # now: a file is made without a session
    st.download_button(
        f"Export {counted(count, 'run')}", lambda: to_lines(history.export(chosen)), "crag-runs.jsonl",
        "application/jsonl", icon=":material/download:", type="tertiary", on_click="ignore", key="history_lines",
        disabled=not count,
        help=f"As JSON Lines, newest first: at most {MOST_RECORDS:,} runs, {MOST_EXPORTED_MB} MB. Import opens them "
        "again.",
    )  # fmt: skip
    draw_import()
    with st.popover(label, icon=":material/delete:", type="tertiary", disabled=not count):
        st.markdown(
            f"Deletes **{counted(count, 'run')}** with records, feedback and labels. Links to them stop working. This "
            "cannot be undone: export first what you need."
        )
        sure = f"Delete {counted(count, 'run')} for good"
        st.button(sure, type="primary", key="history_delete_now", on_click=_delete, args=(chosen,))


@app_state.reporting()
def _delete(chosen: Selection) -> None:
    deleted = app_state.workbench().history.delete_all(_own(chosen))  # with their labels
    history_state.look_again()
    st.toast(f"{counted(deleted, 'run')} deleted.", icon=":material/delete:")


def _own(selection: Selection) -> Selection:
    """Nobody deletes what they may not see, whatever the page offered before."""
    own = history_state.scope()
    return selection if own is None else replace(selection, asked_by=own)


def draw_import() -> None:
    with st.popover("Import", icon=":material/upload:", type="tertiary"):
        st.caption("A file from Export or Share. Runs that are here already stay unchanged.")
        file = st.file_uploader(
            "Records", ["jsonl", "json"], key=uploader_key("history_file"), max_upload_size=LARGEST_IMPORT_MB
        )
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
    if done and done.taken:
        st.success(f"{counted(done.taken, 'record')} imported.", icon=":material/check_circle:")
    if done and done.refused:
        lines = first_lines([plain(one) for one in done.refused], _MOST_SHOWN)
        st.error(lines, icon=":material/error:", title=f"{counted(len(done.refused), 'line')} refused")
