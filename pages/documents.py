"""Documents: add files, see what is indexed, read its passages, remove it."""

import streamlit as st

from crag_core.errors import CragError
from ui import router, state
from ui.render_documents import draw_documents, draw_outcomes
from ui.running import draw_indexing_live, draw_warming
from ui.text import counted

SUPPORTED = "PDF, Word (DOCX), HTML, Markdown, plain text and CSV, up to 50 MB each"


def add() -> None:
    files = st.session_state[f"documents_files_{state.upload_round()}"]
    if files:
        state.index([(file.name, file.getvalue()) for file in files])
        state.next_upload_round()


router.enter("pages/documents.py")
st.title("Documents", anchor=False)
st.markdown(
    f"{SUPPORTED}. A copy of each is kept and searched here until you delete it; "
    "passages go only to the model that the sidebar names."
)
draw_warming()
indexing = state.indexing()
busy = indexing is not None and indexing.is_running
with st.container(border=True):
    st.file_uploader(
        "Add documents",
        accept_multiple_files=True,
        key=f"documents_files_{state.upload_round()}",
        disabled=busy,
    )
    waiting = st.session_state.get(f"documents_files_{state.upload_round()}") or []
    label = f"Index {counted(len(waiting), 'file')}" if waiting else "Index"
    st.button(label, type="primary", icon=":material/library_add:", on_click=add, disabled=busy or not waiting)
if busy:
    draw_indexing_live()
elif indexing is not None:
    if indexing.bug:
        raise indexing.bug
    if indexing.error:
        st.error(str(indexing.error), icon=":material/error:")
    draw_outcomes(indexing.outcomes)
try:
    draw_documents(state.workbench().store)
except CragError as error:
    st.error(error.message, title="The index cannot be read", icon=":material/error:")
    st.code(error.hint, language=None)
