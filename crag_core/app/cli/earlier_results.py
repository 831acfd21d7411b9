"""Earlier results for the command `compare`: lists them, and puts chosen ones beside the present ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from crag_core.app.configuration_text import Configuration
from crag_core.app.workbench import Workbench
from crag_core.base.errors import UnknownName
from crag_core.experiments.comparison.earlier_results import Earlier, earlier_results
from crag_core.experiments.labelled.questions import LabelledQuestion


def find_earlier(
    questions: Sequence[LabelledQuestion], wanted: Sequence[Configuration], workbench: Workbench
) -> tuple[Earlier, ...]:
    """Kept results that hold some of `questions` and are none of `wanted`, the newest first."""
    laboratory = workbench.laboratory
    now = {one.name: workbench.setup(one.choice) for one in wanted}
    keys = {asked.key for asked in questions}
    return earlier_results(
        laboratory.setups(), keys, now, datetime.now(), lambda one: laboratory.outcomes(one).load().keys()
    )


def pick(ids: Sequence[str], found: Sequence[Earlier]) -> tuple[Earlier, ...]:
    """Those with these ids, each once; `UnknownName` lists what there is."""
    return tuple(dict.fromkeys(_pick(id_, found) for id_ in ids))


def overview(found: Sequence[Earlier], total: int) -> str:
    """A line for each, with its id; `total` questions are in the set."""
    if not found:
        return "no earlier results"
    rows = [("id", "configuration and day", "questions", "unlike")]
    rows += [
        (one.kept.id, one.name, f"{len(one.asked)} of {total}", f"{one.like}: {', '.join(one.differs)}")
        for one in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _pick(wanted: str, found: Sequence[Earlier]) -> Earlier:
    near = [one for one in found if wanted and one.kept.fingerprint.startswith(wanted.lower())]
    if len(near) != 1:
        known = "".join(f"\n  {one.kept.id}  {one.name}" for one in found) or " none of this set."
        raise UnknownName(f"Unknown earlier result {wanted!r}.", hint=f"Known:{known}")
    return near[0]
