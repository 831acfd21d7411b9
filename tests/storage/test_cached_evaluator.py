"""What is asked once, what is asked again, and whose cost it is."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.evaluators.cached import CachedEvaluator
from tests.storage.cache_parts import IDENTITY, QUESTION, CountingEvaluator, MemoryCache, ask, passage, passages


def cached(identity: str = IDENTITY, cache: MemoryCache | None = None) -> tuple[CachedEvaluator, CountingEvaluator]:
    inner = CountingEvaluator()
    return CachedEvaluator(inner, cache or MemoryCache(), identity), inner


def test_repeated_question_costs_no_call() -> None:
    evaluator, inner = cached()
    first = ask(evaluator, *passages("p1", "p2"))
    second = ask(evaluator, *passages("p1", "p2"))
    assert inner.asked == [("p1", "p2")]
    assert [grade.from_cache for grade in (*first, *second)] == [False, False, True, True]
    assert second == tuple(replace(grade, seconds=0.0, usage=Usage(), from_cache=True) for grade in first)


def test_same_text_under_another_id_is_known_and_keeps_the_id_asked_for() -> None:
    evaluator, inner = cached()
    ask(evaluator, passage("p1", "nine in the morning"))
    (again,) = ask(evaluator, passage("q7", "nine in the morning", source="b.pdf"))
    assert (again.passage_id, again.from_cache) == ("q7", True)
    assert inner.asked == [("p1",)]


def test_only_what_is_missing_is_asked_and_the_order_stays() -> None:
    evaluator, inner = cached()
    ask(evaluator, *passages("p2", "p4"))
    grades = ask(evaluator, *passages("p1", "p2", "p3", "p4", "p5"))
    assert inner.asked[1] == ("p1", "p3", "p5")
    assert [grade.passage_id for grade in grades] == ["p1", "p2", "p3", "p4", "p5"]
    assert [grade.reason for grade in grades] == [f"about text of p{n}" for n in range(1, 6)]
    assert [grade.from_cache for grade in grades] == [False, True, False, True, False]


def test_same_text_twice_in_one_call_gets_two_grades_in_order() -> None:
    evaluator, _ = cached()
    twins = (passage("p1", "same"), passage("p2", "other"), passage("p3", "same"))
    for _ in range(2):
        assert [grade.passage_id for grade in ask(evaluator, *twins)] == ["p1", "p2", "p3"]


@pytest.mark.parametrize(
    "bad",
    [
        Grade("p1", None, cause="no number in the reply", raw="Well."),
        Grade("p1", None, cause="the server is away", retryable=True),
        Grade("p1", 0.5, retryable=True),
    ],
)
def test_ungraded_passage_is_asked_again(bad: Grade) -> None:
    cache = MemoryCache()
    evaluator, inner = cached(cache=cache)
    inner.scoring = lambda passage: bad if passage.id == "p1" else 0.8
    assert ask(evaluator, *passages("p1", "p2"))[0] == bad
    assert len(cache.kept) == 1
    inner.scoring = lambda passage: 0.9
    again = ask(evaluator, *passages("p1", "p2"))
    assert inner.asked == [("p1", "p2"), ("p1",)]
    assert [(grade.score, grade.from_cache) for grade in again] == [(0.9, False), (0.8, True)]


def test_stop_is_passed_on_and_what_is_known_stays_known() -> None:
    evaluator, inner = cached()
    ask(evaluator, passage("p1"))
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Stopped):
        evaluator.grade(QUESTION, passages("p1", "p2"), stopped)
    assert evaluator.grade(QUESTION, passages("p1"), stopped)[0].from_cache, "waits for nobody, so nothing to stop"
    ask(evaluator, *passages("p1", "p2"))
    assert inner.asked == [("p1",), ("p2",)]


# --- the key --------------------------------------------------------------------------------------------------------


def key_of(asked: Passage, question: str = QUESTION, identity: str = IDENTITY, calls_model: bool = True) -> str:
    cache = MemoryCache()
    ask(CachedEvaluator(CountingEvaluator(calls_model), cache, identity), asked, question=question)
    (key,) = cache.kept
    return key


BASE = passage("p1", "It leaves at nine.")


OTHERS = {
    "other question": key_of(BASE, question="When does the ferry to Vennick arrive?"),
    "other case": key_of(BASE, question=QUESTION.lower()),
    "other text": key_of(passage("p1", "It leaves at ten.")),
    "other model": key_of(BASE, identity="llm|ollama/qwen3|prompts 2"),
    "other prompts": key_of(BASE, identity="llm|ollama/llama3.2|prompts 3"),
    "other evaluator": key_of(BASE, identity="llm-batch|ollama/llama3.2|prompts 2"),
    "white space within": key_of(passage("p1", "It leaves  at nine.")),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_makes_another_key(other: str) -> None:
    assert other != key_of(BASE)


def test_id_source_and_cosine_make_no_other_key_where_a_model_grades() -> None:
    assert key_of(passage("p9", BASE.text, cosine=0.7, source="b.pdf")) == key_of(BASE)


def test_cosine_makes_another_key_where_no_model_grades() -> None:
    keys = {key_of(passage("p1", BASE.text, cosine), calls_model=False) for cosine in (None, 0.0, 0.5, 0.5000001)}
    assert len(keys) == 4


def test_no_two_things_share_a_key_by_being_joined() -> None:
    pairs = [("ab", "c"), ("a", "bc"), ('a", "b', "c"), ("a", 'b", "c'), ("a\\", "c"), ("a", "\\c"), ("a\x00", "c")]
    # One sign beyond the basic plane, and the two halves that some encodings write it as.
    pairs += [("\U0001f600", "c"), ("\ud83d\ude00", "c"), ("\ud83d", "c"), ("\\ud83d", "c")]
    assert len({key_of(passage("p1", text), question) for question, text in pairs}) == len(pairs)


def test_keys_are_a_whole_sha256_and_the_same_tomorrow() -> None:
    assert key_of(BASE) == "bc62706bd1a7d97f810099e2024e9e406c05ed766311cef4013a1082df2d78fe"
