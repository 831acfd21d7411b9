"""No answer: what was looked for, where, the nearest miss, and ways out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core.base.types.web import WebAttempt, WebOutcome
from crag_core.decision.policy import Doubtful, Policy
from crag_core.decision.refine import decompose
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.answer.unanswered import Unanswered, nearest_sentences, unanswered, why_unanswered
from crag_core.view.path.stages import describe_web
from crag_core.view.run_view import view_run
from tests.builders import (
    grade,
    graded_by_its_own,
    passage,
    policy,
    round_of,
    searched,
    strips_of,
    trace,
    twice,
    web_page,
)

FARES = passage("p1", "Adults pay nine euros. Dogs pay half.", source="fares.md")
TIMES = passage("p2", "The ferry leaves at eight. It is white.", source="times.md", page=3)


def run(grades: float | None = 0.9, strips: float | None = 0.9, of: str | Policy = "paper", **fields: object) -> Trace:
    """Two passages with these grades; every strip scores `strips`, but the last one a little more."""
    found = (FARES, TIMES)
    cut = [strip for one in found for strip in decompose(one)]
    scored = [replace(strip, score=strips) for strip in cut[:-1]] + [
        replace(cut[-1], score=None if strips is None else strips + 0.01)
    ]
    chosen = policy(of) if isinstance(of, str) else of
    known = {"passages": found, "grades": tuple(grade(one.id, grades) for one in found), "strips": tuple(scored)}
    return trace(chosen, **known | fields)


def told(run: Trace, under: Policy | None = None) -> Unanswered:
    return unanswered(view_run(run, under))


# --- everything set aside ---------------------------------------------------------------------------------------------


def test_a_question_whose_passages_were_set_aside() -> None:
    found = told(run(grades=0.2))
    assert found.asked == (("What does the ferry cost?", "your question"),)
    assert found.where == (
        "Your documents: 2 chunks of 2 documents found",
        "No web search was made in this run, though this route asks for one.",
    )
    assert found.nearest is not None
    assert (found.nearest.text, found.nearest.passage, found.nearest.score) == ("It is white.", TIMES, 0.91)
    assert found.nearest.why == "set aside with all others"
    assert found.ways == (
        "Let this route search the web: carry it out with the web switched on.",
        "Add documents that hold the answer, on the Documents page.",
    )


def test_the_nearest_sentences_are_kept_ones_where_any_is_kept() -> None:
    asked = run(grades=0.7)  # ambiguous
    strips = [replace(one, score=0.9 if one.text == "Dogs pay half." else 0.001) for one in asked.strips or ()]
    for scored, expected in ((strips, ["Dogs pay half."]), ([replace(one, score=0.0) for one in strips], 3)):
        near = [one.text for one in nearest_sentences(view_run(replace(asked, strips=tuple(scored))))]
        assert near == expected if isinstance(expected, list) else len(near) == expected


def test_what_an_abstaining_policy_says_has_the_words_of_the_screen() -> None:
    found, grades = twice((0.5, 0.9), (0.2, 0.5))
    strips = tuple(strip for one in found for strip in strips_of(one, (one.text, 0.9)))
    shown = trace(policy("two-signal"), passages=found, grades=grades, strips=strips, web=searched())
    view = view_run(shown, policy("two-signal").with_doubtful(Doubtful.ABSTAIN))
    assert view.abstains and view.routed.answer is not None and "topical" in view.routed.answer.message
    assert "best subject" in why_unanswered(view, view.routed.answer)


# --- the writer declined ----------------------------------------------------------------------------------------------


def test_a_question_that_the_writer_could_not_answer_from_what_it_was_given() -> None:
    found = told(run())
    assert found.nearest is not None and found.nearest.text == "It is white."
    assert found.nearest.why == "the writer had it, and found no answer in it"
    assert found.ways == (
        "Add documents that hold the answer, on the Documents page.",
        "Ask another model, or none: then the best sentences are quoted as they stand.",
    )


# --- where was looked -------------------------------------------------------------------------------------------------


def test_every_wording_and_round_is_told_once() -> None:
    web = replace(searched(), query="ferry prices", query_by="written by the model")
    later = round_of("keyword", passage("p9", "Nothing here.", source="other.md"), query="ferry fares")
    third = passage("p3", "Bring a coat.", source="coats.md")
    known = run(grades=0.1, of="agentic")
    grades = (*(known.grades or ()), grade("p3", 0.1), grade("p9", 0.1))
    known = replace(known, passages=(FARES, TIMES, third), rounds=(later,), web=web)
    made = graded_by_its_own(known, grades)
    found = told(made)
    assert found.asked[0] == ("What does the ferry cost?", "your question")
    assert ("ferry prices", "for the web, written by the model") in found.asked
    assert found.asked[1:2] == (("ferry fares", "written by hand"),)
    assert found.where[0] == "Your documents: 4 chunks of 4 documents found, in 2 rounds"
    same = replace(made, web=replace(web, query="What does the ferry cost?"), rounds=())
    assert len(told(same).asked) == 1


@pytest.mark.parametrize("outcome", list(WebOutcome))
def test_every_outcome_of_a_search_is_told_and_what_helps(outcome: WebOutcome) -> None:
    pages = (web_page("w1", "Ferries are white."),) if outcome is WebOutcome.USED else ()
    web = replace(searched(*pages), outcome=outcome, provider="SearXNG", attempts=(WebAttempt("SearXNG", outcome),))
    made = run(grades=0.1, web=web)
    found = told(made)
    assert found.where[1] == describe_web(made, reroute(made, made.settings.policy))
    settled = outcome in (WebOutcome.USED, WebOutcome.APPROVED)
    assert len([way for way in found.ways if "web" in way]) == (0 if settled else 1)
