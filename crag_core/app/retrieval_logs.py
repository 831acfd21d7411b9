"""A log of another system in this home: imported as a set, graded, and the stage at which each record went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.text.csv_cells import written
from crag_core.base.text.display import counted
from crag_core.base.types import Action
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import LabelledSet, UnlabelledQuestion
from crag_core.experiments.logs.labels import gradable, questions_of
from crag_core.experiments.logs.read import ReadLog
from crag_core.experiments.logs.record import LogRecord, RetrievalLog
from crag_core.experiments.logs.stages import Finding, Judged, Stage, Verdict


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
    found = questions_of(log, workbench.word_support)
    labelled = workbench.experiments.keep_set(LabelledSet(log.name, found.questions)) if found.questions else None
    return Imported(log, labelled, found.unlabelled)


def opened(name: str, workbench: Workbench) -> Imported:
    """A kept log; its set is as it is kept, corrections included. Raises `UnknownName`."""
    log = workbench.experiments.load_log(name)
    try:
        labelled = LabelledSet(name, workbench.experiments.load_set(name).questions)
    except UnknownName:
        labelled = LabelledSet(name, ())
    known = {question.key for question in labelled.questions}
    unlabelled = tuple(one for one in gradable(log) if one.key not in known)
    return Imported(log, labelled if labelled.questions else None, unlabelled)


def delete(name: str, workbench: Workbench) -> None:
    """With the set of its name, if that has only questions of the log; other sets keep theirs."""
    experiments = workbench.experiments
    if name in experiments.set_names():
        questions = experiments.load_set(name).questions
        if questions and all(one.log == name for one in questions):
            experiments.delete_set(name)
    experiments.delete_log(name)


def judged(log: RetrievalLog, conditions: Conditions, workbench: Workbench) -> tuple[Judged, ...]:
    """The records that are graded under these conditions, in their order."""
    asked = {one.key: one.record for one in gradable(log)}
    traces = workbench.experiments.scores(conditions).records(asked.keys())
    found = ((log.find(record), traces.get(key)) for key, record in asked.items())
    meter = workbench.word_support
    return tuple(Judged(trace, record, meter) for record, trace in found if record is not None and trace is not None)


# --- what is said of it -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """The findings of the graded records of a log under one policy, each beside its record."""

    policy: Policy
    pairs: tuple[tuple[LogRecord, Finding], ...]

    @property
    def stages(self) -> dict[Stage, dict[Verdict, int]]:
        """How many of each verdict, by stage, all of them in their order."""
        found = Counter((one.stage, one.verdict) for _, one in self.pairs)
        return {stage: {verdict: found[stage, verdict] for verdict in Verdict} for stage in Stage}

    @property
    def routes(self) -> dict[Action, int]:
        found = Counter(one.action for _, one in self.pairs)
        return {action: found[action] for action in Action}

    @property
    def is_known(self) -> bool:
        """Whether what is right is known of any of them."""
        return any(one.verdict in (Verdict.WRONG, Verdict.RIGHT) for _, one in self.pairs)


def findings(found: Sequence[Judged], policy: Policy) -> Findings:
    return Findings(policy, tuple((one.record, one.under(policy)) for one in found))


def lines(found: Findings) -> list[str]:
    """A line a stage, with how many are wrong and how many doubtful."""
    total = len(found.pairs)
    table = []
    for stage, verdicts in found.stages.items():
        count = sum(verdicts.values())
        told = [f"{verdicts[one]} {one}" for one in (Verdict.WRONG, Verdict.DOUBTFUL) if verdicts[one]]
        share = f"{count / total:>6.1%}" if total else ""
        table.append(f"{stage:<30}{count:>5}  {share}  {', '.join(told) if stage is not Stage.NONE else ''}".rstrip())
    return table


def to_csv(found: Findings) -> str:
    """A row a record; text that a spreadsheet would take for a formula is marked."""
    header = ["record", "row", "question", "stage", "verdict", "route", "reason", "chunk", "answer", "right answer"]
    rows = (
        [
            *(one.id, one.row, one.question, finding.stage.value, finding.verdict.value),
            *(finding.action.value if finding.action else "", finding.reason, finding.chunk),
            *(one.answer, " | ".join(one.references)),
        ]
        for one, finding in found.pairs
    )
    return written([header, *rows])


def summary(log: Imported) -> str:
    """ "498 records: 420 labelled, 78 without a label"."""
    count = len(log.labelled.questions) if log.labelled else 0
    return f"{counted(len(log.log.records), 'record')}: {count} labelled, {len(log.unlabelled)} without a label"
