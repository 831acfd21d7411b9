"""What docs/policies.md promises: its example is a policy, and it names every policy, evaluator, preset and key."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from crag_core.decision.policy import Again, Aggregation, Doubtful, Handling, Policy, Strategy, WebUse, parse_policy
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.policies import load_policies

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text("utf-8")
EXAMPLE = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]


def test_the_example_is_a_policy() -> None:
    policy = parse_policy(EXAMPLE, "careful")
    assert (policy.title, policy.grade_top, policy.max_rounds) == ("Careful", 3, 2)
    assert policy.preset("strict").upper == 0.75


def test_every_name_is_told() -> None:
    policies, problems = load_policies()
    assert problems == ()
    presets = [preset.name for policy in policies.values() for preset in policy.presets]
    for name in (*policies, *EVALUATORS, *presets):
        assert f"`{name}`" in PAGE, name
    for kind in (Aggregation, Handling, WebUse, Again, Strategy, Doubtful):
        assert all(value in PAGE for value in kind), kind


def test_every_key_of_a_policy_is_told() -> None:
    for field in fields(Policy):
        assert field.name == "name" or field.name in PAGE, field.name
