"""The page of compared configurations: every figure is the table's, and only what is certain is better or worse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.evaluators.policies import plain_rag
from crag_core.experiments.comparison.metrics import MEASURES, Group, Unit
from crag_core.experiments.comparison.outcome import Evidence, Outcome
from crag_core.experiments.comparison.table import Cell, Table
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.report.comparison import (
    BETTER,
    DIFFERENT,
    UNCLEAR,
    VERDICTS,
    WORSE,
    Comparison,
    describe_found,
    describe_gain,
    described,
    render_comparison,
    tone_of,
)
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from tests.builders import policy, trace
from tests.report.pages import Page, said
from tests.report.sound_pages import assert_sound
from tests.report.test_report_hostile import DISGUISED, EVIL, SHOWN

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected
KINDS = (CORRECT, AMBIGUOUS, CORRECT, INCORRECT)
ASKED = tuple(
    LabelledQuestion(f"Question {n}?", KINDS[n % 4], ("nine",) if KINDS[n % 4] is CORRECT else ()) for n in range(80)
)
FOUND = Evidence((2, 0), 100, 50)
COMMAND = "python -m crag_core compare --set ferry --with plain --with careful"
WHAT, MEASURED, ROUTES = "#part-1", "#part-2", "#part-3"

Made = Callable[[int, LabelledQuestion], Outcome]


def outcome(n: int, asked: LabelledQuestion, action: Action = Action.CORRECT, **fields: Any) -> Outcome:
    known: dict[str, Any] = {"before": FOUND, "after": FOUND}
    known |= {"is_answered": True, "sentences": 1, "grounded": 1, "seconds": 1.0 + n / 1000, "usage": Usage(1)}
    if asked.answers:
        known |= {"contains": 1.0}
    return Outcome(asked.key, f"run-{n}", action, **known | fields)


def careful(n: int, asked: LabelledQuestion) -> Outcome:
    """Answers what can be answered, except for every fifth of it, with less text, three calls and two seconds."""
    if not asked.expected.is_answerable or n % 10 == 0:
        kept = None if n % 10 == 0 else Evidence((), 0, 0)
        silent: dict[str, Any] = {"is_answered": False, "sentences": 0, "grounded": 0, "after": kept}
        silent |= {"contains": 0.0} if asked.answers else {}
        return outcome(n, asked, Action.INCORRECT, seconds=2.0, usage=Usage(3), **silent)
    return outcome(n, asked, after=Evidence((2,), 50, 5), seconds=2.0 + n / 1000, usage=Usage(3))


def results(made: Made, asked: Sequence[LabelledQuestion] = ASKED) -> dict[str, Outcome]:
    return {one.key: made(n, one) for n, one in enumerate(asked)}


def table_of(*names: str, asked: Sequence[LabelledQuestion] = ASKED) -> Table:
    made: Mapping[str, Made] = {"plain": outcome, "careful": careful}
    return Table(asked, {name: results(made[name], asked) for name in names})


TWO = table_of("plain", "careful")
LINES = {"plain": "policy Plain RAG; nothing is graded", "careful": "policy Paper"}


def page_of(table: Table = TWO, **fields: Any) -> Page:
    known: dict[str, Any] = {"labelled": "ferry", "created": "2026-11-22T08:04:18+00:00"}
    return Page(render_comparison(table, Comparison(**known | {"configurations": LINES, "command": COMMAND} | fields)))


def test_the_head_says_what_was_compared_on_how_many_questions() -> None:
    page = page_of()
    told = page.told(WHAT)
    assert page.told("h1") == "ferry" and page.told("head title") == "Comparison: ferry"
    assert "22 November 2026, 08:04 UTC" in page.told("header")
    assert "2 configurations on 80 questions of the set “ferry”" in told and "left out" not in told
    assert "40 The documents answer it 20 They are about it, but do not answer it 20 They are about something" in told
    assert page.all_told(f"{WHAT} .facts div") == ["plain policy Plain RAG; nothing is graded", "careful policy Paper"]
    assert page_of(configurations={}).all_told(f"{WHAT} .facts dd") == ["not described"] * 2
    assert said(page.part("pre")) == COMMAND and not page_of(command="").soup.select("pre")


def test_questions_that_are_left_out_are_counted() -> None:
    unfinished = results(careful)
    del unfinished[ASKED[0].key]
    unfinished[ASKED[1].key] = replace(unfinished[ASKED[1].key], action=None, failed="retrieve: away")
    told = page_of(Table(ASKED, {"plain": results(outcome), "careful": unfinished})).told(WHAT)
    assert "on 78 questions" in told and "2 questions are left out everywhere on this page" in told


@pytest.mark.parametrize(
    ("better", "low", "high", "tone"),
    [
        (1, 0.01, 0.2, BETTER),
        (1, -0.2, -0.01, WORSE),
        (-1, 0.01, 0.2, WORSE),
        (-1, -0.2, -0.01, BETTER),
        (0, 0.01, 0.2, DIFFERENT),
        *((better, low, high, UNCLEAR) for better in (1, 0, -1) for low, high in ((-0.1, 0.1), (0.0, 0.3), (-0.3, 0))),
    ],
)
def test_only_an_interval_that_leaves_0_out_has_a_tone(better: int, low: float, high: float, tone: str) -> None:
    measure = replace(MEASURES[0], better=better)
    gain = Estimate((low + high) / 2, low, high)
    assert tone_of(measure, Cell(Estimate(0.5, 0.4, 0.6), 10, gain)) == tone
    assert tone_of(measure, Cell(Estimate(0.5, 0.4, 0.6), 10)) == UNCLEAR


def test_gains_are_told_with_what_is_certain_and_an_end_that_shows_as_0_is_told_from_0() -> None:
    def told(value: float, low: float, high: float, unit: Unit, **more: Any) -> str:
        return describe_gain(Cell(None, 9, Estimate(value, low, high), **more), unit)

    assert told(0.01, 0.0001, 0.02, Unit.SCORE) == "+0.01 (just above 0 to +0.02)"
    assert told(-0.01, -0.02, -0.0001, Unit.SHARE) == "-1.0 (-2.0 to just below 0)"
    assert told(0.01, 0.0, 0.02, Unit.SCORE) == "+0.01 (0.00 to +0.02)"
    assert told(0.0, -0.34, 0.34, Unit.SHARE, is_same=True) == "no difference (-34.0 to +34.0)"
    assert describe_gain(Cell(None, 9), Unit.SHARE) == ""
    assert describe_found(Estimate(-0.0001, -0.0002, 0.01), Unit.SCORE)[0] == "0.00"


def test_every_measure_is_there_with_its_definition_value_interval_gain_and_what_is_certain_of_it() -> None:
    page = page_of()
    heads = page.all_told(f"{MEASURED} [scope=rowgroup]")
    assert heads == [group for group in Group if any(row.measure.group is group for row in TWO.rows)]
    assert page.rows(f"{MEASURED} thead tr") == ["Measure | plain | careful"]
    rows = page.soup.select(f"{MEASURED} tbody tr:has([scope=row])")
    tones = set()
    for tag, row in zip(rows, TWO.rows, strict=True):
        measure = row.measure
        head, *cells = tag.find_all(["th", "td"])
        assert said(head).startswith(measure.title) and measure.description in said(head)
        is_alike = row.cells[0].counted == row.cells[1].counted
        assert (f". {row.cells[0].counted} questions" in said(head)) is is_alike
        for found, cell in zip(cells, row.cells, strict=True):
            among = [] if is_alike else [f"{cell.counted} questions"]
            value, interval = describe_found(cell.found, measure.unit)
            gain = [describe_gain(cell, measure.unit, VERDICTS[tone_of(measure, cell)])] if cell.gain else []
            fine = "; ".join(filter(None, [interval, *among]))
            assert said(found) == " ".join(filter(None, [value, fine, *gain]))
            assert [tag["class"][1] for tag in found.select(".gained")] == [tone_of(measure, cell)] * len(gain)
            tones |= {tone_of(measure, cell)} if gain else set()
    assert tones == {BETTER, WORSE, DIFFERENT, UNCLEAR}


def test_routes_are_those_of_the_table() -> None:
    wanted = []
    for name in TWO.names:
        wanted.append([name])
        for counts_of, counts in TWO.confusion(name).items():
            marked = [f"✓ {n}" if action in counts_of.actions else str(n) for action, n in counts.items()]
            wanted.append([str(sum(counts.values())), *marked])
    rows = page_of().soup.select(f"{ROUTES} tbody tr")
    assert [[said(cell) for cell in row.select("td") or row.select("th")] for row in rows] == wanted


def test_a_configuration_is_described_in_one_line() -> None:
    made = trace(policy("paper")).settings
    told = described(replace(made, writer="ollama/llama", top_k=1), "SearXNG")
    assert told == (
        "policy Paper; evaluator By hand; lower 0.40, upper 0.60, sentence cut-off 0.30; at most 5 sentences; "
        "answers written by ollama/llama; web searched through SearXNG; 1 chunk a question"
    )
    judged = described(replace(made, writer="ollama/llama", top_k=1, support="ollama/judge"), "SearXNG")
    assert judged == told.replace("ollama/llama;", "ollama/llama; sentences of answers judged by ollama/judge;")
    plain = described(replace(made, policy=plain_rag(), writer=EXTRACTIVE, top_k=6))
    assert plain == (
        "policy Plain RAG; nothing is graded; answers are quotations, without a language model; web search off; "
        "6 chunks a question"
    )


@pytest.mark.parametrize("names", [("plain", "careful"), ("plain",), ()])
def test_no_question_at_all_is_no_crash_and_no_claim(names: tuple[str, ...]) -> None:
    page = page_of(table_of(*names, asked=()), labelled=" ", created="", command="")
    assert_sound(page)
    assert "Nothing was measured." in page.told(MEASURED) and page.told("h1") == "(no name)"
    assert not re.search(r"\d%", page.told("main").replace("95%", ""))


def evil_page(text: str = EVIL) -> Page:
    """Everything that comes from outside is `text`."""
    asked = [replace(one, question=f"{text} {one.question}", note=text, document=text) for one in ASKED]
    made = {text: results(outcome, asked), f"{text} 2": results(careful, asked)}
    lines = dict.fromkeys(made, text)
    return page_of(Table(asked, made), labelled=text, created=text, command=text, configurations=lines)


def test_hostile_text_stays_text() -> None:
    page = evil_page()
    assert_sound(page)
    for place in ("h1", "head title", "header .eyebrow", WHAT, f"{WHAT} .facts", MEASURED, ROUTES, "pre"):
        assert SHOWN in page.told(place), place
    assert page.part("h1")["dir"] == "auto" and page.part("h1")["lang"] == ""
    assert_sound(evil_page(DISGUISED))


def test_the_page_is_sound_tells_no_question_and_is_always_the_same() -> None:
    assert_sound(page_of())
    assert "Question 1" not in page_of().html and "run-1" not in page_of().html
    assert page_of().html == page_of(table_of("plain", "careful")).html
