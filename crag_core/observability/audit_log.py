"""The audit log: decisions, discarded and ungraded evidence, one JSON object a line, append-only."""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepName, StepState
from crag_core.base.types.web import PageOutcome
from crag_core.pipeline.run import Listener
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace

_LOG = logging.getLogger("crag.audit")
_A_WRITE_S = 0.05  # longer than a write takes


class AuditLog(Listener):
    """Writes the events of every finished step to `path`, for any number of runs and processes at once.

    A log that cannot be written never stops a run: `problem` says what is wrong. `now` gives the time in ISO 8601.
    """

    def __init__(self, path: Path, now: Callable[[], str]) -> None:
        self.path = path
        self.problem = ""
        self._now = now
        self._may_be_torn = True  # what a full disk or a kill left at the end of the file

    def finished(self, step: Step, trace: Trace) -> None:
        head = {"time": self._now(), "run": trace.id, "policy": trace.settings.policy.name}
        lines = [json.dumps(head | event, ensure_ascii=False) for event in find_events(step, trace)]
        if lines:
            self._append("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))

    def _append(self, data: bytes) -> None:
        """One write in append mode, so that lines of several writers do not mix."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                if self._may_be_torn and _ends_in_mid_line(file):
                    data = b"\n" + data
                self._may_be_torn = True
                if os.write(file, data) < len(data):  # the disk took a part
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._may_be_torn = False
            finally:
                os.close(file)
            self.problem = ""
        except OSError as error:
            if not self.problem:
                _LOG.warning("The audit log %s cannot be written: %s", self.path, error)
            self.problem = f"The audit log {self.path.name} cannot be written: {error.strerror or error}."


def _ends_in_mid_line(file: int) -> bool:
    """What is added to such a line would be lost with it. A line that another process is writing now is none."""
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return False
    time.sleep(_A_WRITE_S)
    return os.fstat(file).st_size == size


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
