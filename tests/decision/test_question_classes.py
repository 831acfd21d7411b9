"""How much has to be looked up for a question (arXiv 2403.14403): where each class leads, and the rule. Pure."""

import pytest

from crag_core.decision.rounds import replay_rounds
from crag_core.decision.signals import CLASS, CLASSES, class_by_rule
from crag_core.decision.stability import flips, look_at, stability
from tests.builders import graded, passage, policy, round_of

POLICY = policy("adaptive-rag")


def sorted_as(letter: str) -> tuple[tuple[str, float], ...]:
    return ((CLASS, CLASSES[letter]),)


@pytest.mark.parametrize(
    ("question", "letter"),
    [
        ("When does the ferry leave?", "B"),
        ("ferry times", "B"),
        ("", "B"),
        ("When does the ferry leave, and what does it cost?", "C"),
        ("Is it open? Is it free?", "C"),
        ("Who built the lighthouse where the ferry to Vennick stops?", "C"),
        ("Wann fährt die Fähre? Was kostet sie?", "C"),
        ("渡轮几点开？多少钱？", "C"),
        ("Somewhere the show goes on", "B"),
    ],
)
def test_the_rule_without_a_language_model(question: str, letter: str) -> None:
    assert class_by_rule(question) == CLASSES[letter]


def test_without_retrieval_there_is_no_verdict_no_evidence_and_no_round() -> None:
    found, grades = graded(0.9, 0.5)
    path = replay_rounds(POLICY, found, grades, sorted_as("A"), (round_of("refine", passage("p9")),))
    assert (path.evidence, path.wanted, path.ungraded, len(path.iterations)) == ((), None, (), 1)
    decision = path.decision
    assert decision.is_from_memory and decision.verdict is None and decision.score is None
    assert (decision.label, decision.plan[-1].kind.value, len(decision.plan)) == ("No retrieval", "generate", 1)


def test_a_threshold_flips_only_what_was_decided_by_one() -> None:
    found, grades = graded(0.5)
    for letter, count in (("A", 0), ("B", 0), ("C", 2)):
        stable = stability(POLICY, grades, look_at(POLICY, found, grades, sorted_as(letter)))
        assert len(flips(stable, POLICY)) == count, letter
