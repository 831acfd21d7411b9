"""No answer: the nearest miss, and ways out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core.base.types.web import WebAttempt, WebOutcome
from crag_core.decision.policy import Doubtful, Policy
from crag_core.decision.refine import decompose
from crag_core.trace.trace import Trace
from crag_core.view.answer.unanswered import Nearest, nearest_miss, nearest_sentences, ways_out, why_unanswered
from crag_core.view.run_view import view_run
from tests.builders import (
    grade,
    passage,
    policy,
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


# --- everything set aside ---------------------------------------------------------------------------------------------


def test_a_question_whose_passages_were_set_aside() -> None:
    view = view_run(run(grades=0.2))
    assert nearest_miss(view) == Nearest("It is white.", TIMES, 0.91, "set aside with all others")
    assert list(ways_out(view)) == [
        "Let this route search the web: carry it out with the web switched on.",
        "Add documents that hold the answer, on the Documents page.",
    ]


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
    view = view_run(run())
    why = "the writer had it, and found no answer in it"
    assert nearest_miss(view) == Nearest("It is white.", TIMES, 0.91, why)
    assert list(ways_out(view)) == [
        "Add documents that hold the answer, on the Documents page.",
        "Ask another model, or none: then the best sentences are quoted as they stand.",
    ]


@pytest.mark.parametrize("outcome", list(WebOutcome))
def test_what_helps_after_every_outcome_of_a_search(outcome: WebOutcome) -> None:
    pages = (web_page("w1", "Ferries are white."),) if outcome is WebOutcome.USED else ()
    web = replace(searched(*pages), outcome=outcome, provider="SearXNG", attempts=(WebAttempt("SearXNG", outcome),))
    settled = outcome in (WebOutcome.USED, WebOutcome.APPROVED)
    assert len([way for way in ways_out(view_run(run(grades=0.1, web=web))) if "web" in way]) == (0 if settled else 1)
