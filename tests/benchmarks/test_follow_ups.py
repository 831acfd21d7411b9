"""Our own follow-ups over the sample documents, by the rule, with the real evaluator."""

from __future__ import annotations

import pytest

from benchmarks.follow_ups import own_follow_ups, sample_engine, told


@pytest.mark.exhaustive
@pytest.mark.embedding
def test_no_follow_up_gets_the_answer_to_the_question_before() -> None:
    with sample_engine() as engine:
        found = own_follow_ups(engine)
    assert [one.run.question for one in found if one.is_repeated] == [], told(found)
    expected = {one.row["understood"] for one in found} - {""}
    assert {one.run.question for one in found if one.is_one_question} == expected
    assert all(not one.is_correct for one in found if not one.is_one_question)
