"""The tables of the Compare page: the sentences that each answer was given, and the measures of a set."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.types.decisions import Action
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.report.comparison import measures
from crag_core.view.evidence import Line
from tests.builders import passage
from ui.compare.measures_table import table_rows
from ui.compare.side_by_side import sentence_rows
from ui.shell.text import plain

HOSTILE = "<img src=x onerror=alert(1)> **bold** [link](https://evil.example) :red[boo]"
QUESTIONS = tuple(LabelledQuestion(f"Question {n}?", Expected.CORRECT) for n in range(40))


def test_sentences_stand_below_their_chunk_with_the_letters_of_those_that_were_given_them() -> None:
    one, other = passage("p1", page=7, source=HOSTILE), passage("p2", url="https://example.org", source="web")
    lines = [Line(one, 0, HOSTILE, (True, True)), Line(one, 1, "y", (True, False)), Line(other, 0, "z", (False, True))]
    rows = sentence_rows(lines, False)
    assert [row["A"] + row["B"] for row in rows] == [
        "",
        ":green[**A**]:green[**B**]",
        ":green[**A**]–",
        "",
        "–:green[**B**]",
    ]
    assert rows[0]["Sentence"] == f"**{plain(f'{HOSTILE}, page 7')}**" and rows[1]["Sentence"] == plain(HOSTILE)
    assert rows[3]["Sentence"] == "**web** · from the web"
    assert [row["Sentence"] for row in sentence_rows(lines, True)][1:] == ["y", "**web** · from the web", "z"]


def test_gains_have_the_colour_of_what_they_are_and_names_are_text() -> None:
    actions = {"good": Action.CORRECT, HOSTILE: Action.INCORRECT}
    results = {
        name: {one.key: Outcome(one.key, "r", action, seconds=1.0) for one in QUESTIONS}
        for name, action in actions.items()
    }
    rows = table_rows(measures(Table(QUESTIONS, results)), list(results))
    assert list(rows[0]) == ["Measure", "good", plain(HOSTILE)] and rows[0]["Measure"] == "**Routing**"
    assert ":red[" in rows[1][plain(HOSTILE)] and ":gray[" in rows[1]["good"]
    turned = table_rows(measures(Table(QUESTIONS, dict(reversed(results.items())))), list(results)[::-1])
    assert ":green[" in turned[1]["good"]
    alike = {name: {key: replace(one) for key, one in results["good"].items()} for name in ("A", "B")}
    assert ":red[" not in str(table_rows(measures(Table(QUESTIONS, alike)), ["A", "B"]))
