"""What docs/policies.md promises: its examples are policies, and every name of a policy, step and key stands there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import parse_policy, present_form
from crag_core.decision.steps import RULES, STEPS, WAYS
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.policies import known_card, load_policies

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text("utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_three_from_nothing() -> None:
    found = [parse_policy(text, "mine") for text in EXAMPLES]
    assert [policy.title for policy in found] == ["Plain CRAG", "Careful", "Persistent"]
    assert [known_card(policy.evaluator).calls_model for policy in found] == [False, True, False]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_printed_form_is_the_same_policy(text: str) -> None:
    assert parse_policy(present_form(text), "mine") == parse_policy(text, "mine")


def test_every_name_is_told() -> None:
    policies, problems = load_policies()
    assert problems == ()
    presets = [preset.name for policy in policies.values() for preset in policy.presets]
    for name in (*policies, *EVALUATORS, *presets):
        assert f"`{name}`" in PAGE, name
    for name in (*STEPS, *RULES, *WAYS):
        assert name in PAGE, name


def test_every_key_of_a_policy_is_told() -> None:
    for field in fields(Policy):
        assert field.name == "name" or field.name in PAGE, field.name
