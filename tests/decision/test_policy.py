"""The policies as data: every file says what its description says; thresholds, presets and what is without a model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import UnknownName
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import (
    STAND_IN,
    ContextJudge,
    Doubtful,
    Expansion,
    Refinement,
    StripOrder,
    WebQuery,
    WebRules,
)
from crag_core.decision.steps import read_steps
from crag_core.evaluators.policies import known_card, suit
from tests.builders import CARD, POLICIES, POLICY_FILES, policy_file

NO_WEB, AS_ASKED = WebRules(), WebRules(query=WebQuery.QUESTION)
DESCRIBED: dict[str, dict[str, Any]] = {
    "paper": {
        "steps": (["refine"], ["refine", "web"], ["discard", "web"]),
        "refinement": Refinement(order=StripOrder.DOCUMENT, top=5),
        "web": WebRules(query=WebQuery.PHRASES, phrases=3, pages=3, refine=True),
    },
    "two-signal": {
        "score": "two_signals",
        "steps": (["refine"], ["refine", "web"], ["discard", "web"]),
        "refinement": Refinement(order=StripOrder.DOCUMENT, top=5),
        "web": WebRules(query=WebQuery.PHRASES, phrases=3, refine=True, on_subject=True),
    },
    "worst-chunk": {
        "evaluator": "llm",
        "score": "worst",
        "thresholds": (0.3, 0.7),
        "ungraded": 0.5,
        "steps": (["keep"], ["extract", "web"], ["discard", "web"]),
        "refinement": Refinement(order=StripOrder.RANK),
        "web": WebRules(query=WebQuery.REWRITTEN, words=10, limit=3),
    },
    "rank-weighted": {
        "evaluator": "llm-batch",
        "score": "rank_weighted",
        "thresholds": (0.3, 0.7),
        "at_lower": Action.INCORRECT,
        "ungraded": 0.5,
        "top": 5,
        "steps": (["keep"], ["refine", {"drop": 0.4}, {"web_if_fewer": 3}], ["discard", "web"]),
        "refinement": Refinement(order=StripOrder.RANK),
        "web": AS_ASKED,
    },
    "heuristic": {
        "evaluator": "heuristic",
        "score": "signals",
        "weights": (("keyword_overlap", 0.3), ("coherence", 0.4), ("length_adequacy", 0.15), ("diversity", 0.15)),
        "thresholds": (0.5, 0.75),
        "at_lower": Action.INCORRECT,
        "at_upper": Action.AMBIGUOUS,
        "labels": ("Relevant", "Partial", "Irrelevant"),
        "steps": (["keep"], ["keep", "expand"], ["discard", "web", "keep_if_nothing"]),
        "refinement": Refinement(budget=8000),
        "web": AS_ASKED,
        "expansion": Expansion(synonyms_per_term=2, vocabulary=4, max_chunks=20),
    },
    "signals": {
        "score": "signals",
        "weights": (("rerank_top3", 0.4), ("keyword_coverage", 0.3), ("agreement", 0.3)),
        "thresholds": (0.3, 0.7),
        "at_lower": Action.INCORRECT,
        "steps": (["refine"], ["refine", "web"], ["discard", "web"]),
        "refinement": Refinement(0.5, StripOrder.RELEVANCE, 4096),
        "web": replace(AS_ASKED, seconds=10.0, cooldown=30.0),
    },
    "agentic": {
        "evaluator": "llm-list",
        "score": "mean_of_kept",
        "thresholds": (0.3, 0.7),
        "ungraded": 0.5,
        "labels": ("Generate", "Refine", "Re-retrieve"),
        "skip": (("read_file", None), ("few_context", 2), ("high_vector_score", 0.8)),
        "steps": (
            ["keep"],
            ["keep", "again"],
            ["discard", {"again": ["keyword", "rewritten", "expanded", "web"]}, "keep_if_nothing"],
        ),
        "web": WebRules(query=WebQuery.REWRITTEN, words=10),
    },
    "adaptive-rag": {
        "labels": ("Found", "More", "Nothing"),
        "skip": (("no_retrieval", None), ("one_retrieval", None)),
        "steps": (["keep"], ["keep", "again"], ["keep", "again"]),
    },
    "astute-rag": {"labels": ("Found", "Uncertain", "Not found"), "steps": 3 * (["keep", {"consolidate": 1}],)},
    "self-route": {
        "score": "whole_context",
        "context_judge": ContextJudge.ANSWER,
        "labels": ("Answered", "Declined", "Nothing to use"),
        "steps": (["keep"], ["documents"], ["discard"]),
        "refinement": Refinement(budget=6000),
    },
    "sufficient-context": {
        "score": "whole_context",
        "labels": ("Sufficient", "Insufficient", "Nothing to use"),
        "steps": (["keep"], ["keep", "abstain"], ["discard"]),
    },
}
NOT_DESCRIBED: dict[str, Any] = {
    "evaluator": "cross-encoder",
    "score": "best",
    "weights": (),
    "at_lower": Action.AMBIGUOUS,
    "at_upper": Action.CORRECT,
    "ungraded": None,
    "top": None,
    "labels": ("Correct", "Ambiguous", "Incorrect"),
    "skip": (),
    "max_rounds": 3,
    "low_variance_promotes": False,
    "context_judge": ContextJudge.AUTORATER,
    "refinement": Refinement(),
    "web": NO_WEB,
    "expansion": Expansion(),
}


def test_every_policy_file_is_among_those_that_are_tested() -> None:
    assert {path.stem for path in POLICY_FILES.glob("*.toml")} == set(POLICIES) == set(DESCRIBED)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_says_what_its_description_says_and_no_more(name: str) -> None:
    of, described = policy_file(name), dict(DESCRIBED[name])
    assert of.name == name and of.title and of.summary and of.source
    actions = of.correct, of.ambiguous, of.incorrect
    assert actions == tuple(tuple(read_steps(steps)) for steps in described.pop("steps"))
    if "thresholds" in described:
        assert (of.lower, of.upper) == described.pop("thresholds")
    expected = NOT_DESCRIBED | described
    assert {field: getattr(of, field) for field in expected} == expected


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_in_a_file_takes_at_most_fourteen_lines(name: str) -> None:
    head = (POLICY_FILES / f"{name}.toml").read_text("utf-8").split("\n[")[0].splitlines()
    told = ("title", "group", "summary", "source", "evaluator", "labels", "#")
    assert 0 < sum(bool(line) and not line.startswith(told) for line in head) <= 14


@pytest.mark.parametrize(
    ("name", "preset", "thresholds"),
    [
        # The paper's -1..1 as (s + 1) / 2: PopQA 0.59 and -0.99, the others 0.5 or 0.95 and -0.91.
        ("paper", "popqa", (0.005, 0.795, 0.25)),
        ("paper", "pubhealth", (0.045, 0.75, 0.25)),
        ("paper", "arc-challenge", (0.045, 0.75, 0.25)),
        ("paper", "biography", (0.045, 0.975, 0.25)),
        ("worst-chunk", "conservative", (0.4, 0.8, 0.25)),  # the cut-off stays what it was
        ("worst-chunk", "aggressive", (0.2, 0.6, 0.25)),
    ],
)
def test_a_preset_has_the_thresholds_of_its_description(
    name: str, preset: str, thresholds: tuple[float, float, float]
) -> None:
    of = policy_file(name)
    found = of.preset(preset)
    assert found.thresholds == thresholds
    assert replace(found, refinement=of.refinement) == of.with_thresholds(found.lower, found.upper)
    assert len({one.name for one in of.presets}) == len(of.presets) and all(one.note for one in of.presets)


# --- what a policy is asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_what_a_policy_becomes_without_a_language_model_and_how_that_is_said(name: str) -> None:
    of, alone = policy_file(name), policy_file(name).without_language_model()
    keep = (("keep", None),)
    becomes: dict[str, dict[str, Any]] = {
        "sufficient-context": {"score": "best"},
        "self-route": {"score": "best", "ambiguous": keep},
        "astute-rag": {"correct": keep, "ambiguous": keep, "incorrect": keep},
    }
    needs_model = name in (*becomes, "adaptive-rag")
    named = {"labels": tuple(f"{action.capitalize()} {STAND_IN}" for action in Action)} if needs_model else {}
    assert alone == replace(of, **becomes.get(name, {}), **named) and alone.without_language_model() == alone
    assert [alone.bare_label(action) for action in Action] == ["Correct", "Ambiguous", "Incorrect"] or not needs_model
    assert (bool(of.without_model), of.needs_model) == (needs_model, needs_model)


def test_thresholds_move_one_at_a_time() -> None:
    of = policy_file("rank-weighted")
    assert of.with_thresholds(lower=0.1) == replace(of, lower=0.1)
    assert of.with_thresholds(upper=0.9) == replace(of, upper=0.9)
    assert of.with_thresholds(cutoff=0.9) == replace(of, refinement=replace(of.refinement, cutoff=0.9))
    assert of.with_thresholds() == of
    assert of.with_thresholds(lower=0.0, upper=0.0).lower == 0.0


@pytest.mark.parametrize(
    ("name", "evaluator", "thresholds"),
    [
        ("worst-chunk", CARD.name, (0.2, 0.8, 0.45)),  # another evaluator: its own defaults are the start
        ("worst-chunk", "llm", (0.3, 0.7, 0.45)),
        ("worst-chunk", "llm+hand", (0.3, 0.7, 0.45)),  # the first of two keeps its scale
        ("heuristic", CARD.name, (0.5, 0.75, 0.45)),  # signals do not depend on the evaluator
        ("self-route", CARD.name, (0.0, 0.8, 0.45)),
    ],
)
def test_the_thresholds_to_start_from(name: str, evaluator: str, thresholds: tuple[float, float, float]) -> None:
    assert policy_file(name).with_thresholds_for(replace(CARD, name=evaluator), CARD).thresholds == thresholds


@pytest.mark.parametrize(
    ("own", "scorer", "holds"), [(0.6, "cross-encoder", 0.6), (0.6, "embedding", 0.19), (None, "cross-encoder", 0.19)]
)
def test_the_cut_off_of_a_file_holds_for_the_scores_it_was_written_for(
    own: float | None, scorer: str, holds: float
) -> None:
    of = policy_file("paper")
    written = replace(of, refinement=replace(of.refinement, cutoff=own, scorer=scorer))
    scores_strips = replace(CARD, name="cross-encoder", strip_cutoff=0.19)
    assert written.with_thresholds_for(CARD, scores_strips).cutoff == holds


def test_description_003_keeps_its_own_cut_off_for_sentences() -> None:
    assert suit(policy_file("signals"), "cross-encoder").cutoff == 0.5
    assert suit(policy_file("paper"), "cross-encoder").cutoff == known_card("cross-encoder").strip_cutoff


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName) as refusal:
        policy_file("worst-chunk").preset("agressive")
    assert refusal.value.message == "Unknown preset 'agressive' of policy 'worst-chunk'."
    assert refusal.value.hint == "Did you mean 'aggressive'? Known: aggressive, conservative."


@pytest.mark.parametrize(
    ("taking", "value"),
    [
        (lambda value: replace(policy_file("paper"), at_lower=value).at_lower, Action.INCORRECT),
        (lambda value: replace(policy_file("paper"), at_upper=value).at_upper, Action.AMBIGUOUS),
        (lambda value: replace(policy_file("paper"), context_judge=value).context_judge, ContextJudge.ANSWER),
        (lambda value: Refinement(order=value).order, StripOrder.RANK),
        (lambda value: WebRules(query=value).query, WebQuery.PHRASES),
        (lambda value: policy_file("paper").with_doubtful(value).doubtful, Doubtful.ABSTAIN),
    ],
)
def test_a_choice_is_taken_by_its_value_and_another_word_is_refused(taking: Callable[[Any], Any], value: Any) -> None:
    assert taking(value.value) is value
    with pytest.raises(ValueError, match="'abstian'"):
        taking("abstian")


def test_a_judged_context_starts_with_thresholds_that_do_not_cross() -> None:
    high = replace(policy_file("self-route"), lower=0.9, upper=1.0)
    assert high.with_thresholds_for(CARD, CARD).thresholds[:2] == (CARD.upper, CARD.upper)
