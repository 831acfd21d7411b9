"""The policies as data: every file says what its description says, and a wrong file is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.types import Action, Handling
from crag_core.decision.policy import (
    Again,
    Aggregation,
    ContextJudge,
    Doubtful,
    Expansion,
    FastPath,
    Loop,
    Policy,
    Strategy,
    StripOrder,
    StripRules,
    WebQuery,
    WebUse,
    parse_policy,
)
from crag_core.evaluators.policies import known_card, suit
from tests.builders import CARD, POLICIES, POLICY_FILES, policy_file

DESCRIBED: dict[str, dict[str, Any]] = {
    "paper": {"aggregation": "best", "refine_web": True, "ungraded_score": None},
    "worst-chunk": {
        "evaluator": "llm",
        "aggregation": "worst",
        "lower": 0.3,
        "upper": 0.7,
        "ungraded_score": 0.5,
        "web_limit": 3,
        "web_query_words": 10,
    },
    "rank-weighted": {
        "evaluator": "llm-batch",
        "aggregation": "rank_weighted",
        "lower": 0.3,
        "upper": 0.7,
        "lower_is_inclusive": True,
        "ungraded_score": 0.5,
        "grade_top": 5,
        "web_limit": 5,
    },
    "heuristic": {
        "evaluator": "heuristic",
        "aggregation": "signals",
        "lower": 0.5,
        "upper": 0.75,
        "upper_is_exclusive": True,
        "lower_is_inclusive": True,
        "weights": (("keyword_overlap", 0.3), ("coherence", 0.4), ("length_adequacy", 0.15), ("diversity", 0.15)),
        "web_limit": 5,
        "expansion": Expansion(synonyms_per_term=2, vocabulary=4, max_passages=20),
    },
    "signals": {
        "aggregation": "signals",
        "lower": 0.3,
        "upper": 0.7,
        "lower_is_inclusive": True,
        "weights": (("rerank_top3", 0.4), ("keyword_coverage", 0.3), ("agreement", 0.3)),
        "web_seconds": 10.0,
        "web_cooldown": 30.0,
    },
    "agentic": {
        "evaluator": "llm-list",
        "aggregation": "mean_of_kept",
        "lower": 0.3,
        "upper": 0.7,
        "ungraded_score": 0.5,
        "fast_path": FastPath(read_file=True, few_context=2, high_vector_score=0.8),
        "loop": Loop(3, (Strategy.KEYWORD, Strategy.REWRITTEN, Strategy.EXPANDED, Strategy.WEB)),
    },
    "two-signal": {"aggregation": "two_signals", "refine_web": True, "ungraded_score": None},
    "adaptive-rag": {
        "evaluator": "cross-encoder",
        "aggregation": "best",
        "rounds_by_question": True,
        "lower": 0.0,
        "loop": Loop(3),
        "ungraded_score": None,
    },
    "astute-rag": {
        "evaluator": "cross-encoder",
        "aggregation": "best",
        "consolidate": True,
        "own_knowledge": 1,
        "lower": 0.0,
        "doubtful": Doubtful.SHOW,
        "ungraded_score": None,
    },
    "self-route": {
        "evaluator": "cross-encoder",
        "aggregation": "whole_context",
        "context_judge": ContextJudge.ANSWER,
        "lower": 0.0,
        "doubtful": Doubtful.SHOW,
        "strips": StripRules(order=StripOrder.RANK, token_budget=6000),
        "ungraded_score": None,
    },
    "sufficient-context": {
        "evaluator": "cross-encoder",
        "aggregation": "whole_context",
        "lower": 0.0,
        "doubtful": Doubtful.ABSTAIN,
        "ungraded_score": None,
    },
}

WHOLE, REFINE, EXTRACT, DISCARD = Handling.KEEP, Handling.REFINE, Handling.EXTRACT, Handling.DISCARD
DOCUMENTS = Handling.DOCUMENTS
NEVER, ALWAYS, WHEN_FEW = WebUse.NEVER, WebUse.ALWAYS, WebUse.WHEN_FEW

ROUTES: dict[str, tuple[tuple[str, Handling, WebUse], ...]] = {
    "paper": (("Correct", REFINE, NEVER), ("Ambiguous", REFINE, ALWAYS), ("Incorrect", DISCARD, ALWAYS)),
    "worst-chunk": (("Correct", WHOLE, NEVER), ("Ambiguous", EXTRACT, ALWAYS), ("Incorrect", DISCARD, ALWAYS)),
    "rank-weighted": (("Correct", WHOLE, NEVER), ("Ambiguous", REFINE, WHEN_FEW), ("Incorrect", DISCARD, ALWAYS)),
    "heuristic": (("Relevant", WHOLE, NEVER), ("Partial", WHOLE, NEVER), ("Irrelevant", DISCARD, ALWAYS)),
    "signals": (("Correct", REFINE, NEVER), ("Ambiguous", REFINE, ALWAYS), ("Incorrect", DISCARD, ALWAYS)),
    "agentic": (("Generate", WHOLE, NEVER), ("Refine", WHOLE, NEVER), ("Re-retrieve", DISCARD, NEVER)),
    "two-signal": (("Correct", REFINE, NEVER), ("Ambiguous", REFINE, ALWAYS), ("Incorrect", DISCARD, ALWAYS)),
    "adaptive-rag": (("Found", WHOLE, NEVER), ("More", WHOLE, NEVER), ("Nothing", WHOLE, NEVER)),
    "astute-rag": (("Found", WHOLE, NEVER), ("Uncertain", WHOLE, NEVER), ("Not found", WHOLE, NEVER)),
    "self-route": (("Answered", WHOLE, NEVER), ("Declined", DOCUMENTS, NEVER), ("Nothing to use", DISCARD, NEVER)),
    "sufficient-context": (
        ("Sufficient", WHOLE, NEVER),
        ("Insufficient", WHOLE, NEVER),
        ("Nothing to use", DISCARD, NEVER),
    ),
}


def test_every_policy_file_is_among_those_that_are_tested() -> None:
    assert {path.stem for path in POLICY_FILES.glob("*.toml")} == set(POLICIES)


@pytest.mark.parametrize("path", sorted(POLICY_FILES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_policy_file_is_valid_and_introduces_itself(path: Any) -> None:
    of = parse_policy(path.read_text("utf-8"), path.stem)
    assert of.name == path.stem
    assert of.title and of.summary and of.source


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_says_what_its_description_says(name: str) -> None:
    of = policy_file(name)
    assert {field: getattr(of, field) for field in DESCRIBED[name]} == DESCRIBED[name]


@pytest.mark.parametrize("name", POLICIES)
def test_each_action_does_what_its_description_says(name: str) -> None:
    routes = [policy_file(name).route(action) for action in Action]
    assert tuple((route.label, route.passages, route.web) for route in routes) == ROUTES[name]


@pytest.mark.parametrize("name", POLICIES)
def test_options_that_were_not_described_are_off(name: str) -> None:
    of = policy_file(name)
    assert not of.low_variance_promotes
    assert not of.web_when_ungraded
    if name not in ("heuristic", "rank-weighted", "signals"):
        assert not of.lower_is_inclusive
    if name != "heuristic":
        assert not of.upper_is_exclusive
    if name != "agentic":
        assert of.fast_path == FastPath()
    if name not in ("agentic", "adaptive-rag"):
        assert not any(of.route(action).re_retrieve for action in Action)
    if name != "heuristic":
        assert not any(of.route(action).expand for action in Action)
    if name != "signals":
        assert (of.web_seconds, of.web_cooldown) == (None, None)
    if name not in ("paper", "two-signal"):
        assert of.refinement.top is None


def test_two_signals_do_what_paper_does_but_for_the_way_to_decide_and_what_it_takes_of_the_web() -> None:
    paper, ours = policy_file("paper"), policy_file("two-signal")
    assert ours.web_on_subject and not paper.web_on_subject
    told = {name: getattr(paper, name) for name in ("name", "title", "summary", "source", "evaluator", "presets")}
    thresholds = {"lower": paper.lower, "upper": paper.upper, "strips": replace(ours.strips, cutoff=0.0)}
    assert (paper.web_pages, ours.web_pages) == (3, 0)
    alike = replace(ours, aggregation="best", web_on_subject=False, web_pages=3, **told, **thresholds)
    assert alike == replace(paper, strips=replace(paper.strips, cutoff=0.0))


TOGETHER = ("sufficient-context", "self-route")
AS_ASKED = ("heuristic", "rank-weighted", "signals", *TOGETHER, "adaptive-rag", "astute-rag")
QUERIES = {
    "paper": (WebQuery.PHRASES, 3),
    "two-signal": (WebQuery.PHRASES, 3),
    "worst-chunk": (WebQuery.REWRITTEN, 10),
    "agentic": (WebQuery.REWRITTEN, 10),
    **dict.fromkeys(AS_ASKED, (WebQuery.QUESTION, 0)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_sent_to_the_web_is_what_the_description_sends(name: str) -> None:
    of = policy_file(name)
    length = {WebQuery.PHRASES: of.web_query_phrases, WebQuery.REWRITTEN: of.web_query_words}
    assert (of.web_query, length.get(of.web_query, 0)) == QUERIES[name]


def test_the_finer_points_of_single_policies() -> None:
    ambiguous = policy_file("rank-weighted").ambiguous
    assert (ambiguous.drop_below, ambiguous.web_below_results) == (0.4, 3)
    assert policy_file("heuristic").ambiguous.expand
    assert policy_file("heuristic").incorrect.keep_original_without_web
    assert policy_file("heuristic").refinement.budget == 8000
    strips = policy_file("signals").strips
    assert (strips.cutoff, strips.order, strips.token_budget) == (0.5, StripOrder.RELEVANCE, 4096)
    strips = policy_file("paper").strips
    assert (strips.order, strips.top) == (StripOrder.DOCUMENT, 5)
    agentic = policy_file("agentic")
    assert [agentic.route(action).re_retrieve for action in Action] == [None, Again.REFINE, Again.NEXT_STRATEGY]
    assert agentic.incorrect.keep_original_without_web


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
    of = policy_file(name).preset(preset)
    assert of.thresholds == thresholds
    assert replace(of, lower=0.0, upper=1.0, strips=policy_file(name).strips) == replace(
        policy_file(name), lower=0.0, upper=1.0
    )


@pytest.mark.parametrize("path", sorted(POLICY_FILES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_preset_says_for_what_it_was_chosen(path: Any) -> None:
    presets = policy_file(path.stem).presets
    assert all(preset.note for preset in presets)
    assert len({preset.name for preset in presets}) == len(presets)
    assert bool(presets) is (path.stem in ("paper", "worst-chunk"))


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName) as refusal:
        policy_file("worst-chunk").preset("agressive")
    assert refusal.value.message == "Unknown preset of policy 'worst-chunk' 'agressive'."
    assert refusal.value.hint == "Did you mean 'aggressive'? Known: aggressive, conservative."


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_without_retrieval_differs_in_nothing_else(name: str) -> None:
    of, given = policy_file(name), policy_file(name).without_retrieval()
    assert given.max_rounds == 1
    assert not any(given.route(action).expand for action in Action)
    unexpanding: dict[str, Any] = {str(a).lower(): replace(of.route(a), expand=False) for a in Action}
    assert not given.rounds_by_question
    if name == "self-route":
        unexpanding["ambiguous"] = replace(of.ambiguous, passages=WHOLE)
    loop = replace(of.loop, max_iterations=1)
    assert given == replace(of, loop=loop, rounds_by_question=False, **unexpanding)


@pytest.mark.parametrize("name", POLICIES)
def test_which_policies_read_passage_grades(name: str) -> None:
    assert policy_file(name).reads_grades is (name not in ("heuristic", *TOGETHER))


def test_agentic_drops_below_its_lower_threshold_under_every_action() -> None:
    moved = policy_file("agentic").with_thresholds(lower=0.2)
    assert [moved.drops_below(action) for action in Action] == [0.2, 0.2, 0.2]
    assert [policy_file("rank-weighted").drops_below(action) for action in Action] == [None, 0.4, None]


TOML = """
title = "Mine"
summary = "A policy of my own."
source = "Me"
evaluator = "llm"
aggregation = "best"
lower = 0.3
upper = 0.7

