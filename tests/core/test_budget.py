from __future__ import annotations

import pytest

from crag_core.budget import calls_needed
from crag_core.reroute import Missing
from tests.core.builders import policy


@pytest.mark.parametrize(
    ("missing", "name", "judge", "writer", "calls"),
    [
        ((), "paper", True, True, 0),
        ((Missing.ANSWER,), "paper", False, True, 1),
        ((Missing.ANSWER,), "paper", True, False, 0),
        ((Missing.GRADES, Missing.ANSWER), "paper", True, True, 7),
        ((Missing.GRADES,), "paper", False, True, 0),
        ((Missing.WEB, Missing.ANSWER), "paper", False, True, 2),  # the rewrite and the answer
        ((Missing.WEB, Missing.ANSWER), "paper", True, True, 7),  # and five results judged
        ((Missing.WEB,), "worst-chunk", True, True, 4),  # and three results judged
        ((Missing.WEB,), "paper", True, False, 5),
        ((Missing.EXTRACTION, Missing.ANSWER), "worst-chunk", True, True, 7),
        ((Missing.EXTRACTION,), "worst-chunk", True, False, 0),
        ((Missing.STRIPS, Missing.EXPANSION, Missing.RE_RETRIEVAL), "agentic", True, True, 0),
        ((Missing.GRADES,), "rank-weighted", True, True, 5),  # the first five of the six
    ],
)
def test_calls_to_supply_what_is_missing_for_six_passages(
    missing: tuple[Missing, ...], name: str, judge: bool, writer: bool, calls: int
) -> None:
    assert calls_needed(missing, policy(name), 6, judge=judge, writer=writer) == calls


def test_description_004_at_three_passages_with_the_rewrite_counted() -> None:
    worst = policy("worst-chunk")
    grading = (Missing.GRADES, Missing.ANSWER)
    assert calls_needed(grading, worst, 3, judge=True, writer=True) == 4
    # Results of the web are judged too here: three more than the description counts.
    assert calls_needed((*grading, Missing.EXTRACTION, Missing.WEB), worst, 3, judge=True, writer=True) == 8 + 3
    assert calls_needed((*grading, Missing.WEB), worst, 3, judge=True, writer=True) == 5 + 3
