"""Sources of labelled questions, their problems, and the table to edit them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.app.calibration import sample_questions
from crag_core.base.data_files import DATA
from crag_core.base.errors import CragError, WrongUse
from crag_core.base.text.display import counted
from crag_core.base.types.passages import Passage
from crag_core.evaluators.policies import known_card
from crag_core.experiments.drafting.draft import draft as draft_questions
from crag_core.experiments.drafting.draft_with_model import reword
from crag_core.experiments.labelled.from_feedback import questions_from
from crag_core.experiments.labelled.questions import (
    ALL,
    LABELS,
    Expected,
    LabelledQuestion,
    LabelledSet,
    Origin,
    word,
)
from crag_core.experiments.labelled.read import Read, read_questions, write_csv
from crag_core.experiments.statistics.small_sets import few_tell
from ui.run.job_progress import draw_stop
from ui.run.verdict import COLOURS, ICONS
from ui.session import access, app_state, background, labelled_sets
from ui.session.fragments import ticking
from ui.session.keys import hand, kept, take
from ui.shell.page import is_allowed
from ui.shell.text import first_lines, plain
from ui.tune import labelling, tune_state
from ui.tune.tune_state import TunePage

MOST_PASSAGES = 5000
SAMPLE, DRAFT, UPLOAD, FEEDBACK, KEPT = "Sample questions", "Draft them", "Upload", "From feedback", "Kept sets"
WRITE = "Write them"
_DRAFTING = "tune_drafting"
DraftingJob = Job[tuple[int, int], tuple[LabelledQuestion, ...]]
"""Tells how many questions the model has been asked about, and of how many."""
_SHOWN_PROBLEMS = 10
LARGEST_MB = 40
MOST_EDITED = 3000


def _passages() -> list[Passage]:
    """The first chunks of each indexed document that is searched, at most `MOST_PASSAGES` in all."""
    workbench, collection = app_state.workbench(), app_state.choice().collection
    if (engine := workbench.own_engine) is not None:
        raise WrongUse(f"{engine.where} lists no documents to draft from.", hint="Write questions, or upload them.")
    documents = [one for one in workbench.store.documents() if collection in ("", one.collection)]
    each = max(MOST_PASSAGES // max(len(documents), 1), 3)
    return [chunk for one in documents for chunk in workbench.store.passages_of(one.id)[:each]][:MOST_PASSAGES]


def _start_drafting(count: int, ask_model: bool) -> None:
    """With a model in the background, since that takes minutes. Raises `CragError`."""
    passages, collection = _passages(), app_state.choice().collection
    drafted = tune_state.speaking_of(collection or ALL, draft_questions(passages, _everyday(), count, seed=0))
    model = app_state.workbench().servers.model(app_state.model()) if ask_model else None
    if model is None:
        kept(TunePage).drafted = drafted
        return

    def work(job: DraftingJob) -> tuple[LabelledQuestion, ...]:
        return reword(drafted, passages, model, job.cancel, lambda done, total: job.tell((done, total)))

    background.start(_DRAFTING, work, (0, 0))


@ticking()
def _draw_drafting() -> None:
    job: DraftingJob | None = background.job(_DRAFTING)
    if job is None or not job.is_running:
        st.rerun()
        return
    done, total = job.progress
    st.progress(done / max(total, 1), f":shimmer[Drafting] {done} of {counted(total, 'question')} worded")
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_stop(job, "tune_draft_stop")
        st.caption("Questions that are worded by then stay; the others stay search words.")


@st.cache_data(show_spinner=False)
def _everyday() -> tuple[str, ...]:
    lines = (DATA / "questions" / "off-corpus.jsonl").read_text("utf-8").splitlines()
    return tuple(json.loads(line)["question"] for line in lines)


def draw_sources(has_set: bool, busy: bool) -> None:
    """How to get labelled questions; with a set on the page, how to get more or others."""
    choices = {
        UPLOAD: _draw_upload,
        WRITE: lambda busy: _draw_table(tune_state.own_set(), busy),
        DRAFT: _draw_draft,
        FEEDBACK: _draw_feedback,
        SAMPLE: _draw_sample,
    }
    if _kept_names():
        choices = {KEPT: _draw_kept} | choices
    start = next(iter(choices))
    if not has_set:
        st.markdown("Add questions and say whether your documents answer them. 20 are needed, 50 are better.")
    chosen = st.segmented_control(
        "Questions", list(choices), default=start, required=True, key="tune_source", disabled=busy
    )
    try:
        choices[chosen](busy)
    except CragError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _kept_names() -> tuple[str, ...]:
    """None where the disk does not answer, which the source that reads them tells."""
    try:
        return app_state.workbench().experiments.set_names()
    except CragError:
        return ()


def _draw_sample(busy: bool) -> None:
    questions = sample_questions().questions
    st.markdown(f"{counted(len(questions), 'question')} about the sample documents of the application.")
    _draw_take(SAMPLE, questions, busy)


def _draw_draft(busy: bool) -> None:
    collection = app_state.choice().collection
    of = f"the documents of {plain(collection)}" if collection else "your documents"
    st.markdown(
        f"From {of}: questions that they answer, the same with the answering chunks taken away, and "
        "everyday questions. Check them before you trust them."
    )
    page = kept(TunePage)  # first: the script may be broken off at any touch of the session
    if (ended := background.take_ended(_DRAFTING)) is not None:
        if broken := ended.bug or ended.error:
            raise broken
        page.drafted = ended.result
    is_drafting = background.is_busy(_DRAFTING)
    with st.form("tune_draft_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        count = st.number_input("Questions", 12, 400, 100, 10, key="tune_draft_count", width=140)
        model = app_state.model().partition("/")[2] if app_state.has_model() else ""
        ask_model = st.checkbox(
            f"Let {plain(model)} word them" if model else "Let a language model word them (none is chosen)",
            key="tune_draft_model", disabled=not model,
        )  # fmt: skip
        if st.form_submit_button("Draft", icon=":material/edit_note:", disabled=busy or is_drafting):
            with st.spinner("Drafting questions"):
                _start_drafting(int(count), bool(ask_model))
    if background.is_busy(_DRAFTING):
        _draw_drafting()
        return
    drafted = page.drafted
    if drafted:
        if away := LabelledSet("", drafted).elsewhere(collection):
            st.caption(f":orange[:material/warning: {plain(away)}]")
        for one in drafted[:3]:
            st.caption(f"{_badge(one.expected)} {plain(one.question)}")
        _draw_take("Drafted questions", drafted, busy, keeps=True)
    elif drafted is not None:
        st.info("No sentence of these documents could be made into a question.", icon=":material/info:")


def _draw_upload(busy: bool) -> None:
    st.markdown(
        f"CSV or JSONL with the columns `question` and `label`: {', '.join(map(word, Expected))}. It is saved at once."
    )
    st.file_uploader(
        "Labelled questions", ["csv", "tsv", "jsonl", "json", "txt"], key="tune_upload", disabled=busy,
        on_change=_take_file, max_upload_size=LARGEST_MB,
    )  # fmt: skip
    found = kept(TunePage).uploaded
    if found is None or not found.read.problems:
        return
    _draw_problems(found.read, f"{plain(found.name)} was not taken. Nothing was changed.")
    if count := len(found.read.questions):
        st.button(f"Take the other {counted(count, 'question')}", on_click=tune_state.take_the_rest, key="tune_rest")


def _take_file() -> None:
    file = st.session_state["tune_upload"]
    if file is None:
        return
    waiting = tune_state.take_file(file.name, file.getvalue())
    found, is_free = kept(TunePage).uploaded, not known_card(app_state.evaluator()).calls_model
    if waiting:
        labelling.begin(waiting)
    elif found and not found.read.problems and is_free and access.is_administrator():
        tune_state.start_grading()


def _draw_feedback(busy: bool) -> None:
    if not is_allowed("see the runs of others"):
        return
    access.require_administrator()
    questions, unspecific = questions_from(app_state.workbench().history.all_labels())
    st.markdown("Questions on Ask whose route was called right, or for which the right one was named.")
    if unspecific:
        st.caption(f"Not used: {counted(unspecific, 'label')} without the right route.")
    if not questions:
        st.info("No route labels yet.", icon=":material/info:")
        return
    _draw_take("From feedback", questions, busy, keeps=True)


def _draw_kept(busy: bool) -> None:
    experiments, own = app_state.workbench().experiments, tune_state.own_name()
    names = experiments.set_names()
    name = st.selectbox("Kept set", names, names.index(own) if own in names else 0, key="tune_kept_name", width=400)
    read = experiments.load_set(name)
    _draw_read(read)
    with st.container(horizontal=True):
        _draw_take(name, read.questions, busy)
        if access.is_administrator():
            st.button("Delete this set", on_click=_delete, args=(name,), icon=":material/delete:", type="tertiary")


@app_state.reporting()
def _delete(name: str) -> None:
    access.require_administrator()
    app_state.workbench().experiments.delete_set(name)


def _draw_take(name: str, questions: tuple[LabelledQuestion, ...], busy: bool, keeps: bool = False) -> None:
    """`keeps`: they are not among the kept sets yet, and are saved when they are chosen."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Use {counted(len(questions), 'question')}",
            on_click=tune_state.keep if keeps else labelled_sets.use, args=(LabelledSet(name, questions),),
            type="primary", icon=":material/check:", disabled=busy, key="tune_take",
        )  # fmt: skip
        if labelled_sets.in_use() is not None:
            st.button(
                "Add them to the set", on_click=tune_state.add_questions, args=(questions,), icon=":material/add:",
                disabled=busy, key="tune_add",
            )  # fmt: skip


