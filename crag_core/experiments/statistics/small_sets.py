"""What few labelled questions can tell, and the smallest limit that they can certify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from crag_core.base.text.display import counted
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.experiments.statistics.intervals import least_certified

FEW = 50
LEAST, LEAST_OF_A_KIND = 20, 4
"""Questions of which thresholds can be chosen at all, and of these answerable and other ones."""
MOST_CERTIFIED = 0.5
"""A limit above it promises nothing of use."""


def held_out(questions: Sequence[LabelledQuestion]) -> int:
    """Unanswerable questions in the half that thresholds are judged on: one half of every label."""
    counts = Counter(one.expected for one in questions if not one.expected.is_answerable)
    return sum(count // 2 for count in counts.values())


def few_tell(questions: Sequence[LabelledQuestion]) -> str:
    """What fewer than `FEW` questions can tell and what not, in one sentence; "" for more and for none."""
    if not 0 < len(questions) < FEW:
        return ""
    counts = Counter(one.expected.is_answerable for one in questions)
    rarer = min(counts.values())
    if len(questions) < LEAST or min(counts[True], counts[False]) < LEAST_OF_A_KIND:
        return (
            f"{counted(len(questions), 'question')}: too few to choose thresholds, which takes {LEAST}, with "
            f"{LEAST_OF_A_KIND} that the documents answer and {LEAST_OF_A_KIND} that they do not."
        )
    least = least_certified(held_out(questions), 0.95)
    limit = "" if least > MOST_CERTIFIED else f" below {math.ceil(100 * least)}%"
    return (
        f"{len(questions)} questions are enough to find thresholds that are far off. One question moves a rate by "
        f"{1 / rarer:.0%}, and no limit{limit} can be certified."
    )
