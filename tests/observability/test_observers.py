"""Those who hear of every run: the audit log, the metrics, and the lines on standard error."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.base.types.web import PageOutcome, WebOutcome, WebPage, WebSearch
from crag_core.observability.audit_log import AuditLog, find_events
from crag_core.observability.metrics import Metrics
from crag_core.trace.reroute import carried_out, reroute
from crag_core.trace.trace import Trace
from tests.builders import even, grade, graded, passage, policy, round_of, searched, trace, web_page
from tests.observability.scraped import read

QUESTION = "What does the ferry cost?"
AGENTIC = replace(policy("agentic"), skip=())
NEWS = web_page("w1", "Fares rose in May.")

Event = dict[str, Any]


def graded_run(name: str, *scores: float | None, **fields: object) -> Trace:
    found, grades = graded(*scores)
    known = {"passages": found, "grades": grades, "signals": even(scores[0] or 0.0) if scores else ()}
    return trace(policy(name) if name != "agentic" else AGENTIC, **known | fields)


def looked_again() -> Trace:
    """Nothing worth keeping at first; the keywords then found p4, p5 (whose grade cannot be read) and p6."""
    _, grades = graded(0.1, 0.2, 0.1)
    later = (grade("p4", 0.9), grade("p5", None), grade("p6", 0.05))
    found = round_of("keyword", passage("p4"), passage("p5"), passage("p6"), query=QUESTION)
    return graded_run("agentic", 0.1, 0.2, 0.1, grades=(*grades, *later), rounds=(found,))


# What is worth a line in the audit log


def events(name: str, run: Trace, state: StepState = StepState.DONE) -> list[Event]:
    return find_events(Step(name, "", state), run)


def test_grades_that_could_not_be_read_are_reported_with_the_reply() -> None:
    assert events("grade", graded_run("paper", 0.9, None)) == [
        {
            "event": "grade_unparsed",
            "passage": "p2",
            "source": "p2.txt",
            "cause": "the reply holds no score",
            "reply": "I am not sure.",
        }
    ]


def test_a_decision_is_reported_in_numbers() -> None:
    assert events("route", graded_run("paper", 0.9, 0.1)) == [
        {
            "event": "decision",
            "iteration": 1,
            "action": "CORRECT",
            "label": "Correct",
            "score": 0.9,
            "reason": "best chunk 0.90 ≥ upper 0.60",
        }
    ]


def test_evidence_that_was_removed_is_reported_each_passage_with_its_score() -> None:
    *removed, decision = events("route", graded_run("agentic", 0.9, 0.1, 0.2))
    assert removed == [
        {
            "event": "evidence_removed",
            "passage": "p2",
            "source": "p2.txt",
            "score": 0.1,
            "reason": removed[0]["reason"],
        },
        {
            "event": "evidence_removed",
            "passage": "p3",
            "source": "p3.txt",
            "score": 0.2,
            "reason": removed[1]["reason"],
        },
    ]
    assert [event["reason"] for event in removed] == ["score 0.10 < 0.30", "score 0.20 < 0.30"]
    assert (decision["event"], decision["action"]) == ("decision", "CORRECT")


def test_a_rule_that_hits_is_reported_by_name_with_scores_of_one() -> None:
    hit, decision = events("route", trace(policy("agentic"), passages=graded(0, 0)[0]))
    assert hit == {"event": "fast_path_hit", "rule_name": "few_context", "iteration": 1, "scores": [1.0, 1.0]}
    assert (decision["event"], decision["label"], decision["score"]) == ("decision", "Generate", 1.0)


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("read_file", {"found_by": ("read_file",)}),
        ("high_vector_score", {"found_by": ("dense",), "scores": (("cosine", 0.9),)}),
    ],
)
def test_every_rule_is_reported_by_its_own_name(rule: str, fields: dict[str, Any]) -> None:
    found = tuple(passage(f"p{number}", **fields) for number in range(3))
    assert events("route", trace(policy("agentic"), passages=found))[0]["rule_name"] == rule


def test_another_retrieval_is_reported_with_its_query() -> None:
    assert events("retrieve again", looked_again()) == [
        {"event": "retrieve_again", "round": "keyword", "query": QUESTION, "by": "written by hand", "found": 3}
    ]


@pytest.mark.parametrize("outcome", [WebOutcome.USED, WebOutcome.FAILED, WebOutcome.TIMED_OUT])
def test_a_web_search_is_reported_with_what_came_of_it(outcome: WebOutcome) -> None:
    run = graded_run("paper", 0.1, web=WebSearch(outcome, "ferry fares", "you"))
    assert events("search", run) == [{"event": "web_search", "query": "ferry fares", "outcome": outcome.value}]


def test_every_page_of_the_web_that_was_asked_for_is_reported() -> None:
    outcomes = (PageOutcome.READ, PageOutcome.FAILED, PageOutcome.REFUSED)
    pages = tuple(WebPage(f"w{at}", f"https://{at}.example/", outcome) for at, outcome in enumerate(outcomes))
    run = graded_run("paper", 0.1, web=replace(searched(NEWS), pages=pages))
    assert events("read pages", run) == [
        {"event": "web_page", "url": "https://0.example/", "outcome": "read"},
        {"event": "web_page", "url": "https://1.example/", "outcome": "not read"},
    ]


@pytest.mark.parametrize("name", ["grade", "route", "retrieve again", "search"])
@pytest.mark.parametrize("state", [state for state in StepState if state is not StepState.DONE])
def test_a_step_that_was_not_done_reports_nothing(name: str, state: StepState) -> None:
    assert events(name, looked_again(), state) == []


# The audit log


ROUTED = Step("route", "")


def log_at(home: Path) -> AuditLog:
    return AuditLog(home, lambda: "2025-01-01T00:00:00+00:00")


def lines(home: Path) -> list[Event]:
    return [json.loads(line) for _, line in log_at(home).lines()]


def test_each_event_is_one_line_with_time_run_and_policy(tmp_path: Path) -> None:
    path = tmp_path / "new" / "home"
    log_at(path).finished(ROUTED, graded_run("agentic", 0.9, 0.1, 0.8))
    removed, decision = lines(path)
    head = {"time": "2025-01-01T00:00:00+00:00", "run": "run-1", "policy": "agentic"}
    assert removed.items() > head.items() and decision.items() > head.items()
    assert [removed["event"], decision["event"]] == ["evidence_removed", "decision"]


def test_the_log_is_only_ever_added_to(tmp_path: Path) -> None:
    earlier = tmp_path / "audit.jsonl"
    earlier.write_text('{"event": "an old one"}\n{"event": "cut sho', "utf-8")
    for _ in range(2):  # another process, or another day
        log_at(tmp_path).take_over(earlier)
        log_at(tmp_path).finished(ROUTED, graded_run("paper", 0.9))
    there = [*log_at(tmp_path).lines()]
    assert [line for _, line in there][:2] == earlier.read_text("utf-8").split("\n") and len(there) == 4
    log_at(tmp_path).forget(there[2][0])
    assert [*log_at(tmp_path).lines()] == there[3:]


def test_replies_of_any_script_and_any_mark_stay_on_their_line(tmp_path: Path) -> None:
    reply = 'no\nscore \u2028 {"event": "forged"} 東京 \x00'
    found, grades = graded(None)
    run = trace(policy("paper"), passages=found, grades=(replace(grades[0], raw=reply),))
    log_at(tmp_path).finished(Step("grade", ""), run)
    (event,) = lines(tmp_path)
    assert event["reply"] == reply


@pytest.mark.parametrize("path", ["file", "file/home", "folder"])
def test_a_log_that_cannot_be_written_says_so_once_and_stops_nothing(
    tmp_path: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way of a folder", "utf-8")
    (tmp_path / "folder" / "crag.db").mkdir(parents=True)
    log = log_at(tmp_path / path)
    for _ in range(3):
        log.finished(ROUTED, graded_run("paper", 0.9))
    assert log.problem.startswith(f"The audit log in {tmp_path / path / 'crag.db'} cannot be written (")
    assert [record.name for record in caplog.records] == ["crag.audit"]


# Metrics


ASSEMBLED = Step("assemble", "")
TIMED = (
    Step("retrieve", "", seconds=0.3),
    Step("grade", "", seconds=0.3, usage=Usage(2)),
    Step("answer", "", seconds=9),
)


def finished(name: str, *scores: float | None, **fields: object) -> Trace:
    run = graded_run(name, *scores, **{"steps": TIMED} | fields)
    return replace(run, corrections=carried_out(run, reroute(run, run.settings.policy)))


def test_decisions_corrections_latency_and_score_can_be_scraped() -> None:
    metrics = Metrics()
    expansion = round_of("expand", passage("p4"))
    for run in (
        finished("heuristic", 0.9, 0.9),
        finished("heuristic", 0.8, 0.8),
        finished("heuristic", 0.6, 0.6, rounds=(expansion,)),
        finished("signals", 0.5, 0.5, web=searched(NEWS)),
    ):
        metrics.finished(ASSEMBLED, run)
    samples = read(metrics)

    def value(name: str, **labels: str) -> float | None:
        return next((number for found, number in samples.all(name) if found == labels), None)

    assert value("crag_decisions_total", category="RELEVANT") == 2
    assert value("crag_decisions_total", category="PARTIAL") == 1
    assert value("crag_decisions_total", category="AMBIGUOUS") == 1
    assert value("crag_decisions_total", category="IRRELEVANT") is None
    assert value("crag_corrections_total", strategy="query_expansion") == 1
    assert value("crag_corrections_total", strategy="web_search") == 1
    assert value("crag_corrections_total", strategy="refinement") == 1
    assert value("crag_corrections_total", strategy="none") is None
    fast, corrected = {"decision": "RELEVANT", "correction_strategy": "none"}, "refinement+web_search"
    assert value("crag_retrieval_latency_seconds_count", **fast) == 2
    assert value("crag_retrieval_latency_seconds_sum", **fast) == pytest.approx(1.2)
    assert value("crag_retrieval_latency_seconds_bucket", le="0.45", **fast) == 0
    assert value("crag_retrieval_latency_seconds_bucket", le="0.7", **fast) == 2
    assert value("crag_retrieval_latency_seconds_count", decision="AMBIGUOUS", correction_strategy=corrected) == 1
    assert value("crag_relevance_score") == 0.5


def test_a_run_leaves_one_record_with_the_line_of_description_000(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crag.metrics")
    run = finished("heuristic", 0.6, 0.6, rounds=(round_of("expand", passage("p4", "Fares rose in May.")),))
    Metrics().finished(ASSEMBLED, run)
    (record,) = caplog.records
    assert record.getMessage() == (
        "[CRAG_METRICS] decision=PARTIAL score=0.60 correction=query_expansion latency_ms=600.0 artifacts=1"
    )
    assert record.__dict__["crag"] == {
        "run": "run-1",
        "decision": "PARTIAL",
        "score": 0.6,
        "correction": "query_expansion",
        "latency_ms": 600.0,
        "artifacts": 1,
        "tokens": 5,
        "model_calls": 2,
        "cache_hit": False,
    }
