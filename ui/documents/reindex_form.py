"""How chunks are made, and the form that re-indexes them with other lengths or another embedding model."""

from __future__ import annotations

import streamlit as st

from crag_core.base.documents import TOKENS, IndexVersion, Rebuilt, Recipe, check_lengths
from crag_core.base.protocols import DocumentStore
from crag_core.base.text.display import counted
from ui.run.job_progress import draw_rebuilding_live
from ui.session import access, app_state
from ui.session.access import Right
from ui.text import plain

_MODEL, _TOKENS, _OVERLAP = "recipe_model", "recipe_tokens", "recipe_overlap"


def draw_recipe(store: DocumentStore) -> None:
    """The present recipe, the progress of re-indexing, and the form that starts it."""
    job = app_state.shared_rebuild().job
    busy = job is not None and job.is_running
    if busy:
        draw_rebuilding_live()
    elif job is not None:
        if job.bug:
            raise job.bug
        if job.error:
            st.error(plain(str(job.error)), icon=":material/error:")
        if job.result:
            st.success(_describe(job.result), icon=":material/published_with_changes:")
    now = store.index_version
    with st.expander(f"How chunks are made: {_line(now.recipe)}", icon=":material/content_cut:"):
        st.markdown(_searched(now, *store.coverage()))
        if not access.may(Right.INDEX):
            return
        st.markdown(
            "Other lengths, or another embedding model, need all documents re-indexed. Until that is done the present "
            "chunks are searched; then the new ones replace them at once. It takes about as long as adding all "
            "documents did. Thresholds that were tuned on the present chunks may not fit the new ones."
        )
        _draw_form(now, busy)


def _draw_form(now: IndexVersion, busy: bool) -> None:
    with st.form(f"recipe_{now.id}", border=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Embedding model", now.embedding, key=f"{_MODEL}_{now.id}", width=320,
                help="The built-in all-MiniLM-L6-v2, a folder, or the name of a model on the Hugging Face hub.",
            )  # fmt: skip
            st.number_input(
                "Tokens in a chunk, at most", *TOKENS, now.tokens, key=f"{_TOKENS}_{now.id}", width=220,
                help="In tokens of the embedding model. What is longer than it reads is refused.",
            )  # fmt: skip
            st.number_input(
                "of which repeated", 0, TOKENS[1] // 2, now.overlap, key=f"{_OVERLAP}_{now.id}", width=220,
                help="So many tokens at most of the end of one chunk open the next.",
            )  # fmt: skip
        st.form_submit_button(
            "Re-index all documents", icon=":material/autorenew:", on_click=_start, args=(now,), disabled=busy
        )


@app_state.reporting()
def _start(now: IndexVersion) -> None:
    model, tokens, overlap = (st.session_state[f"{field}_{now.id}"] for field in (_MODEL, _TOKENS, _OVERLAP))
    recipe = Recipe((model or "").strip() or now.embedding, int(tokens), int(overlap))
    check_lengths(recipe)
    app_state.shared_rebuild().start(recipe)


def _line(recipe: Recipe) -> str:
    return f"at most {recipe.tokens} tokens, {recipe.overlap} of them repeated, by {plain(recipe.embedding)}"


def _searched(now: IndexVersion, passages: int, indexed: int) -> str:
    if not now.effort or not indexed:
        return "Searched **exactly**: a question is compared with every chunk."
    message = (
        f"Searched **approximately**: {now.recall:.1%} of the nearest chunks are found, measured with 100 chunks "
        f"as questions when there were {now.measured:,}."
    )
    if passages > indexed:
        message += f" {counted(passages - indexed, 'chunk')} newer than the index: compared one by one."
    return message


def _describe(done: Rebuilt) -> str:
    message = f"{counted(done.documents, 'document')} re-indexed as {counted(done.passages, 'chunk')}: "
    message += f"{_line(done.recipe)}."
    if done.kept_text:
        message += f" Of {done.kept_text} the text was taken from the old chunks, since the file is not kept."
    return message
