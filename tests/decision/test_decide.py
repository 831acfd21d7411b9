"""Decisions of recorded runs: the evidence that is read from a record, and the reason in numbers."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.decision.crag import Chunk
from crag_core.decision.decide import decide, evidence_of
from tests.builders import even, grade, graded, passage, policy

CORRECT, AMBIGUOUS, INCORRECT = Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT


def test_what_was_recorded_becomes_the_evidence() -> None:
    """What `crag` reads of a chunk: its grade, its cosine if dense retrieval found it, whether it was pinned."""
    near = (("cosine", 0.9), ("bm25", 4.0))
    found = (
        passage("p1", found_by=("keyword", "dense"), scores=near),
        passage("p2", found_by=("keyword",), scores=near),
        passage("p3", found_by=("read_file",)),
    )
    two = replace(grade("p3", 0.5), parts=((ANSWERING, 0.2), (TOPICAL, 0.9)))
    given = (two, grade("another", 0.9), grade("p1", None))
    seen = evidence_of(policy("paper"), found, given, (("agreement", 1.7), ("coherence", -0.1)), ("keyword",), ("p2",))
    assert seen.chunks == (Chunk("p1", cosine=0.9), Chunk("p2", tried=False), Chunk("p3", 0.5, pinned=True))
    assert seen.signals == {"agreement": 1.0, "coherence": 0.0, "rerank_top3": 0.5}
    assert (seen.rounds, seen.is_reread) == (("keyword",), True)
    parts = evidence_of(policy("two-signal"), found, given).chunks
    assert (parts[2].grade, parts[2].topical) == (0.2, 0.9)


def test_passages_that_were_looked_at_before_are_approved_by_no_rule() -> None:
    found, grades = graded(0.0, 0.0)
    assert decide(policy("agentic"), found, grades, seen=("p1",)).rule is None


@pytest.mark.parametrize(
    ("name", "scores", "reason"),
    [
        ("paper", (0.6,), "best chunk 0.60 ≥ upper 0.60"),
        ("worst-chunk", (0.6999, 0.9), "worst chunk 0.6999 between lower 0.30 and upper 0.7000"),
        ("worst-chunk", (0.2999, 0.9), "worst chunk 0.2999 < lower 0.3000"),
        ("rank-weighted", (0.3,), "rank-weighted mean 0.30 ≤ lower 0.30"),
        ("heuristic", (0.5,), "weighted sum of signals 0.50 ≤ lower 0.50"),
        ("heuristic", (0.75,), "weighted sum of signals 0.75 between lower 0.50 and upper 0.75"),
        ("agentic", (0.2999, 0.1, 0.2), "no chunk reaches lower 0.3000, the best scores 0.2999"),
    ],
)
def test_reasons_are_said_in_numbers(name: str, scores: tuple[float, ...], reason: str) -> None:
    assert decide(policy(name), *graded(*scores), even(scores[0])).reason == reason


@pytest.mark.parametrize("name", ["heuristic", "signals"])
def test_where_no_signal_was_measured_it_is_ambiguous_and_says_so(name: str) -> None:
    decision = decide(policy(name), *graded(None, None, None))
    assert (decision.action, decision.score, decision.next_round) == (AMBIGUOUS, None, None)
    assert decision.reason == "no signal of this policy could be measured"


@pytest.mark.parametrize(
    ("name", "scores", "confidence"),
    [
        ("paper", (0.9,), 0.9),
        ("paper", (0.5,), 0.5),
        ("paper", (0.1,), 0.9),
        ("paper", (0.0,), 1.0),
        ("paper", (None,), None),
        ("signals", (0.25,), 0.75),
        ("agentic", (0.1, 0.1), 1.0),  # a rule
    ],
)
def test_confidence_is_that_of_the_action(
    name: str, scores: tuple[float | None, ...], confidence: float | None
) -> None:
    decision = decide(policy(name), *graded(*scores), even(scores[0]) if scores[0] is not None else ())
    assert decision.confidence == confidence


@pytest.mark.parametrize(
    ("of", "signal", "scores", "action", "steps"),
    [
        ("paper", "unsure", (0.9,), AMBIGUOUS, "refine"),  # decides nothing, and looks for no more
        ("paper", "unsure", (), INCORRECT, "discard"),
        ("adaptive-rag", "unsure", (0.9,), AMBIGUOUS, "keep"),
        ("paper", "repeated", (0.9,), AMBIGUOUS, "refine web"),
        ("paper", "repeated", (0.1,), INCORRECT, "discard web"),
        ("adaptive-rag", "repeated", (0.9,), AMBIGUOUS, "keep"),  # every retrieval was made before
        ("agentic", "repeated", (0.1,), AMBIGUOUS, "keep"),  # under the rule few_context
    ],
)
def test_a_follow_up_that_is_unsure_or_repeats_is_never_correct(
    of: str, signal: str, scores: tuple[float, ...], action: Action, steps: str
) -> None:
    signals = ((signal, 1.0), *((("class", 1.0),) if of == "adaptive-rag" else ()))
    decision = decide(policy(of), *graded(*scores), signals)
    searches = decision.wants(CorrectionKind.WEB_SEARCH)
    assert (decision.action, decision.next_round) == (action, None)
    assert f"{decision.handling}{' web' if searches else ''}" == steps


def test_plain_rag_answers_from_what_it_finds_even_where_that_is_about_the_question_before() -> None:
    of = replace(policy("paper"), skip=(("always", None),), correct=(("keep", None),))
    decision = decide(of, *graded(0.9), (("repeated", 1.0),))
    assert (decision.action, decision.rule) == (Action.CORRECT, "always")
