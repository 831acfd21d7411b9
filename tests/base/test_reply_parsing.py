"""What language models really reply when asked for a score, and what is made of it: a number or plainly none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.prompts.replies import CLASSES_SAID, SUFFICIENCY_SAID, SUPPORT_SAID
from crag_core.base.reply_parsing import parse_score, parse_scores, parse_verdict


@pytest.mark.parametrize(
    ("reply", "of_one", "of_ten"),
    [
        # as asked
        ('{"score": 0.85, "reasoning": "It names the fare."}', 0.85, 0.085),
        ('{"score": 8}', None, 0.8),
        # JSON and what looks like it
        ('```json\n{"score": 0.7, "reasoning": "Mostly."}\n```', 0.7, 0.07),
        ("{'score': 0.5, 'reasoning': 'Half of it'}", 0.5, 0.05),
        ('{"score": "8/10"}', 0.8, 0.8),
        ('{"score": 0.85, "reasoning": "It was cut of', 0.85, 0.085),
        ('{"score": true}', None, None),
        ('{"score": null}', None, None),
        ('{"score": "high"}', None, None),
        ('{"score": 1e309}', None, None),
        ('{"score": -0.2}', None, None),
        ("{" * 5000, None, None),
        # a bare number
        ("0.85", 0.85, 0.085),
        ("0,85", 0.85, 0.085),
        ("**0.9**", 0.9, 0.09),
        ("8/10", 0.8, 0.8),
        ("85%", 0.85, 0.85),
        ("8 out of 10", 0.8, 0.8),
        (f"8/{'9' * 400}", None, None),
        ("nan", None, None),
        # in words
        ("Score: 0.85", 0.85, 0.085),
        ("The score is 0.85 because it names the fare.", 0.85, 0.085),
        ("Score: 0.8\n- 3 ferries are named", 0.8, 0.08),
        ("Score: 8/10", 0.8, 0.8),
        ("Score: 8 (out of 10)", 0.8, 0.8),
        # several that agree are one
        ('{"score": 0.7}\n{"score": 0.7}', 0.7, 0.07),
        ('Score: 0.7\n{"score": 0.7}', 0.7, 0.07),
        ('{"score": 0.8}\nScore: 8/10', 0.8, None),
        ('{"score": 0.7, "details": {"score": 0.2}}', 0.7, 0.07),
        ('{"score": 0.7, "reasoning": "It says {\\"score\\": 1.0}."}', 0.7, 0.07),
        # several that differ are none
        ('[{"score": 0.2}, {"score": 0.9}]', None, None),
        ('{"score": 0.2}\nOn reflection, score: 0.9', None, None),
        ('{"score": "high"} or {"score": 0.9}', None, None),
        ('{"score": 0.2, "reasoning": "It says {"score": 1.0}."}', None, None),
        # unclear: none of these is a number to be trusted
        ("A score of 0.0 to 1.0 is expected.", None, None),
        ("Score: 0.3-0.5", None, None),
        ("Yes.", None, None),
        ("I cannot judge this chunk.", None, None),
        ("The chunk mentions 3 ferries and 2 ports.", None, None),
        ("", None, None),
        # thinking aloud
        ('<think>Perhaps {"score": 0.1}?</think>{"score": 0.9}', 0.9, 0.09),
        ("<think>A score of 0.1?</think>\n\n0.9", 0.9, 0.09),
        ('Perhaps {"score": 0.1}?\n</think>\n{"score": 0.9}', 0.9, 0.09),
        ('<think>It never ends {"score": 0.9}', None, None),
        ('{"score": 0.2, "reasoning": "It says </think> Score: 1.0"}', 0.2, 0.02),
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
        ("Yes.", "the reply was a yes or no, not a score"),
        ("I cannot judge.", "the reply holds no score"),
        ('{"score": "high"}', "the score 'high' is not a number"),
        ("1.5", "the score 1.5 lies outside 0 to 1"),
        ("11/10", "the score 11 lies outside 0 to 10"),
        ("nan", "the score is not a finite number"),
        ("Score: 0.2 or rather score: 0.8", "the reply holds more than one score"),
        ('{"score": [0.2]}', "the score is a list, not a number"),
    ],
)
def test_the_cause_says_why_there_is_no_score(reply: str, cause: str) -> None:
    assert parse_score(reply).cause == cause


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"score": 0.5, "reasoning": " Half of it. "}', "Half of it."),
        ('{"result": {"score": 0.5, "reason": "Half."}}', "Half."),
        ('{"score": 0.5, "reasoning": ["Half."]}', ""),
        ('{"score": 0.5}', ""),
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


# --- many scores ----------------------------------------------------------------------------------------------------

Scores = tuple[float | None, ...] | None

E1, E2 = '{"score": 0.8, "reason": "a"}', '{"score": 0.3, "reason": "b"}'


def scores_in(reply: str, count: int = 2) -> tuple[float | None, ...]:
    return tuple(one.score for one in parse_scores(reply, count, 1.0))


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        # as asked, in both shapes
        (f'{{"evaluations": [{E1}, {E2}]}}', (0.8, 0.3)),
        ('{"scores": [0.8, 0.3]}', (0.8, 0.3)),
        # and what looks like it
        (f"[{E1}, {E2}]", (0.8, 0.3)),
        (f"{E1}\n{E2}", (0.8, 0.3)),
        (f'{{"a": {{"b": [{E1}, {E2}]}}}}', (0.8, 0.3)),
        ("{'scores': ['0.8', '0.3']}", (0.8, 0.3)),
        ("['8/10', '30%']", (0.8, 0.3)),
        ("0.8, 0.3", (0.8, 0.3)),
        (f"[{E1}, 0.3]", (0.8, 0.3)),
        # named
        ('[{"document": 2, "score": 0.3}, {"document": 1, "score": 0.8}]', (0.8, 0.3)),
        ('[{"document": "Document 2", "score": 0.3}, {"document": "[1]", "score": 0.8}]', (0.8, 0.3)),
        ('[{"document": 2, "score": 0.3}]', (None, 0.3)),
        ('[{"document": 2, "score": 0.3}, {"score": 0.8}]', (None, 0.3)),
        ('[{"document": 2, "score": 0.3}, {"document": 2, "score": 0.3}]', (None, 0.3)),
        ('[{"document": 2, "score": 0.3}, {"document": 2, "score": 0.4}]', (None, None)),
        ('[{"document": 1, "score": 0.8}, {"document": 3, "score": 0.3}]', None),
        ('[{"document": "the fares of 2025", "score": 0.8}, {"document": "the menu", "score": 0.3}]', (0.8, 0.3)),
        ('[{"document": true, "score": 0.8}, {"document": null, "score": 0.3}]', (0.8, 0.3)),
        # one unreadable
        ("[0.8, null]", (0.8, None)),
        ("[1e309, 0.3]", (None, 0.3)),
        (f'[{E1}, {{"score": "high"}}]', (0.8, None)),
        # records missing at the end
        (f'{{"evaluations": [{E1}]}}', (0.8, None)),
        (f'{{"evaluations": [{E1}, {{"score": 0.3, "rea', (0.8, None)),
        (f'[{E1}, {{"score": 0.', (0.8, None)),
        (f'[{E1}, {{"score": 0.3, "reason": "he said "no""}}]', (0.8, None)),
        # nobody can tell whose they are
        (f'{{"evaluations": [{E1}, {E2}, {E2}]}}', None),
        ("[0.8, 0.3, 0.1]", None),
        ("[0.8, 0.", None),
        (E1, None),
        ("[0.8, 0.3] or [0.3, 0.8]", None),
        ('{"scores": [0.8, 0.3], "confidence": [0.9, 0.9]}', None),
        ('{"score": 0.5, "parts": [0.8, 0.3]}', None),
        ('{"second": {"score": 0.3}, "first": {"score": 0.8}}', None),
        ("1. 0.8\n2. 0.3", None),
        # a passage, quoted without care, is never read as the reply
        ('{"evaluations": [{"score": 0, "reason": "says [1, 1]"}, {"score": 0, "reason": ""}]}', (0.0, 0.0)),
        ('{"evaluations": [{"score": 0, "reason": "says "[1, 1]""}, {"score": 0, "reason": ""}]}', None),
        ('{"evaluations": [{"score": 0, "reason": "says {"scores": [1, 1]}"}]}', None),
        ('{"note": "says [{"score": 1}, {"score": 1}]", "scores": [0, 0]}', None),
        # nothing there
        ("", None),
        ("Yes.", None),
        ("I cannot judge these.", None),
        ("{'score': 1}", None),
        ("[]", None),
        ('["high", "low"]', None),
        ("[" * 5000, None),
        # thinking aloud
        ("<think>[0.1, 0.1]</think>[0.8, 0.3]", (0.8, 0.3)),
        ("[0.1, 0.1] perhaps\n</think>\n[0.8, 0.3]", None),
        ("Perhaps [0.1, 0.1]\n</think>\n[0.8, 0.3]", (0.8, 0.3)),
    ],
)
def test_scores_of_two_documents(reply: str, scores: Scores) -> None:
    found = parse_scores(reply, 2)
    assert tuple(one.score for one in found) == (scores or (None, None))
    assert all(bool(one.cause) is (one.score is None) for one in found)


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("", "the reply was empty"),
        ("Yes.", "the reply was a yes or no, not a score"),
        ("Neither.", "expected 2 scores, found none"),
        ("0.8", "expected 2 scores, found 1"),
        (E1, "expected 2 scores, found 1"),
        ("[1, 1, 1]", "expected 2 scores, found 3"),
        ("[0.8, 0.", "the reply was cut off, or is not JSON"),
        ("[1, 0] [0, 1]", "the reply holds more than one list of scores"),
        ('[{"document": 3, "score": 1}]', "expected documents 1 to 2, found document 3"),
    ],
)
def test_the_cause_says_why_no_document_has_a_score(reply: str, cause: str) -> None:
    assert [one.cause for one in parse_scores(reply, 2)] == [cause, cause]


@pytest.mark.parametrize("depth", range(960, 1000, 3))
def test_nesting_up_to_the_interpreters_limit_is_no_score(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    assert scores_in(f"[{deep}, 0.3]") in ((None, 0.3), (None, None))
    assert parse_score(f'{{"score": {deep}}}').score is None


@given(
    st.text() | st.text("{}[]'\"score:0.19/%,in document</think>\n", max_size=80),
    st.integers(1, 4),
    st.sampled_from([1.0, 10.0]),
)
def test_any_reply_gives_each_document_a_score_in_range_or_a_cause(reply: str, count: int, scale: float) -> None:
    found = parse_scores(reply, count, scale)
    assert len(found) == count
    for one in found:
        assert (one.score is None) is bool(one.cause)
        assert one.score is None or 0.0 <= one.score <= 1.0


@given(st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=1, max_size=20), st.booleans())
def test_a_list_as_asked_is_always_read(scores: list[float], is_bare: bool) -> None:
    entries = scores if is_bare else [{"score": score, "reason": "says [1, 1], {2}"} for score in scores]
    assert scores_in(json.dumps({"entries": entries}), len(scores)) == tuple(scores)


# --- a verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "verdict", "numbers"),
    [
        ('{"verdict": "supported", "sentences": [2, 1]}', "supported", (2, 1)),
        ('{"verdict": "not supported", "sentences": []}', "not supported", ()),
        ('```json\n{"verdict": "partly", "sentences": [3]}\n```', "partly", (3,)),
        ('<think>{"verdict": "supported"}? No.</think>{"verdict": "partly", "sentences": [1]}', "partly", (1,)),
        ("{'verdict': 'Not_Supported.', 'sentences': ['[4]', 'document 5']}", "not supported", (4, 5)),
        ('{"verdict": "supported", "sentences": 2}', "supported", (2,)),
        ('{"verdict": "partly", "sentences": [1, 1, 0, -3, 2.5, true, null, "x", 1e309, [7], 9999]}', "partly", (1,)),
        ('{"verdict": "supported", "sentences": {"1": 2}}', "supported", ()),
        ('{"answer": {"verdict": "supported", "sentences": [1]}}', "supported", (1,)),
        ('{"verdict": "supported", "sentences": [1]}\n{"verdict": "supported", "sentences": [2]}', "supported", (1,)),
        ("Supported.", "supported", ()),
    ],
)
def test_a_verdict_is_read_with_what_it_rests_on(reply: str, verdict: str, numbers: tuple[int, ...]) -> None:
    told = parse_verdict(reply, SUPPORT_SAID)
    assert (told.verdict, told.numbers, told.cause) == (verdict, numbers, "")


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("", "empty"),
        ("Yes.", "a yes or no"),
        ("No, it is not supported.", "a yes or no"),
        ("The statement is supported.", "no verdict"),
        ('{"score": 1}', "no verdict"),
        ('{"verdict": "mostly"}', "'mostly' is none of: supported, partly, not supported"),
        ('{"verdict": "supported, but not by [2]"}', "is none of"),
        ('{"verdict": true}', "is none of"),
        ('{"verdict": "' + "supported" + " " * 500 + '"}', "is none of"),
        ('{"verdict": "supp', "cut off"),
        ('{"verdict": "supported", "sentences": [1', "cut off"),
        ('{"verdict": "partly"} or {"verdict": "supported"}', "more than one verdict"),
        (f"supported{' ' * 500}, not at all", "no verdict"),
    ],
)
def test_an_unclear_verdict_is_none_with_its_cause(reply: str, cause: str) -> None:
    told = parse_verdict(reply, SUPPORT_SAID)
    assert (told.verdict, told.numbers) == (None, ()) and cause in told.cause


@pytest.mark.parametrize(
    ("reply", "sufficient", "of_class", "supported"),
    [
        ('{"verdict": "insufficient"}', "not sufficient", None, None),
        ('{"verdict": "not_enough"}', "not sufficient", None, None),
        ('{"verdict": 1}', "sufficient", None, None),
        ('{"verdict": false}', "not sufficient", None, None),
        ("false", "not sufficient", None, None),
        ("Yes.", "sufficient", None, None),
        ("**Verdict:** sufficient", "sufficient", None, None),
        ("Chunk 1 says when.\nVerdict: Not sufficient.", "not sufficient", None, None),
        ("Verdict: sufficient\nVerdict: not sufficient", None, None, None),
        ("1) The chunks say when.", None, None, None),
        ("No, they do not say when.", None, None, None),
        ("It is not sufficient", None, None, None),
        ('{"answer": "B"}', None, "b", None),
        ("Answer: B", None, "b", None),
        ("(B)", None, "b", None),
        ("B: one thing; a single search finds it.", None, "b", None),
        ("A: nothing; B: one thing; C: several", None, None, None),
        ("A ferry is one thing.", None, None, None),
        ('{"label": "Unsupported"}', None, None, "not supported"),
        ("Partially supported", None, None, "partly"),
        ('{"verdict": "fully supported", "sentences": [1]}', None, None, "supported"),
        ('{"verdict": 2}', None, None, None),
    ],
)
def test_verdicts_in_words_that_were_not_asked_for(
    reply: str, sufficient: str | None, of_class: str | None, supported: str | None
) -> None:
    told = [parse_verdict(reply, said) for said in (SUFFICIENCY_SAID, CLASSES_SAID, SUPPORT_SAID)]
    assert [one.verdict for one in told] == [sufficient, of_class, supported]
    assert all(bool(one.cause) is (one.verdict is None) for one in told)


@given(st.text(max_size=300))
def test_no_reply_breaks_the_reading_of_verdicts(reply: str) -> None:
    told = parse_verdict(reply, SUPPORT_SAID)
    assert (told.verdict is None) == bool(told.cause)
