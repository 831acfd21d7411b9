"""The tables of the Compare page as HTML: the sentences that each answer was given, and the measures of a set."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.view.evidence import Line
from tests.builders import passage
from ui.compare.measures_table import table_html
from ui.compare.side_by_side import lines_html

HOSTILE = "<img src=x onerror=alert(1)> **bold** [link](https://evil.example) :red[boo] </td></table><script>"
QUESTIONS = tuple(LabelledQuestion(f"Question {n}?", Expected.CORRECT) for n in range(40))


def lines(text: str, source: str = "a.txt", name: str = "A", **fields: Any) -> str:
    return lines_html([name, "B"], [Line(passage("p1", text, source=source, **fields), 0, text, (True, False))], False)


def test_the_list_of_sentences_escapes_every_text() -> None:
    for made in (lines(HOSTILE), lines("x", source=HOSTILE), lines("x", name=f'"{HOSTILE}')):
        assert "<img" not in made and "<script" not in made and made.count("<table>") == made.count("</table>") == 1
    assert "A · &quot;&lt;img" in lines("x", name='"<img>')
    assert "\u202e" not in lines("x\u202ey") and "\x00" not in lines("x\x00y")


def test_a_passage_tells_its_page_and_whether_it_is_from_the_web() -> None:
    assert "a.txt, page 7 " in lines("x", page=7)
    assert "a.txt · from the web " in lines("x", url="https://example.org")
    assert "<span>A 1 · B 0 of 1 sentence</span>" in lines("x")


def test_passages_of_which_another_than_the_first_keeps_something_are_open() -> None:
    one, other = passage("p1"), passage("p2")
    made = lines_html(["A", "B"], [Line(one, 0, "x", (True, False)), Line(other, 0, "y", (False, True))], False)
    assert re.findall("<details( open)?>", made) == ["", " open"]


def test_only_what_differs_leaves_out_the_rest() -> None:
    same, other = Line(passage("p1"), 0, "same", (True, True)), Line(passage("p2"), 0, "other", (True, False))
    assert "same" not in lines_html(["A", "B"], [same, other], True)
    assert 'class="differs"' not in lines_html(["A", "B"], [same], False)


def test_names_in_the_table_are_shown_as_text() -> None:
    outcome = Outcome("", "r", Action.CORRECT, is_answered=True)
    results = {name: {one.key: replace(outcome, key=one.key) for one in QUESTIONS} for name in (HOSTILE, "B")}
    made = table_html(Table(QUESTIONS, results))
    assert "<img" not in made and "<script" not in made and "&lt;img" in made
    assert made.count("<table>") == made.count("</table>") == 1


def test_a_gain_that_is_certain_says_which_way_it_goes() -> None:
    actions = {"good": Action.CORRECT, "bad": Action.INCORRECT}
    results = {
        name: {one.key: Outcome(one.key, "r", action, seconds=1.0) for one in QUESTIONS}
        for name, action in actions.items()
    }
    worse = table_html(Table(QUESTIONS, results))
    better = table_html(Table(QUESTIONS, dict(reversed(results.items()))))
    assert '<small class="worse">-100.0</small>' in worse and '<small class="better">+100.0</small>' in better
    assert 'class="better"' not in worse
    alike = {name: results["good"] for name in ("A", "B")}
    assert "<small class=" not in table_html(Table(QUESTIONS, alike))
