"""The stages of a log as a page: its figures, and hostile text of a log as text."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.types.passages import Logged
from crag_core.evaluators import shipped
from crag_core.evaluators.support import WordSupport
from crag_core.experiments.logs.findings import findings, lines, to_csv
from crag_core.experiments.logs.record import Context, LogRecord
from crag_core.experiments.logs.stages import Judged
from crag_core.report import render
from crag_core.report.stages.page import MOST, render_stages
from tests import builders
from tests.fakes import Bench

METER = WordSupport(shipped.EVALUATOR_FOLDER, shipped.signal_meter().stop_words)
HOSTILE = '<script>alert(1)</script> =HYPERLINK("x") \u202e'
RECORDS = (
    LogRecord("1", 1, "When does the ferry leave?", (Context("The ferry leaves at ten."),), "At ten.", ("at ten",)),
    LogRecord("2", 2, "When does the ferry leave?", (Context("Dogs travel free."),), HOSTILE, ("at ten",)),
    LogRecord("3", 3, HOSTILE, (Context("Dogs travel free."),), "Dogs travel free."),
)


def judged(record: LogRecord) -> Judged:
    engine = Bench(best=0.1).pipeline.over(())
    trace = engine.grade(record.question)
    return Judged(trace, record, METER)


def test_the_page_has_the_counts_and_the_faults_and_shows_hostile_text_as_text() -> None:
    found = findings([judged(one) for one in RECORDS], builders.policy("paper"))
    page = render_stages(f"shop {HOSTILE}", found, "Trained evaluator", "2026-01-01T00:00:00+00:00")
    assert "3 records." in page and "Not retrieved" in page and "At least" not in page
    assert "<script>" not in page and "&lt;script&gt;" in page and "\u202e" not in page
    faults = sum(one.stage.value != "no fault found" for _, one in found.pairs)
    assert page.count("1 chunk") == 2 == faults and "It holds questions and answers of the log." in page
    assert page == render_stages(f"shop {HOSTILE}", found, "Trained evaluator", "2026-01-01T00:00:00+00:00")


def test_the_lines_and_the_table_have_every_record_and_no_formula() -> None:
    found = findings([judged(replace(RECORDS[1], answer="=1+1")), judged(RECORDS[2])], builders.policy("paper"))
    assert lines(found)[0].split("  ")[0] == "not retrieved" and len(lines(found)) == 6
    rows = to_csv(found).splitlines()
    assert len(rows) == 3 and ",=1+1," not in rows[1]
    assert lines(findings([], builders.policy("paper")))[0].endswith("0")


def test_a_long_list_is_cut_and_says_so() -> None:
    record = replace(RECORDS[1], answer="At six.")
    one = judged(record)
    found = findings([one] * (MOST + 3), builders.policy("paper"))
    page = render_stages("shop", found, "x", "")
    assert page.count("1 chunk") == MOST and "3 more are left out here" in page


def test_the_report_of_a_run_tells_the_answer_of_the_log_from_its_own() -> None:
    logged = Logged("shop", "7", f"At ten. {HOSTILE}", ("at ten",))
    engine = Bench().pipeline
    page = render(engine.over((*Bench().found,), logged).run("When?"))
    assert "Answer in the log" in page and "not this run's" in page and "Right answer: " in page
    assert "chunks of the log" in page and "<script>" not in page
    assert "Answer in the log" not in render(engine.run("When?"))
