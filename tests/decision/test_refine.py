"""Which strips and passages reach the answer, in which order, and why the others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action, Correction, CorrectionKind, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Extraction, Knowledge, Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy, Refinement, StripOrder
from crag_core.decision.reasons import NOT_COMPARABLE
from crag_core.decision.refine import REPEATED, as_passage, decompose, left_after_refinement, recompose
from tests.builders import changing, graded, kept, passage, policy, searched, strips_of, struck, web_page

FARES = passage("p1", "Adults pay nine euros. Dogs pay half. The sea is blue.", document_id="fares", ordinal=0)
TIMES = passage("p2", "The ferry leaves at eight. It is white.", document_id="times", ordinal=0)
FOUND = (FARES, TIMES)
STRIPS = (
    *strips_of(FARES, ("Adults pay nine euros.", 0.9), ("Dogs pay half.", 0.5), ("The sea is blue.", 0.1)),
    *strips_of(TIMES, ("The ferry leaves at eight.", 0.7), ("It is white.", 0.2)),
)
WEB = (CorrectionKind.WEB_SEARCH,)


def ruling(
    action: Action, handling: Handling, *kinds: CorrectionKind, discarded: dict[str, str] | None = None
) -> Decision:
    plan = [Correction(kind, "because") for kind in kinds]
    plan += [Correction(CorrectionKind.DISCARD, why, name) for name, why in (discarded or {}).items()]
    return Decision(action, "", 0.5, "", tuple(plan), handling=handling)


CORRECT = ruling(Action.CORRECT, Handling.REFINE)
AS_IT_IS = ruling(Action.CORRECT, Handling.KEEP)
AMBIGUOUS = ruling(Action.AMBIGUOUS, Handling.REFINE, *WEB)
EXTRACTING = ruling(Action.AMBIGUOUS, Handling.EXTRACT, *WEB)
INCORRECT = ruling(Action.INCORRECT, Handling.DISCARD, CorrectionKind.DISCARD, *WEB)


def texts(knowledge: Knowledge) -> list[str]:
    return [excerpt.text for excerpt in knowledge.excerpts]


def refining(cutoff: float = 0.49, order: StripOrder = StripOrder.DOCUMENT, budget: int = 2048) -> Policy:
    return replace(policy("paper"), refinement=Refinement(cutoff, order, budget))


def refine(of: Policy, strips: tuple[Strip, ...] = STRIPS, found: tuple[Passage, ...] = FOUND) -> Knowledge:
    return recompose(of, CORRECT, found, strips, None, None)


def test_decomposition_keeps_every_place() -> None:
    strips = decompose(FARES)
    assert [strip.text for strip in strips] == ["Adults pay nine euros.", "Dogs pay half.", "The sea is blue."]
    assert all(FARES.text[strip.start : strip.end] == strip.text for strip in strips)
    assert [strip.id for strip in strips] == ["p1#0", "p1#1", "p1#2"]
    assert all(strip.score is None for strip in strips)


def test_a_strip_is_graded_as_a_passage_of_its_own_without_the_whole_passages_scores() -> None:
    whole = replace(FARES, scores=(("cosine", 0.9),))
    piece = as_passage(STRIPS[1], whole)
    assert (piece.id, piece.text, piece.scores, piece.source) == ("p1#1", "Dogs pay half.", (), FARES.source)


@pytest.mark.parametrize(("cutoff", "strips"), [(0.4999, 1), (0.5, 0), (0.5001, 0)])
def test_a_strip_must_score_above_the_cut_off(cutoff: float, strips: int) -> None:
    verdicts = refine(refining(cutoff)).verdicts
    assert kept(verdicts).count("Dogs pay half.") == strips


def test_kept_strips_are_joined_by_passage_and_the_rest_says_why() -> None:
    knowledge = refine(refining(0.49))
    assert texts(knowledge) == ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."]
    assert [excerpt.strip_ids for excerpt in knowledge.internal] == [("p1#0", "p1#1"), ("p2#0",)]
    assert struck(knowledge.verdicts) == {
        "The sea is blue.": "score 0.10 ≤ cut-off 0.49",
        "It is white.": "score 0.20 ≤ cut-off 0.49",
    }
    assert [verdict.strip for verdict in knowledge.verdicts] == list(STRIPS)
    assert knowledge.external == () and knowledge.notes == ()


def test_a_score_close_to_the_cut_off_does_not_contradict_itself() -> None:
    strips = strips_of(FARES, ("Dogs pay half.", 0.4999))
    assert struck(refine(refining(0.5), strips).verdicts) == {"Dogs pay half.": "score 0.4999 ≤ cut-off 0.5000"}


def test_an_ungraded_strip_is_struck_out_as_not_graded_even_at_cut_off_zero() -> None:
    strips = strips_of(FARES, ("Adults pay nine euros.", 0.01), ("Dogs pay half.", None))
    knowledge = refine(refining(0.0), strips)
    assert texts(knowledge) == ["Adults pay nine euros."]
    assert struck(knowledge.verdicts) == {"Dogs pay half.": "not graded"}


def test_the_same_sentence_is_kept_once_where_it_scores_best() -> None:
    again = passage("p3", "Dogs  pay\nhalf. Cats pay nothing.")
    strips = (*STRIPS, *strips_of(again, ("Dogs  pay\nhalf.", 0.8), ("Cats pay nothing.", 0.6)))
    knowledge = refine(refining(0.49), strips, (*FOUND, again))
    assert texts(knowledge) == [
        "Adults pay nine euros.",
        "The ferry leaves at eight.",
        "Dogs  pay\nhalf. Cats pay nothing.",
    ]
    assert struck(knowledge.verdicts)["Dogs pay half."] == "the same sentence is kept already"


def test_of_equal_twins_the_one_of_the_better_ranked_passage_is_kept() -> None:
    twin = passage("p3", "Dogs pay half.")
    strips = (*strips_of(twin, ("Dogs pay half.", 0.5)), *strips_of(FARES, ("Dogs pay half.", 0.5)))
    assert [e.passage.id for e in refine(refining(0.49), strips, (FARES, twin)).internal] == ["p1"]


def test_a_full_token_budget_keeps_the_best() -> None:
    # 4 words are 5 tokens, 3 words 3, 5 words 6: of 0.9, 0.7 and 0.5 the budget of 11 holds the first two.
    knowledge = refine(refining(0.49, budget=11))
    assert texts(knowledge) == ["Adults pay nine euros.", "The ferry leaves at eight."]
    assert struck(knowledge.verdicts)["Dogs pay half."] == "the token budget of 11 is full"


def test_a_small_strip_may_still_fit_where_a_larger_one_did_not() -> None:
    assert texts(refine(refining(0.49, budget=8))) == ["Adults pay nine euros. Dogs pay half."]


@pytest.mark.parametrize(
    ("top", "sentences"),
    [
        (1, ["Adults pay nine euros."]),
        (2, ["Adults pay nine euros.", "The ferry leaves at eight."]),
        (9, ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."]),
    ],
)
def test_at_most_so_many_of_the_best_sentences_are_kept(top: int, sentences: list[str]) -> None:
    knowledge = refine(replace(policy("paper"), refinement=Refinement(0.49, top=top)))
    assert texts(knowledge) == sentences
    why = struck(knowledge.verdicts).get("Dogs pay half.")
    assert why == (None if top == 9 else f"over the {top}-sentence limit")


def test_a_sentence_below_the_cut_off_is_not_said_to_be_one_too_many() -> None:
    knowledge = refine(replace(policy("paper"), refinement=Refinement(0.49, top=1)))
    assert struck(knowledge.verdicts)["It is white."] == "score 0.20 ≤ cut-off 0.49"


def test_repeated_sentences_do_not_count_twice_among_the_best() -> None:
    twin = passage("p3", "Adults pay nine euros.")
    strips = (*STRIPS, *strips_of(twin, ("Adults pay nine euros.", 0.8)))
    knowledge = refine(replace(policy("paper"), refinement=Refinement(0.49, top=2)), strips, (*FOUND, twin))
    assert texts(knowledge) == ["Adults pay nine euros.", "The ferry leaves at eight."]


def test_document_order_follows_the_documents_and_their_pages() -> None:
    late = passage("late", "Second part of it.", document_id="d1", ordinal=7)
    other = passage("other", "From another book.", document_id="d2", ordinal=0)
    early = passage("early", "First part of it.", document_id="d1", ordinal=2)
    found = (late, other, early)
    strips = tuple(
        strip for p, score in zip(found, (0.9, 0.8, 0.7), strict=True) for strip in strips_of(p, (p.text, score))
    )
    assert texts(refine(refining(), strips, found)) == [early.text, late.text, other.text]


def test_rank_order_follows_the_chunks_as_they_were_found() -> None:
    late = passage("late", "Second part of it.", document_id="d1", ordinal=7)
    other = passage("other", "From another book.", document_id="d2", ordinal=0)
    early = passage("early", "First part of it. And more.", document_id="d1", ordinal=2)
    strips = (
        *strips_of(late, (late.text, 0.7)),
        *strips_of(other, (other.text, 0.8)),
        *strips_of(early, ("First part of it.", 0.6), ("And more.", 0.9)),
    )
    found = (late, other, early)
    assert texts(refine(refining(order=StripOrder.RANK), strips, found)) == [late.text, other.text, early.text]


def test_relevance_order_follows_the_scores_across_passages() -> None:
    knowledge = refine(refining(0.4, StripOrder.RELEVANCE))
    assert texts(knowledge) == ["Adults pay nine euros.", "The ferry leaves at eight.", "Dogs pay half."]
    assert [excerpt.passage.id for excerpt in knowledge.internal] == ["p1", "p2", "p1"]


def test_where_nothing_reaches_the_cut_off_the_best_score_is_told() -> None:
    knowledge = refine(refining(0.95))
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("No sentence is kept at the cut-off 0.95: the best scores 0.90.",)
    assert refine(refining(0.9001)).notes == ("No sentence is kept at the cut-off 0.9001: the best scores 0.9000.",)


def test_beside_a_best_score_that_is_too_low_the_ungraded_are_counted() -> None:
    strips = strips_of(FARES, ("Adults pay nine euros.", 0.2), ("Dogs pay half.", None))
    knowledge = refine(refining(0.49), strips)
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("No sentence is kept at the cut-off 0.49: the best scores 0.20, 1 could not be graded.",)


UNREAD = tuple(replace(strip, score=None) for strip in STRIPS)
USED_AS_THEY_ARE = "No sentence could be graded, so the chunks are used as they are."


def test_where_no_strip_could_be_graded_the_passages_are_used_as_they_are_and_that_is_told() -> None:
    knowledge = refine(refining(0.49), UNREAD)
    assert texts(knowledge) == [FARES.text, TIMES.text]
    assert all(excerpt.strip_ids == () for excerpt in knowledge.excerpts)
    assert struck(knowledge.verdicts) == {} and len(knowledge.verdicts) == len(STRIPS)
    assert knowledge.notes == (USED_AS_THEY_ARE,)


def test_one_graded_strip_of_any_passage_is_enough_to_refine() -> None:
    knowledge = refine(refining(0.49), (STRIPS[0], *UNREAD[1:]))
    assert texts(knowledge) == ["Adults pay nine euros."]
    assert set(struck(knowledge.verdicts).values()) == {"not graded"} and knowledge.notes == ()


def test_of_passages_that_could_not_be_refined_those_that_were_never_scored_stay_out() -> None:
    knowledge = refine(refining(0.49), strips_of(TIMES, ("It is white.", None)))
    assert texts(knowledge) == [TIMES.text]


def test_passages_that_could_not_be_refined_fill_the_budget_in_their_order() -> None:
    knowledge = refine(refining(0.49, budget=20), UNREAD)
    assert texts(knowledge) == [FARES.text]
    assert struck(knowledge.verdicts)["It is white."] == "the token budget was full"
    assert knowledge.notes == (USED_AS_THEY_ARE, "The token budget of 20 holds 1 of 2 chunks.")


@pytest.mark.parametrize("handling", [Handling.REFINE, Handling.EXTRACT])
def test_a_discarded_passage_stays_out_where_nothing_could_be_refined(handling: Handling) -> None:
    dropping = ruling(Action.AMBIGUOUS, handling, discarded={"p1": "score 0.10 < 0.40"})
    graded_there = (STRIPS[0], *UNREAD[1:])  # what is discarded says nothing of the others
    knowledge = recompose(refining(0.49), dropping, FOUND, graded_there, None, None)
    assert texts(knowledge) == [TIMES.text]
    assert struck(knowledge.verdicts)["Adults pay nine euros."].startswith("its chunk was discarded")
    assert knowledge.notes == (USED_AS_THEY_ARE,)


def test_sentences_that_a_model_extracted_count_where_none_could_be_graded() -> None:
    extractions = (Extraction("p1", (1,)), Extraction("p2", ()))
    knowledge = recompose(refining(), EXTRACTING, FOUND, UNREAD, extractions, None)
    assert texts(knowledge) == ["Dogs pay half."] and knowledge.notes == ()


def test_web_text_that_could_not_be_refined_is_used_as_it_is_and_that_is_told() -> None:
    strips = tuple(replace(strip, score=None) for strip in SEARCH.strips or ())
    knowledge = recompose(refining(0.49), INCORRECT, FOUND, STRIPS, None, replace(SEARCH, strips=strips))
    assert texts(knowledge) == [NEWS.text]
    assert knowledge.notes == ("No sentence of the web could be graded, so its results are used as they are.",)


def test_never_scored_strips_leave_no_verdicts_and_no_claim() -> None:
    knowledge = recompose(refining(), CORRECT, FOUND, None, None, None)
    assert knowledge == Knowledge((), (), ())
    assert recompose(refining(), CORRECT, FOUND, (), None, None) == knowledge


def test_a_dropped_passage_takes_its_strips_with_it() -> None:
    dropping = ruling(Action.AMBIGUOUS, Handling.REFINE, discarded={"p1": "score 0.30 < 0.40"})
    knowledge = recompose(policy("rank-weighted"), dropping, FOUND, STRIPS, None, None)
    assert texts(knowledge) == ["The ferry leaves at eight."]
    assert struck(knowledge.verdicts)["Adults pay nine euros."] == ("its chunk was discarded: score 0.30 < 0.40")


def test_a_dropped_passages_strips_are_not_the_best_that_was_left() -> None:
    dropping = ruling(Action.AMBIGUOUS, Handling.REFINE, discarded={"p1": "score 0.30 < 0.40"})
    knowledge = recompose(policy("rank-weighted").with_thresholds(cutoff=0.8), dropping, FOUND, STRIPS, None, None)
    assert knowledge.notes == ("No sentence is kept at the cut-off 0.80: the best scores 0.70.",)


def test_discarding_all_leaves_nothing_of_the_corpus() -> None:
    knowledge = recompose(policy("paper"), INCORRECT, FOUND, STRIPS, None, None)
    assert knowledge.excerpts == ()
    assert set(struck(knowledge.verdicts).values()) == {"its chunk was discarded: because"}
    assert knowledge.notes == ()


# Whole passages


WHOLE = policy("worst-chunk")


def test_whole_passages_go_in_as_they_are_in_rank_order() -> None:
    knowledge = recompose(WHOLE, AS_IT_IS, FOUND, STRIPS, None, None)
    assert texts(knowledge) == [FARES.text, TIMES.text]
    assert all(excerpt.strip_ids == () for excerpt in knowledge.excerpts)
    assert kept(knowledge.verdicts) == [strip.text for strip in STRIPS]


def test_whole_passages_without_the_dropped_ones() -> None:
    dropping = ruling(Action.CORRECT, Handling.KEEP, discarded={"p1": "score 0.20 < 0.30"})
    knowledge = recompose(policy("agentic"), dropping, FOUND, STRIPS, None, None)
    assert texts(knowledge) == [TIMES.text]
    assert set(struck(knowledge.verdicts).values()) == {"its chunk was discarded: score 0.20 < 0.30"}


def test_a_rule_without_grades_gives_all_passages_to_the_answer() -> None:
    agentic = policy("agentic")
    assert texts(recompose(agentic, decide(agentic, FOUND, None), FOUND, None, None, None)) == [FARES.text, TIMES.text]


def test_whole_passages_stop_at_the_token_budget_and_say_so() -> None:
    # 11 words are 14 tokens, 8 words 10.
    small = replace(WHOLE, refinement=Refinement(budget=23))
    knowledge = recompose(small, AS_IT_IS, FOUND, STRIPS, None, None)
    assert texts(knowledge) == [FARES.text]
    assert knowledge.notes == ("The token budget of 23 holds 1 of 2 chunks.",)
    assert struck(knowledge.verdicts)["It is white."] == "the token budget was full"
    assert texts(recompose(replace(small, refinement=Refinement(budget=24)), AS_IT_IS, FOUND, (), None, None)) == [
        FARES.text,
        TIMES.text,
    ]


def test_of_a_first_passage_that_is_longer_than_the_budget_whole_sentences_go_in() -> None:
    small = replace(WHOLE, refinement=Refinement(budget=9))
    knowledge = recompose(small, AS_IT_IS, FOUND, STRIPS, None, None)
    assert texts(knowledge) == ["Adults pay nine euros. Dogs pay half."]
    assert knowledge.excerpts[0].strip_ids == tuple(strip.id for strip in STRIPS[:2]), "no other one is quoted"
    assert struck(knowledge.verdicts)["The sea is blue."] == "the token budget was full"
    assert knowledge.notes == (
        "The token budget of 9 holds 1 of 2 chunks.",
        "The first chunk alone is longer than the token budget of 9: about 9 of its 14 tokens are used, from its "
        "beginning.",
    )


def test_a_passage_that_does_not_fit_stops_no_smaller_one_behind_it() -> None:
    long, short = passage("p8", "The sea is blue. " * 5), passage("p9", "Dogs pay half.")
    small = replace(WHOLE, refinement=Refinement(budget=14 + 5))
    knowledge = recompose(small, AS_IT_IS, (FARES, long, short), None, None, None)
    assert texts(knowledge) == [FARES.text, short.text]
    assert knowledge.notes == ("The token budget of 19 holds 2 of 3 chunks.",)


def test_after_the_last_iteration_passages_go_in_whole_though_none_was_worth_keeping() -> None:
    of = replace(policy("agentic"), max_rounds=2)
    found, grades = graded(0.1, 0.2, 0.1)
    decision = decide(of, found, grades, (), ("keyword",))
    assert decision.action is Action.INCORRECT
    assert [excerpt.passage.id for excerpt in recompose(of, decision, found, None, None, None).internal] == [
        "p1",
        "p2",
        "p3",
    ]


LATER = passage("p3", "Prices change in June.")
ALL_STRIPS = (*STRIPS, *strips_of(LATER, (LATER.text, 0.95)))


@pytest.mark.parametrize("decision", [CORRECT, AS_IT_IS, EXTRACTING, INCORRECT])
def test_strips_of_passages_that_are_no_evidence_here_are_left_out(decision: Decision) -> None:
    # Another round of retrieval found p3: under this policy it was never looked at.
    extractions = (Extraction("p1", (0,)), Extraction("p3", (0,)))
    with_all = recompose(WHOLE, decision, FOUND, ALL_STRIPS, extractions, None)
    assert with_all == recompose(WHOLE, decision, FOUND, STRIPS, extractions, None)


# Extraction


def extract(*extractions: Extraction) -> Knowledge:
    return recompose(WHOLE, EXTRACTING, FOUND, STRIPS, extractions, None)


def test_extracted_strips_are_kept_whatever_their_score() -> None:
    knowledge = extract(Extraction("p1", (2,), refused=("Dogs are free.",)), Extraction("p2", ()))
    assert texts(knowledge) == ["The sea is blue."]
    assert set(struck(knowledge.verdicts).values()) == {"not extracted by the language model"}


def test_a_failed_extraction_says_why() -> None:
    knowledge = extract(Extraction("p1", (0,)), Extraction("p2", (), cause="the reply could not be read"))
    assert texts(knowledge) == ["Adults pay nine euros."]
    assert struck(knowledge.verdicts)["It is white."] == "the reply could not be read"


def test_a_model_that_extracts_nothing_is_not_said_to_have_missed_a_cut_off() -> None:
    knowledge = extract(Extraction("p1", ()), Extraction("p2", ()))
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("The language model extracted no sentence from 2 chunks.",)


def test_without_a_model_strips_are_kept_by_their_score_and_it_is_said() -> None:
    knowledge = recompose(WHOLE.with_thresholds(cutoff=0.49), EXTRACTING, FOUND, STRIPS, None, None)
    assert texts(knowledge) == ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."]
    assert knowledge.notes == ("No LLM extracted sentences; they are kept by score instead.",)


def test_never_extracted_differs_from_extracted_nothing() -> None:
    assert recompose(WHOLE, EXTRACTING, FOUND, STRIPS, (), None).excerpts == ()
    assert recompose(WHOLE, EXTRACTING, FOUND, STRIPS, None, None).excerpts != ()


# The web


NEWS = web_page("w1", "Fares rose in May. Buy our hats!")
WEB_STRIPS = strips_of(NEWS, ("Fares rose in May.", 0.8), ("Buy our hats!", 0.1))
SEARCH = searched(NEWS, strips=WEB_STRIPS)


def test_the_web_is_refined_by_the_same_cut_off_where_the_policy_says_so() -> None:
    knowledge = recompose(refining(0.49), AMBIGUOUS, FOUND, STRIPS, None, SEARCH)
    assert [excerpt.text for excerpt in knowledge.external] == ["Fares rose in May."]
    assert [excerpt.passage.id for excerpt in knowledge.internal] == ["p1", "p2"]
    assert struck(knowledge.verdicts)["Buy our hats!"] == "score 0.10 ≤ cut-off 0.49"


def test_the_web_goes_in_whole_where_the_policy_does_not_refine_it() -> None:
    knowledge = recompose(policy("signals"), AMBIGUOUS, FOUND, STRIPS, None, SEARCH)
    assert [excerpt.text for excerpt in knowledge.external] == [NEWS.text]
    assert kept(knowledge.verdicts)[-2:] == ["Fares rose in May.", "Buy our hats!"]


def test_web_strips_that_were_never_made_leave_no_verdicts() -> None:
    unscored = replace(SEARCH, strips=None)
    whole = recompose(policy("signals"), INCORRECT, (), (), None, unscored)
    assert (texts(whole), whole.verdicts) == ([NEWS.text], ())
    refined = recompose(refining(0.49), INCORRECT, (), (), None, unscored)
    assert (texts(refined), refined.verdicts) == ([], ())


SAYS = web_page("w1", "Fares rose in May. Adults pay  nine euros.")
AGAIN = web_page("w2", "“Fares rose in MAY”")
BOTH = searched(
    SAYS,
    AGAIN,
    strips=(
        *strips_of(SAYS, ("Fares rose in May.", 0.8), ("Adults pay  nine euros.", 0.9)),
        *strips_of(AGAIN, ("“Fares rose in MAY”", 0.7)),
    ),
)


REFINED = ["Adults pay nine euros.", "The ferry leaves at eight."]
NEW = "Fares rose in May."


@pytest.mark.parametrize(
    ("of", "ruled", "internal", "external"),
    [
        ("signals", AMBIGUOUS, REFINED, [NEW]),  # 003
        ("paper", AMBIGUOUS, ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."], [NEW]),
        ("worst-chunk", EXTRACTING, ["Adults pay nine euros."], [NEW]),  # 004
        ("worst-chunk", ruling(Action.AMBIGUOUS, Handling.KEEP, *WEB), [one.text for one in FOUND], [NEW]),
        ("signals", INCORRECT, [], [SAYS.text]),
    ],
)
def test_a_sentence_of_corpus_and_web_goes_in_once_and_so_does_one_of_two_results(
    of: str, ruled: Decision, internal: list[str], external: list[str]
) -> None:
    policy_of = policy(of) if of == "signals" else policy(of).with_thresholds(cutoff=0.49)
    extractions = (Extraction("p1", (0,)), Extraction("p2", ()))
    knowledge = recompose(policy_of, ruled, FOUND, STRIPS, extractions, BOTH)
    assert [one.text for one in knowledge.internal] == internal
    assert [one.text for one in knowledge.external] == external
    told = () if policy_of.web.refine else ("1 of 2 web results say only what is kept already.",)
    assert knowledge.notes == told
    struck_out = [one.strip.id for one in knowledge.verdicts if one.reason == REPEATED]
    assert struck_out == [*(["w1#1"] if internal else []), "w2#0"], "recorded"


def test_a_web_that_says_nothing_new_is_told_as_such() -> None:
    said = web_page("w1", "Adults pay nine euros.")
    search = searched(said, strips=strips_of(said, ("Adults pay nine euros.", 0.9)))
    knowledge = recompose(refining(0.49), AMBIGUOUS, FOUND, STRIPS, None, search)
    assert knowledge.external == () and knowledge.notes == ("The web answered, but it says only what is kept already.",)


def test_at_most_so_many_sentences_of_the_web_are_kept_beside_those_of_the_corpus() -> None:
    of = replace(policy("paper"), refinement=Refinement(0.05, top=1))
    knowledge = recompose(of, AMBIGUOUS, FOUND, STRIPS, None, SEARCH)
    assert texts(knowledge) == ["Adults pay nine euros.", "Fares rose in May."]


def test_the_corpus_comes_before_the_web() -> None:
    knowledge = recompose(refining(0.49), AMBIGUOUS, FOUND, STRIPS, None, SEARCH)
    assert [excerpt.passage.id for excerpt in knowledge.excerpts] == ["p1", "p2", "w1"]


def test_an_incorrect_question_is_answered_from_the_web_alone() -> None:
    knowledge = recompose(refining(0.49), INCORRECT, FOUND, STRIPS, None, SEARCH)
    assert texts(knowledge) == ["Fares rose in May."]


def test_a_recorded_search_stays_out_where_the_route_wants_none() -> None:
    knowledge = recompose(refining(0.49), CORRECT, FOUND, STRIPS, None, SEARCH)
    assert knowledge.external == ()
    assert "Buy our hats!" not in struck(knowledge.verdicts)


def test_a_web_answer_of_which_nothing_is_kept_is_told() -> None:
    knowledge = recompose(refining(0.95), INCORRECT, FOUND, STRIPS, None, SEARCH)
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("The web answered, but no sentence is kept at the cut-off 0.95: the best scores 0.80.",)


UNUSED = [outcome for outcome in WebOutcome if outcome is not WebOutcome.USED]


@pytest.mark.parametrize("outcome", UNUSED)
def test_a_search_that_was_not_used_gives_nothing(outcome: WebOutcome) -> None:
    knowledge = recompose(refining(0.49), INCORRECT, FOUND, STRIPS, None, replace(SEARCH, outcome=outcome))
    assert knowledge.external == ()


HEURISTIC = policy("heuristic")
ASKED_IN_VAIN = [outcome for outcome in UNUSED if outcome not in (WebOutcome.PENDING, WebOutcome.APPROVED)]


@pytest.mark.parametrize("outcome", ASKED_IN_VAIN)
def test_heuristic_falls_back_on_the_passages_with_a_warning(outcome: WebOutcome) -> None:
    knowledge = recompose(HEURISTIC, INCORRECT, FOUND, STRIPS, None, WebSearch(outcome, "", ""))
    assert texts(knowledge) == [FARES.text, TIMES.text]
    assert kept(knowledge.verdicts) == [strip.text for strip in STRIPS]
    assert knowledge.notes == (
        "There are no web results, so the retrieved chunks are used after all; they were graded as irrelevant.",
    )


@pytest.mark.parametrize("outcome", [WebOutcome.PENDING, WebOutcome.APPROVED])
def test_heuristic_does_not_fall_back_before_the_web_was_asked(outcome: WebOutcome) -> None:
    waiting = recompose(HEURISTIC, INCORRECT, FOUND, STRIPS, None, WebSearch(outcome, "ferry", "you"))
    assert waiting.excerpts == () and waiting.notes == ()
    assert recompose(HEURISTIC, INCORRECT, FOUND, STRIPS, None, None).excerpts == ()


def test_heuristic_prefers_the_web_where_it_gave_something() -> None:
    knowledge = recompose(HEURISTIC, INCORRECT, FOUND, STRIPS, None, SEARCH)
    assert texts(knowledge) == [NEWS.text]
    assert knowledge.notes == ()


def test_the_fall_back_keeps_the_verdicts_on_the_web() -> None:
    strict = changing(HEURISTIC, web_refine=True, refinement=Refinement(cutoff=0.95))
    knowledge = recompose(strict, INCORRECT, FOUND, STRIPS, None, SEARCH)
    assert texts(knowledge) == [FARES.text, TIMES.text]
    assert set(struck(knowledge.verdicts)) == {"Fares rose in May.", "Buy our hats!"}


@pytest.mark.parametrize("name", ["paper", "worst-chunk", "rank-weighted", "signals"])
def test_elsewhere_a_fruitless_search_leaves_nothing(name: str) -> None:
    found, grades = graded(0.1, 0.1)
    of = policy(name)
    knowledge = recompose(of, decide(of, found, grades, (("agreement", 0.1),)), found, (), None, searched())
    assert knowledge.excerpts == ()


@pytest.mark.parametrize("handling", list(Handling))
def test_nothing_retrieved_leaves_nothing(handling: Handling) -> None:
    assert recompose(refining(), ruling(Action.INCORRECT, handling), (), (), (), None) == Knowledge((), (), ())


# --- web results off the subject ------------------------------------------------------------------------------------

ON = web_page("on", "Fares rose in May. A day ticket costs nine pounds.")
OFF = web_page("off", "Hats are back. Buy our hats!")
PAGES = (ON, OFF)
Given = tuple[float, float] | float | None
SAID = (
    *strips_of(ON, ("Fares rose in May.", 0.2), ("A day ticket costs nine pounds.", 0.9)),
    *strips_of(OFF, ("Hats are back.", 0.3), ("Buy our hats!", 0.9)),
)


def of_the_web(on: Given, off: Given, of: Policy | None = None, **fields: Any) -> Knowledge:
    """Two results with these signals, under a policy with lower 0.40 and the cut-off 0.25."""
    grades = [_graded(page.id, signals) for page, signals in zip(PAGES, (on, off), strict=True)]
    web = replace(searched(*PAGES, strips=SAID), **{"grades": tuple(grades)} | fields)
    strict = of or changing(policy("two-signal"), web_on_subject=True, refinement=Refinement(cutoff=0.25))
    return recompose(strict, INCORRECT, FOUND, STRIPS, None, web)


def _graded(id_: str, signals: Given) -> Grade:
    if not isinstance(signals, tuple):
        return Grade(id_, signals)
    answering, topical = signals
    return Grade(id_, (answering + topical) / 2, parts=((ANSWERING, answering), (TOPICAL, topical)))


def test_a_web_result_off_the_subject_is_left_out_whatever_its_sentences_score() -> None:
    knowledge = of_the_web((0.1, 0.4), (0.9, 0.3999))
    assert texts(knowledge) == ["A day ticket costs nine pounds."]
    why = "its chunk was discarded: topical 0.3999 < lower 0.4000"
    assert {text: reason for text, reason in struck(knowledge.verdicts).items() if "hats" in text.lower()} == {
        "Hats are back.": why,
        "Buy our hats!": why,
    }
    assert knowledge.notes == ()


def test_where_none_is_on_the_subject_nothing_is_left_and_it_says_so() -> None:
    knowledge = of_the_web((0.1, 0.1), (0.2, 0.3))
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("The web answered, but none of its 2 results is on the subject.",)


def test_a_result_on_the_subject_without_a_sentence_to_keep_is_said_as_ever() -> None:
    strict = changing(policy("two-signal"), web_on_subject=True, refinement=Refinement(cutoff=0.95))
    knowledge = of_the_web((0.1, 0.9), (0.1, 0.1), strict)
    assert knowledge.notes == (
        "The web answered, but no sentence is kept at the cut-off 0.95: the best scores 0.90.",
    ), "the best of those that could have been kept"


def test_a_web_result_with_a_coarse_grade_is_left_out_beside_a_finer_one() -> None:
    grades = (replace(_graded("on", (0.1, 0.9)), coarse=False), replace(_graded("off", (0.9, 1.0)), coarse=True))
    knowledge = of_the_web(0.9, 0.9, grades=grades)
    assert texts(knowledge) == ["A day ticket costs nine pounds."]
    assert struck(knowledge.verdicts)["Buy our hats!"] == f"its chunk was discarded: {NOT_COMPARABLE}"
    alone = of_the_web(0.9, 0.9, grades=tuple(replace(one, coarse=True) for one in grades))
    assert texts(alone) == ["A day ticket costs nine pounds.", "Hats are back. Buy our hats!"]


ONE_CHUNK = Extraction("p1", (2,))


@pytest.mark.parametrize(
    ("handling", "cutoff", "strips", "extractions", "left"),
    [
        (Handling.REFINE, 0.49, STRIPS, None, 2),
        (Handling.REFINE, 0.70, STRIPS, None, 1),
        (Handling.REFINE, 0.95, STRIPS, None, 0),
        (Handling.REFINE, 0.49, None, None, None),
        (Handling.REFINE, 0.49, STRIPS[:3], None, None),
        (Handling.REFINE, 0.49, STRIPS, (ONE_CHUNK,), 2),
        (Handling.EXTRACT, 0.95, STRIPS, (ONE_CHUNK, Extraction("p2", ())), 1),
        (Handling.EXTRACT, 0.70, STRIPS, None, 1),
        (Handling.REFINE, 0.95, tuple(replace(strip, score=None) for strip in STRIPS), None, 2),
    ],
    ids=["all", "one", "none", "never scored", "one not scored", "refined", "extracted", "by score", "unreadable"],
)
def test_chunks_of_which_refinement_leaves_something_are_counted(
    handling: Handling,
    cutoff: float,
    strips: tuple[Strip, ...] | None,
    extractions: tuple[Extraction, ...] | None,
    left: int | None,
) -> None:
    assert left_after_refinement(refining(cutoff), handling, FOUND, strips, extractions) == left


def test_a_sentence_that_a_budget_or_a_repetition_leaves_out_counts_as_found() -> None:
    again = replace(FARES, id="p3")
    strips = (*STRIPS, *(replace(strip, passage_id="p3") for strip in STRIPS[:3]))
    tight = replace(refining(), refinement=Refinement(0.49, StripOrder.DOCUMENT, 5, top=1))
    assert left_after_refinement(tight, Handling.REFINE, (*FOUND, again), strips, None) == 3


def test_an_ungraded_result_is_not_off_the_subject() -> None:
    assert len(of_the_web(None, None).excerpts) == 2
    assert len(of_the_web((0.1, 0.9), (0.1, 0.1), grades=None).excerpts) == 2


def test_one_score_counts_as_the_topical_one() -> None:
    assert texts(of_the_web(0.4, 0.39)) == ["A day ticket costs nine pounds."]


def test_results_that_go_in_whole_are_left_out_too() -> None:
    loose = changing(policy("two-signal"), web_on_subject=True, web_refine=False)
    assert texts(of_the_web((0.1, 0.9), (0.9, 0.1), loose)) == [ON.text]


def test_lower_moves_what_is_on_the_subject() -> None:
    strict = changing(policy("two-signal"), web_on_subject=True, refinement=Refinement(cutoff=0.25))
    low, high = (of_the_web((0.5, 0.5), (0.2, 0.3), strict.with_thresholds(lower=at)) for at in (0.3, 0.6))
    assert len(low.excerpts) == 2 and high.excerpts == ()
