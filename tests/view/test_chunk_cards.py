"""The card of a chunk: the action of its own score, rows and code in it, and its number wherever it is shown."""

from __future__ import annotations

from dataclasses import replace

from crag_core import report
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.trace.reroute import key_of, quoted, reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.answer.answer_blocks import AnswerBlocks, sources_of
from crag_core.view.chunk_cards import chunk_cards, snippet_cards
from crag_core.view.evidence import side_by_side
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_line import picture
from crag_core.view.sentences import text_lines
from crag_core.view.story.story import tell
from tests.builders import grade, graded, passage, policy, searched, strips_of, trace, web_page
from tests.report.pages import page_of

NEWS = web_page("w1", "Fares rose in May.")


def run(name: str = "worst-chunk", **fields: object) -> Trace:
    found, grades = graded(0.9, 0.5, 0.1)
    return trace(policy(name), **{"passages": found, "grades": grades} | fields)


def actions(of: Trace) -> list[Action | None]:
    return [card.action for card in chunk_cards(view_run(of))]


def test_each_chunk_has_the_action_of_its_own_score_in_card_summary_and_report() -> None:
    made = [Action.CORRECT, Action.AMBIGUOUS, Action.INCORRECT]
    assert actions(run()) == made
    assert summarize(run()).chunk_actions == tuple(zip(("p1", "p2", "p3"), made, strict=True))
    heads = [" ".join(head.text.split()) for head in page_of(run()).soup.select("#passages summary .score")]
    assert heads == ["score 0.90 · CORRECT", "score 0.50 · AMBIGUOUS", "score 0.10 · INCORRECT"]


def test_a_pinned_chunk_counts_as_graded_1_and_a_dropped_one_has_none() -> None:
    edited = run(edits=Edits(dropped=("p1",), pinned=("p3",)))
    assert actions(edited) == [None, Action.AMBIGUOUS, Action.CORRECT]
    assert summarize(edited).chunk_actions == (("p2", Action.AMBIGUOUS), ("p3", Action.CORRECT))


def snippet(page: Passage) -> Trace:
    return run("paper", grades=graded(0.0, 0.0, 0.0)[1], web=searched(page))


def test_a_snippet_shows_the_score_that_its_provider_gave_it_and_has_no_action() -> None:
    scored = snippet(replace(NEWS, scores=(("provider", 0.83),), found_by=("web",)))
    (card,) = snippet_cards(view_run(scored))
    assert card.found == "the provider's own score 0.83 · found by web" and card.action is None
    assert "the provider's own score 0.83" in page_of(scored).soup.select_one("#web").text  # type: ignore[union-attr]
    again = Trace.from_json(scored.to_json())
    assert again.web_passages[0].score("provider") == 0.83


TABLE = "## Fares\n\n| Who | Fare |\n|---|---|\n| **Dogs** | 2.00 [a](https://x.example) |\n| Cats | `free` |"


def test_rows_of_a_table_have_their_heads_and_no_marks_wherever_they_are_shown() -> None:
    found = passage("p1", TABLE)
    pieces = [strip.text for strip in decompose(found)]
    run = trace(policy("paper"), passages=(found,), grades=(grade("p1", 0.9),),
                strips=strips_of(found, *zip(pieces, (0.1, 0.9, 0.8), strict=True)))  # fmt: skip
    view = view_run(run)
    rows = chunk_cards(view)[0].sentences.rows
    assert [row.lines for row in rows] == [
        (("Fares", True), ("Who · Fare", False)),
        (("Who: Dogs; Fare: 2.00 a", False),),
        (("Who: Cats; Fare: free", False),),
    ]
    assert [source.quoted for source in sources_of(view)] == ["Who: Dogs; Fare: 2.00 a Who: Cats; Fare: free"]
    (lines,) = (line.text for line in side_by_side([view.routed.knowledge])[:1])
    assert lines == "Who: Dogs; Fare: 2.00 a"
    told = quoted(run, view.routed.decision_path, view.routed.knowledge).text
    assert told.startswith("“Who: Dogs; Fare: 2.00 a” [1]")
    shown = text_lines("", TABLE, view.routed.knowledge.verdicts, "")
    assert not [piece for line in shown for piece in line.pieces if set("*`#") & set(piece.text) or "](" in piece.text]


