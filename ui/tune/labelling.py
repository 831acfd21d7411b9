"""Labelling the questions nearest to the thresholds: where they come from, and a table with the best chunk of each."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from crag_core.base.errors import BadRecord, CragError
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import clean, shortened
from crag_core.base.text.markdown import without_marks
from crag_core.base.types.passages import ANSWERING
from crag_core.decision.decide import evidence_of
from crag_core.evaluators.policies import known_card
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import (
    Expected,
    LabelledQuestion,
    LabelledSet,
    Origin,
    UnlabelledQuestion,
    word,
)
from crag_core.experiments.thresholds.threshold_board import deciding_scores, nearest
from ui.session import access, app_state, background, labelled_sets
from ui.session.fragments import fragment
from ui.session.keys import kept
from ui.session.labelled_sets import SetWork
from ui.shell.text import plain
from ui.tune import tune_state
from ui.tune.grading_progress import draw_ended, draw_job

ROUND = 20
"""Questions that are labelled at a time."""
GRADING = SetWork("label_grading")
_LABELS = (Expected.CORRECT, Expected.AMBIGUOUS, Expected.INCORRECT)
_LONGEST_CHUNK = 900
_MOST_GRADED = 400
_MOST_RUNS = 500


@dataclass
class Labelling:
    """Questions `waiting` to be chosen from for the set `name`; then those `asked`, the nearest to a threshold first,
    with their rows as drawn first."""

    name: str = ""
    waiting: tuple[UnlabelledQuestion, ...] = ()
    asked: tuple[UnlabelledQuestion, ...] = ()
    rows: list[dict[str, object]] = field(default_factory=list)


def draw_labelling() -> None:
    """The round that is under way; nothing without one, and for who may not label."""
    if not access.is_administrator():
        return
    if (ended := GRADING.take_ended()) is not None:
        kept(Labelling).asked = _nearest(kept(Labelling).waiting)
        draw_ended(ended, title="Not all questions were graded")
    if GRADING.job is not None:
        draw_job(GRADING, "Grading", "graded")
    elif kept(Labelling).asked:
        _draw_table()


def _nearest(waiting: tuple[UnlabelledQuestion, ...]) -> tuple[UnlabelledQuestion, ...]:
    """Of those that were graded, the ones for a round."""
    policy = app_state.policy()
    facts = app_state.workbench().experiments.scores(labelled_sets.conditions(waiting)).load()
    graded = [one for one in waiting if one.key in facts]
    scored = [facts[one.key] for one in graded]
    seen = [evidence_of(policy, one.passages, one.grades, one.signals) for one in scored]
    known = deciding_scores(policy, seen, policy.lower)
    return tuple(graded[at] for at in nearest(known, policy.lower, policy.upper)[:ROUND])


# --- where they come from ---------------------------------------------------------------------------------------------


def draw_start(busy: bool) -> None:
    if not access.is_administrator():
        return
    st.markdown(f"Picks the {ROUND} questions nearest to your thresholds. The labels go into “{plain(_target())}”.")
    st.button("From History", icon=":material/history:", on_click=_begin, disabled=busy, key="label_from_history")
    st.caption("Or upload a file with only the column `question`.")
    card = known_card(app_state.evaluator())
    if card.calls_model:
        most = _MOST_GRADED * -(-app_state.settings().top_k // card.batch)
        st.caption(f"{_MOST_GRADED} questions at most are graded: up to {most:,} LLM calls.")


def _target() -> str:
    """Name of the set that the labels go into: the chosen one, where it is kept, else one's own."""
    chosen = labelled_sets.in_use()
    is_kept = chosen is not None and chosen.name in app_state.workbench().experiments.set_names()
    return chosen.name if chosen is not None and is_kept else tune_state.own_name()


@app_state.reporting()
def _begin() -> None:
    """With what was asked last, each once."""
    access.require_administrator()  # who may see what others asked
    runs = app_state.workbench().history.search(limit=_MOST_RUNS)
    begin(tuple(map(UnlabelledQuestion, dict.fromkeys(filter(None, (cleaned(run.question) for run in runs))))))


