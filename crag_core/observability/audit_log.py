"""The audit log: decisions, discarded and ungraded evidence, one JSON object a line, in the file of a home."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crag_core.base.concurrency import sqlite_file
from crag_core.base.errors import AuditUnavailable
from crag_core.base.text.words import storable
from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepName, StepState
from crag_core.base.types.web import PageOutcome
from crag_core.pipeline.run import Listener
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace

_LOG = logging.getLogger("crag.audit")
_LAYOUT = "CREATE TABLE crag_audit (number INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL)"
_ADD = "INSERT INTO crag_audit (line) VALUES (?)"


class AuditLog(Listener):
    """Keeps the events of every finished step in the file of `home`, for any number of runs and processes at once.

    A log that cannot be written never stops a run: `problem` says what is wrong. `now` gives the time in ISO 8601.
    """

    def __init__(self, home: Path, now: Callable[[], str]) -> None:
        self._tables = sqlite_file.Tables(home / sqlite_file.NAME, "The audit log in", _LAYOUT, AuditUnavailable)
        self.problem = ""
        self._now = now

    def finished(self, step: Step, trace: Trace) -> None:
        head = {"time": self._now(), "run": trace.id, "policy": trace.settings.policy.name}
        lines = [json.dumps(head | event, ensure_ascii=False) for event in find_events(step, trace)]
        if not lines:
            return
        try:
            with self._tables.writing() as database:
                database.executemany(_ADD, [(storable(line),) for line in lines])
            self.problem = ""
        except AuditUnavailable as error:
            if not self.problem:
                _LOG.warning("%s", error)
            self.problem = str(error)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Oldest first, one JSON object each, with a number that grows. Raises `AuditUnavailable`."""
        with self._tables.reading() as database:
            yield from database.execute("SELECT number, line FROM crag_audit ORDER BY number") if database else ()

    def forget(self, last: int) -> None:
        """Delete the lines up to this number. Raises `AuditUnavailable`."""
        with self._tables.writing() as database:
            database.execute("DELETE FROM crag_audit WHERE number <= ?", (last,))

    def take_over(self, file: Path) -> None:
        """Add the lines of `file`, of an earlier version, once."""
        with file.open(encoding="utf-8", errors="replace", newline="\n") as lines, self._tables.writing() as database:
            first = lines.readline().rstrip("\n")
            if not database.execute("SELECT 1 FROM crag_audit WHERE line = ? LIMIT 1", (first,)).fetchone():
                database.executemany(_ADD, [(first,)] if first else [])
                database.executemany(_ADD, ((one.rstrip("\n"),) for one in lines if one != "\n"))


def find_events(step: Step, trace: Trace) -> list[dict[str, Any]]:
    """What the step that was just recorded has to report (events of description 001, and their like)."""
    if step.state is not StepState.DONE:
        return []
    if step.name == StepName.GRADE:
        return _ungraded(trace)
    if step.name == StepName.RETRIEVE:
        return _suspicious(trace, trace.passages or ())
    if step.name == StepName.ROUTE:
        return _decided(trace)
    if step.name == StepName.RETRIEVE_AGAIN:
        made = trace.rounds[-1]
        found = sum(len(one.passages) for one in made.retrievals)
        query = {"query": made.retrievals[-1].query if made.retrievals else "", "by": made.query_by, "found": found}
        before = {passage.id for passage in replace(trace, rounds=trace.rounds[:-1]).all_passages}
        new = [one for one in trace.all_passages if one.id not in before]
        return [{"event": "retrieve_again", "round": made.path[-1], **query}, *_suspicious(trace, new)]
    if step.name == StepName.SEARCH and trace.web:
        asked = {"event": "web_search", "query": trace.web.query, "outcome": trace.web.outcome.value}
        return [asked, *_suspicious(trace, trace.web.passages)]
    if step.name == StepName.READ_PAGES and trace.web:
        read = [page for page in trace.web.pages or () if page.outcome in (PageOutcome.READ, PageOutcome.FAILED)]
        chunks = {id_ for page in read for id_ in page.chunks}
        asked_for = [{"event": "web_page", "url": page.url, "outcome": page.outcome.value} for page in read]
        return [*asked_for, *_suspicious(trace, [one for one in trace.web.passages if one.id in chunks])]
    return []


def _suspicious(trace: Trace, passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Where passages that were just found speak to a model; their words are not repeated here."""
    return [
        {"event": "suspicious_text", **_named(passage), "sign": one.sign, "start": one.start, "end": one.end}
        for passage in passages
        for one in trace.suspicions or ()
        if one.passage_id == passage.id
    ]


def _ungraded(trace: Trace) -> list[dict[str, Any]]:
    """Grades that could not be read, of the passages that this iteration looks at for the first time."""
    *before, present = decision_path_of(trace, trace.settings.policy).iterations
    known = {passage.id for iteration in before for passage in iteration.passages}
    grades = [(passage, trace.grade_of(passage.id)) for passage in present.passages if passage.id not in known]
    return [
        {"event": "grade_unparsed", **_named(passage), "cause": grade.cause, "reply": grade.raw}
        for passage, grade in grades
        if grade is not None and grade.score is None
    ]


def _decided(trace: Trace) -> list[dict[str, Any]]:
    present = decision_path_of(trace, trace.settings.policy).iterations[-1]
    decision = present.decision
    number = len(present.path) + 1
    events: list[dict[str, Any]] = []
    if decision.rule and decision.verdict:
        scores = [1.0] * len(present.passages)
        events.append({"event": "fast_path_hit", "rule_name": decision.rule, "iteration": number, "scores": scores})
    reasons = {one.passage_id: one.reason for one in decision.plan if one.kind is CorrectionKind.DISCARD}
    for passage in present.passages:
        if reason := reasons.get(passage.id) or reasons.get(None):
            grade = trace.grade_of(passage.id)
            score = grade.score if grade else None
            events.append({"event": "evidence_removed", **_named(passage), "score": score, "reason": reason})
    action, score = (decision.action.value, decision.score) if decision.verdict else ("", None)
    decided: dict[str, Any] = {"action": action, "label": decision.label, "score": score}
    if decision.topical is not None:
        decided["topical"] = decision.topical
    return [*events, {"event": "decision", "iteration": number, **decided, "reason": decision.reason}]


def _named(passage: Passage) -> dict[str, Any]:
    return {"passage": passage.id, "source": passage.source}
