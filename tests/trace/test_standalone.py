"""The rule that makes a later question stand alone: what it changes, what it leaves, and what holds of any text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.data_files import DATA
from crag_core.base.types import Turn
from crag_core.evaluators.shipped import signal_meter
from crag_core.trace.standalone import back_question, by_rule, lacks_subject, points_back, stands_alone
from crag_core.trace.trace import Trace
from tests.builders import policy, trace

STOP = signal_meter().stop_words
TEXT = st.text(max_size=200)


@pytest.mark.parametrize(
    "question",
    [
        "And how high is it?",
        "Who wrote it?",
        "How much is that?",
        "What about them?",
        "tell me more",
        "why?",
        "Et elle ?",
        "When did it take place?",
        "How long does it take?",
        "Which conditions and fees apply to it?",
        "What other architectural styles did they contribute to?",
        "In what era did some members of this community emigrate?",
        "How about the larger yachts at the pier?",
    ],
)
def test_these_need_what_came_before(question: str) -> None:
    assert not stands_alone(question, STOP) and back_question(question, STOP).endswith("?")


@pytest.mark.parametrize(
    "question",
    [
        "When does the ferry to Vennick leave?",
        "What is the policy that covers crane inspections?",
        "Is there a fee for large yachts?",
        "Wie viele Urlaubstage bekommen Teilzeitkräfte?",
        "What happened to the Provider after she was taken out of service?",
        "I have some holiday left over from last year. Until when can I still use it up?",
        "What did the founders pay for their very first boat?",
        "How long will it take to bring Skipper back from last night's dump?",
        "Is it worth paying off a mortgage early?",
        "What do those in the field do about outages?",
        "What is one reason to choose an internet pharmacy?",
        "there's a puddle under my machine, what did I do wrong?",
        "So when do the Tarrant people turn up for the new windows?",
        "What is a mortgage?",
        "Der Kran stand lange still, wann lief er wieder?",
    ],
)
def test_these_stand_alone(question: str) -> None:
    assert stands_alone(question, STOP) and not points_back(question, STOP)


def test_hardly_any_sample_question_is_taken_for_a_later_one() -> None:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    assert [one for one in questions if not stands_alone(one, STOP)] == [
        "How loud is it for the neighbours of Vennick pier early in the morning?"
    ]


@pytest.mark.parametrize(
    "question",
    [
        "What are sandboxes?",
        "Is it possible to dispute IRS penalties?",
        "How high is the tower?",
        "彼は誰ですか",
        "Probate?",
    ],
)
def test_none_of_these_is_asked_back_as_a_first_question(question: str) -> None:
    assert not lacks_subject(question, STOP)


def test_the_question_before_stands_in_front_and_does_not_grow() -> None:
    history: list[Turn] = []
    for number, question in enumerate(
        ["When does the ferry leave", "And in winter?", "How much is it?", "For children?"]
    ):
        made = by_rule(question, history, STOP) or question
        history.append(Turn(str(number), made))
    assert [turn.question for turn in history] == [
        "When does the ferry leave",
        "When does the ferry leave. And in winter?",
        "When does the ferry leave. And in winter? How much is it?",
        "When does the ferry leave. How much is it? For children?",
    ]


def test_turns_that_name_nothing_are_passed_over() -> None:
    history = [Turn("a", "When does the ferry leave?"), Turn("b", "?!"), Turn("c", "and you?")]
    assert by_rule("And in winter?", history, STOP) == "When does the ferry leave? And in winter?"
    assert by_rule("And in winter?", history[1:], STOP) == ""


@given(TEXT, st.lists(TEXT, max_size=4))
def test_whatever_is_asked_is_kept_at_the_end(question: str, before: list[str]) -> None:
    made = by_rule(question, [Turn("", one) for one in before], STOP)
    assert made == "" or made.endswith(question)
    assert len(made) <= sum(map(len, before)) + len(question) + 5
    assert isinstance(lacks_subject(question, STOP), bool) and back_question(question, STOP)


def test_an_old_record_has_no_conversation_and_is_read() -> None:
    old = trace(policy("paper")).to_dict() | {"schema": 3}
    del old["follow_up"]
    run = Trace.from_dict(old)
    assert run.follow_up is None and run.asked == run.question and run.asks_back == ""
