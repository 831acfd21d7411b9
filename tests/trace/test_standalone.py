"""Which questions stand alone, what is asked back, and what a model may make of one of a conversation."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.data_files import DATA
from crag_core.base.types.questions import Turn
from crag_core.evaluators.shipped import signal_meter
from crag_core.trace.standalone import back_question, by_rule, lacks_subject, points_back, stands_alone, why_refused
from crag_core.trace.trace import speaks_of_before

STOP = signal_meter().stop_words
TEXT = st.text(max_size=200)
SAID = "and what about the a for in on 2024 5 days £2,000 Corsay ferry cost does is it of with ? ."
WORDS = st.lists(st.sampled_from(SAID.split()), max_size=12).map(" ".join)


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


def test_no_sample_question_is_taken_for_a_later_one() -> None:
    lines = (DATA / "questions" / "sample.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    assert [one for one in questions if not stands_alone(one, STOP)] == []


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


def test_a_reply_takes_the_place_of_what_was_asked_for() -> None:
    back = Turn("a", "And how high is it?", "What does “it” stand for?", asks_back=True)
    assert by_rule("The crane", [back], STOP) == ("How high is the crane?", True)
    owned = Turn("a", "And how long is its berth?", "What does “its” stand for?", asks_back=True)
    assert by_rule("the Tystie.", [owned], STOP) == ("How long is the Tystie's berth?", True)
    assert by_rule("Vennick", [Turn("a", "why?", "What about?", asks_back=True)], STOP) == ("why? Vennick", False)


@pytest.mark.parametrize(
    ("asked", "said", "why"),
    [
        ("And the Tystie?", "When was the Tystie built?", ""),
        ("thank you. And the Tystie?", "When was the Tystie built?", ""),
        ("And for kids?", "what does the ferry cost for an adult ?", "asked an earlier question once more"),
        ("And the Tystie?", "When was the Grey Plover built, and where?", "left out “Tystie”"),
        ("And the Tystie?", "When was the Grey Plover built? And the Tystie?", "asked two questions in one"),
        ("And in winter?", "When was the Grey Plover built in winter?", ""),
        ("And when is it inspected?", "And when is it inspected?", "left it depending on what came before"),
    ],
)
def test_what_a_model_made_of_it_is_looked_at(asked: str, said: str, why: str) -> None:
    history = [Turn("a", "What does the ferry cost for an adult?"), Turn("b", "When was the Grey Plover built?")]
    assert why_refused(said, asked, history, STOP) == why


@pytest.mark.parametrize(
    ("sentence", "before", "now", "speaks"),
    [
        ("Full-time staff receive 27 days of leave.", "Leave of full-time staff?", "Leave of part-time staff?", True),
        ("Part-time staff receive as many days as full-time staff.", "Full-time staff?", "Part-time staff?", False),
        ("418,200 passengers were carried in 2024.", "Passengers in 2024?", "Passengers in 2021?", True),
        ("Child 5-15: 5.80", "What does it cost for an adult?", "What does it cost for kids?", False),
        ("The ferry leaves in summer.", "When is the board meeting?", "When does the ferry leave?", False),
        ("", "", "", False),
    ],
)
def test_a_sentence_about_what_was_asked_before(sentence: str, before: str, now: str, speaks: bool) -> None:
    assert speaks_of_before(sentence, before, now) is speaks


@given(TEXT | WORDS, st.lists(TEXT | WORDS, max_size=4))
def test_whatever_is_asked_is_kept(question: str, before: list[str]) -> None:
    made, is_one = by_rule(question, [Turn("", one) for one in before], STOP)
    assert made == "" or made.endswith(question)
    assert made in ("", question) or made not in before, "the earlier question again"
    assert not is_one and len(made) <= sum(map(len, before)) + len(question) + 2
    assert isinstance(lacks_subject(question, STOP), bool) and back_question(question, STOP)
