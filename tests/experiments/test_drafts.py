"""Drafted questions worded by a language model: what it says well is taken, everything else stays as it was."""

from __future__ import annotations

import json
from threading import Event

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Messages, Reply
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.experiments.drafting.draft import draft
from crag_core.experiments.drafting.draft_with_model import reword
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion

PASSAGES = (
    Passage(
        "p1", "The harbour was built in 1931 by the Orran company. The crane lifts 6 tonnes of cargo.", "harbour.md"
    ),
    Passage(
        "p2", "The lighthouse keeper lives in Kelderport. The lamp was changed in 1987 after the storm.", "light.md"
    ),
)


class Wording:
    """A model that answers each request by a function of it."""

    name = "wording"

    def __init__(self, reply: object) -> None:
        self.reply, self.asked = reply, 0

    def complete_all(self, chats: list[Messages], cancel: Event, schema: object = None) -> list[Reply | Exception]:
        self.asked += len(chats)
        found = [self.reply(chat) if callable(self.reply) else self.reply for chat in chats]
        return [one if isinstance(one, Exception) else Reply(str(one), Usage(1)) for one in found]


@pytest.fixture
def drafted() -> tuple[LabelledQuestion, ...]:
    found = draft(PASSAGES, ["How do I boil an egg?", "Who won the cup?"], 12, 0)
    assert any(one.expected is Expected.CORRECT for one in found)
    return found


def test_a_good_question_takes_the_place_of_the_drafted_one(drafted: tuple[LabelledQuestion, ...]) -> None:
    def ask(chat: Messages) -> str:
        year = "1931" if "1931" in chat[1][1].split("<sentence>")[1] else "1987"
        return json.dumps({"question": f"Since when does it stand there, number {year[-1]}?", "answer": year})

    found = reword(drafted, PASSAGES, Wording(ask), Event())  # type: ignore[arg-type]
    worded = [one for one in found if "Worded by wording." in one.note]
    assert worded and all(one.question.startswith("Since when") for one in worded)
    assert all(one.answers for one in worded if one.expected is Expected.CORRECT)
    assert [one.question for one in found if one.expected is Expected.INCORRECT] == [
        one.question for one in drafted if one.expected is Expected.INCORRECT
    ]


@pytest.mark.parametrize(
    "reply", ["", "no JSON", '{"question": "Why?", "answer": "not in the sentence"}', ValueError("odd")]
)
def test_a_reply_of_no_use_changes_nothing(drafted: tuple[LabelledQuestion, ...], reply: object) -> None:
    assert reword(drafted, PASSAGES, Wording(reply), Event()) == drafted  # type: ignore[arg-type]


def test_a_model_that_is_away_is_told(drafted: tuple[LabelledQuestion, ...]) -> None:
    with pytest.raises(ModelUnavailable):
        reword(drafted, PASSAGES, Wording(ModelUnavailable("away")), Event())  # type: ignore[arg-type]


def test_questions_of_other_origin_are_not_sent_anywhere() -> None:
    model, mine = Wording(""), (LabelledQuestion("Mine?", Expected.CORRECT),)
    assert reword(mine, PASSAGES, model, Event()) == mine and model.asked == 0  # type: ignore[arg-type]
