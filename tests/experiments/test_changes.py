"""What was other under an earlier setup is told in words, whatever it was."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from crag_core.decision.policy import Doubtful, StripOrder
from crag_core.evaluators.policies import plain_rag
from crag_core.experiments.comparison.setups import OTHER_DOCUMENTS, OTHER_VERSION, Setup, changes, distance
from crag_core.trace.trace import RunSettings
from tests import builders

PAPER = builders.policy("paper")
NOW = Setup(builders.settings(PAPER), "corpus", "SearXNG", name="Paper", created="2026-01-01T00:00:00+00:00")


def was(**changed: Any) -> Setup:
    return replace(NOW, settings=replace(NOW.settings, **changed))


def policy(**changed: Any) -> Setup:
    return was(policy=replace(PAPER, **changed))


TOLD: dict[str, tuple[Setup, tuple[str, ...]]] = {
    "policy": (
        was(policy=builders.policy("signals")),
        ("policy Signals with 0.300 and 0.700 instead of Paper",),
    ),
    "evaluator": (
        was(evaluator=replace(builders.CARD, name="another", title="Another")),
        ("evaluator Another instead of By hand",),
    ),
    "strip_evaluator": (
        was(strip_evaluator=replace(NOW.settings.strip_evaluator, version="2")),
        ("another scorer of sentences",),
    ),
    "embedding": (was(embedding="words"), (f"embedding model words instead of {NOW.settings.embedding}",)),
    "writer": (was(writer="ollama/llama3.2"), ("answers by llama3.2 instead of quotations",)),
    "web_mode": (was(web_mode="ask"), ("web search “ask”",)),
    "top_k": (was(top_k=1), (f"1 chunk instead of {NOW.settings.top_k}",)),
    "prompts": (was(prompts="9", writer="ollama/x"), ("answers by x instead of quotations", "other prompts")),
    "version": (was(version="0.0.9"), (f"{OTHER_VERSION}, 0.0.9",)),
    "pinned": (was(pinned=("d1",)), ("other pinned files",)),
    "search_too": (was(search_too=True), ("other pinned files",)),
    "support": (was(support="ollama/llama3.2"), ("answers checked by llama3.2 instead of by their words",)),
    "writer_version": (
        replace(NOW, settings=replace(NOW.settings, writer="ollama/x", writer_version="a1")),
        ("answers by x instead of quotations",),
    ),
    "collection": (was(collection="a"), ("searched in the collection 'a' instead of all collections",)),
}


def test_there_are_words_for_every_setting_of_a_run() -> None:
    assert set(TOLD) == {field.name for field in fields(RunSettings)}


@pytest.mark.parametrize(("then", "told"), TOLD.values(), ids=TOLD)
def test_each_setting_is_told(then: Setup, told: tuple[str, ...]) -> None:
    assert changes(then, NOW) == told


MORE: dict[str, tuple[Setup, tuple[str, ...]]] = {
    "nothing": (NOW, ()),
    "another name and day": (replace(NOW, name="x", created="2020"), ()),
    "documents": (replace(NOW, corpus="others"), (OTHER_DOCUMENTS,)),
    "a web of another kind": (replace(NOW, web="Tavily"), ("another web search",)),
    "a model of before its version was known": (was(writer_version="a1"), (OTHER_VERSION,)),
    "no web": (replace(NOW, web=""), ("web search off",)),
    "thresholds": (
        was(policy=PAPER.with_thresholds(0.1, 0.9, 0.2)),
        (
            "lower threshold 0.100 instead of 0.400",
            "upper threshold 0.900 instead of 0.600",
            "sentence cut-off 0.200 instead of 0.300",
        ),
    ),
    "rules": (policy(refinement=replace(PAPER.refinement, order=StripOrder.RELEVANCE)), ("other rules in the policy",)),
    "doubtful endings": (
        was(policy=PAPER.with_doubtful(Doubtful.ABSTAIN)),
        ("doubtful endings “abstain” instead of “show”",),
    ),
    "another text of a policy": (policy(summary="As it was."), (OTHER_VERSION,)),
    "an evaluator trained anew": (
        was(evaluator=replace(builders.CARD, version="2")),
        ("another version of the evaluator By hand",),
    ),
    "prompts that nobody is asked with": (was(prompts="9"), (OTHER_VERSION,)),
    "plain RAG": (was(policy=plain_rag()), ("policy Plain RAG instead of Paper",)),
}


@pytest.mark.parametrize(("then", "told"), MORE.values(), ids=MORE)
def test_what_else_differs_is_told_in_words(then: Setup, told: tuple[str, ...]) -> None:
    assert changes(then, NOW) == told


def test_the_web_was_on_where_it_is_off_now() -> None:
    assert changes(NOW, replace(NOW, web="")) == ("web search on",)


def test_an_evaluator_that_scores_sentences_too_is_told_once() -> None:
    trained = [replace(builders.CARD, version=version) for version in ("1", "2")]
    then, now = (was(evaluator=card, strip_evaluator=card) for card in trained)
    assert changes(then, now) == ("another version of the evaluator By hand",)


def test_documents_come_first_and_all_is_told() -> None:
    then = replace(policy(lower=0.0), corpus="others")
    then = replace(then, settings=replace(then.settings, top_k=2))
    assert changes(then, NOW)[0] == OTHER_DOCUMENTS and len(changes(then, NOW)) == 3


def test_another_policy_is_farther_than_many_settings_and_plain_rag_is_farthest() -> None:
    many = replace(was(policy=PAPER.with_thresholds(0.1, 0.9, 0.2), top_k=1, writer="ollama/x"), corpus="others")
    other, plain = was(policy=builders.policy("signals")), was(policy=plain_rag())
    assert distance(NOW, NOW) < distance(many, NOW) < distance(other, NOW) < distance(plain, NOW)
