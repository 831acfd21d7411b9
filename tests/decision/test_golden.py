"""Every policy against cases that were worked out by hand from its description, not from this code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.types.decisions import CorrectionKind, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.decision.refine import left_after_refinement
from crag_core.decision.signals import SignalMeter
from crag_core.decision.steps import WAYS
from tests.builders import POLICIES, policy_file

FOLDER = Path(__file__).parents[1] / "golden"
STOP_WORDS = frozenset((Path(__file__).parents[2] / "data" / "stopwords.txt").read_text("utf-8").split())
Case = dict[str, Any]


def load(name: str) -> list[Case]:
    cases: list[Case] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["cases"]
    return cases


CASES = [pytest.param(name, case, id=f"{name}: {case['name']}") for name in POLICIES for case in load(name)]


def policy_of(name: str, case: Case) -> Policy:
    policy = policy_file(name).with_thresholds(**case.get("thresholds", {}))
    if "max_iterations" in case:
        policy = replace(policy, max_rounds=case["max_iterations"])
    return policy


def passages_of(case: Case) -> tuple[Passage, ...]:
    given = case.get("passages") or [{} for _ in case["scores"]]
    found = []
    for number, one in enumerate(given):
        cosine = one.get("cosine")
        scores: Scores = () if cosine is None else (("cosine", cosine),)
        source, text = one.get("source", f"{number}.md"), one.get("text", "Some text.")
        found.append(Passage(f"p{number}", text, source, found_by=tuple(one.get("found_by", ())), scores=scores))
    return tuple(found)


def grades_of(case: Case, passages: tuple[Passage, ...]) -> tuple[Grade, ...] | None:
    if case.get("graded") is False or "scores" not in case:
        return None
    given = zip(passages, case["scores"], strict=True)
    return tuple(grade_of(passage, score) for passage, score in given if score != "never")


def grade_of(passage: Passage, score: float | list[float] | None) -> Grade:
    """Of a pair [answering, topical] the score is the mean."""
    if isinstance(score, list):
        return Grade(passage.id, sum(score) / 2, parts=tuple(zip((ANSWERING, TOPICAL), score, strict=True)))
    return Grade(passage.id, score, cause="" if score is not None else "unreadable")


def strips_of(case: Case, passages: tuple[Passage, ...]) -> tuple[Strip, ...]:
    """The sentences of each passage by their scores; one that scores 1.0, where the case says nothing of them."""
    given = case.get("strips") or [[1.0]] * len(passages)
    scored = zip(passages, given, strict=True)
    return tuple(Strip(p.id, at, 0, 1, p.text[:1], score) for p, scores in scored for at, score in enumerate(scores))


def decided(case: Case, policy: Policy, passages: tuple[Passage, ...], signals: Scores) -> Decision:
    about = policy, passages, grades_of(case, passages), signals, path_of(case)
    decision = decide(*about)
    if decision.web_below is None:
        return decision
    discarded = {one.passage_id for one in decision.plan if one.kind is CorrectionKind.DISCARD}
    kept = tuple(one for one in passages if one.id not in discarded)
    left = left_after_refinement(policy, decision.handling, kept, strips_of(case, passages), None)
    return decide(*about, left=left)


def signals_of(case: Case, passages: tuple[Passage, ...]) -> Scores:
    if "question" in case:
        return SignalMeter(STOP_WORDS).measure(case["question"], passages)
    return tuple((name, float(value)) for name, value in case.get("signals", {}).items())


def path_of(case: Case) -> tuple[str, ...]:
    """The rounds before this iteration, all of them re-retrievals."""
    return WAYS[: case.get("iteration", 1) - 1]


def told(decision: Decision, policy: Policy, passages: tuple[Passage, ...], path: tuple[str, ...]) -> dict[str, Any]:
    """A decision in the words of the golden files."""
    discarded = {one.passage_id for one in decision.plan if one.kind is CorrectionKind.DISCARD}
    kept = [] if None in discarded else [at for at, one in enumerate(passages) if one.id not in discarded]
    is_empty = decision.handling is Handling.DISCARD or not passages
    again = None if decision.next_round == "expand" else decision.next_round
    if again is None and "again" in policy.steps(decision.action) and decision.wants(CorrectionKind.WEB_SEARCH):
        again = "web"
    return {
        "action": decision.action.value,
        "label": decision.label.upper().replace("-", "_"),
        "score": None if decision.score is None else round(decision.score, 4),
        "topical": None if decision.topical is None else round(decision.topical, 4),
        "deciding": [at for id_ in decision.deciding for at, one in enumerate(passages) if one.id == id_],
        "confidence": None if decision.confidence is None else round(decision.confidence, 4),
        "rule": decision.rule,
        "kept": kept,
        "discarded": [at for at in range(len(passages)) if at not in kept],
        "handling": "none" if is_empty else decision.handling.value,
        "web": decision.wants(CorrectionKind.WEB_SEARCH),
        "web_query": policy.web.query.value,
        "web_limit": policy.web.limit,
        "expand": decision.wants(CorrectionKind.EXPAND),
        "re_retrieve": again,
    }


@pytest.mark.parametrize(("name", "case"), CASES)
def test_case_worked_out_by_hand(name: str, case: Case) -> None:
    policy, passages = policy_of(name, case), passages_of(case)
    signals = signals_of(case, passages)
    decision = decided(case, policy, passages, signals)
    expected = dict(case["expect"])
    criteria = expected.pop("criteria", None)
    found = told(decision, policy, passages, path_of(case))
    assert {key: found[key] for key in expected} == expected, case["working"]
    if criteria:
        measured = {name: round(value, 4) for name, value in signals}
        assert {name: measured.get(name) for name in criteria} == criteria


@pytest.mark.parametrize("name", POLICIES)
def test_golden_files_reach_every_action(name: str) -> None:
    assert {case["expect"]["action"] for case in load(name)} == {"CORRECT", "AMBIGUOUS", "INCORRECT"}
    assert len({case["name"] for case in load(name)}) == len(load(name)) >= 20
