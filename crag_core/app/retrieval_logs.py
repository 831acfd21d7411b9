"""A log of another system in this home: imported as a set, opened, deleted, and its graded records."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord
from crag_core.base.text.display import counted
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import LabelledSet, UnlabelledQuestion
from crag_core.experiments.logs.matching import questions_of
from crag_core.experiments.logs.read import ReadLog
from crag_core.experiments.logs.record import RetrievalLog
from crag_core.experiments.logs.stages import Judged
from crag_core.trace.grounding.citation_check import WORDS


@dataclass(frozen=True)
class Imported:
    """A log as it is kept. `labelled` is the set of its records that have a label, None where none has one."""

    log: RetrievalLog
    labelled: LabelledSet | None
    unlabelled: tuple[UnlabelledQuestion, ...]


def keep(read: ReadLog, name: str, workbench: Workbench) -> Imported:
    """Save the log, and its labelled records as a set; nothing that is there is lost. Raises `BadRecord` for none."""
    if not read.records:
        raise BadRecord(read.failure or "This log has no record.", hint="Map its fields, or choose another shape.")
    log = workbench.experiments.keep_log(RetrievalLog(name, read.shape, read.records))
    known, unknown = questions_of(log, workbench.support(WORDS))
    labelled = workbench.experiments.keep_set(LabelledSet(log.name, known)) if known else None
    return Imported(log, labelled, unknown)


def opened(name: str, workbench: Workbench) -> Imported:
    """A kept log; its set is as it is kept, corrections included. Raises `UnknownName`."""
    log, labelled = workbench.experiments.load_log(name), workbench.experiments.find_set(name)
    known = {question.key for question in labelled.questions}
    unlabelled = tuple(one for one in log.gradable if one.key not in known)
    return Imported(log, labelled if labelled.questions else None, unlabelled)


def delete(name: str, workbench: Workbench) -> None:
    """With the set of its name, if that has only questions of the log; other sets keep theirs."""
    questions = workbench.experiments.find_set(name).questions
    if questions and all(one.log == name for one in questions):
        workbench.experiments.delete_set(name)
    workbench.experiments.delete_log(name)


def judged(log: RetrievalLog, conditions: Conditions, workbench: Workbench) -> tuple[Judged, ...]:
    """The records that are graded under these conditions, in their order."""
    asked = {one.key: one.record for one in log.gradable}
    traces = workbench.experiments.scores(conditions).records(asked.keys())
    found = ((traces.get(key), log.find(record)) for key, record in asked.items())
    meter = workbench.support(WORDS)
    return tuple(Judged(trace, record, meter) for trace, record in found if trace and record)


def summary(log: Imported) -> str:
    """ "498 records: 420 labelled, 78 without a label"."""
    count = len(log.labelled.questions) if log.labelled else 0
    return f"{counted(len(log.log.records), 'record')}: {count} labelled, {len(log.unlabelled)} without a label"
