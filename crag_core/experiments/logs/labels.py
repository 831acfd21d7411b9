"""A log as a set: its records as questions, labelled by what the log says is right, where it says anything."""

from __future__ import annotations

from crag_core.base.protocols import SupportMeter
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Origin, UnlabelledQuestion
from crag_core.experiments.logs.matching import Reference
from crag_core.experiments.logs.record import LogRecord, RetrievalLog


def questions_of(
    log: RetrievalLog, meter: SupportMeter
) -> tuple[tuple[LabelledQuestion, ...], tuple[UnlabelledQuestion, ...]]:
    """The records that have a label, and those that wait for one.

    A label of the log is kept; else a chunk that holds the right answer makes it "answered", none the opposite.
    """
    known: list[LabelledQuestion] = []
    unknown: list[UnlabelledQuestion] = []
    for record, asked in zip(log.records, gradable(log), strict=True):
        label, note = _label_of(record, meter)
        if label is None:
            unknown.append(asked)
            continue
        known.append(
            LabelledQuestion(
                record.question, label, record.references, origin=Origin.LOG, note=note, log=log.name, record=record.id
            )
        )
    return tuple(known), tuple(unknown)


def gradable(log: RetrievalLog) -> tuple[UnlabelledQuestion, ...]:
    """Every record, as grading asks for it."""
    return tuple(UnlabelledQuestion(one.question, log.name, one.id) for one in log.records)


def _label_of(record: LogRecord, meter: SupportMeter) -> tuple[Expected | None, str]:
    """And why, in words; the rank of a chunk counts from 1."""
    if record.expected is not None:
        return record.expected, "labelled in the log"
    truth = Reference(record, meter)
    if not truth.can_tell:
        return None, ""
    holding = (rank for rank, one in enumerate(record.contexts, start=1) if truth.is_held_by(one.text, one.id))
    if rank := next(holding, 0):
        return Expected.CORRECT, f"chunk {rank} holds the right answer"
    return Expected.UNANSWERABLE, "no chunk holds the right answer"