[strips]
cutoff = 0.30

[correct]
label = "Correct"
passages = "whole"

[ambiguous]
label = "Ambiguous"
passages = "refine"
web = "always"

[incorrect]
label = "Incorrect"
passages = "discard"
web = "always"
"""


def test_what_a_file_leaves_out_takes_its_default() -> None:
    of = parse_policy(TOML, "mine")
    assert (of.name, of.lower, of.upper, of.refinement.budget) == ("mine", 0.3, 0.7, None)
    assert (of.correct.web, of.ungraded_score, of.web_limit) == (WebUse.NEVER, None, 5)
    assert (of.refinement.top, of.web_seconds, of.web_cooldown, of.presets) == (None, None, None, ())
    assert (of.loop, of.expansion, of.ambiguous.re_retrieve) == (Loop(3, tuple(Strategy)), Expansion(2, 4, 20), None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("uper = 0.6", "policy mine.uper: unknown key. Did you mean 'upper'?"),
        ("lower = 0.9\nupper = 0.2", "lower must not exceed upper, found lower 0.9 and upper 0.2"),
        ("lower = -0.1", "lower must lie in 0..1, found -0.1"),
        ("upper = 1.1", "upper must lie in 0..1, found 1.1"),
        ("ungraded_score = 5", "ungraded_score must lie in 0..1, found 5"),
        ("lower = nan", "policy mine.lower: expected a finite number"),
        ('lower = "0.3"', "policy mine.lower: expected float, found str '0.3'"),
        ('aggregation = "median"', "policy mine.aggregation: expected one of best, worst, rank-weighted"),
        ("grade_top = 2.5", "policy mine.grade_top: expected int, found float 2.5"),
        ("lower =", "Policy 'mine' is not valid TOML"),
        ("lower = " + "[" * 5000, "Policy 'mine' is not valid TOML"),
        ("lower = " + "9" * 5000, "Policy 'mine' is not valid TOML"),
        ('aggregation = "signals"', "aggregation 'signals' needs weights with a positive sum"),
        ("grade_top = 0", "grade_top must be 1 or more, found 0"),
        ("web_pages = -1", "web_pages must be 0 or more, found -1"),
        ("web_limit = 0", "web_limit must be 1 or more, found 0"),
        ("web_query_words = -3", "web_query_words must be 1 or more, found -3"),
        ('web_query_words = "x"', "policy mine.web_query_words: expected int, found str 'x'"),
        ("web_seconds = 0", "web_seconds must be more than 0 seconds, found 0"),
        ("web_cooldown = -1.5", "web_cooldown must be more than 0 seconds, found -1.5"),
        ("loop.max_iterations = 0", "loop.max_iterations must be 1 or more, found 0"),
        ('loop.strategies = ["keyword", "google"]', "expected one of keyword, rewritten, expanded, web"),
        ("expansion.max_passages = 0", "expansion.max_passages must be 1 or more, found 0"),
        ('presets = [{name = "odd", lower = 0.9, upper = 0.1}]', "preset 'odd' needs 0 <= lower <= upper <= 1"),
        (
            'aggregation = "two-signal"\npresets = [{name = "odd", lower = 1.2, upper = 0.1}]',
            "preset 'odd' needs lower and upper in 0..1",
        ),
        ('presets = [{name = "odd", lower = 0.1}]', "policy mine.presets[0].upper: missing"),
    ],
)
def test_a_wrong_line_is_refused_by_name(line: str, message: str) -> None:
    given = [key.split("=")[0] for key in line.splitlines()]
    kept = "\n".join(old for old in TOML.splitlines() if not any(old.startswith(key) for key in given))
    with pytest.raises(BadRecord) as refusal:
        parse_policy(f"{line}\n{kept}", "mine")
    assert message in str(refusal.value)


def test_a_wrong_line_in_a_table_is_refused_by_name() -> None:
    with pytest.raises(BadRecord, match=r"policy mine\.correct\.lable: unknown key\. Did you mean 'label'\?"):
        parse_policy(TOML.replace('label = "Correct"', 'lable = "Correct"'), "mine")
    with pytest.raises(BadRecord, match=r"strips\.cutoff must lie in 0\.\.1"):
        parse_policy(TOML.replace("cutoff = 0.30", "cutoff = 30"), "mine")
    with pytest.raises(BadRecord, match=r"strips\.top must be 1 or more, found 0"):
        parse_policy(TOML.replace("cutoff = 0.30", "top = 0"), "mine")
    with pytest.raises(BadRecord, match=r"policy mine\.incorrect\.passages: expected one of whole, refine"):
        parse_policy(TOML.replace('passages = "discard"', 'passages = "burn"'), "mine")
    with pytest.raises(BadRecord, match=r"policy mine\.incorrect\.re_retrieve: expected one of refine, next-strategy"):
        parse_policy(TOML + "re_retrieve = true", "mine")


def test_signals_of_one_retrieval_cannot_decide_over_another() -> None:
    text = policy_text("signals") + '\nre_retrieve = "next-strategy"\n'
    with pytest.raises(BadRecord, match="measures one retrieval; re_retrieve needs chunk scores"):
        parse_policy(text, "signals")


def test_a_policy_without_an_action_is_refused() -> None:
    with pytest.raises(BadRecord, match=r"policy mine\.incorrect: missing"):
        parse_policy(TOML.split("[incorrect]")[0], "mine")


def test_thresholds_move_one_at_a_time() -> None:
    of = policy_file("rank-weighted")
    assert of.with_thresholds(lower=0.1) == replace(of, lower=0.1)
    assert of.with_thresholds(upper=0.9) == replace(of, upper=0.9)
    assert of.with_thresholds(cutoff=0.9) == replace(of, strips=replace(of.strips, cutoff=0.9))
    assert of.with_thresholds() == of
    assert of.with_thresholds(lower=0.0, upper=0.0).lower == 0.0


@pytest.mark.parametrize(("lower", "upper"), [(0.8, 0.7), (-0.1, 0.7), (0.3, 1.1), (float("nan"), 0.7)])
def test_thresholds_that_make_no_sense_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="must"):
        policy_file("rank-weighted").with_thresholds(lower, upper)


def thresholds(of: Policy) -> tuple[float, float, float]:
    return of.thresholds


def test_with_another_evaluator_its_own_defaults_are_the_start() -> None:
    suited = policy_file("worst-chunk").suited_to(CARD, CARD)
    assert thresholds(suited) == (0.2, 0.8, 0.45)


def test_with_its_own_evaluator_a_policy_keeps_its_thresholds() -> None:
    suited = policy_file("worst-chunk").suited_to(replace(CARD, name="llm"), CARD)
    assert thresholds(suited) == (0.3, 0.7, 0.45)


@pytest.mark.parametrize("name", ["heuristic", "signals"])
def test_thresholds_on_signals_do_not_depend_on_the_evaluator(name: str) -> None:
    of = policy_file(name)
    assert thresholds(of.suited_to(CARD, CARD)) == (of.lower, of.upper, 0.45)


def policy_text(name: str) -> str:
    return (POLICY_FILES / f"{name}.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("rerank_top_3 = 0.4", "rerank_top_3"),
        ("agreement = -0.3", "agreement"),
    ],
)
def test_a_weight_of_no_signal_or_below_zero_is_refused(line: str, named: str) -> None:
    text = policy_text("signals").replace("[weights]", f"[weights]\n{line}", 1)
    text = text.replace("\nagreement = 0.3\n", "\n") if named == "agreement" else text
    with pytest.raises(BadRecord, match=named):
        parse_policy(text, "signals")


def test_two_presets_of_one_name_are_refused() -> None:
    twice = '[[presets]]\nname = "x"\nlower = 0.1\nupper = 0.2\n' * 2
    with pytest.raises(BadRecord, match="each preset needs a name of its own"):
        parse_policy((POLICY_FILES / "signals.toml").read_text("utf-8") + twice, "mine")


def test_a_policy_has_the_name_of_its_file() -> None:
    text = 'name = "paper"\n' + (POLICY_FILES / "signals.toml").read_text("utf-8")
    with pytest.raises(BadRecord, match=r"policy mine\.name: unknown key"):
        parse_policy(text, "mine")


@pytest.mark.parametrize(
    ("own", "scorer", "holds"),
    [(0.6, "cross-encoder", 0.6), (0.6, "embedding", 0.19), (None, "cross-encoder", 0.19)],
)
def test_the_cut_off_of_a_file_holds_for_the_scores_it_was_written_for(
    own: float | None, scorer: str, holds: float
) -> None:
    of = policy_file("paper")
    written = replace(of, strips=replace(of.strips, cutoff=own, scorer=scorer))
    scores_strips = replace(CARD, name="cross-encoder", strip_cutoff=0.19)
    assert written.suited_to(CARD, scores_strips).cutoff == holds


def test_description_003_keeps_its_own_cut_off_for_sentences() -> None:
    assert suit(policy_file("signals"), "cross-encoder").cutoff == 0.5
    assert suit(policy_file("paper"), "cross-encoder").cutoff == known_card("cross-encoder").strip_cutoff


def test_the_limit_of_sentences_is_one_of_the_rules_and_may_be_lifted() -> None:
    of = policy_file("paper")
    assert of.with_limit(8).strips == replace(of.strips, top=8) and of.with_limit(None).refinement.top is None
    assert of.with_limit(8).thresholds == of.thresholds
    with pytest.raises(ValueError, match=r"strips\.top must be 1 or more, found 0"):
        of.with_limit(0)
