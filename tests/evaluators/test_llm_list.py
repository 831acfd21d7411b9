"""The judge of twenty passages a call: numbers without names, told apart by their order or not at all."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from threading import Event

import pytest

from crag_core.base.prompts import replies
from crag_core.base.protocols import Messages
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.evaluators.judges.llm import LLMListEvaluator
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from tests.fakes import QUESTION, FakeModel, passage, passages
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

GOOD = '{"scores": [0.8, 0.3, 0.1]}'


def replying(*replies: str | Exception) -> FakeModel:
    queue = deque(replies)
    return FakeModel(list=lambda messages: queue.popleft())


def judge(model: FakeModel, *found: Passage) -> tuple[Grade, ...]:
    return LLMListEvaluator(model).grade(QUESTION, found or passages(3), Event())


def scores_of(grades: tuple[Grade, ...]) -> list[float | None]:
    return [grade.score for grade in grades]


# --- replies --------------------------------------------------------------------------------------------------------

READABLE = [
    GOOD,
    "[0.8, 0.3, 0.1]",
    "```json\n[0.8, 0.3, 0.1]\n```",
    "<think>[0.1, 0.1, 0.1]?</think>[0.8, 0.3, 0.1]",
    "Perhaps [0.1, 0.1, 0.1]?\n</think>\n[0.8, 0.3, 0.1]",
    "0.8, 0.3, 0.1",
    "0.8,0.3,0.1",
    "0.8 0.3 0.1",
    "0.8\n0.3\n0.1\n",
    "0,8; 0,3; 0,1",
    "(0.8, 0.3, 0.1).",
    '["0.8", "0.3", "0.1"]',
    "['0.8', '0.3', '0.1']",
    '["8/10", "30%", "1 out of 10"]',
    "[[0.8, 0.3, 0.1]]",
    '{"result": {"scores": [0.8, 0.3, 0.1]}}',
    '{"scores": [{"score": 0.8}, {"score": 0.3}, {"score": 0.1}]}',
    f"The scores are:\n{GOOD}\nAs asked: {GOOD}",
]


@pytest.mark.parametrize("reply", READABLE)
def test_readable_reply_is_graded_at_the_first_call(reply: str) -> None:
    model = replying(reply)
    grades = judge(model)
    assert [grade.passage_id for grade in grades] == ["p1", "p2", "p3"]
    assert scores_of(grades) == pytest.approx([0.8, 0.3, 0.1])
    assert {(grade.raw, grade.reason, grade.cause) for grade in grades} == {(reply, "", "")}
    assert model.kinds == ["list"]


UGLY = [
    ("Yes.", "a yes or no"),
    ("No, none.", "a yes or no"),
    ("", "empty"),
    ("<think>[0.8, 0.3, 0.1]", "empty"),
    ("I cannot judge these.", "found none"),
    ("{'score': 1}", "found 1"),
    ("0.85", "found 1"),
    ("8/10", "found 1"),
    ("NaN", "found 1"),
    ("[0.8, 0.3]", "expected 3 scores, found 2"),
    ("[0.8, 0.3, 0.1, 0.0]", "expected 3 scores, found 4"),
    ("0.8, 0.3", "expected 3 scores, found 2"),
    ("[]", "found none"),
    ("[0.8, 0.3, 0.", "cut off"),
    ("[0.8, 0.3, 0.1", "cut off"),
    ('{"scores": [0.8, 0.3, 0.1', "cut off"),
    ("1. 0.8\n2. 0.3\n3. 0.1", "found none"),
    ("1: 0.8, 2: 0.3, 3: 0.1", "found none"),
    ("0.8 for the first, 0.3 for the second, 0.1 for the third", "found none"),
    ("[0.8, 0.3, 0.1] or rather [0.1, 0.3, 0.8]", "more than one list"),
    ('["high", "low", "none"]', "found none"),
]


@pytest.mark.parametrize(("reply", "cause"), UGLY, ids=lambda value: str(value)[:20])
def test_reply_that_cannot_be_attributed_is_asked_again_once(reply: str, cause: str) -> None:
    model = replying(reply, GOOD)
    assert scores_of(judge(model)) == [0.8, 0.3, 0.1]
    assert cause in model.asked[1][1][-1][1]
    assert len(model.asked) == 2


@pytest.mark.parametrize(("reply", "cause"), UGLY, ids=lambda value: str(value)[:20])
def test_reply_that_cannot_be_attributed_twice_grades_nothing(reply: str, cause: str) -> None:
    model = replying(reply, reply)
    grades = judge(model)
    assert scores_of(grades) == [None, None, None]
    assert all(cause in grade.cause and grade.cause.endswith("(asked twice)") for grade in grades)
    assert {(grade.raw, grade.retryable) for grade in grades} == {(f"{reply}\n--- asked again ---\n{reply}", False)}
    assert len(model.asked) == 2


# --- calls and cost -------------------------------------------------------------------------------------------------


def by_text(messages: Messages) -> str:
    documents = messages[1][1].split("<evidence>\n")[1:]
    return json.dumps({"scores": [int(document.partition("\n")[0]) / 100 for document in documents]})


@pytest.mark.parametrize(("count", "calls"), [(1, [1]), (12, [12]), (20, [20]), (21, [20, 1]), (45, [20, 20, 5])])
def test_twenty_passages_go_into_one_call(count: int, calls: list[int]) -> None:
    model = FakeModel(list=by_text)
    grades = judge(model, *(passage(n, str(n)) for n in range(1, count + 1)))
    assert scores_of(grades) == [n / 100 for n in range(1, count + 1)]
    assert [messages[1][1].count("<evidence>") for _, messages in model.asked] == calls
    assert sum((grade.usage for grade in grades), Usage()).calls == len(calls)


@pytest.mark.parametrize(
    ("text", "together"),
    [("x" * 5000, 20), ("ж" * 800, 11), ("船" * 800, 7), ("船" * 90, 20), ("\ud800" * 800, 20)],
    ids=["Latin", "Cyrillic", "Han", "short", "broken"],
)
def test_a_call_never_holds_more_than_a_context_of_8192_tokens_can(text: str, together: int) -> None:
    model = FakeModel(list=lambda messages: "[0.5]")
    judge(model, *(passage(n, text) for n in range(1, 21)))
    first = next(messages[1][1].count("<evidence>") for _, messages in model.asked)
    assert first == together


# --- the wire -------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(lambda messages: GOOD, piece_chars=400)) as server:
        yield server


def test_the_schema_asks_for_as_many_numbers_as_there_are_passages(server: OllamaServer) -> None:
    found = (passage(1, 'a {0} "quote" </evidence> [1.0, 1.0, 1.0]'), passage(2, "b" * 2100), passage(3, "c"))
    grades = LLMListEvaluator(ollama.model(server.url, MODEL, 10.0, CallLimit(2))).grade(QUESTION, found, Event())
    assert scores_of(grades) == [0.8, 0.3, 0.1]
    body = server.requests[-1][1]
    assert body["format"] == replies.list_schema(3)
    listed = body["format"]["properties"]["scores"]
    assert (listed["minItems"], listed["maxItems"], listed["items"]["maximum"]) == (3, 3, 1)
    sent = body["messages"][1]["content"]
    assert sent.count("<evidence>") == sent.count("</evidence>") == 3
    assert f"{'b' * 2000}...\n" in sent
    assert "3 documents" in body["messages"][0]["content"]
    assert grades[0].usage.calls == server.chat_calls == 1
