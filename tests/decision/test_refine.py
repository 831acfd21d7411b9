"""Which strips and passages reach the answer, in which order, and why the others do not."""

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action, Correction, CorrectionKind, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Extraction, Knowledge, Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.base.types.web import PageOutcome, WebOutcome, WebPage, WebSearch
from crag_core.decision.policy import Policy, Refinement, StripOrder
from crag_core.decision.refine import KEPT_ALREADY, decompose, left_after_refinement, recompose
from tests.builders import changing, kept, passage, policy, searched, strips_of, struck, web_page

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


@pytest.mark.parametrize("handling", [Handling.REFINE, Handling.EXTRACT])
def test_a_discarded_passage_stays_out_where_nothing_could_be_refined(handling: Handling) -> None:
    dropping = ruling(Action.AMBIGUOUS, handling, discarded={"p1": "score 0.10 < 0.40"})
    graded_there = (STRIPS[0], *UNREAD[1:])  # what is discarded says nothing of the others
    knowledge = recompose(refining(0.49), dropping, FOUND, graded_there, None, None)
    assert texts(knowledge) == [TIMES.text]
    assert struck(knowledge.verdicts)["Adults pay nine euros."].startswith("its chunk was discarded")
    assert knowledge.notes == (USED_AS_THEY_ARE,)


def test_web_text_that_could_not_be_refined_is_used_as_it_is_and_that_is_told() -> None:
    strips = tuple(replace(strip, score=None) for strip in SEARCH.strips or ())
    knowledge = recompose(refining(0.49), INCORRECT, FOUND, STRIPS, None, replace(SEARCH, strips=strips))
    assert texts(knowledge) == [NEWS.text]
    assert knowledge.notes == ("No sentence of the web could be graded, so its results are used as they are.",)


# Whole passages


WHOLE = policy("worst-chunk")


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


def test_without_a_model_strips_are_kept_by_their_score_and_it_is_said() -> None:
    knowledge = recompose(WHOLE.with_thresholds(cutoff=0.49), EXTRACTING, FOUND, STRIPS, None, None)
    assert texts(knowledge) == ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."]
    assert knowledge.notes == ("No LLM extracted sentences; they are kept by score instead.",)


# The web


NEWS = web_page("w1", "Fares rose in May. Buy our hats!")
WEB_STRIPS = strips_of(NEWS, ("Fares rose in May.", 0.8), ("Buy our hats!", 0.1))
SEARCH = searched(NEWS, strips=WEB_STRIPS)


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
        ("signals", AMBIGUOUS, REFINED, [SAYS.text, AGAIN.text]),  # 003: as they are
        ("paper", AMBIGUOUS, ["Adults pay nine euros. Dogs pay half.", "The ferry leaves at eight."], [NEW]),
    ],
)
def test_a_sentence_of_corpus_and_refined_web_goes_in_once_and_so_does_one_of_two_results(
    of: str, ruled: Decision, internal: list[str], external: list[str]
) -> None:
    policy_of = policy(of) if of == "signals" else policy(of).with_thresholds(cutoff=0.49)
    extractions = (Extraction("p1", (0,)), Extraction("p2", ()))
    knowledge = recompose(policy_of, ruled, FOUND, STRIPS, extractions, BOTH)
    assert [one.text for one in knowledge.internal] == internal
    assert [one.text for one in knowledge.external] == external
    struck_out = [one.strip.id for one in knowledge.verdicts if one.reason == KEPT_ALREADY]
    assert struck_out == (["w1#1", "w2#0"] if policy_of.web.refine else []), "recorded"


def test_the_corpus_comes_before_the_web() -> None:
    knowledge = recompose(refining(0.49), AMBIGUOUS, FOUND, STRIPS, None, SEARCH)
    assert [excerpt.passage.id for excerpt in knowledge.excerpts] == ["p1", "p2", "w1"]


def test_a_web_answer_of_which_nothing_is_kept_is_told() -> None:
    knowledge = recompose(refining(0.95), INCORRECT, FOUND, STRIPS, None, SEARCH)
    assert knowledge.excerpts == ()
    assert knowledge.notes == ("The web answered, but no sentence is kept at the cut-off 0.95: the best scores 0.80.",)


UNUSED = [outcome for outcome in WebOutcome if outcome is not WebOutcome.USED]


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


# --- web results off the subject ------------------------------------------------------------------------------------

ON = web_page("on", "Fares rose in May. A day ticket costs nine pounds.")
OFF = web_page("off", "Hats are back. Buy our hats!")
PAGES = (ON, OFF)
Given = tuple[float, float] | float | None
SAID = (
    *strips_of(ON, ("Fares rose in May.", 0.2), ("A day ticket costs nine pounds.", 0.9)),
    *strips_of(OFF, ("Hats are back.", 0.3), ("Buy our hats!", 0.9)),
)


def of_the_web(on: Given, off: Given, **fields: Any) -> Knowledge:
    """Two results with these signals, under a policy with lower 0.40 and the cut-off 0.25."""
    grades = [_graded(page.id, signals) for page, signals in zip(PAGES, (on, off), strict=True)]
    web = replace(searched(*PAGES, strips=SAID), **fields)
    strict = changing(policy("two-signal"), web_on_subject=True, refinement=Refinement(cutoff=0.25))
    return recompose(strict, INCORRECT, FOUND, STRIPS, None, web, tuple(grades))


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


def test_a_web_that_says_nothing_new_is_told_as_such() -> None:
    said = web_page("w1", "Adults pay nine euros.")
    search = searched(said, strips=strips_of(said, ("Adults pay nine euros.", 0.9)))
    knowledge = recompose(refining(0.49), AMBIGUOUS, FOUND, STRIPS, None, search)
    assert knowledge.external == () and knowledge.notes == ("The web answered, but it says only what is kept already.",)


def test_nothing_of_the_web_is_used_before_its_pages_are_approved() -> None:
    waiting = (WebPage(PAGES[0].id, "https://example.org", PageOutcome.PENDING),)
    assert of_the_web(0.9, 0.9).external and not of_the_web(0.9, 0.9, pages=waiting).external
