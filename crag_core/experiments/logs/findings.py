"""What is said of the graded records of a log: how many at which stage, in lines of text and as a table. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.text.csv_cells import written
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import FIELD, Terms
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.stages import Finding, Judged, Stage, Verdict


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
        return any(one.verdict in (Verdict.WRONG, Verdict.RIGHT) for _, one in self.pairs)


def findings(found: Sequence[Judged], policy: Policy, terms: Terms = FIELD) -> Findings:
    return Findings(policy, tuple((one.record, one.under(policy, terms)) for one in found))


def lines(found: Findings) -> list[str]:
    """A line a stage, with how many are wrong and how many doubtful."""
    table = []
    for stage, verdicts in found.stages.items():
        count = sum(verdicts.values())
        told = [f"{verdicts[one]} {one}" for one in (Verdict.WRONG, Verdict.DOUBTFUL) if verdicts[one]]
        share = f"{count / len(found.pairs):>6.1%}" if found.pairs else ""
        table.append(f"{stage:<31}{count:>5}  {share}  {', '.join(told) if stage is not Stage.NONE else ''}".rstrip())
    return table


def to_csv(found: Findings) -> str:
    """A row a record; text that a spreadsheet would take for a formula is marked."""
    header = ["record", "row", "question", "stage", "verdict", "route", "reason", "chunk", "answer", "right answer"]
    rows = (
        (
            one.id, one.row, one.question, finding.stage.value, finding.verdict.value, finding.action or "",
            finding.reason, finding.chunk, one.answer, " | ".join(one.references),
        )
        for one, finding in found.pairs
    )  # fmt: skip
    return written([header, *rows])
