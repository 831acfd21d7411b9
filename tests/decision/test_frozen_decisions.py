"""Every policy still decides, plans and explains random cases as it did before policies became lists of steps."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.serialization import from_plain
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import upgrade
from crag_core.evaluators.policies import find_policy
from tests.builders import POLICIES, policy_file

FROZEN = Path(__file__).parents[1] / "golden" / "frozen"
CASES = [json.loads(line) for line in gzip.decompress((FROZEN / "decisions.jsonl.gz").read_bytes()).splitlines()]


def evidence(case: dict[str, Any]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    found, grades = [], []
    for place, one in enumerate(case["chunks"]):
        scores = () if one["cosine"] is None else (("cosine", one["cosine"]),)
        by = "read_file" if one["pinned"] else "keyword" if one["cosine"] is None else "dense"
        found.append(Passage(f"p{place}", "word", f"s{place % 3}", scores=scores, found_by=(by,)))
        parts = () if one["topical"] is None else ((ANSWERING, one["grade"]), (TOPICAL, one["topical"]))
        if one["asked"]:
            grades.append(Grade(f"p{place}", one["grade"], parts=parts))
    return tuple(found), tuple(grades)


def decided(case: dict[str, Any]) -> dict[str, Any]:
    policy = policy_file(case["policy"])
    policy = policy.with_thresholds(*case["thresholds"]) if case["thresholds"] else policy
    signals, path, seen = tuple(case["signals"].items()), tuple(case["rounds"]), ("p0",) if case["seen"] else ()
    made = decide(policy, *evidence(case), signals, path, seen, case["left"], case["is_last"])
    return {
        "action": made.action,
        "label": made.label,
        "score": made.score,
        "topical": made.topical,
        "reason": made.reason,
        "deciding": list(made.deciding),
        "rule": made.rule,
        "handling": made.handling,
        "next": made.next_round,
        "web_below": made.web_below,
        "plan": [[one.kind, one.reason, one.passage_id] for one in made.plan],
    }


@pytest.mark.parametrize("name", POLICIES)
def test_it_decides_as_before(name: str) -> None:
    cases = [(case, was) for case, was in CASES if case["policy"] == name]
    assert len(cases) == 150
    for case, was in cases:
        assert decided(case) == was, case


SPELLED_OUT = json.loads((FROZEN / "policies-4.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(SPELLED_OUT))
def test_a_policy_as_records_of_schema_4_spell_it_out_is_the_one_that_ships(name: str) -> None:
    """They hold every key, also those that were left at their defaults."""
    assert from_plain(Policy, upgrade(SPELLED_OUT[name]), "policy") == find_policy(name)
