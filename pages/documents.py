"""Documents: add files or a folder; see what is indexed, read its chunks, move it, remove it."""

import streamlit as st

from crag_core.app.own_engine import OwnEngine
from crag_core.app.uploads import check_files
from crag_core.base.documents import LARGEST_FILE_MB, MAIN, Ingested
from crag_core.base.text.display import clean, counted
from ui.documents.document_list import (
    collections_of,
    draw_documents,
    draw_outcomes,
    draw_passage_list,
)
from ui.documents.reindex_form import draw_recipe
from ui.run.job_progress import draw_indexing_live, draw_warming
from ui.session import access, app_state, background, uploads
from ui.session.startup import IndexJob
from ui.shell import page
from ui.shell.page import draw_report, errors_drawn, is_allowed
from ui.shell.text import plain

SUPPORTED = (
    "PDF, Word, PowerPoint, Excel, OpenDocument, RTF, EPUB, e-mail, HTML, Markdown, text, CSV, sixty more formats: "
    f"up to {LARGEST_FILE_MB} MB per file"
)
FILES, FOLDER = "Files", "A folder"
FILES_KEY = "documents_files"
INDEXING = "indexing"


def add() -> None:
    # A click may come twice while the page is drawn: the second time the uploader is a new one, not drawn yet.
    files = st.session_state.get(uploads.uploader_key(FILES_KEY))
    collection = (st.session_state.get("documents_collection") or MAIN).strip() or MAIN
    if files:
        with app_state.reporting():
            index([(file.name, file.getvalue()) for file in files], collection)
        uploads.empty_uploader(FILES_KEY)
        uploads.forget(files)


def index(files: list[tuple[str, bytes]], collection: str) -> None:
    """In the background. Raises `NotAllowed` to all but administrators."""
    access.require_administrator()
    check_files(files)
    store = app_state.workbench().store

    def work(job: IndexJob) -> tuple[Ingested, ...]:
        return store.ingest(files, job.tell, collection=collection, cancel=job.cancel)

    background.start(INDEXING, work, None, about=object())


def draw_engine(engine: OwnEngine) -> None:
    """In place of the list: what the retriever tells of itself."""
    engine.check()
    st.markdown(
        f":material/database: Questions are asked of **{plain(engine.kind)}**, which `{engine.target}` returns "
        "(`CRAG_RETRIEVER`). It is read only and lists no documents: add, change and remove them in that engine."
    )


def draw_files(job: IndexJob, key: str) -> None:
    hint = "Indexed files stay; the current one and those after it are left out."
    draw_indexing_live(job, key, hint, idle="Storing the files")


def draw_adding(busy: bool) -> None:
    with st.container(border=True):
        what = st.segmented_control("Add", [FILES, FOLDER], default=FILES, required=True, key="documents_what")
        waiting = st.file_uploader(
            what, accept_multiple_files="directory" if what == FOLDER else True,
            key=uploads.uploader_key(FILES_KEY), disabled=busy, label_visibility="collapsed",
            max_upload_size=LARGEST_FILE_MB,
        )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="bottom"):
            known = sorted({MAIN, *collections_of(store.listing())}, key=str.casefold)
            st.selectbox(
                "Add to collection", known, index=known.index(MAIN), accept_new_options=True, format_func=clean,
                key="documents_collection", width=260, help="A question can be asked of one collection alone.",
            )  # fmt: skip
            label = f"Index {counted(len(waiting), 'file')}" if waiting else "Index"
            st.button(label, type="primary", icon=":material/library_add:", on_click=add, disabled=busy or not waiting)


page.enter("pages/documents.py")
st.title("Documents", anchor=False)
if (engine := app_state.workbench().own_engine) is not None:
    draw_report()
    with errors_drawn("The engine cannot be used"):
        draw_engine(engine)
    st.stop()
st.markdown(
    f"{SUPPORTED}. Copies stay on this server until you remove them; chunks are sent only to the model that you choose."
)
draw_warming("documents_stop_start")
draw_report()
own: IndexJob | None = background.job(INDEXING)
busy = own is not None and own.is_running
with errors_drawn("The index cannot be read"):
    store = app_state.workbench().store
    if is_allowed("add, move and remove documents"):
        draw_adding(busy)
    for number, other in enumerate(background.jobs_of_others(INDEXING)):
        draw_files(other, f"documents_stop_{number}")
    if own is not None and busy:
        draw_files(own, "documents_stop")
    elif own is not None:
        if own.bug:
            raise own.bug
        if own.error:
            st.error(plain(str(own.error)), icon=":material/error:")
        draw_outcomes(own.result or ())
    shown = draw_documents(store)
    draw_recipe(store)
    if shown is not None:
        draw_passage_list(store, shown)
