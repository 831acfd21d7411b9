"""A chunk, or a snippet of the web, has one number: in its row, in the picture of scores, where it is cited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crag_core import report
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.edits import Edits
from crag_core.trace.reroute import key_of, reroute
from crag_core.trace.trace import Trace
from crag_core.view.answer.answer_blocks import AnswerBlocks
from crag_core.view.chunk_cards import chunk_cards, snippet_cards
from crag_core.view.run_view import RunView, view_run
from crag_core.view.score_line import picture
from crag_core.view.story.story import tell
from tests.builders import grade, graded, policy, searched, strips_of, trace, web_page

POLICY = policy("paper").with_thresholds(0.3, 0.7, 0.25)
PAGE = web_page("w1", "Ten pounds on the web.")
FOUND, GRADES = graded(0.1, 0.2, 0.5)
FOUND = tuple(
    replace(one, text=f"Text of {one.id}.", document_id=name, ordinal=0)
    for one, name in zip(FOUND, ("c", "b", "a"), strict=True)
)


@pytest.fixture
def view() -> RunView:
    """AMBIGUOUS: of three chunks the second and the third are cited, and of the web one result."""
    scored = zip(FOUND, (0.1, 0.9, 0.8), strict=True)
    strips = tuple(strip for one, score in scored for strip in strips_of(one, (one.text, score)))
    web = replace(searched(PAGE, strips=strips_of(PAGE, (PAGE.text, 0.9))), grades=(grade("w1", 0.9),))
    run = trace(POLICY, passages=FOUND, grades=GRADES, strips=strips, web=web, edits=Edits(dropped=()))
    return view_run(said(run, "From the second [1], the third [2] and the web [3]; nowhere [7]."))


def said(run: Trace, text: str) -> Trace:
    routed = reroute(run, POLICY)
    key = key_of(run, routed.decision, routed.knowledge)
    return replace(run, decision=routed.decision, answer=Answer(text, AnswerState.COMPLETE, "ollama/small", key))


def test_it_is_the_same_wherever_it_is_shown(view: RunView) -> None:
    assert view.routed.answer is not None and view.excerpt_numbers == (2, 3, 4)
    shown = "From the second [2], the third [3] and the web [4]; nowhere [7]."
    blocks = AnswerBlocks(view, view.routed.answer, ())
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
