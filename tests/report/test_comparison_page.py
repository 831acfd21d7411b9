"""The page of compared configurations: every figure is the table's, and only what is certain is better or worse."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from axe_playwright_python.sync_playwright import Axe

from crag_core.__main__ import main
from crag_core.app import workbench
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Usage
from crag_core.evaluators.policies import plain_rag
from crag_core.experiments.comparison.metrics import MEASURES, Group, Measure, Unit
from crag_core.experiments.comparison.outcome import Evidence, Outcome
from crag_core.experiments.comparison.table import Cell, Row, Table, figure
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.report.comparison.page import Comparison, described, render_comparison
from crag_core.report.comparison.view import (
    BETTER,
    DIFFERENT,
    UNCLEAR,
    WORSE,
    describe_found,
    describe_gain,
    title_of,
    tone_of,
)
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from tests.browser.conftest import open_browser
from tests.builders import policy, trace
from tests.matrix import mostly
from tests.report.pages import Page, said
from tests.report.test_report_hostile import DISGUISED, EVIL, SHOWN
from tests.report.test_thresholds_report import assert_sound
from tests.word_embedder import WordEmbedder

CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected
KINDS = (CORRECT, AMBIGUOUS, CORRECT, INCORRECT)
ASKED = tuple(
    LabelledQuestion(f"Question {n}?", KINDS[n % 4], ("nine",) if KINDS[n % 4] is CORRECT else ()) for n in range(80)
)
FOUND = Evidence((2, 0), 100, 50)
CREATED = "2026-11-22T08:04:18+00:00"
COMMAND = "python -m crag_core compare --set ferry --with plain --with careful"

Made = Callable[[int, LabelledQuestion], Outcome]


def outcome(n: int, asked: LabelledQuestion, action: Action = Action.CORRECT, **fields: Any) -> Outcome:
    known: dict[str, Any] = {"label": action.capitalize(), "before": FOUND, "after": FOUND, "known": (2,)}
    known |= {"is_answered": True, "sentences": 1, "grounded": 1, "seconds": 1.0 + n / 1000, "usage": Usage(1)}
    if asked.answers:
        known |= {"contains": 1.0, "exact": 0.0, "f1": 0.25}
    return Outcome(asked.key, f"run-{n}", action, **known | fields)


def careful(n: int, asked: LabelledQuestion) -> Outcome:
    """Answers what can be answered, except for every fifth of it, with less text, three calls and two seconds."""
    if not asked.expected.is_answerable or n % 10 == 0:
        kept = None if n % 10 == 0 else Evidence((), 0, 0)
        silent: dict[str, Any] = {"is_answered": False, "sentences": 0, "grounded": 0, "after": kept}
        silent |= {"contains": 0.0, "f1": 0.0} if asked.answers else {}
        return outcome(n, asked, Action.INCORRECT, seconds=2.0, usage=Usage(3), **silent)
    return outcome(n, asked, after=Evidence((2,), 50, 5), seconds=2.0 + n / 1000, usage=Usage(3))


def near(n: int, asked: LabelledQuestion) -> Outcome:
    """Differs in an answer or two."""
    if n == 2:
        return outcome(n, asked, Action.AMBIGUOUS, is_answered=False, contains=0.0, seconds=1.04, score_before=0.2)
    return outcome(n, asked)


def results(made: Made, asked: Sequence[LabelledQuestion] = ASKED) -> dict[str, Outcome]:
    return {one.key: made(n, one) for n, one in enumerate(asked)}


def table_of(*names: str, asked: Sequence[LabelledQuestion] = ASKED, **more: Made) -> Table:
    made: Mapping[str, Made] = {"plain": outcome, "careful": careful, "near": near} | more
    return Table(asked, {name: results(made[name], asked) for name in names})


THREE = table_of("plain", "careful", "near")
LINES = {"plain": "policy Plain RAG; nothing is graded", "careful": "policy Paper", "near": "policy Two signals"}


def page_of(table: Table = THREE, **fields: Any) -> Page:
    known: dict[str, Any] = {"labelled": "ferry", "created": CREATED, "configurations": LINES, "command": COMMAND}
    return Page(render_comparison(table, Comparison(**known | fields)))


def row_of(name: str, table: Table = THREE) -> Row:
    row = table.row(name)
    assert row is not None
    return row


def findings(page: Page, place: int) -> dict[str, str]:
    """By what each is about, of one configuration; the first one compared has place 0."""
    told = [said(item) for item in page.soup.select("#findings ul")[place].select("li")]
    return {one.partition(". ")[2].partition(":")[0]: one for one in told}


UNASKED_FOR = "Questions that the documents do not answer, and that got an answer without a known one"
SILENT = "Questions that the documents answer, and that got no answer"
KNOWN = "Questions with a known answer that stands in the answer given"
RETRIEVED = "Share of the text found that has nothing to do with the question"
GIVEN = "Share of the text given to the answer that has nothing to do with the question"
ROUTE = "Questions that took the way their label asks for"
CALLS = "Calls of a language model a question"
SECONDS = "Seconds within which half of the questions were done"
POINTS = (UNASKED_FOR, SILENT, KNOWN, RETRIEVED, GIVEN, ROUTE, CALLS, SECONDS)


# --- what was compared ----------------------------------------------------------------------------------------------


def test_the_head_says_what_was_compared_on_how_many_questions() -> None:
    page = page_of()
    told = page.told("#compared")
    assert page.told("h1") == "ferry" and page.told("head title") == "Comparison: ferry"
    assert "22 November 2026, 08:04 UTC" in page.told("header")
    assert "3 configurations on 80 questions of the set “ferry”" in told
    assert "40 The documents answer it 20 They are about it, but do not answer it 20 They are about something" in told
    assert page.all_told("#compared .figures b") == ["3", "80", "0"] and "left out everywhere" not in told
    lines = page.all_told("#compared .facts div")
    assert lines[0] == "plain what the others are compared with policy Plain RAG; nothing is graded"
    assert lines[1:] == ["careful policy Paper", "near policy Two signals"]


def test_questions_that_are_left_out_are_counted() -> None:
    unfinished = results(near)
    del unfinished[ASKED[0].key]
    unfinished[ASKED[1].key] = replace(unfinished[ASKED[1].key], action=None, failed="retrieve: away")
    table = Table(ASKED, {"plain": results(outcome), "near": unfinished})
    told = page_of(table).told("#compared")
    assert "2 configurations on 78 questions" in told
    assert "2 questions of those asked are left out everywhere on this page" in told
    assert "not finished them" in told and page_of(table).all_told("#compared .figures b")[2] == "2"


def test_a_configuration_that_nobody_described_says_so() -> None:
    assert page_of(configurations={}).all_told("#compared .facts dd") == ["not described"] * 3


def test_what_must_be_known_besides_stands_at_the_head_as_text() -> None:
    page = page_of(remarks=["near · 12 Nov 14:03 is an earlier result.", f"Unlike {EVIL}: other documents."])
    told = page.all_told("#compared .note")
    assert told[0] == "near · 12 Nov 14:03 is an earlier result." and len(told) == 2
    assert "<script" not in page.soup.select("#compared .note")[1].decode_contents()
    assert page_of().all_told("#compared .note") == []


# --- findings -------------------------------------------------------------------------------------------------------


def test_every_configuration_has_the_same_points_in_the_same_order() -> None:
    page = page_of()
    assert page.all_told("#findings h3") == ["careful, compared with plain", "near, compared with plain"]
    assert tuple(findings(page, 0)) == tuple(findings(page, 1)) == POINTS


def test_a_certain_gain_is_told_as_better_with_its_interval() -> None:
    first, cell, _ = row_of("right").cells
    assert first.found and cell.found and cell.gain and cell.gain.low > 0
    (low, high), points = (
        ((f"{100 * end:.1f}" for end in (cell.gain.low, cell.gain.high))),
        f"{100 * cell.gain.value:.1f}",
    )
    assert findings(page_of(), 0)[ROUTE] == (
        f"Better. {ROUTE}: {cell.found.value:.1%} instead of {first.found.value:.1%}, which is {points} points more "
        f"({low} to {high}). Of 80 questions."
    )


def test_less_of_what_should_be_little_is_better_and_its_interval_is_told_without_signs() -> None:
    cell = row_of("answered_unanswerable").cells[1]
    assert cell.gain and (cell.gain.value, cell.gain.low) == (-1.0, -1.0)
    assert -0.9 < cell.gain.high < -0.8, "40 of 40 questions, and none of 40, tell no more"
    assert findings(page_of(), 0)[UNASKED_FOR] == (
        f"Better. {UNASKED_FOR}: 0.0% instead of 100.0%, which is 100.0 points less (82.4 to 100.0). Of 40 questions."
    )


def test_a_certain_loss_is_told_as_plainly() -> None:
    told = findings(page_of(), 0)
    for name, point, value, first, way in (
        ("abstained_answerable", SILENT, "20.0%", "0.0%", "more"),
        ("contains", KNOWN, "80.0%", "100.0%", "less"),
    ):
        gain = row_of(name).cells[1].gain
        assert gain is not None
        low, high = sorted(abs(100 * end) for end in (gain.low, gain.high))
        assert told[point] == (
            f"Worse. {point}: {value} instead of {first}, which is 20.0 points {way} ({low:.1f} to {high:.1f}). "
            "Of 40 questions."
        )
    assert told[CALLS].startswith(f"Worse. {CALLS}: 3.00 instead of 1.00, which is 2.00 more on every question.")


def test_what_is_not_certain_is_no_clear_difference() -> None:
    cell = row_of("abstained_answerable").cells[2]
    assert cell.gain and cell.gain.low < 0 < cell.gain.value
    told = findings(page_of(), 1)
    assert told[SILENT] == (
        f"No clear difference. {SILENT}: 2.5% here, 0.0% there; the difference may be -2.4 to "
        f"+{100 * cell.gain.high:.1f} points. Of 40 questions."
    )
    assert told[CALLS] == (
        f"No clear difference. {CALLS}: 1.00 under both, on every question the same. Of 80 questions."
    )


def test_the_summary_counts_the_points() -> None:
    told = page_of().all_told("#findings h3 + p")
    assert told[0] == "Of 8 points: better in 3, worse in 4, no clear difference in 1."
    assert told[1] == "Of 8 points: no clear difference in 8."


def test_shares_of_different_questions_are_said_to_be_so() -> None:
    told = findings(page_of(), 0)[GIVEN]
    assert told.endswith("Of 32 questions under careful and 40 under plain, not the same ones.")


def test_seconds_are_better_or_worse_only_where_the_intervals_do_not_touch() -> None:
    page = page_of()
    slow, same = (findings(page, place)[SECONDS] for place in (0, 1))
    half = {name: THREE.paths(name)[-1].p50 for name in THREE.names}
    told = {name: f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})" for name, one in half.items() if one}
    assert slow == f"Worse. {SECONDS}: {told['careful']} instead of {told['plain']}: the intervals do not touch."
    assert same == f"No clear difference. {SECONDS}: {told['near']} here, {told['plain']} there: the intervals touch."
    fast = findings(page_of(table_of("careful", "plain")), 0)[SECONDS]
    assert fast == f"Better. {SECONDS}: {told['plain']} instead of {told['careful']}: the intervals do not touch."


def test_what_was_not_measured_is_said_to_be_so() -> None:
    unlabelled = tuple(replace(asked, expected=INCORRECT, answers=()) for asked in ASKED)
    told = findings(page_of(table_of("plain", "careful", asked=unlabelled)), 0)
    for point in (SILENT, KNOWN, GIVEN):
        assert told[point] == f"Not measured. {point}: No question counts for it."

    def blind(n: int, asked: LabelledQuestion) -> Outcome:
        return outcome(n, asked, after=None)

    told = findings(page_of(table_of("plain", "blind", blind=blind)), 0)
    assert told[GIVEN] == f"Not measured. {GIVEN}: Under blind no question counts for it."
    told = findings(page_of(table_of("blind", "plain", blind=blind)), 0)
    assert told[GIVEN] == f"Not measured. {GIVEN}: Under blind no question counts for it."


# --- nothing is claimed that is not certain -------------------------------------------------------------------------


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("better", "low", "high", "tone"),
    [
        (1, 0.01, 0.2, BETTER),
        (1, -0.2, -0.01, WORSE),
        (-1, 0.01, 0.2, WORSE),
        (-1, -0.2, -0.01, BETTER),
        (0, 0.01, 0.2, DIFFERENT),
        (0, -0.2, -0.01, DIFFERENT),
        *(
            (better, low, high, UNCLEAR)
            for better in (1, 0, -1)
            for low, high in ((-0.1, 0.1), (0.0, 0.3), (-0.3, 0.0))
        ),
    ],
)
def test_only_an_interval_that_leaves_0_out_has_a_tone(better: int, low: float, high: float, tone: str) -> None:
    measure = replace(MEASURES[0], better=better)
    assert tone_of(measure, Cell(Estimate(0.5, 0.4, 0.6), 10, estimate(low, high))) == tone
    assert tone_of(measure, Cell(Estimate(0.5, 0.4, 0.6), 10)) == UNCLEAR


def test_better_and_worse_stand_nowhere_else() -> None:
    page = page_of()
    certain = [tone_of(row.measure, cell) for row in THREE.rows for cell in row.cells if cell.is_certain]
    words = {BETTER: "better", WORSE: "worse", DIFFERENT: "different"}
    claimed = page.soup.select("#measures .gained:not(.open)")
    assert [tag["class"][1] for tag in claimed] == certain and {BETTER, WORSE, DIFFERENT} == set(certain)
    assert all(said(tag).endswith(f" {words[tag['class'][1]]}") for tag in claimed)
    assert not re.search("better|worse|different", " ".join(page.all_told("#measures .gained.open")))


def test_an_end_that_shows_as_0_is_told_from_0() -> None:
    def interval(value: float, low: float, high: float, unit: Unit) -> str:
        return describe_gain(Cell(None, 9, Estimate(value, low, high)), unit).interval

    assert interval(0.01, 0.0001, 0.02, Unit.SCORE) == "just above 0 to +0.02"
    assert interval(-0.01, -0.02, -0.0001, Unit.SHARE) == "-2.0 to just below 0"
    assert interval(0.01, 0.0, 0.02, Unit.SCORE) == "0.00 to +0.02"
    same = describe_gain(Cell(None, 9, Estimate(0.0, -0.34, 0.34), is_same=True), Unit.SHARE)
    assert (same.value, same.interval) == ("no difference", "-34.0 to +34.0")
    assert describe_found(Estimate(-0.0001, -0.0002, 0.01), Unit.SCORE).value == "0.00"


# --- the tables -----------------------------------------------------------------------------------------------------


def test_every_measure_is_there_with_its_definition_value_interval_and_gain() -> None:
    page = page_of()
    assert page.all_told("#measures h3") == [
        group for group in Group if any(r.measure.group is group for r in THREE.rows)
    ]
    rows = page.soup.select("#measures tbody tr")
    assert len(rows) == len(THREE.rows)
    for tag, row in zip(rows, THREE.rows, strict=True):
        measure, unit = row.measure, row.measure.unit
        head, *cells = tag.find_all(["th", "td"])
        assert said(head.find("b")) == title_of(measure) and measure.description in said(head)
        counts = {cell.counted for cell in row.cells}
        assert (f". {row.cells[0].counted} questions" in said(head)) is (len(counts) == 1)
        for found, cell in zip(cells, row.cells, strict=True):
            told = said(found)
            assert (f"{cell.counted} questions" in told) is (len(counts) > 1)
            if cell.found is None:
                assert told.startswith("–")
                continue
            low, high = (figure(end, unit) for end in (cell.found.low, cell.found.high))
            interval = f" {low} to {high}" if cell.found.has_interval else ""
            assert told.startswith(f"{figure(cell.found.value, unit)}{interval}")
            if cell.gain is None:
                assert not found.select(".gained")
            elif not cell.is_same:
                amount = figure(cell.gain.value, unit, signed=True).strip("%+-")
                assert amount in said(found.select(".gained")[0])
                assert told.endswith(describe_gain(cell, unit).interval)


def test_header_cells_have_a_scope_and_wide_tables_a_box_of_their_own() -> None:
    page = page_of()
    assert all(tag.get("scope") for tag in page.soup.select("th"))
    assert all(
        "wide-table" in tag.parent["class"] and tag.parent["tabindex"] == "0" for tag in page.soup.select("table")
    )
    assert page.rows("#measures thead tr")[0] == "Measure | plain | careful | near"


def test_titles_stand_in_full() -> None:
    assert "Right route of answerable questions" in page_of().all_told("#measures tbody th b")
    assert not any(title_of(measure).startswith("…") for measure in MEASURES)
    strange = Measure("x", "Strange", Group.COST, Unit.COUNT, 0, "", MEASURES[0].counts)
    assert title_of(strange) == "Strange"


def test_routes_are_those_of_the_table() -> None:
    table = page_of().soup.select("#routes table")[0]
    for name, body in zip(THREE.names, table.select("tbody"), strict=True):
        head, *rows = body.select("tr")
        assert said(head) == name
        for tag, (expected, counts) in zip(rows, THREE.confusion(name).items(), strict=True):
            cells = [said(cell) for cell in tag.select("td")]
            wanted = [f"✓ {n}" if action in expected.actions else str(n) for action, n in counts.items()]
            assert cells == [str(sum(counts.values())), *wanted]


def test_seconds_and_calls_are_those_of_every_path() -> None:
    table = page_of().soup.select("#routes table")[1]
    for name, body in zip(THREE.names, table.select("tbody"), strict=True):
        for tag, path in zip(body.select("tr")[1:], THREE.paths(name), strict=True):
            assert path.p50 and (path.p95 is None) == (path.count < 20)
            times = [
                f"{one.value:.2f} s {one.low:.2f} to {one.high:.2f}" if one and one.has_interval else
                f"{one.value:.2f} s" if one else "–"
                for one in (path.p50, path.p95)
            ]  # fmt: skip
            assert [said(cell) for cell in tag.find_all(["th", "td"])] == [
                path.label, str(path.count), *times, f"{path.calls:.2f}",
            ]  # fmt: skip


# --- how it is made -------------------------------------------------------------------------------------------------


def test_it_says_how_the_figures_are_made_and_what_they_do_not_prove() -> None:
    told = page_of().told("#making")
    for words in ("2,000 times", "same draws", "A score of one's own evaluator is no proof", "With web search off"):
        assert words in told, words
    assert page_of().all_told("#making dt") == list(Group)
    assert said(page_of().part("#making pre")) == COMMAND
    assert not page_of(command="").soup.select("#making pre")


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


# --- any page -------------------------------------------------------------------------------------------------------


def test_one_configuration_is_compared_with_nothing() -> None:
    page = page_of(table_of("plain"))
    assert_sound(page)
    assert "There is one configuration only" in page.told("#findings") and not page.soup.select(".gained")
    assert "1 configuration on 80 questions" in page.told("#compared") and "compared with" not in page.told("#compared")
    assert len(page.soup.select("#measures tbody tr")) == len(table_of("plain").rows)


@pytest.mark.parametrize("names", [("plain", "careful"), ("plain",), ()])
def test_no_question_at_all_is_no_crash_and_no_claim(names: tuple[str, ...]) -> None:
    page = page_of(table_of(*names, asked=()), labelled=" ", created="", command="")
    assert_sound(page)
    assert "nothing to tell" in page.told("#findings") and "Nothing was measured." in page.told("#measures")
    assert "on 0 questions of the set “(no name)”." in page.told("#compared") and page.told("h1") == "(no name)"
    assert not re.search(r"\d%", page.told("main").replace("95%", ""))


def evil_page(text: str = EVIL) -> Page:
    """Everything that comes from outside is `text`."""
    asked = [replace(one, question=f"{text} {one.question}", note=text, document=text) for one in ASKED]
    table = Table(
        asked,
        {
            text: results(lambda n, one: replace(outcome(n, one), label=text), asked),
            f"{text} 2": results(lambda n, one: replace(careful(n, one), label=text), asked),
        },
    )
    return page_of(table, labelled=text, created=text, command=text, configurations=dict.fromkeys(table.names, text))


def test_hostile_text_stays_text() -> None:
    page = evil_page()
    assert_sound(page)
    places = ("h1", "head title", "header .eyebrow", "#compared .why-so", "#compared .facts", "#findings h3", "pre")
    for place in places:
        assert SHOWN in page.told(place), place
    assert SHOWN in page.rows("#measures thead tr")[0] and SHOWN in page.rows("#routes tbody tr")[0]
    assert SHOWN in " ".join(page.all_told("#findings li")) and SHOWN in " ".join(page.all_told("#routes tbody tr"))
    assert page.part("h1")["dir"] == "auto" and page.part("h1")["lang"] == ""
    assert SHOWN in described(replace(trace(policy("paper")).settings, writer=SHOWN))


def test_no_text_can_disguise_itself_or_break_the_file() -> None:
    page = evil_page(DISGUISED)
    page.html.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", page.html)


def test_the_page_is_sound_and_tells_no_question() -> None:
    assert_sound(page_of())
    assert "Question 1" not in page_of().html and "run-1" not in page_of().html


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert page_of().html == page_of(table_of("plain", "careful", "near")).html


# --- from the command line ------------------------------------------------------------------------------------------


def test_compare_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    document, file, target = (tmp_path / name for name in ("ferry.txt", "my set.csv", "page.html"))
    document.write_text("The ferry to Torrin leaves at nine.", "utf-8")
    file.write_text("question,expected\nWhen does the ferry leave?,correct\nWho bakes the bread?,incorrect\n", "utf-8")
    assert main(["ingest", str(document)]) == 0
    configurations = ["--with", "plain", "--with", "paper,evaluator=embedding,upper=0.8"]
    assert main(["compare", "--set", str(file), *configurations, "--html", str(target)]) == 0
    assert f"written to {target}" in capsys.readouterr().out
    page = Page(target.read_text("utf-8"))
    assert_sound(page)
    assert page.told("h1") == "my set" and "2 configurations on 2 questions" in page.told("#compared")
    assert "evaluator Embedding similarity; lower" in page.all_told("#compared .facts dd")[1]
    assert said(page.part("#making pre")) == (
        "python -m crag_core compare --set 'my set.csv' --with plain --with paper,evaluator=embedding,upper=0.8 "
        "--html page.html"
    )
    assert str(tmp_path) not in page.html


# --- in a browser ---------------------------------------------------------------------------------------------------


@pytest.mark.browser
def test_it_opens_offline_with_nothing_cut_off_and_prints_on_white(tmp_path: Path) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    pages = {"plain": page_of(), "evil": evil_page(), "one": page_of(table_of("plain"))}
    with open_browser() as browser:
        for name, made in pages.items():
            path = tmp_path / f"{name}.html"
            path.write_text(made.html, "utf-8")
            for width, scheme in ((360, "dark"), (800, "light"), (1440, "dark")):
                context = browser.new_context(
                    viewport={"width": width, "height": 1000},
                    offline=True,
                    java_script_enabled=False,
                    color_scheme=scheme,  # type: ignore[arg-type]
                )
                page = context.new_page()
                page.on("request", lambda request: asked.append(request.url))
                page.on("console", lambda message: complaints.append(message.text))
                page.goto(path.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                back = "rgb(17, 22, 27)" if scheme == "dark" else "rgb(255, 255, 255)"
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") == back
                if width == 1440:  # paper has a width of its own
                    page.pdf(path=tmp_path / "sheet.pdf", prefer_css_page_size=True, print_background=True)
                context.close()
            with pypdfium2.PdfDocument(tmp_path / "sheet.pdf") as pdf:
                assert tuple(map(round, pdf[0].get_size())) == (595, 842)
                assert pdf[0].render().to_pil().getpixel((3, 3)) == (255, 255, 255)
    assert {url.rpartition("/")[2] for url in asked} == {f"{name}.html" for name in pages}
    assert complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", mostly("dark", "light"))
def test_nothing_grave_is_found_by_axe(tmp_path: Path, scheme: Any) -> None:
    path = tmp_path / "page.html"
    path.write_text(page_of().html, "utf-8")
    with open_browser() as browser:
        context = browser.new_context(viewport={"width": 800, "height": 1000}, color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.goto(path.as_uri())
        found = Axe().run(page).response["violations"]
        context.close()
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
