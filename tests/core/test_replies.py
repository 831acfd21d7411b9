"""What language models really reply when asked for a score, and what is made of it: a number or plainly none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.replies import parse_score


@pytest.mark.parametrize(
    ("reply", "of_one", "of_ten"),
    [
        # as asked
        ('{"score": 0.85, "reasoning": "It names the fare."}', 0.85, 0.085),
        ('{"score": 0, "reasoning": ""}', 0.0, 0.0),
        ('{"score": 1}', 1.0, 0.1),
        ('{"score": 8}', None, 0.8),
        ('{"score": 10}', None, 1.0),
        # JSON and what looks like it
        ('```json\n{"score": 0.7, "reasoning": "Mostly."}\n```', 0.7, 0.07),
        ('Here you are:\n{"score": 0.7}\nHave a nice day!', 0.7, 0.07),
        ('{"result": {"score": 0.4}}', 0.4, 0.04),
        ("{'score': 1}", 1.0, 0.1),
        ("{'score': 0.5, 'reasoning': 'Half of it'}", 0.5, 0.05),
        ('{"score": "0.8"}', 0.8, 0.08),
        ('{"score": "8/10"}', 0.8, 0.8),
        ('{"score": "80%"}', 0.8, 0.8),
        ('{"score": 0.85, "reasoning": "It was cut of', 0.85, 0.085),
        ('{"score": true}', None, None),
        ('{"score": null}', None, None),
        ('{"score": "high"}', None, None),
        ('{"score": [0.5]}', None, None),
        ('{"score": ""}', None, None),
        ('{"score": NaN}', None, None),
        ('{"score": Infinity}', None, None),
        ('{"score": 1e309}', None, None),
        ('{"score": -0.2}', None, None),
        ('{"relevance": "good"}', None, None),
        ("{", None, None),
        ("{" * 5000, None, None),
        ('{"a":' * 5000, None, None),
        # a bare number
        ("0.85", 0.85, 0.085),
        (" 0.85\n", 0.85, 0.085),
        ("0,85", 0.85, 0.085),
        (".5", 0.5, 0.05),
        ("1.", 1.0, 0.1),
        ("1.0.", 1.0, 0.1),
        ("**0.9**", 0.9, 0.09),
        ("`0.9`", 0.9, 0.09),
        ('"0.9"', 0.9, 0.09),
        ("8/10", 0.8, 0.8),
        ("8 / 10", 0.8, 0.8),
        ("4/5.", 0.8, 0.8),
        ("85%", 0.85, 0.85),
        ("85 %", 0.85, 0.85),
        ("8 out of 10", 0.8, 0.8),
        ("1e-1", 0.1, 0.01),
        ("7", None, 0.7),
        ("100", None, None),
        ("-0.5", None, None),
        ("150%", None, None),
        ("11/10", None, None),
        ("1/0", None, None),
        ("1e309", None, None),
        ("nan", None, None),
        ("NaN", None, None),
        ("inf", None, None),
        # in words
        ("Score: 0.85", 0.85, 0.085),
        ("score = 0.85", 0.85, 0.085),
        ("The score is 0.85 because it names the fare.", 0.85, 0.085),
        ("I give it a score of 0.4, since little fits.", 0.4, 0.04),
        ("**Score:** 0.85", 0.85, 0.085),
        ("**Score: 0.85**", 0.85, 0.085),
        ("Relevance: 0.6\nThe passage is about fares.", 0.6, 0.06),
        ("Score: 0.8\n- 3 ferries are named", 0.8, 0.08),
        ("Score: 8/10", 0.8, 0.8),
        ("SCORE: 8 OUT OF 10", 0.8, 0.8),
        ("Score: 85%", 0.85, 0.85),
        ("Score: 1 out of 10", 0.1, 0.1),
        ("Score: 8 (out of 10)", 0.8, 0.8),
        ("Score: 0.2. So my final score: 0.2", 0.2, 0.02),
        # unclear: none of these is a number to be trusted
        ("Score: 0.2. On reflection, score: 0.8", None, None),
        ("A score of 0.0 to 1.0 is expected.", None, None),
        ("Score: 0.3-0.5", None, None),
        ("Score: 0.3 – 0.5", None, None),
        ("Yes.", None, None),
        ("yes", None, None),
        ("No, it does not answer the question.", None, None),
        ("I cannot judge this passage.", None, None),
        ("As a language model, I cannot help with that.", None, None),
        ("The passage mentions 3 ferries and 2 ports.", None, None),
        ("0.5 or maybe 0.6", None, None),
        ("high", None, None),
        ("", None, None),
        (" \n\t", None, None),
        ("```", None, None),
        # thinking aloud
        ('<think>Perhaps {"score": 0.1}?</think>{"score": 0.9}', 0.9, 0.09),
        ("<think>A score of 0.1?</think>\n\n0.9", 0.9, 0.09),
        ("<thinking>Hm, 0.1</thinking>Score: 0.9", 0.9, 0.09),
        ('Perhaps {"score": 0.1}?\n</think>\n{"score": 0.9}', 0.9, 0.09),
        ('<think>It never ends {"score": 0.9}', None, None),
        ("<think></think>", None, None),
    ],
)
def test_scores_on_both_scales(reply: str, of_one: float | None, of_ten: float | None) -> None:
    for scale, score in ((1.0, of_one), (10.0, of_ten)):
        parsed = parse_score(reply, scale)
        assert parsed.score == (score if score is None else pytest.approx(score)), f"on 0 to {scale:g}"
        assert bool(parsed.cause) is (score is None)


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("", "the reply was empty"),
        ("<think>So much to think", "the reply was empty"),
        ("Yes.", "the reply was a yes or no, not a score"),
        ("No, never.", "the reply was a yes or no, not a score"),
        ("I cannot judge.", "the reply holds no score"),
        ('{"score": "high"}', "the score 'high' is not a number"),
        ("1.5", "the score 1.5 lies outside 0 to 1"),
        ("11/10", "the score 11 lies outside 0 to 10"),
        ("nan", "the score is not a finite number"),
        ("1e309", "the score is not a finite number"),
        ("Score: 0.2 or rather score: 0.8", "the reply holds more than one score"),
    ],
)
def test_the_cause_says_why_there_is_no_score(reply: str, cause: str) -> None:
    assert parse_score(reply).cause == cause


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"score": 0.5, "reasoning": " Half of it. "}', "Half of it."),
        ('{"score": 0.5, "reason": "Half."}', "Half."),
        ('{"score": 0.5}', ""),
        ("0.5", ""),
        ("Score: 0.5\nIt names the fare.", "Score: 0.5\nIt names the fare."),
    ],
)
def test_the_reason_is_the_models_own(reply: str, reason: str) -> None:
    assert parse_score(reply).reason == reason


@given(st.text() | st.text("{}[]'\"score:0.19/%eE+-,in afthk<>", max_size=60), st.sampled_from([1.0, 10.0]))
def test_any_reply_gives_a_score_in_range_or_a_cause(reply: str, scale: float) -> None:
    parsed = parse_score(reply, scale)
    assert (parsed.score is None) is bool(parsed.cause)
    assert parsed.score is None or 0.0 <= parsed.score <= 1.0
