"""Drafts labelled questions from documents and from feedback."""

from __future__ import annotations

import json
from threading import Event

import streamlit as st

from crag_core.app.workbench import DATA
from crag_core.experiments.drafting.draft import draft as draft_questions
from crag_core.experiments.drafting.draft_with_model import reword
from crag_core.experiments.labelled.from_feedback import FromFeedback, questions_from
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from ui.session import access, app_state
from ui.session.access import Right

MOST_PASSAGES = 5000


def draft(count: int, ask_model: bool) -> tuple[LabelledQuestion, ...]:
    """From the first chunks of each indexed document, at most `MOST_PASSAGES` in all. Raises `CragError`."""
    store = app_state.workbench().store
    documents = store.documents()
    each = max(MOST_PASSAGES // max(len(documents), 1), 3)
    passages = [passage for document in documents for passage in store.passages_of(document.id)[:each]][:MOST_PASSAGES]
    found = draft_questions(passages, _everyday(), count, seed=0)
    model = app_state.workbench().servers.model(st.session_state["model"]) if ask_model else None
    return reword(found, passages, model, Event()) if model else found


def model_name() -> str:
    """Of the language model that the sidebar names, "" without one."""
    chosen: str = st.session_state.get("model", EXTRACTIVE)
    return "" if chosen == EXTRACTIVE else chosen.partition("/")[2]


def from_feedback() -> FromFeedback:
    """Raises `CragError`, also to whoever may not see what others asked."""
    access.require(Right.SEE_HISTORY)
    return questions_from(app_state.workbench().history.all_labels())


@st.cache_data(show_spinner=False)
def _everyday() -> tuple[str, ...]:
    lines = (DATA / "questions" / "off-corpus.jsonl").read_text("utf-8").splitlines()
    return tuple(json.loads(line)["question"] for line in lines)