def test_code_and_hostile_markup_stay_as_they_are() -> None:
    text = "<img src=x onerror=alert(1)> [x](javascript:alert(1))\n\n```\n# a = b**c\n```"
    run = trace(policy("paper"), passages=(passage("p1", text),), grades=(grade("p1", 0.9),))
    lines = [words for row in chunk_cards(view_run(run))[0].sentences.rows for words, _ in row.lines]
    assert lines == ["<img src=x onerror=alert(1)> [x](javascript:alert(1))", "# a = b**c"]


def test_before_anything_is_decided_no_chunk_is_called_unused() -> None:
    [card] = chunk_cards(view_run(trace(policy("paper"), passages=(passage("p1"),))))
    assert (card.use, card.chips) == ("", ())
    assert "not used" not in report.render(trace(policy("paper"), passages=(passage("p1"),)))


# --- one number ------------------------------------------------------------------------------------------------------

POLICY = policy("paper").with_thresholds(0.3, 0.7, 0.25)
TEN = web_page("w1", "Ten pounds on the web.")
FOUND, GRADES = graded(0.1, 0.2, 0.5)
FOUND = tuple(
    replace(one, text=f"Text of {one.id}.", document_id=name, ordinal=0)
    for one, name in zip(FOUND, ("c", "b", "a"), strict=True)
)


def cited() -> RunView:
    """AMBIGUOUS: of three chunks the second and the third are cited, and of the web one result."""
    scored = zip(FOUND, (0.1, 0.9, 0.8), strict=True)
    strips = tuple(strip for one, score in scored for strip in strips_of(one, (one.text, score)))
    web = searched(TEN, strips=strips_of(TEN, (TEN.text, 0.9)))
    run = trace(POLICY, passages=FOUND, grades=GRADES, web_grades=(grade("w1", 0.9),), strips=strips, web=web)
    return view_run(said(run, "From the second [1], the third [2] and the web [3]; nowhere [7]."))


def said(run: Trace, text: str) -> Trace:
    routed = reroute(run, POLICY)
    key = key_of(run, routed.decision, routed.knowledge)
    return replace(run, decision=routed.decision, answer=Answer(text, AnswerState.COMPLETE, "ollama/small", key))


def test_a_chunk_or_snippet_has_one_number_wherever_it_is_shown() -> None:
    view = cited()
    assert view.routed.answer is not None and view.excerpt_numbers == (2, 3, 4)
    shown = "From the second [2], the third [3] and the web [4]; nowhere [7]."
    blocks = AnswerBlocks(view, view.routed.answer)
    assert "".join(part for block in blocks.blocks for one in block.sentences for part, _, _ in one.parts) == shown
    links = {part: href for block in blocks.blocks for one in block.sentences for part, href, _ in one.parts if href}
    assert links == {"[2]": "#passage-2", "[3]": "#passage-3", "[4]": "#web-4"}
    assert [(one.number, one.is_cited) for one in blocks.sources] == [(2, True), (3, True), (4, True)]
    cards = (*chunk_cards(view), *snippet_cards(view))
    assert [(card.label.number, card.is_used) for card in cards] == [(1, False), (2, True), (3, True), (4, True)]
    drawn = picture(view)
    assert drawn is not None and [row.number for row in drawn.rows] == ["1", "2", "3", "4"]
    assert shown in str(tell(view))
    page = report.render(view.trace)
    assert 'id="web-4"' in page and page.count('href="#passage-3"') and "[7]" in page
