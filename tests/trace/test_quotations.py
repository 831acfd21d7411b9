"""Answers without a model: quotations, citations, and plain words when there is nothing to answer from."""

from dataclasses import replace

import pytest

from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.trace.grounding.quoted_answer import StreamedReply, citations, quote, renumbered, why_no_evidence
from tests.builders import passage, strips_of

FARES = passage("p1", "Adults pay nine euros. Dogs pay half. Cats pay nothing.")
TIMES = passage("p2", "The ferry leaves at eight. It is white.")
STRIPS = (
    *strips_of(FARES, ("Adults pay nine euros.", 0.5), ("Dogs pay half.", 0.9), ("Cats pay nothing.", 0.2)),
    *strips_of(TIMES, ("The ferry leaves at eight.", 0.7), ("It is white.", None)),
)


def known(*excerpts: Excerpt) -> Knowledge:
    return Knowledge(excerpts, (), ())


BOTH = known(Excerpt(FARES, "…", ("p1#0", "p1#1", "p1#2")), Excerpt(TIMES, "…", ("p2#0", "p2#1")))


def test_the_best_sentence_is_quoted_alone_and_others_only_where_they_score_close_to_it() -> None:
    assert quote(BOTH, STRIPS) == "“Dogs pay half.” [1]"
    near = tuple(replace(one, score=0.86) if one.id == "p2#0" else one for one in STRIPS)
    assert quote(BOTH, near) == "“Dogs pay half.” [1]\n\n“The ferry leaves at eight.” [2]"


def test_a_row_of_a_table_is_quoted_with_its_headers() -> None:
    table = passage("t", "Fares:\n\n| Who | Fare |\n|---|---|\n| Adults | 9 |\n| Dogs | half |\n\nCats | birds.")
    strips = strips_of(table, ("| Adults | 9 |", 0.1), ("| Dogs | half |", 0.9), ("Cats | birds.", 0.2))
    assert quote(known(Excerpt(table, table.text, ("t#1",))), strips) == "“Who: Dogs; Fare: half” [1]"
    assert quote(known(Excerpt(table, table.text, ("t#2",))), strips) == "“Cats | birds.” [1]"


def test_the_three_nearest_sentences_are_quoted_with_their_excerpts_number() -> None:
    assert quote(BOTH, STRIPS, nearest=True) == (
        "“Dogs pay half.” [1]\n\n“The ferry leaves at eight.” [2]\n\n“Adults pay nine euros.” [1]"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Nine [1]. Ten [2].", "Nine [5]. Ten [2]."),
        ("Both [1, 2]; all [2;3].", "Both [5, 2]; all [2;11]."),
        ("Absent [4], [0] and [12].", "Absent [4], [0] and [12]."),
        ("In `a[1]` and\n```\nb[1]\n```\n[1]", "In `a[1]` and\n```\nb[1]\n```\n[5]"),
        ("", ""),
    ],
)
def test_an_answer_is_shown_with_the_numbers_of_its_chunks(text: str, shown: str) -> None:
    assert renumbered(text, (5, 2, 11)) == shown
    assert renumbered(text, ()) == text


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Nine euros [1].", (1,)),
        ("Nine [2] and half [1], nine again [2].", (2, 1)),
        ("Both [1, 2].", (1, 2)),
        ("All [1,2; 3].", (1, 2, 3)),
        ("Side by side [1][3].", (1, 3)),
        ("Not there [99].", ()),
        ("Nor this [0].", ()),
        ("Half of it [1, 99, 0].", (1,)),
        ("[4] is one too many.", ()),
        ("No number [a], [], [-1] or [1.5].", ()),
        ("A link [text](1) and a year [2025].", ()),
        ("", ()),
    ],
)
def test_citations_that_exist_are_found(text: str, cited: tuple[int, ...]) -> None:
    assert citations(text, 3) == cited


def decided(action: Action) -> Decision:
    return Decision(action, "", None, "best chunk 0.10 < lower 0.30", ())


@pytest.mark.parametrize(
    ("action", "web", "looked_at", "said"),
    [
        (Action.INCORRECT, WebOutcome.OFF, 3, "the 3 retrieved chunks were judged irrelevant, and web search is off."),
        (Action.INCORRECT, None, 0, "best chunk 0.10 < lower 0.30, and the web was not searched."),
        (
            Action.AMBIGUOUS,
            WebOutcome.EMPTY,
            3,
            "no sentence of the retrieved chunks was kept, and the web search found nothing.",
        ),
    ],
)
def test_why_there_is_no_answer(action: Action, web: WebOutcome | None, looked_at: int, said: str) -> None:
    search = WebSearch(web, "ferry", "you") if web else None
    why = why_no_evidence(decided(action), known(), search, looked_at)
    assert why == f"This cannot be answered from the evidence: {said}"


def test_a_heading_alone_is_quoted_only_where_there_is_nothing_else() -> None:
    page = passage("p", "## Assistance dogs\n\nThey travel free.")
    strips = strips_of(page, ("## Assistance dogs", 0.9), ("They travel free.", 0.4))
    both = Excerpt(page, page.text, ("p#0", "p#1"))
    assert quote(known(both), strips) == "“They travel free.” [1]"
    assert quote(known(Excerpt(page, "", ("p#0",))), strips) == "“Assistance dogs” [1]"


# --- what may be shown of a reply while it comes --------------------------------------------------------------------

SENTENCE = "The dues are 14 pounds [1]."
REPLIES = {
    "as it is": (SENTENCE, SENTENCE),
    "a thought before": (f"<think>14? CANNOT ANSWER</think>\n\n{SENTENCE}", SENTENCE),
    "a long tag": (f"<THINKING>Well.</THINKING>{SENTENCE}", SENTENCE),
    "a thought in the middle": ("The dues <think>how much?</think>are 14.", "The dues are 14."),
    "a thought that is not closed": (f"{SENTENCE} <think>But then again", SENTENCE),
    "nothing but a thought": ("<think>It could be", ""),
    "signs that are no tag": ("9 < 14 and <thin ice> is </p> said", "9 < 14 and <thin ice> is </p> said"),
    "another script": ("船は九時に出ます [1]。", "船は九時に出ます [1]。"),
    "begins alike": ("Cannot say more than this: 14.", "Cannot say more than this: 14."),
    "a refusal": ("CANNOT ANSWER", ""),
    "a decorated refusal": ("**Cannot answer**.", ""),
    "a refusal in other words": ("The text does not say. It only says when.", ""),
    "what begins like one": ("The text does not say so. It says 14 [1].", "The text does not say so. It says 14 [1]."),
    "a refusal after a thought": ("<think>Hm.</think>\nCANNOT ANSWER", ""),
}


@pytest.mark.parametrize(("reply", "shown"), REPLIES.values(), ids=REPLIES)
def test_no_thought_and_no_refusal_is_seen_of_a_stream(reply: str, shown: str) -> None:
    for size in (1, 2, 3, 7, 100):
        spoken, seen = StreamedReply(), ""
        for start in range(0, len(reply), size):
            seen += spoken.add(reply[start : start + size])
            assert shown.startswith(seen), f"what was shown once stays, in pieces of {size}"
        assert seen + spoken.rest() == shown, size
