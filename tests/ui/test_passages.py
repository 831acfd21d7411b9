"""The cards of passages: which are open, what they say of a passage, each sentence, the difference, and the buttons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from streamlit.testing.v1 import AppTest

from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.decision.policy import Policy
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from tests.builders import graded_by_its_own, passage, policy, searched, strips_of, trace, web_page
from tests.ui.drawn import SENTENCES, a_run, drawn, parts, said
from ui.run import passages
from ui.run.passages import CardActions, draw_passages, draw_web


def page(
    run: Trace,
    policy: Policy,
    then: Policy | None = None,
    taken: Trace | None = None,
    acts: Any = None,
    unfolded: bool = False,
) -> None:
    actions = None
    if acts is not None:
        told = {name: (lambda id_, name=name: acts.append((name, id_))) for name in ("drop", "pin", "place")}
        actions = CardActions(
            told["drop"], told["pin"], told["place"], lambda passage: acts.append(("feedback", passage.id))
        )
    view = replace(view_run(run, policy), was=reroute(taken or run, then) if then else None)
    head = passages._draw_head
    opened = (lambda card, key, is_open: head(card, key, is_open=True)) if unfolded else head
    with patch.object(passages, "_draw_head", opened):
        draw_passages(view, actions)
        draw_web(view, actions)


def cards(run: tuple[Trace, Policy], **arguments: Any) -> AppTest:
    return drawn(page, run=run[0], policy=run[1], **arguments)


def rows(app: AppTest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parts(app, "sentences")[0]["rows"]
    return found


def words(row: dict[str, Any]) -> str:
    return " ".join(text for text, _ in row["lines"])


# Open and folded


def open_now(app: AppTest) -> list[int]:
    heads = parts(app, "passage_head")
    assert [head["rank"] for head in heads] == list(range(1, len(heads) + 1))
    opened = [head["rank"] for head in heads if head["open"]]
    assert len(parts(app, "sentences")) == len(opened)
    return opened


def test_only_the_deciding_chunk_is_open_and_the_others_one_line_each() -> None:
    run, chosen = a_run(20, "paper")
    better = tuple(replace(one, score=0.9 if one.passage_id == "p7" else 0.5) for one in run.grades or ())
    assert open_now(cards((graded_by_its_own(run, better), chosen))) == [7]
    assert open_now(cards(a_run(20))) == [1], "the first of equals"


def test_thresholds_change_neither_what_is_open_nor_who_is_who() -> None:
    run, chosen = a_run(8)

    def seen(lower: float, upper: float, cutoff: float) -> list[str]:
        app = cards((run, chosen.with_thresholds(lower, upper, cutoff)), then=chosen, acts=[])
        return [element.proto.id for element in app.get("bidi_component")] + [button.key for button in app.button]

    assert seen(0.0, 0.1, 0.0) == seen(0.4, 0.6, 0.3) == seen(0.9, 1.0, 1.0)


def test_a_line_says_scores_use_and_what_decides() -> None:
    found = (passage("p1", page=3), passage("p2"), passage("p3"))
    grades = (
        Grade("p1", 0.8, parts=((ANSWERING, 0.7), (TOPICAL, 0.9))),
        Grade("p2", 0.4, parts=((ANSWERING, 0.3), (TOPICAL, 0.5))),
        Grade("p3", None, cause="the reply holds no score"),
    )
    run = trace(policy("two-signal"), passages=found, grades=grades)
    one, two, three = parts(cards((run, policy("two-signal"))), "passage_head")
    assert (one["title"], one["scores"]) == ("p1.txt, page 3", [["answer", 0.7, "0.70"], ["subject", 0.9, "0.90"]])
    assert one["chips"] == [["decides", "decides"]] and two["chips"] == []
    compared = parts(cards((run, policy("paper"))), "passage_head")
    assert compared[0]["scores"] == [["score", 0.8, "0.80"]], "the number that this policy compares"
    assert three["scores"] == [] and three["ungraded"] == ["not graded"], "never a made-up number"


# The card


def test_sentences_stand_in_their_place_with_score_and_cutoff() -> None:
    run, chosen = a_run(1, "paper")
    app = cards((run, chosen.with_thresholds(0.3, 0.4, 0.35)))
    (box,) = parts(app, "sentences")
    assert (box["cutoff"], box["legend"]) == (0.35, "cut-off 0.35")
    assert [words(row) for row in box["rows"]] == list(SENTENCES)
    assert [row["kept"] for row in box["rows"]] == [True, True, False, False]
    assert [row["score_text"] for row in box["rows"]] == ["0.90", "0.50", "0.20", "0.10"]
    assert [row["starts"] for row in box["rows"]] == [False, False, True, False], "the paragraphs of the chunk"
    assert box["rows"][2]["spoken"] == "struck out, score 0.20 ≤ cut-off 0.35"
    assert parts(app, "passage_head")[0]["use"] == "used 2 of 4 sentences"


def test_difference_to_the_run_as_taken_is_marked() -> None:
    run, chosen = a_run(2, "paper")
    then = chosen.with_thresholds(0.3, 0.4, 0.35)
    stricter = cards((run, then.with_thresholds(0.3, 0.4, 0.6)), then=then)
    assert [row["change"] for row in rows(stricter)] == ["", "gone", "", ""]
    assert parts(stricter, "sentences")[0]["note"] == "− gone"
    looser = cards((run, then.with_thresholds(0.3, 0.4, 0.15)), then=then)
    assert [row["change"] for row in rows(looser)] == ["", "", "new", ""]
    assert "new since the run was taken" in rows(looser)[2]["spoken"]
    away = cards((run, then.with_thresholds(0.8, 0.9)), then=then)
    assert parts(away, "passage_head")[0]["chips"] == [["decides", "decides"], ["gone", "gone"]]
    same = cards((run, then), then=then)
    assert {row["change"] for row in rows(same)} == {""} and parts(same, "sentences")[0]["note"] == ""


def test_grade_stands_with_its_reason_or_with_why_there_is_none() -> None:
    run, chosen = a_run(2)
    unread = Grade("p2", None, cause="the reply holds no score", raw="Maybe *so*.")
    run = graded_by_its_own(run, (*(run.grades or ())[:1], unread))
    app = cards((run, chosen), unfolded=True)
    assert "**0.50** score · it names the dues" in said(app)
    assert "Not graded: the reply holds no score" in said(app)
    assert [str(code.value) for code in app.code] == ["Maybe *so*."], "the raw reply, as it came"


# What if


def test_buttons_tell_the_passage() -> None:
    acts: list[tuple[str, str]] = []
    app = cards(a_run(2), acts=acts, unfolded=True)
    assert [button.label for button in app.button] == ["Drop", "Pin", "Show in the document"] * 2
    assert acts == [("feedback", "p1"), ("feedback", "p2")]
    for at, act in enumerate(("drop", "pin", "place"), start=3):
        acts.clear()
        app.button[at].click().run()
        assert acts[0] == (act, "p2")


def test_dropped_passage_stays_as_a_line_with_the_way_back() -> None:
    acts: list[tuple[str, str]] = []
    run, chosen = a_run(3)
    app = cards((replace(run, edits=Edits(dropped=("p2",))), chosen), acts=acts)
    assert [head["rank"] for head in parts(app, "passage_head")] == [1, 3], "nobody gets another number"
    assert "2 · ~~file-2.md~~ · **dropped by you**" in said(app)
    acts.clear()
    next(button for button in app.button if button.label == "Put back").click().run()
    assert acts[0] == ("drop", "p2")


def test_pinned_passage_says_so_and_keeps_its_grade() -> None:
    run, chosen = a_run(2)
    app = cards((replace(run, edits=Edits(pinned=("p1",))), chosen), acts=[], unfolded=True)
    head = parts(app, "passage_head")[0]
    assert ["pinned", "pinned by you"] in head["chips"]
    assert head["scores"] == [["score", 0.5, "0.50"]], "what was graded stays a fact"
    assert "Pinned by you: counts as 1.00, graded 0.50." in said(app)
    assert "CORRECT as pinned" in said(app) and said(app).count("by its own score") == 1
    assert {row["score_text"].rstrip("†") for row in rows(app)} == {"1.00"}
    assert [button.label for button in app.button if "in" in button.label and "Show" not in button.label] == [
        "Unpin",
        "Pin",
    ]


def test_web_results_are_cards_with_a_link_and_no_document_to_show() -> None:
    found = web_page("dues", "A yacht pays 14 pounds.")
    web = searched(found, strips=strips_of(found, (found.text, 0.9)))
    run, chosen = a_run(1, "paper", web=web, grades=(Grade("p1", 0.1),))
    app = cards((run, chosen.with_thresholds(0.4, 0.6, 0.35)), acts=[], unfolded=True)
    heads = parts(app, "passage_head")
    assert [head["anchor"] for head in heads] == ["passage-1", "web-2"]
    assert heads[1]["use"] == "used whole"
    assert "](https://dues.example/)" in said(app)
    assert sum(button.label == "Show in the document" for button in app.button) == 1
