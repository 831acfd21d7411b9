"""What was really done to the evidence: each correction with its reason, its query and its place in the order."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Correction, CorrectionKind
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.policy import Policy
from crag_core.trace.reroute import carried_out, reroute
from crag_core.trace.trace import Trace
from tests.builders import even, grade, graded, passage, policy, round_of, searched, strips_of, trace, web_page

KEEP, DISCARD, REFINE = CorrectionKind.KEEP, CorrectionKind.DISCARD, CorrectionKind.REFINE
REWRITE, WEB, GENERATE = CorrectionKind.REWRITE, CorrectionKind.WEB_SEARCH, CorrectionKind.GENERATE
EXPAND, RE_RETRIEVE = CorrectionKind.EXPAND, CorrectionKind.RE_RETRIEVE

QUESTION = "What does the ferry cost?"
ANSWERED = Correction(GENERATE, "answer from what is kept")
NEWS = web_page("w1", "Fares rose.")
AGENTIC = replace(policy("agentic"), skip=())


def done(of: Policy, *scores: float | None, **fields: object) -> tuple[Correction, ...]:
    """The corrections of a run by `of` whose passages score so; the web was searched, unless `fields` say otherwise."""
    found, grades = graded(*scores)
    signals = even(scores[0] or 0.0) if scores else ()
    run = trace(of, **{"passages": found, "grades": grades, "signals": signals, "web": searched(NEWS)} | fields)
    return carried_out(run, reroute(run, of))


def test_refining_is_done_with_the_question() -> None:
    refined = Correction(REFINE, "keep the sentences of 2 chunks that score above 0.30", query=QUESTION)
    assert done(policy("paper"), 0.9, 0.8) == (refined, ANSWERED)


def test_a_search_says_who_wrote_its_query_and_what_came_of_it() -> None:
    assert done(policy("paper"), 0.1, 0.2) == (
        Correction(DISCARD, "INCORRECT: none of the 2 chunks is used"),
        Correction(REWRITE, "at most 3 key phrases to search for; the question's keywords", query="ferry fares"),
        Correction(WEB, "INCORRECT asks the web, up to 5 results; 1 result", query="ferry fares"),
        ANSWERED,
    )


def test_one_chunk_is_no_chunks() -> None:
    assert done(policy("paper"), 0.1)[0].reason == "INCORRECT: the only chunk is not used"
    assert done(policy("paper"), 0.9)[0].reason.startswith("keep the sentences of 1 chunk that")
    one = reroute(trace(AGENTIC, passages=graded(0.9)[0], grades=graded(0.9)[1]), AGENTIC).decision
    assert one.reason.startswith("mean of 1 kept chunk 0.90") and "use 1 chunk as they are" in str(one.plan)


SEARCHED = {
    WebOutcome.EMPTY: "empty",
    WebOutcome.FAILED: "failed",
    WebOutcome.RATE_LIMITED: "rate-limited",
    WebOutcome.TIMED_OUT: "timed out",
}


@pytest.mark.parametrize(("outcome", "came"), SEARCHED.items())
def test_a_fruitless_search_was_made_and_says_so(outcome: WebOutcome, came: str) -> None:
    search = done(policy("paper"), 0.1, web=WebSearch(outcome, "ferry fares", "you"))[2]
    assert search == Correction(WEB, f"INCORRECT asks the web, up to 5 results; {came}", query="ferry fares")


@pytest.mark.parametrize(
    "outcome", [None, *(outcome for outcome in WebOutcome if outcome not in (*SEARCHED, WebOutcome.USED))]
)
def test_a_search_that_was_wanted_but_not_made_is_left_out(outcome: WebOutcome | None) -> None:
    web = WebSearch(outcome, "ferry fares", "you") if outcome else None
    assert [one.kind for one in done(policy("paper"), 0.1, web=web)] == [DISCARD, GENERATE]


def test_an_expansion_has_the_expanded_query() -> None:
    made = round_of("expand", *(passage(f"p{n}", f"Text {n}.") for n in range(1, 5)), query="ferry cost boat")
    found = tuple(passage(f"p{n}", f"Text {n}.") for n in (1, 2))
    reason = "partly relevant: retrieve again with an expanded question; written by hand"
    assert done(policy("heuristic"), 0.6, 0.6, passages=found, rounds=(made,)) == (
        Correction(KEEP, "use 2 chunks as they are"),
        Correction(EXPAND, reason, query="ferry cost boat"),
        ANSWERED,
    )


def looking_again() -> Trace:
    """Nothing worth keeping, then half of what the keywords found, then enough."""
    found, grades = graded(0.1, 0.2)
    later = tuple(grade(name, score) for name, score in (("p4", 0.5), ("p5", 0.1), ("p6", 0.95), ("p7", 0.2)))
    rounds = (
        round_of("keyword", passage("p4"), passage("p5"), query=QUESTION),
        round_of("keyword refine", passage("p6"), passage("p7"), query="ferry fares"),
    )
    return trace(AGENTIC, passages=found, grades=(*grades, *later), rounds=rounds)


def test_every_iteration_tells_what_it_dropped_and_where_it_looked_next() -> None:
    run = looking_again()
    assert carried_out(run, reroute(run, run.settings.policy)) == (
        Correction(DISCARD, "INCORRECT: none of the 2 chunks is used"),
        Correction(
            RE_RETRIEVE, "INCORRECT: retrieve by keywords alone (iteration 2 of 3); written by hand", query=QUESTION
        ),
        Correction(DISCARD, "score 0.10 < 0.30", "p5"),
        Correction(
            RE_RETRIEVE,
            "AMBIGUOUS: retrieve more with refined keywords (iteration 3 of 3); written by hand",
            query="ferry fares",
        ),
        Correction(DISCARD, "score 0.20 < 0.30", "p7"),
        Correction(KEEP, "use 2 chunks as they are"),
        ANSWERED,
    )


def test_passages_that_could_not_be_refined_are_said_to_be_kept() -> None:
    found, _ = graded(0.9, 0.8)
    strips = tuple(strip for one in found for strip in strips_of(one, (one.text, None)))
    kept = Correction(KEEP, "use 2 chunks as they are")
    assert done(policy("paper"), 0.9, 0.8, strips=strips) == (kept, ANSWERED)
