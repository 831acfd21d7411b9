"""The open log: what to do next with it, and grading its records."""

from __future__ import annotations

from functools import partial

import streamlit as st

from crag_core.app.retrieval_logs import Imported
from crag_core.base.text.display import counted
from crag_core.evaluators.policies import known_card
from crag_core.experiments.labelled.questions import LabelledSet, word
from crag_core.experiments.logs.record import RetrievalLog
from ui.logs import log_state
from ui.session import access, app_state, labelled_sets
from ui.session.keys import hand
from ui.shell.text import plain
from ui.tune import labelling
from ui.tune.grading_progress import draw_to_grade

_TUNE, _COMPARE = "pages/tune.py", "pages/compare.py"


def draw_next_steps(found: Imported) -> None:
    """Its set on Tune and Compare; records without a label are labelled first."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if found.labelled is not None:
            for title, page, icon in (
                ("Tune thresholds", _TUNE, ":material/ssid_chart:"),
                ("Compare configurations", _COMPARE, ":material/difference:"),
            ):
                st.button(title, on_click=_use, args=(found.labelled, page), icon=icon, key=f"log_to_{page}")
            labels = ", ".join(f"{count} {word(one)}" for one, count in found.labelled.counts.items())
            st.caption(plain(f"Labels, by what the chunks hold: {labels}"))
        if found.unlabelled and access.is_administrator():
            count, most = len(found.unlabelled), labelling.ROUND
            some = f"the {most} nearest to your thresholds" if count > most else counted(count, "record")
            st.button(
                f"Label {some}", on_click=_label, args=(found,), icon=":material/label:", key="log_label",
                help="Of the records without a label, on Tune.",
            )  # fmt: skip


def _use(labelled: LabelledSet, target: str) -> None:
    labelled_sets.use(labelled)
    if target == _COMPARE:
        st.session_state["versus_what"] = "Labelled set"
    hand("page", target)


def _label(found: Imported) -> None:
    """For a callback: the labels go into the set of the log."""
    _use(found.labelled or LabelledSet(found.log.name, ()), _TUNE)
    labelling.begin(found.unlabelled, found.log.name)


def draw_grading(log: RetrievalLog, done: int) -> None:
    count, missing = max(len(log.records), 1), len(log.records) - done
    chunks = sum(len(one.contexts) for one in log.records)
    calls = -(-chunks * missing // (count * known_card(app_state.evaluator()).batch))
    draw_to_grade(
        log_state.grading(log),
        partial(log_state.start_grading, log),
        "Grades the log's own chunks and their sentences once",
        "record",
        graded=done,
        missing=missing,
        calls=calls,
    )
