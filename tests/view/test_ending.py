"""What the answer card is headed by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core.base.types import Answer, AnswerState, Grade, WebOutcome
from crag_core.decision.refine import decompose
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.answer.answer_blocks import AnswerBlocks
from crag_core.view.answer.ending import AnswerEnding, ending
from crag_core.view.run_view import view_run
from tests.builders import passage, policy, searched, strips_of, trace, web_page

DUES = passage("p1", "A yacht pays 14 pounds a night.", source="dues.pdf")


def answered(
    grade: float, text: str = "14 pounds [1].", state: AnswerState = AnswerState.COMPLETE, **fields: object
) -> Trace:
    strips = tuple(replace(strip, score=0.9) for strip in decompose(DUES))
    run = trace(policy("paper"), passages=(DUES,), grades=(Grade("p1", grade),), strips=strips, **fields)
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, answer=Answer(text, state, "ollama/small", key))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (answered(0.95), AnswerEnding.ANSWERED),
        (answered(0.5), AnswerEnding.DOUBTFUL),
        (answered(0.95, state=AnswerState.CANNOT_ANSWER), AnswerEnding.UNANSWERED),
        (answered(0.95, state=AnswerState.STOPPED), AnswerEnding.STOPPED),
        (answered(0.95, state=AnswerState.FAILED), AnswerEnding.FAILED),
        (replace(answered(0.95), answer=None), AnswerEnding.NOT_RUN),
    ],
)
def test_every_ending_has_its_name(run: Trace, expected: AnswerEnding) -> None:
    assert ending(view_run(run)) is expected


def test_what_was_written_for_another_action_has_not_been_run() -> None:
    run = answered(0.95)
    stricter = run.settings.policy.with_thresholds(0.97, 0.99)
    assert ending(view_run(run, stricter)) is AnswerEnding.NOT_RUN


def test_an_answer_that_cites_the_web_alone_is_from_the_web() -> None:
    snippet = web_page("w1", "Yachts pay 15 pounds.")
    web = replace(searched(snippet), grades=(Grade("w1", 0.9),), strips=strips_of(snippet, (snippet.text, 0.9)))
    assert ending(view_run(answered(0.1, "15 pounds [1].", web=web))) is AnswerEnding.FROM_WEB
    assert ending(view_run(answered(0.1, "15 pounds.", web=web))) is AnswerEnding.FROM_WEB, "all it was given is"


def test_a_web_search_that_failed_is_told_with_its_reason() -> None:
    web = replace(searched(), outcome=WebOutcome.TIMED_OUT, message="DuckDuckGo did not answer within 8 s.")
    run = answered(0.5, web=web)
    assert run.answer is not None
    notes = dict(AnswerBlocks(view_run(run), run.answer, ()).notes)
    assert notes["web"] == f"Web search failed ({WebOutcome.TIMED_OUT}). DuckDuckGo did not answer within 8 s."
    fine = answered(0.95, web=web)
    assert fine.answer is not None
    assert "web" not in dict(AnswerBlocks(view_run(fine), fine.answer, ()).notes), "this route asks for none"
