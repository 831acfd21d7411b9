"""Plain RAG as a policy: whatever was found goes in as it is, by a rule, without a grade."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from crag_core.base.serialization import from_plain, to_plain
from crag_core.base.types.decisions import Action, CorrectionKind, Handling
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.decision.refine import recompose
from crag_core.evaluators.policies import PLAIN, load_policies, plain_rag
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.builders import graded, passage, passages, policy, strips_of, trace

ALWAYS = (("always", None),)


@pytest.mark.parametrize("scores", [(0.0,), (0.0, 0.0, 0.0), (1.0,), (None,), (None, 0.0)])
def test_whatever_was_found_is_correct_by_rule_whatever_its_grades(scores: tuple[float | None, ...]) -> None:
    found, grades = graded(*scores)
    decision = decide(plain_rag(), found, grades)
    assert (decision.action, decision.rule, decision.score) == (Action.CORRECT, "always", 1.0)
    assert decision.handling is Handling.KEEP and not decision.wants(CorrectionKind.WEB_SEARCH)
    assert decision.deciding == tuple(one.id for one in found)
    assert decision.reason == "rule always: this policy uses what is retrieved as it is; no grade was looked at"


def test_nothing_is_graded_and_the_reason_says_so() -> None:
    decision = decide(plain_rag(), passages(3), None)
    assert decision.reason == "rule always: this policy uses what is retrieved as it is; nothing was graded"
    assert decision.label == "Not graded" and decision.topical is None


def test_where_nothing_was_found_nothing_is_correct() -> None:
    decision = decide(plain_rag(), (), None)
    assert (decision.action, decision.label, decision.verdict) == (Action.INCORRECT, "Nothing found", None)
    assert decision.reason == "nothing was retrieved" and not decision.wants(CorrectionKind.WEB_SEARCH)


def test_any_policy_can_have_the_rule_and_goes_on_as_its_correct_route_says() -> None:
    decision = decide(replace(policy("paper"), skip=ALWAYS), *graded(0.0, 0.1))
    assert (decision.action, decision.rule, decision.handling) == (Action.CORRECT, "always", Handling.REFINE)
    agentic = replace(policy("agentic"), skip=ALWAYS)
    assert decide(agentic, *graded(0.0, 0.0, 0.0)).next_round is None


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


def test_it_misses_nothing_but_an_answer_in_a_run_that_only_retrieved() -> None:
    routed = reroute(trace(plain_rag(), passages=passages(2)), plain_rag())
    assert [str(missing) for missing in routed.missing] == ["an answer from this evidence"]


def test_the_rule_survives_the_way_through_json() -> None:
    plain = plain_rag()
    assert from_plain(Policy, json.loads(json.dumps(to_plain(plain)))) == plain
    run = trace(plain, passages=passages(1))
    assert Trace.from_json(run.to_json()).settings.policy.skip == ALWAYS


def test_it_takes_no_part_in_grading_a_set_and_survives_given_passages() -> None:
    assert plain_rag().for_grading().skip == ()
    assert plain_rag().without_retrieval().skip == ALWAYS


def test_it_stands_beside_the_policies_and_not_among_them() -> None:
    plain = plain_rag()
    assert plain.name == PLAIN and PLAIN not in load_policies()[0]
    assert plain.title == "Plain RAG" and not plain.has("again", "expand", "documents", "web", "web_if_fewer")
    assert not any(policy.is_plain for policy in load_policies()[0].values())
