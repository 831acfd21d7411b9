"""A route that reads whole documents: what is planned, when it counts as read, and what it is without a model. Pure."""

import pytest

from crag_core.base.text.tokens import around
from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.decisions import Action, CorrectionKind, Handling
from crag_core.base.types.passages import Round
from crag_core.decision.decide import decide
from crag_core.decision.refine import recompose
from crag_core.decision.rounds import replay_rounds
from crag_core.decision.signals import SUFFICIENCY
from tests.builders import graded, kinds, passage, policy_file, round_of

POLICY = policy_file("self-route")
DECLINED, ANSWERED = ((SUFFICIENCY, 0.0),), ((SUFFICIENCY, 1.0),)


def test_declined_asks_to_read_the_documents_and_uses_no_chunk_meanwhile() -> None:
    found, grades = graded(0.9, 0.2)
    decision = decide(POLICY, found, grades, DECLINED)
    assert (decision.action, decision.handling, decision.next_round) == (
        Action.AMBIGUOUS,
        Handling.DOCUMENTS,
        "documents",
    )
    assert kinds(decision) == (CorrectionKind.READ, CorrectionKind.GENERATE)
    assert replay_rounds(POLICY, found, grades, DECLINED).wanted == ("documents",)


def test_the_documents_take_the_place_of_the_chunks_and_nothing_is_decided_again() -> None:
    found, grades = graded(0.9, 0.2)
    whole = passage("file-1", "The whole of it.")
    path = replay_rounds(POLICY, found, grades, DECLINED, (round_of("documents", whole),))
    assert path.wanted is None and len(path.iterations) == 1 and path.evidence == (whole,)
    knowledge = recompose(POLICY, path.decision, path.evidence, (), None, None)
    assert [one.text for one in knowledge.internal] == ["The whole of it."]


def test_documents_that_could_not_be_read_leave_the_chunks_as_they_are() -> None:
    found, grades = graded(0.9, 0.2)
    unmade = Round(("documents",), (), "d1 is not indexed.")
    path = replay_rounds(POLICY, found, grades, DECLINED, (unmade,))
    assert (path.evidence, path.wanted, path.not_made) == (found, None, "d1 is not indexed.")
    assert path.decision.handling is Handling.KEEP
    assert kinds(path.decision) == (CorrectionKind.KEEP, CorrectionKind.GENERATE)


# --- as much of a document as there is room for ---------------------------------------------------------------------

TEXT = " ".join(f"Sentence number {n} stands here." for n in range(1, 201))  # six tokens each or so
BEST = "Sentence number 120 stands here."


@pytest.mark.parametrize("most", [8, 40, 200, 500])
def test_whole_sentences_around_the_best_chunk(most: int) -> None:
    start = TEXT.index(BEST)
    kept = around(TEXT, start, start + len(BEST), most, estimate_tokens)
    assert BEST in kept and kept in TEXT and kept.startswith("Sentence") and kept.endswith(".")
    assert most - 14 < estimate_tokens(kept) <= most, "no room is left for a sentence more on both sides"


def test_the_ends_of_a_document_leave_room_on_the_other_side() -> None:
    first, last = "Sentence number 1 stands", "Sentence number 200 stands here."
    head = around(TEXT, 0, len(first), 60, estimate_tokens)
    tail = around(TEXT, TEXT.index(last), len(TEXT), 60, estimate_tokens)
    assert head.startswith(first) and tail.endswith(last)
    assert min(estimate_tokens(head), estimate_tokens(tail)) > 50


def test_what_fits_is_whole_and_a_chunk_that_does_not_fit_is_begun() -> None:
    assert around("One. Two.", 0, 4, 100, estimate_tokens) == "One. Two."
    begun = around(TEXT, 0, len(TEXT), 30, estimate_tokens)
    assert TEXT.startswith(begun) and 20 < estimate_tokens(begun) <= 30
    assert around("", 0, 0, 10, estimate_tokens) == "" and around("一" * 500, 0, 3, 4, estimate_tokens)