@app_state.reporting()
def begin(questions: tuple[UnlabelledQuestion, ...], into: str = "") -> None:
    """For a callback: grade those that the set `into` does not hold, in the background, to choose among them."""
    access.require_administrator()
    name = into or _target()
    known = {question.key for question in app_state.workbench().experiments.find_set(name).questions}
    waiting = tuple(one for one in questions if one.key not in known)[:_MOST_GRADED]
    if not waiting:
        raise BadRecord("No question without a label was found.", hint="Ask some, or upload them.")
    if not background.is_busy(GRADING.name):
        GRADING.grade(waiting)
        own = kept(Labelling)
        own.name, own.waiting, own.asked = name, waiting, ()


# --- the table --------------------------------------------------------------------------------------------------------


@fragment()
def _draw_table() -> None:
    own = kept(Labelling)
    if not own.asked:
        st.rerun()
        return
    key = f"label_table_{fingerprint((own.name, [one.key for one in own.asked]))}"
    if key not in st.session_state:  # else the browser adds what was changed since it was drawn first
        there = app_state.workbench().experiments.find_set(own.name)
        labels = {question.key: word(question.expected) for question in there.questions}
        own.rows = [
            {"label": labels.get(one.key), "question": clean(one.question)} | _best_chunk(one) for one in own.asked
        ]
    with st.container(border=True, key="label_round"):
        st.markdown(f"**Do your documents answer these?** Each label goes into “{plain(own.name)}” at once.")
        st.data_editor(
            own.rows, key=key, num_rows="fixed", hide_index=True, height=min(35 * (len(own.rows) + 1) + 3, 460),
            disabled=["question", "best chunk", "score", "document"], on_change=_keep_labels, args=(key,),
            column_config={
                "label": st.column_config.SelectboxColumn(options=list(map(word, _LABELS)), width="small"),
                "question": st.column_config.TextColumn(width="medium"),
                "best chunk": st.column_config.TextColumn(width="large", help="The chunk with the highest score."),
                "score": st.column_config.NumberColumn(format="%.2f"),
            },
        )  # fmt: skip
        st.button("Finish", on_click=_end, icon=":material/check:", key="label_end")


def _best_chunk(asked: UnlabelledQuestion) -> dict[str, object]:
    """With the score that `upper` is compared with; empty cells where nothing was found, or nothing is graded under the
    present conditions."""
    try:
        trace = app_state.workbench().experiments.scores(labelled_sets.conditions((asked,))).record(asked.key)
    except CragError:
        trace = None
    if trace is None or not trace.passages:
        return {"best chunk": "", "score": None, "document": ""}
    part = ANSWERING if app_state.policy().compares_two_scores else ""
    scores = {grade.passage_id: grade.part(part) for grade in trace.grades or ()}
    best = max(trace.passages, key=lambda passage: scores.get(passage.id) or 0.0)
    text = shortened(clean(without_marks(best.text)), _LONGEST_CHUNK)
    return {"best chunk": text, "score": scores.get(best.id), "document": clean(best.source)}


@app_state.reporting()
def _keep_labels(key: str) -> None:
    """For a callback: those of all cells that were changed since the table was drawn first; an empty cell takes its
    label back."""
    access.require_administrator()
    own, labels = kept(Labelling), {word(one): one for one in _LABELS}
    cells = {
        own.asked[row]: edit["label"] for row, edit in st.session_state[key]["edited_rows"].items() if "label" in edit
    }

    def change(there: LabelledSet) -> LabelledSet:
        for asked, label in cells.items():
            if label not in labels:
                there = there.lacking(asked.key)
                continue
            where = "" if asked.log else app_state.choice().collection
            there = there.having(
                LabelledQuestion(
                    asked.question, labels[label], origin=Origin.WRITTEN, log=asked.log, record=asked.record,
                    collection=where,
                )
            )  # fmt: skip
        return there

    labelled_sets.use(app_state.workbench().experiments.change_set(own.name, change))


def _end() -> None:
    kept(Labelling).asked = ()
