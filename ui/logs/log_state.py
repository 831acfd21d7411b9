"""State of the Logs page: the file that is being looked at, the open log, its grading, and its findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from crag_core.app import retrieval_logs
from crag_core.app.retrieval_logs import Imported
from crag_core.base.data_files import DATA
from crag_core.base.errors import BadRecord, CragError
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.logs import findings as found_in
from crag_core.experiments.logs.findings import Findings
from crag_core.experiments.logs.read import ReadLog, read_log
from crag_core.experiments.logs.record import LogRecord, RetrievalLog, logged_of, passages_of
from crag_core.experiments.logs.stages import Judged
from crag_core.view.score_words import ALONE
from ui.session import access, app_state, labelled_sets, run_job
from ui.session.keys import hand, kept, remembered
from ui.session.labelled_sets import SetWork

NOT_READ = "(not read)"


@dataclass(frozen=True)
class Looked:
    """A file before anything is kept: what is read of it, with what was `chosen` for its fields."""

    name: str
    content: bytes
    read: ReadLog
    chosen: Mapping[str, str]


@dataclass
class LogsPage:
    """The file that is looked at, the name of the open log ("": none), the id of the record that is shown of it."""

    looked: Looked | None = None
    name: str = ""
    record: str | None = None


def look(name: str, content: bytes, shape: str = "", chosen: Mapping[str, str] | None = None) -> None:
    """For a callback: read the file, and keep nothing yet."""
    chosen = chosen or {}
    kept(LogsPage).looked = Looked(name, content, read_log(content, shape, chosen), chosen)


def look_at_sample() -> None:
    look("sample log.jsonl", (DATA / "sample-log.jsonl").read_bytes())


def put_away() -> None:
    kept(LogsPage).looked = None


@app_state.reporting()
def keep(name: str) -> None:
    """For a callback: import what is looked at, and open it."""
    access.require_administrator()
    found = kept(LogsPage).looked
    if found is None:
        raise BadRecord("No file is chosen.", hint="Choose one.")
    imported = retrieval_logs.keep(found.read, name, app_state.workbench())
    put_away()
    open_log(imported.log.name)


def names() -> tuple[str, ...]:
    """None where the disk does not answer, which opening one tells."""
    try:
        return app_state.workbench().experiments.log_names()
    except CragError:
        return ()


def open_log(name: str) -> None:
    """For a callback; "": close it."""
    page = kept(LogsPage)
    page.name, page.record = name, None
    st.session_state["log_stage"] = None


def current() -> Imported | None:
    """The open log. Raises `CragError` for one that is gone or damaged."""
    name = kept(LogsPage).name
    return retrieval_logs.opened(name, app_state.workbench()) if name else None


@app_state.reporting()
def delete(name: str) -> None:
    access.require_administrator()
    open_log("")
    retrieval_logs.delete(name, app_state.workbench())


def grading(log: RetrievalLog) -> SetWork:
    return labelled_sets.grading_of("log_grading", log.name, log.fingerprint)


@app_state.reporting()
def start_grading(log: RetrievalLog) -> None:
    """For a callback: grade what is missing, in the background."""
    grading(log).grade(log.gradable)


def judged(log: RetrievalLog) -> tuple[Judged, ...]:
    """The records that are graded under the sidebar's evaluator."""
    under = labelled_sets.conditions(log.gradable)
    state = app_state.workbench().experiments.scores(under).state
    return _judged(str(app_state.settings().home), under, log.fingerprint, state, log)


@st.cache_resource(show_spinner=False, max_entries=4)
def _judged(home: str, under: Conditions, fingerprint: str, state: object, _log: RetrievalLog) -> tuple[Judged, ...]:
    """Read once for all sessions, and again once more is graded."""
    return retrieval_logs.judged(_log, under, app_state.workbench())


def findings(found: tuple[Judged, ...], policy: Policy) -> Findings:
    """Under a policy, worked out once for the same records."""
    key = (policy, tuple(map(id, found)))
    return remembered(f"log_findings_{policy.name}", key, lambda: found_in.findings(found, policy, ALONE))


@app_state.reporting()
def ask(log: RetrievalLog, record: LogRecord) -> None:
    """For a callback: run a record on Ask, over its chunks."""
    run_job.ask_record(record.question, passages_of(record), logged_of(record, log.name))
    st.session_state["ask_question"] = record.question
    hand("page", "pages/ask.py")