def _draw_read(read: Read) -> None:
    """What is wrong with a kept set that somebody edited, and what was guessed."""
    if read.problems:
        title = f"{counted(len(read.problems), 'row')} cannot be used" if read.questions else "Nothing here can be used"
        _draw_problems(read, title)
    for remark in read.remarks:
        st.caption(f":material/info: {plain(remark)}")


def _draw_problems(read: Read, title: str) -> None:
    lines = [plain(problem.told) for problem in read.problems]
    st.error(first_lines(lines, _SHOWN_PROBLEMS), title=title, icon=":material/error:")


def draw_set(labelled: LabelledSet, busy: bool) -> None:
    """What is in the set, and behind a fold the table to edit it in."""
    counts = labelled.counts
    st.markdown(
        " \u2003 ".join(f"{_badge(one)} **{count}**" for one, count in counts.items()),
        help="  \n".join(f"{word(one)}: {LABELS[one]}" for one in counts),
    )
    drafted = sum(one.origin is Origin.DRAFTED for one in labelled.questions)
    if drafted:
        st.caption(f":material/edit_note: {counted(drafted, 'question')} drafted by the application: check them.")
    if of_logs := sum(one.origin is Origin.LOG for one in labelled.questions):
        st.caption(f":material/rule: {counted(of_logs, 'label')} by the right answers of a log: check them.")
    uploaded = kept(TunePage).uploaded
    if uploaded and not uploaded.read.problems and uploaded.read.questions == labelled.questions:
        st.caption(f":material/check: {plain(uploaded.name)} is saved as “{plain(labelled.name)}”.")
        for remark in uploaded.read.remarks:
            st.caption(f":material/info: {plain(remark)}")
    if away := labelled.elsewhere(app_state.choice().collection):
        st.caption(f":orange[:material/warning: {plain(away)} Labels may not hold there.]")
    if few := few_tell(labelled.questions):
        st.caption(f":material/info: {plain(few)}")
    with st.expander("Questions", icon=":material/table_rows:", key="tune_questions", on_change="rerun") as fold:
        if fold.open:
            _draw_table(labelled, busy)


