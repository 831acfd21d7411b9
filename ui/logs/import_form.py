"""A file of a log before it is imported: its shape, what each field is read from, the first records, refused rows."""

from __future__ import annotations

import streamlit as st

from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted, shortened
from crag_core.experiments.logs.names import MEANINGS
from crag_core.experiments.logs.read import SHAPES, described
from crag_core.experiments.logs.rows import LARGEST_MB
from crag_core.experiments.store import set_name_of
from ui.logs import log_state
from ui.logs.log_state import NOT_READ, Looked
from ui.session import access, uploads
from ui.shell.text import first_lines, plain

_SHOWN_ROWS, _SHOWN_PROBLEMS = 5, 10
_UPLOAD = "log_upload"


def draw_choosing() -> None:
    """A file of one's own, or a log that was imported before."""
    st.markdown("See where your RAG system went wrong: bring its log. Nothing is indexed.")
    kept = log_state.names()
    if kept:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            name = st.selectbox("Imported logs", kept, key="log_kept", width=360)
            st.button("Open", on_click=log_state.open_log, args=(name,), icon=":material/folder_open:", type="primary")
    if not access.is_administrator():
        return
    key = uploads.uploader_key(_UPLOAD)
    st.file_uploader(
        "Log file", ["jsonl", "json", "csv", "tsv", "txt"], key=key, on_change=_take, args=(key,),
        max_upload_size=LARGEST_MB,
    )  # fmt: skip
    st.caption(
        "JSONL, JSON or CSV with question, retrieved chunks, answer, right answer; exports of Phoenix (OpenInference), "
        "Langfuse and LangSmith; ragas datasets. You see what is read before anything is imported."
    )
    st.button("Try a sample log", on_click=log_state.look_at_sample, icon=":material/science:", type="tertiary")


def _take(key: str) -> None:
    """For a callback; it comes once more when the file is put away."""
    file = st.session_state.get(key)
    if file is not None:
        log_state.look(file.name, file.getvalue())
        uploads.forget([file])
        uploads.empty_uploader(_UPLOAD)


def draw_preview(found: Looked) -> None:
    read = found.read
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(plain(found.name), anchor=False, width="content")
            st.button("Another file", on_click=log_state.put_away, icon=":material/close:", type="tertiary")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _draw_shape(found)
            if read.records:
                _draw_import(found)
        if read.failure:
            st.error(plain(read.failure), icon=":material/error:", title="No record can be read")
        else:
            st.markdown(f"**{described(read)}**")
        pairs = [f"{MEANINGS[field]} :gray[←] {plain(source)}" for field, source in read.mapping]
        unbroken = "\u2003 ".join(one.replace(" ", "\u00a0") for one in pairs)
        st.markdown(unbroken if read.is_table else "  \n".join(pairs))
        if read.records:
            _draw_first(found)
        for remark in read.remarks:
            st.caption(f":material/info: {plain(remark)}")
        _draw_refused(found)
        if read.is_table and read.columns:
            with st.expander("Read other columns", icon=":material/edit:", expanded=bool(read.failure)):
                _draw_mapping(found)


def _draw_shape(found: Looked) -> None:
    detected = list(SHAPES).index(found.read.shape) if found.read.shape else None
    st.selectbox(
        "Shape", list(SHAPES), detected, key="log_shape", width=320, on_change=_change_shape, args=(found,),
        format_func=lambda name: SHAPES[name].title, placeholder="Not detected",
    )  # fmt: skip


def _change_shape(found: Looked) -> None:
    log_state.look(found.name, found.content, st.session_state["log_shape"])


def _draw_mapping(found: Looked) -> None:
    """A field a line, each of which can be read from another column."""
    mapping = dict(found.read.mapping)
    rows = [{"Field": MEANINGS[field], "Read from": mapping.get(field, NOT_READ)} for field in MEANINGS]
    columns = dict.fromkeys((NOT_READ, *found.read.columns, *mapping.values()))
    key = f"log_mapping_{fingerprint((found.name, sorted(found.chosen.items()), found.read.shape))}"
    st.data_editor(
        rows, key=key, hide_index=True, num_rows="fixed", disabled=["Field"], width=520,
        height=min(35 * (len(rows) + 1) + 3, 460), on_change=_change_mapping, args=(key, found),
        column_config={
            "Field": st.column_config.TextColumn(width="medium"),
            "Read from": st.column_config.SelectboxColumn(options=list(columns), required=True, width="medium"),
        },
    )  # fmt: skip


def _change_mapping(key: str, found: Looked) -> None:
    """For a callback: read the file again."""
    edited, fields = st.session_state[key]["edited_rows"], list(MEANINGS)
    changes = {fields[int(row)]: cells["Read from"] for row, cells in edited.items() if "Read from" in cells}
    chosen = {field: "" if column == NOT_READ else column for field, column in changes.items()}
    log_state.look(found.name, found.content, found.read.shape, {**found.chosen, **chosen})


def _draw_refused(found: Looked) -> None:
    problems = found.read.problems
    if not problems or found.read.failure:
        return
    lines = [plain(one.told) for one in problems]
    title = f"{counted(len(problems), 'row')} refused; the others go in"
    st.warning(first_lines(lines, _SHOWN_PROBLEMS), icon=":material/warning:", title=title)


def _draw_first(found: Looked) -> None:
    rows = [
        {
            "Row": one.row,
            "Question": one.question,
            "Chunks": len(one.contexts),
            "First chunk": shortened(one.contexts[0].text, 200) if one.contexts else "",
            "Score": one.contexts[0].score if one.contexts else None,
            "Answer in the log": shortened(one.answer, 200),
            "Right answer": shortened(" | ".join(one.references), 200),
        }
        for one in found.read.records[:_SHOWN_ROWS]
    ]
    widths = {"Row": 60, "Question": 260, "Chunks": 70, "First chunk": 200}
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    columns["Score"] = st.column_config.NumberColumn(format="%.2f", width=70)
    st.dataframe(rows, hide_index=True, alt="The first records, as they are read", column_config=columns)


def _draw_import(found: Looked) -> None:
    start = set_name_of(found.name.rsplit(".", 1)[0])
    name = st.text_input("Name", start, max_chars=60, key=f"log_new_name_{start}", width=260)
    st.button(
        f"Import {counted(len(found.read.records), 'record')}", on_click=log_state.keep, args=(name or start,),
        type="primary", icon=":material/download_done:", key="log_import",
    )  # fmt: skip
