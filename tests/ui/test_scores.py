"""The picture of scores against thresholds as data, without a page; then what a browser sends back, on a page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.serialization import to_plain
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace
from crag_core.view.chunk_cards import chunk_cards
from crag_core.view.run_view import view_run
from crag_core.view.score_line import Line, Picture, picture
from tests.builders import POLICIES, even, grade, graded, passages, policy, round_of, searched, trace, twice, web_page
from ui.run.verdict import read_move


def drawn(of: Policy, run: Trace) -> Picture:
    found = picture(view_run(run, of))
    assert found is not None
    return found


def of_scores(of: Policy, *scores: float | None, **fields: Any) -> Picture:
    found, grades = graded(*scores)
    return drawn(of, trace(of, passages=found, grades=grades, signals=even(0.61), **fields))


def told(line: Line) -> list[str]:
    return [point.text for point in line.points]


def kinds(made: Picture) -> list[str]:
    return [kind for kind, _ in made.legend]


# --- all seven policies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_names_its_bands_and_has_one_point_a_passage(name: str) -> None:
    of = policy(name)
    made = of_scores(of, 0.9, 0.5, None, 0.1)
    (line,) = made.lines
    assert [(band.action, band.label) for band in line.bands] == [
        (action, of.without_language_model().bare_label(action))
        for action in (Action.INCORRECT, Action.AMBIGUOUS, Action.CORRECT)
    ]
    assert [(band.low, band.high) for band in line.bands] == [("zero", "lower"), ("lower", "upper"), ("upper", "one")]
    assert [point.value for point in line.points] == [0.9, 0.5, None, 0.1]
    assert [row.number for row in made.rows] == ["1", "2", "3", "4"]
    assert [row.anchor for row in made.rows] == [f"passage-{rank}" for rank in range(1, 5)]
    assert [(mark.name, mark.value) for mark in made.marks] == [("lower", of.lower), ("upper", of.upper)]
    assert made.words[0].startswith(f"{made.action}: ")
    json.dumps(to_plain(made), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "how", "deciding"),
    [
        ("paper", "overall 0.90, the best", [0]),
        ("worst-chunk", "overall 0.10, the worst", [2]),
        ("rank-weighted", "overall 0.65, a mean by rank", [0, 1, 2]),
        ("agentic", "overall 0.700000000, the mean of what is kept", [0, 1]),
        ("two-signal", "overall 0.90, the best", [0]),
        ("heuristic", "overall 0.61, measures of the whole set", []),
        ("signals", "overall 0.57, measures of the whole set", []),
    ],
)
def test_the_overall_score_says_how_it_was_made_and_who_decides(name: str, how: str, deciding: list[int]) -> None:
    made = of_scores(policy(name), 0.9, 0.5, 0.1)
    (line,) = made.lines
    assert line.compared_text.replace("0.70,", "0.700000000,") == how
    assert [at for at, point in enumerate(line.points) if point.decides] == deciding
    found, grades = graded(0.9, 0.5, 0.1)
    cards = chunk_cards(view_run(trace(policy(name), passages=found, grades=grades)))
    assert [at for at, card in enumerate(cards) if card.decides] == deciding, "the card of a chunk says the same"
    assert ("decides" in kinds(made)) is bool(deciding)
    if len(deciding) == 3:
        assert made.words[1] == "Chunks 1, 2 and 3 decide together."
        assert of_scores(replace(policy(name), top=None), *[0.5] * 20).words[1] == "20 chunks decide together."
    if not deciding:
        assert made.words[1] == "The overall score is made of measures of the whole set; it is no chunk's own score."


# --- what is not graded, not there, or not asked --------------------------------------------------------------------


def test_what_was_not_graded_or_not_on_the_same_scale_gets_no_number() -> None:
    made = of_scores(policy("paper"), 0.9, None)
    assert told(made.lines[0]) == ["0.90", "not graded"] and made.lines[0].points[1].value is None
    assert made.rows[1].remarks == ("not graded", "the reply holds no score")
    assert "hollow" in kinds(made) and "hollow" not in kinds(of_scores(policy("paper"), 0.9, 0.1))
    counting = of_scores(policy("worst-chunk"), 0.9, None).lines[0].points[1]
    assert (counting.value, counting.text, counting.decides) == (None, "not graded, counts as 0.50", True)
    found, grades = graded(0.5, 0.9)
    grades = (replace(grades[0], coarse=False), replace(grades[1], coarse=True))
    mixed = drawn(policy("paper"), trace(policy("paper"), passages=found, grades=grades))
    assert [(point.value, point.text) for point in mixed.lines[0].points] == [
        (0.5, "0.50"), (None, "0.90, coarse, not compared"),
    ]  # fmt: skip
    assert dict(mixed.legend)["hollow"] == "not graded, or not compared"


def test_a_rule_that_needs_no_grades_compares_nothing_and_rings_nobody() -> None:
    of = policy("agentic")
    made = drawn(of, trace(of, passages=passages(2)))
    (line,) = made.lines
    assert (line.compared, line.compared_text) == (None, "") and not any(point.decides for point in line.points)
    assert told(line) == ["not graded", "not graded"] and made.is_idle
    assert made.words == ("CORRECT: rule few_context: 2 chunks, at most 2 need no grading; nothing was graded.",)
    assert [mark.text for mark in made.marks] == ["CORRECT at any lower", "CORRECT at any upper"]


def test_nothing_retrieved_is_no_picture() -> None:
    of = policy("paper")
    for run in (trace(of), trace(of, passages=()), trace(of, passages=(), web=searched(web_page("w", "x")))):
        assert picture(view_run(run, of)) is None


def test_only_passages_that_the_policy_looks_at_are_there_with_the_numbers_of_their_cards() -> None:
    of = policy("agentic")
    found, grades = graded(0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9)
    rounds = (round_of("expanded", found[3]), round_of("keyword", found[0], *found[4:]))
    made = drawn(of, trace(of, passages=found[:3], grades=grades, rounds=rounds))
    assert [row.id for row in made.rows] == ["p1", "p2", "p3", "p5", "p6", "p7"]
    assert [row.number for row in made.rows] == ["1", "2", "3", "5", "6", "7"], "p4 was never asked for"
    assert [point.decides for point in made.lines[0].points] == [False, False, False, True, True, True]


# --- the web --------------------------------------------------------------------------------------------------------


def test_a_web_result_is_there_where_it_was_graded_and_never_decides() -> None:
    of = policy("paper")
    found, grades = graded(0.3)
    known = {"passages": found, "grades": grades, "web": searched(*(web_page(name, "x") for name in "abc"))}
    graded_too = known | {"web_grades": (grade("b", 0.95), grade("c", None))}
    made = drawn(of, trace(of, **graded_too))
    assert [(row.number, row.is_web, row.anchor) for row in made.rows] == [
        ("1", False, "passage-1"),
        ("3", True, "web-3"),
        ("4", True, "web-4"),
    ]
    assert [row.title for row in made.rows[:2]] == ["Chunk 1, p1.txt", "Web result 3, b.example"]
    assert told(made.lines[0]) == ["0.30", "0.95", "not graded"]
    assert made.lines[0].compared == 0.3 and dict(made.legend)["web"] == "web result: never decides the route"
    strict = policy("worst-chunk")
    made = drawn(strict, trace(strict, **graded_too))
    assert made.lines[0].points[2].text == "not graded", "it counts as nothing"
    plain = drawn(of, trace(of, **known))
    assert len(plain.rows) == 1 and "web" not in kinds(plain)


# --- two signals ----------------------------------------------------------------------------------------------------


def test_two_signals_have_a_line_each_with_the_threshold_that_it_is_compared_with() -> None:
    of = policy("two-signal")
    found, grades = twice((0.31, 0.6), (0.1, 0.82), None)
    made = drawn(of, trace(of, passages=found, grades=grades))
    answering, topical = made.lines
    assert (answering.part, answering.marks, answering.compared_text) == ("answering", ("upper",), "best 0.31")
    assert (topical.part, topical.marks, topical.compared_text) == ("topical", ("lower",), "best 0.82")
    assert [(band.action, band.low, band.high) for band in answering.bands] == [
        (None, "zero", "upper"),
        (Action.CORRECT, "upper", "one"),
    ]
    assert [(band.label, band.low, band.high) for band in topical.bands] == [
        ("Incorrect", "zero", "lower"),
        ("Ambiguous", "lower", "one"),
    ]
    assert told(answering) == ["0.31", "0.10", "not graded"] and told(topical) == ["0.60", "0.82", "not graded"]
    assert [point.decides for point in answering.points + topical.points] == [True, False, False, False, True, False]
    assert answering.is_asked and topical.is_asked
    assert made.words[1] == "Chunk 1 answers best, chunk 2 is the best on the subject."
    assert made.rows[0].remarks[:2] == ("answer 0.31, subject 0.60", "decides: best answer")
    assert made.table[0] == ("Chunk", "Answer", "Subject", "Remarks")
    found, grades = twice((0.9, 0.1), (0.1, 0.1))
    answering, topical = drawn(of, trace(of, passages=found, grades=grades)).lines
    assert (answering.is_asked, topical.is_asked) == (True, False), "one that answers settles it"
    assert not any(point.decides for point in topical.points)


# --- what somebody changed ------------------------------------------------------------------------------------------


def test_a_dropped_passage_stays_in_its_place_and_counts_for_nothing() -> None:
    made = of_scores(policy("paper"), 0.9, 0.5, 0.1, edits=Edits(dropped=("p1",)))
    assert [row.edit for row in made.rows] == ["dropped", "", ""] and told(made.lines[0]) == ["0.90", "0.50", "0.10"]
    assert made.lines[0].compared == 0.5 and made.words[1] == "Chunk 2 decides."
    assert "dropped by you: counts as never found" in made.rows[0].remarks
    assert made.marks[1].above is Action.INCORRECT or made.marks[1].below is Action.CORRECT


def test_a_pinned_passage_stands_at_one_and_its_own_score_is_told() -> None:
    made = of_scores(policy("paper"), 0.2, None, edits=Edits(pinned=("p1", "p2")))
    assert [point.value for point in made.lines[0].points] == [1.0, 1.0] and made.action is Action.CORRECT
    assert "pinned by you: counts as 1.00, graded 0.20" in made.rows[0].remarks
    assert "pinned by you: counts as 1.00, not graded" in made.rows[1].remarks
    assert made.rows[0].remarks[-1] == "by hand", "the grader's own reason, not the edit's"
    found, grades = twice((0.06, 0.12))
    of_two = trace(policy("two-signal"), passages=found, grades=grades, edits=Edits(pinned=("p1",)))
    two = drawn(policy("two-signal"), of_two)
    assert "pinned by you: counts as 1.00, graded answer 0.06, subject 0.12" in two.rows[0].remarks


# --- numbers that do not lie ----------------------------------------------------------------------------------------


def test_the_interval_of_a_threshold_is_said_with_what_lies_beyond() -> None:
    lower, upper = of_scores(policy("paper").with_thresholds(0.3, 0.7), 0.83, 0.2).marks
    assert lower.text == "CORRECT at any lower" and (lower.low, lower.high) == (0.0, 0.7)
    assert upper.text == "AMBIGUOUS if upper > 0.83"
    assert (upper.low, upper.high, upper.below, upper.above) == (0.3, 0.83, None, Action.AMBIGUOUS)
    lower, upper = of_scores(policy("paper").with_thresholds(0.3, 0.7), 0.5, 0.2).marks
    assert lower.text == "INCORRECT if lower > 0.50"
    assert upper.text == "CORRECT if upper ≤ 0.50"


# --- other people's text --------------------------------------------------------------------------------------------


def test_a_hostile_name_or_reason_stays_text_on_one_line_and_cannot_turn_the_page_around() -> None:
    of = policy("paper")
    found = (Passage("p1", "x", "a\n<b>\u202egnp.exe\u200b\x07\u200d", page=3),)
    made = drawn(of, trace(of, passages=found, grades=(Grade("p1", 0.5, reason="r\u2066 " * 400),)))
    (row,) = made.rows
    assert row.name == "a <b>gnp.exe\u200d, page 3"
    assert len(row.remarks[-1]) == 200 and row.remarks[-1].endswith("…") and "\u2066" not in row.remarks[-1]
    labelled = replace(of, labels=("Right\u202e\n", "", ""))
    run = trace(labelled, passages=found, grades=(grade("p1", 0.5),))
    assert drawn(labelled, run).lines[0].bands[2].label == "Right"


def test_the_table_says_the_same_to_those_who_do_not_see_the_picture() -> None:
    made = of_scores(policy("paper"), 0.9, None)
    assert made.table == (
        ("Chunk", "Score", "Remarks"),
        ("Chunk 1, p1.txt", "0.90", "score 0.90. decides. by hand"),
        ("Chunk 2, p2.txt", "not graded", "not graded. the reply holds no score"),
    )


# --- on a page ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "0.5",
        [0.1, 0.2],
        {},
        {"lower": 0.1},
        {"lower": 0.6, "upper": 0.5},
        {"lower": -0.1, "upper": 0.5},
        {"lower": 0.1, "upper": 1.1},
        {"lower": math.nan, "upper": 0.5},
        {"lower": 0.1, "upper": math.inf},
        {"lower": 0.1, "upper": 10**400},
        {"lower": True, "upper": 1},
        {"lower": "0.1", "upper": 0.5},
    ],
)
def test_thresholds_that_are_none_are_not_taken_from_a_browser(sent: Any) -> None:
    assert read_move(sent, policy("paper")) is None


def page() -> None:
    import streamlit as st

    from crag_core.view.run_view import view_run
    from tests.builders import graded, policy, trace
    from ui.run.verdict import draw_scores

    of = policy("paper")
    found, grades = graded(*st.session_state.get("given", (0.9, None, 0.1)))
    run = trace(of, passages=found, grades=grades)
    moved = None if st.session_state.get("still") else lambda *_: None
    draw_scores(view_run(run, of), moved)


def sent_to_browser(app: AppTest) -> dict[str, Any]:
    (found,) = app.get("bidi_component")
    data: dict[str, Any] = json.loads(found.proto.json)
    return data


def test_a_page_sends_the_picture_to_the_browser_and_says_what_may_be_done_there() -> None:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert not app.exception
    data = sent_to_browser(app)
    assert (data["can_move"], data["step"], data["page"]) == (True, 0.005, 0.05)
    assert [row["name"] for row in data["rows"]] == ["p1.txt", "p2.txt", "p3.txt"]
    app.session_state["still"] = True
    assert sent_to_browser(app.run())["can_move"] is False


def test_an_exclusive_threshold_ends_its_interval_before_the_score() -> None:
    of = replace(policy("paper"), at_upper=Action.AMBIGUOUS, at_lower=Action.INCORRECT).with_thresholds(0.3, 0.7)
    assert of_scores(of, 0.83).marks[1].text == "AMBIGUOUS if upper ≥ 0.83"
    assert of_scores(of, 0.5).marks[0].text == "INCORRECT if lower ≥ 0.50"


def test_thresholds_are_taken_as_they_are_sent() -> None:
    assert read_move({"lower": 0, "upper": 0.7, "done": True}, policy("paper")) == (0.0, 0.7, True)
    assert read_move({"lower": 0.45, "upper": 0.45}, policy("paper")) == (0.45, 0.45, False)
    assert read_move({"lower": 0.6, "upper": 0.5}, policy("two-signal")) == (0.6, 0.5, False)
