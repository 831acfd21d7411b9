"""How chunks are made, and the form that re-indexes them with other lengths or another embedding model."""

from __future__ import annotations

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.app.workbench import PassageStore
from crag_core.base.documents import TOKENS, IndexVersion, Progress, Rebuilt, Recipe, check_lengths
from crag_core.base.text.display import counted
from ui.run.job_progress import draw_indexing_live
from ui.session import access, app_state, background
from ui.shell.text import plain

RebuildJob = Job[Progress | None, Rebuilt | None]
_REBUILD = "rebuild"
_MODEL, _TOKENS, _OVERLAP = "recipe_model", "recipe_tokens", "recipe_overlap"


def draw_recipe(store: PassageStore) -> None:
    job: RebuildJob | None = background.job(_REBUILD, _home())
    busy = job is not None and job.is_running
    if job is not None and busy:
        draw_indexing_live(job, "rebuild_stop", "The current chunks stay; the new ones are discarded.", "Re-indexing")
    elif job is not None:
        if job.bug:
            raise job.bug
        if job.error:
            st.error(plain(str(job.error)), icon=":material/error:")
        if job.result:
            st.success(_describe(job.result), icon=":material/published_with_changes:")
    now = store.index_version
    with st.expander(f"Chunking: {_line(now.recipe)}", icon=":material/content_cut:"):
        vectors = app_state.workbench().vector_store
        exact = "**exact** (a question is compared with every chunk)"
        st.markdown(f"Search: {f'by `{vectors.target}` (`CRAG_VECTOR_STORE`)' if vectors else exact}.")
        if not access.is_administrator():
            return
        st.markdown(
            "Another length or embedding model re-indexes all documents, in about the time it took to add them. The "
            "current chunks are searched until the new ones are complete. Tune the thresholds again afterwards."
        )
        _draw_form(now, busy)


def _draw_form(now: IndexVersion, busy: bool) -> None:
    with st.form(f"recipe_{now.id}", border=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Embedding model", now.embedding, key=f"{_MODEL}_{now.id}", width=320,
                help="The built-in all-MiniLM-L6-v2, a folder, or a model name on the Hugging Face hub.",
            )  # fmt: skip
            st.number_input(
                "Tokens per chunk (max)", *TOKENS, now.tokens, key=f"{_TOKENS}_{now.id}", width=220,
                help="Tokens of the embedding model. More than it reads is refused.",
            )  # fmt: skip
            st.number_input(
                "Overlap (tokens)", 0, TOKENS[1] // 2, now.overlap, key=f"{_OVERLAP}_{now.id}", width=220,
                help="Tokens at the end of a chunk that are repeated at the start of the next.",
            )  # fmt: skip
        st.form_submit_button(
            "Re-index all documents", icon=":material/autorenew:", on_click=_start, args=(now,), disabled=busy
        )


@app_state.reporting()
def _start(now: IndexVersion) -> None:
    model, tokens, overlap = (st.session_state[f"{field}_{now.id}"] for field in (_MODEL, _TOKENS, _OVERLAP))
    recipe = Recipe((model or "").strip() or now.embedding, int(tokens), int(overlap))
    check_lengths(recipe)
    access.require_administrator()
    workbench = app_state.workbench()

    def work(job: RebuildJob) -> Rebuilt | None:
        return workbench.rebuild(recipe, job.tell, job.cancel)

    background.start(_REBUILD, work, None, _home())


def _home() -> str:
    """What a re-indexing is of: every session sees the last one."""
    return str(app_state.settings().home)


def _line(recipe: Recipe) -> str:
    return f"up to {recipe.tokens} tokens, {recipe.overlap} overlap, {plain(recipe.embedding)}"


def _describe(done: Rebuilt) -> str:
    message = f"{counted(done.documents, 'document')} re-indexed as {counted(done.passages, 'chunk')}: "
    message += f"{_line(done.recipe)}."
    if done.kept_text:
        message += f" {done.kept_text} from the text of the old chunks, since their files cannot be read any more."
    return message
