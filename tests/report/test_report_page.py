"""What a report tells: every number and every sentence of the run, and plainly what it does not hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crag_core.base.types.answers import AnswerState, Support
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.web import WebAttempt, WebOutcome
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.record import step_title
from tests.builders import POLICIES, policy
from tests.fakes import WEB_QUERY
from tests.made_up_runs import JUDGE, edits_of, facts
from tests.matrix import diagonal
from tests.report.pages import FIRST, Page, answered, asked, found_online, page_of, recorded, said, two_pages
from tests.report.sound_pages import assert_sound

# --- any run --------------------------------------------------------------------------------------------------------


def assert_whole(page: Page, run: Trace) -> None:
    """Every passage is there with all its words."""
    web = run.web.passages if run.web else ()
    cards = page.soup.select("details.card")
    assert len(cards) == len(run.all_passages) + len(web)
    for card, passage in zip(cards, (*run.all_passages, *web), strict=True):
        for mark in card.select(".n"):
            mark.extract()
        shown = card.select_one(".text")
        assert shown is not None and said(shown) == " ".join(passage.text.replace("# ", "").split())
    assert_sound(page)


@pytest.mark.parametrize(("name", "best"), diagonal(POLICIES, [0.9, 0.5, 0.1, None]))
def test_every_policy_and_every_route_can_be_reported(name: str, best: float | None) -> None:
    run = asked(policy=name, best=best)
    page = page_of(run)
    assert run.decision is not None
    assert page.told("#verdict h2").startswith(f"Retrieval: {run.decision.action}")
    assert run.decision.reason.lower() in page.told("#verdict").lower()
    assert_whole(page, run)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_run_with_any_edits_can_be_reported_under_any_policy(data: st.DataObject) -> None:
    made = data.draw(facts())
    run = replace(made.record(), edits=data.draw(edits_of(made.ids)))
    under = policy(data.draw(st.sampled_from(POLICIES)))
    page = page_of(run, under)
    assert_whole(page, run)
    assert page.soup.select(f"#verdict.{reroute(run, under).decision.action.lower()}, #verdict.open")


# --- verdict --------------------------------------------------------------------------------------------------------


def test_the_verdict_comes_with_its_numbers_and_its_distance_from_another() -> None:
    page = page_of(recorded("paper", 0.9, 0.5, 0.1))
    told = page.told("#verdict")
    assert "Retrieval: CORRECT" in told and "Best chunk 0.90 ≥ upper 0.60." in told
    assert "lower 0.40, upper 0.60" in told
    assert "2 of 5" in told and "in 2 excerpts" in told
    assert "120 tokens" in told and "1.3 s" in told
    assert "AMBIGUOUS if upper > 0.90" in told
    assert not page.soup.select(".changed")


# --- scores ---------------------------------------------------------------------------------------------------------


def test_every_grade_has_a_row_with_its_place_and_what_was_not_graded_has_none() -> None:
    page = page_of(recorded("paper", 0.9, None, 0.1))
    places = [place["x"] for place in page.soup.select("#scores tbody .place")]
    assert places == ["90.0%", "10.0%"]
    assert page.rows("#scores tbody tr") == [
        "1 fares.pdf, page 3 | 0.90 | score 0.90. decides. tells the price",
        "2 cats.txt | not graded | not graded. no score in the reply",
        "3 bread.md | 0.10 | score 0.10. tells the price",
    ]


def test_thresholds_and_bands_are_named_and_lie_where_they_belong() -> None:
    page = page_of(recorded())
    bands = page.soup.select("#scores tbody tr:first-child .band")
    assert [(band["class"][1], band["x"], band["width"]) for band in bands] == [
        ("incorrect", "0.0%", "40.0%"),
        ("ambiguous", "40.0%", "20.0%"),
        ("correct", "60.0%", "40.0%"),
    ]
    assert re.findall("(?:Incorrect|Ambiguous|Correct)", page.told("#scores caption")) == [
        *("Incorrect", "Ambiguous", "Correct")
    ]
    (line,) = page.all_told("#scores li")
    assert line.startswith("overall 0.90, the best; lower 0.40 (") and "; upper 0.60 (AMBIGUOUS if" in line


# --- answer ---------------------------------------------------------------------------------------------------------


def test_each_sentence_shows_what_supports_it() -> None:
    text = "A dog pays nine euros [1]. Cats are free [2].\nBread is dear. "
    support = (Support(0, 26, 0.92, ("p1#0", "p2#0"), (1,)), Support(27, 45, 0.4, ("p2#0",)), Support(46, 60, 0.02))
    page = page_of(answered(recorded(support=support), text))
    assert page.told(".answer").startswith("A dog pays nine euros [1].Sentence 1: words found, score 0.92; details✓")
    assert page.rows("#answers tbody tr") == [
        "1 A dog pays nine euros [1]. | ✓ Score 0.92. Found in: | "
        "Dogs pay nine euros. [1] fares.pdf, page 3; Cats travel free of charge. [2] cats.txt",
        "2 Cats are free [2]. | ≈ Score 0.40. 0.55 would count as found. Found in: | "
        "Cats travel free of charge. [2] cats.txt",
        "3 Bread is dear. | ✗ Score 0.02, less than 0.35: words not found. | none",
    ]
    for mark in page.soup.select(".answer .support"):
        mark.extract()
    assert page.part(".answer").get_text() == text.strip().replace("\n", ""), "with the space between the sentences"
    links = [a["href"] for a in page.soup.select("#support-1 a")]
    assert links == ["#passage-1-0", "#passage-2-0"]
    assert page.part("#passage-1-0").get_text().startswith("Dogs pay nine euros.")


def test_what_cannot_be_answered_says_why_and_shows_no_answer() -> None:
    run = asked(best=0.1)
    assert run.answer is not None
    silent = replace(run, answer=replace(run.answer, text="", state=AnswerState.CANNOT_ANSWER, message="Nothing held."))
    page = page_of(silent)
    assert page.told(".no-answer") == "Nothing held."
    assert not page.soup.select(".answer")


# --- passages -------------------------------------------------------------------------------------------------------


def test_kept_sentences_stand_plain_and_struck_ones_struck_with_score_and_reason() -> None:
    page = page_of(recorded("paper", 0.9, 0.5, 0.1))
    assert page.all_told("#passage-1 .kept") == ["Dogs pay nine euros.0.90"]
    assert page.all_told("#passage-1 .text s") == ["They stay on a lead."]
    assert page.all_told("#passage-1 .text > .n") == ["struck out, 0.10"]
    assert page.all_told("#passage-1 .why") == ["cut-off 0.30"]
    title = "Struck out, score 0.10 ≤ cut-off 0.30."
    assert page.part("#passage-1 .text s")["title"] == title
    assert page.all_told("#passage-3 .text > .n") == ["struck out, 0.05", "struck out, –†"]
    assert page.all_told("#passage-3 .why") == ["cut-off 0.30 · † not graded"]
    assert page.told("#passage-3 .text b") == "Bread"


def test_a_passage_tells_where_it_is_from_what_it_scored_and_why() -> None:
    page = page_of(recorded("paper", 0.9, None, 0.1))
    assert page.head("1") == "1 fares.pdf, page 3 score 0.90 · CORRECT decides used 1 of 2 sentences"
    assert "tells the price" in page.told("#passage-1")
    assert "cosine 0.71 · found by dense" in page.told("#passage-1")
    assert "Not graded: no score in the reply" in page.told("#passage-2")
    assert page.card("1").has_attr("open") and not page.card("3").has_attr("open")


# --- web ------------------------------------------------------------------------------------------------------------


def test_web_results_come_with_query_provider_and_link() -> None:
    attempts = (WebAttempt("DuckDuckGo", WebOutcome.RATE_LIMITED, "too many"), WebAttempt("SearXNG", WebOutcome.USED))
    page = page_of(recorded("paper", 0.5, 0.5, 0.1, web=found_online(*two_pages(), attempts=attempts)))
    told = page.told("#web")
    assert "2 results from SearXNG." in told and "dog fare (rewritten by model-7)" in told
    assert "DuckDuckGo: rate-limited (too many)" in told
    link = page.part("#web-4 .address a")
    assert (link["href"], link["rel"]) == ("https://harbour.example/", ["noreferrer", "noopener"])
    assert page.told("#web-5 .text").startswith("Tickets are sold at the pier.")


# --- another policy, edits, another evaluator -----------------------------------------------------------------------


def test_other_thresholds_are_said_and_the_answer_to_another_decision_is_not_shown() -> None:
    run = recorded("paper", 0.9, 0.5, 0.1)
    page = page_of(run, run.settings.policy.with_thresholds(0.5, 0.95))
    assert page.told("#verdict h2") == "Retrieval: AMBIGUOUS"
    told = page.all_told(".changed li")
    assert told[:2] == ["Lower threshold 0.50 instead of 0.40.", "Upper threshold 0.95 instead of 0.60."]
    assert told[2] == "The original run was CORRECT: best chunk 0.90 ≥ upper 0.60."
    assert "kept, 0 gone, 0 new" in told[3]
    assert "No answer for this decision yet" in page.told(".no-answer")
    assert "nine euros [1]" not in page.told("#answers")
    assert "lower 0.50 (" in page.told("#scores li") and "upper 0.95 (" in page.told("#scores li")


def test_dropped_and_pinned_passages_are_said_so() -> None:
    run = recorded("paper", 0.9, 0.5, 0.1)
    page = page_of(replace(run, edits=Edits(dropped=("p1",), pinned=("p3",))))
    told = page.all_told(".changed li")
    assert told[0] == "Chunk 1 dropped."
    assert told[1] == "Chunk 3 pinned."
    assert "The original run was CORRECT: best chunk 0.90" in told[2]
    assert "dropped by you: counts as never found" in page.told("#passage-1").lower()
    assert "0.90" in page.head("1"), "the fact stays"
    assert page.told("#passage-1 .text") == FIRST and not page.soup.select("#passage-1 .text s")
    assert "pinned by you" in page.head("3")
    assert [said(row)[0] for row in page.soup.select("#scores tbody tr")] == ["1", "2", "3"]
    assert page.rows("#scores tbody tr")[0].startswith("1 fares.pdf, page 3 | 0.90 | score 0.90. dropped by you")


def second_opinion() -> Trace:
    grades = (Grade("p1", 0.2, "off the point"), Grade("p2", 0.5), Grade("p3", None, cause="no number"))
    return recorded("paper", 0.9, 0.5, 0.1, opinions=(Opinion(JUDGE, "ollama/llama", grades),))


def test_second_opinions_stand_side_by_side_with_the_reasons() -> None:
    page = page_of(second_opinion())
    rows = page.rows("#opinions tbody tr")
    assert rows[0] == ("≠ 1 fares.pdf, page 3 | 0.90 CORRECT tells the price | 0.20 INCORRECT off the point | 0.70")
    assert rows[2].endswith("| not graded no number | –")
    assert "different bands" in page.told("#opinions")
    assert page.all_told("#opinions thead th")[2] == "Language model (llama) lower 0.30, upper 0.70"
    assert page.all_told("#opinions tfoot b") == ["CORRECT", "AMBIGUOUS"]


# --- the run itself -------------------------------------------------------------------------------------------------


def test_steps_corrections_and_settings_are_all_told() -> None:
    run = asked(best=0.5)
    told = page_of(run).told("#record")
    for step in run.steps:
        assert step_title(step.name) in told and step.summary in told
    assert f"rewrite: at most 3 key phrases to search for; written by fake-model, with {WEB_QUERY}" in told
    for value in (run.fingerprint, run.id, "Fake (fake)", "lower 0.40, upper 0.60", "prompts test", "record schema 6"):
        assert value in told