def _draw_table(labelled: LabelledSet, busy: bool) -> None:
    if len(labelled.questions) > MOST_EDITED:
        st.caption(f"A set of more than {MOST_EDITED:,} questions is not edited here: download and upload it.")
        _draw_files(labelled)
        return
    rows = [{**question.plain, "expected": word(question.expected)} for question in labelled.questions]
    if not rows:
        rows = [{"question": "", "expected": None}] * 3
    edited = st.data_editor(
        rows,
        key=f"tune_table_{labelled.fingerprint}",
        num_rows="dynamic",
        disabled=busy,
        height=380,
        column_config={
            "question": st.column_config.TextColumn(required=True, width="large"),
            "expected": st.column_config.SelectboxColumn("label", options=list(map(word, Expected)), required=True),
            "answers": st.column_config.ListColumn(help="Any of these texts answers the question."),
            "without": st.column_config.TextColumn(help="Chunks with this text count as not indexed."),
            "origin": st.column_config.TextColumn(disabled=True),
            "log": st.column_config.TextColumn(disabled=True),
            "record": st.column_config.TextColumn(disabled=True),
            "collection": st.column_config.TextColumn(help=f"What the label speaks of; {ALL}: all documents."),
        },
    )
    changed = [row for row in edited if row.get("question") or row.get("expected")]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Save changes", on_click=_save_changes, args=(labelled, changed), icon=":material/save:",
            disabled=busy or changed in ([], rows), key="tune_save_changes",
        )  # fmt: skip
        if labelled.questions:
            _draw_files(labelled)
    if problem := take("table_problem"):
        _draw_read(problem)


def _draw_files(labelled: LabelledSet) -> None:
    st.download_button(
        "CSV", lambda: write_csv(labelled.questions).encode("utf-8-sig"), f"{labelled.name}.csv",
        icon=":material/download:", on_click="ignore",
    )  # fmt: skip


def _save_changes(labelled: LabelledSet, rows: Sequence[dict[str, object]]) -> None:
    """Through the same checks as a file."""
    filled = ({key: value for key, value in row.items() if value not in (None, "", [])} for row in rows)
    read = read_questions(labelled.name, "\n".join(json.dumps(row) for row in filled).encode())
    if read.problems:
        hand("table_problem", read)
    else:
        tune_state.keep(replace(labelled, questions=read.questions), labelled)


def _badge(expected: Expected) -> str:
    if expected is Expected.UNANSWERABLE:
        return f":violet-badge[:material/block: {word(expected)}]"
    action = expected.actions[0]
    return f":{COLOURS[action]}-badge[:material/{ICONS[action]}: {word(expected)}]"
