"""Plain RAG as a policy: whatever was found goes in as it is, by a rule, without a grade."""

from crag_core.decision.decide import decide
from crag_core.decision.refine import recompose
from crag_core.evaluators.policies import PLAIN, load_policies, plain_rag
from tests.builders import passage, passages, strips_of

ALWAYS = (("always", None),)


def test_every_passage_goes_in_whole_and_no_sentence_is_struck() -> None:
    found = passages(20, text="A ferry leaves at nine. " * 34)  # as many as can be asked for, as long as they come
    plain = plain_rag()
    knowledge = recompose(plain, decide(plain, found, None), found, None, None, None)
    assert [(excerpt.passage, excerpt.text) for excerpt in knowledge.internal] == [(one, one.text) for one in found]
    assert knowledge.notes == () and knowledge.external == ()
    strips = strips_of(passage("p1", "Yes it is. No way."), ("Yes it is.", 0.0), ("No way.", None))
    kept = recompose(
        plain, decide(plain, passages(1), None), (passage("p1", "Yes it is. No way."),), strips, None, None
    )
    assert all(verdict.kept for verdict in kept.verdicts)


def test_it_takes_no_part_in_grading_a_set_and_survives_given_passages() -> None:
    assert plain_rag().for_grading().skip == ()
    assert plain_rag().without_retrieval().skip == ALWAYS


def test_it_stands_beside_the_policies_and_not_among_them() -> None:
    plain = plain_rag()
    assert plain.name == PLAIN and PLAIN not in load_policies()[0]
    assert plain.title == "Plain RAG" and not plain.has("again", "expand", "documents", "web", "web_if_fewer")
    assert not any(policy.is_plain for policy in load_policies()[0].values())
