"""What every run adds to the metrics, once, and the gauges that are asked for at a scrape."""

from __future__ import annotations

import errno
import socket
import threading

import pytest

from crag_core.base.errors import ModelUnavailable, PortUnavailable
from crag_core.base.protocols import WebReply
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import Usage
from crag_core.base.types.web import WebAttempt, WebOutcome
from crag_core.observability import metrics as metrics_module
from crag_core.observability.metrics import Metrics, serve
from crag_core.pipeline.run import Run
from tests.fakes import QUESTION, Bench, FakeModel
from tests.observability.scraped import Scraped, read

AWAY = ModelUnavailable("Ollama went away.", hint="Start it.")


def bench_with(metrics: Metrics, **fields: object) -> Bench:
    return Bench(observers=(metrics,), **{"model": FakeModel()} | fields)  # type: ignore[arg-type]


def endings(found: Scraped, name: str = "crag_runs_total") -> dict[str, float]:
    return {labels["ending"]: value for labels, value in found.all(name) if value}


# --- every run once ---------------------------------------------------------------------------------------------------


def test_a_run_is_counted_by_its_ending_decision_answer_and_steps() -> None:
    metrics = Metrics("1.2.3")
    trace = bench_with(metrics).pipeline.run(QUESTION)
    found = read(metrics)
    assert endings(found) == {"done": 1} and endings(found, "crag_runs_carried_on_total") == {}
    assert found["crag_actions_total", {"action": "CORRECT"}] == 1
    assert found["crag_path_seconds_count", {"path": "fast"}] == 1
    assert found["crag_answers_total", {"state": "complete"}] == 1
    assert found["crag_grades_total"] == 3
    assert found["crag_model_calls_total", {"step": "answer"}] == 1
    assert found["crag_model_tokens_total", {"step": "answer", "kind": "prompt"}] == trace.usage.prompt_tokens
    assert found["crag_run_seconds_sum"] == pytest.approx(trace.seconds)
    for step in trace.steps:
        assert found["crag_steps_total", {"step": step.name, "state": step.state.value}] == 1
        assert found["crag_step_seconds_sum", {"step": step.name}] == pytest.approx(step.seconds)
    assert found["crag_build_info", {"version": "1.2.3"}] == 1
    assert found["crag_runs_under_way"] == 0
    assert found["process_resident_memory_bytes"] > 1e6 and "process_cpu_seconds_total" in found.names


def test_a_run_that_fails_and_is_resumed_counts_once_and_pays_for_each_call_once() -> None:
    metrics = Metrics()
    bench = bench_with(metrics, model=FakeModel(answer=AWAY))
    broken = bench.pipeline.run(QUESTION)
    bench.model.replies["answer"] = "At nine [1]."  # type: ignore[union-attr]
    done = bench.pipeline.resume(broken)
    found = read(metrics)
    assert endings(found) == {"failed": 1} and endings(found, "crag_runs_carried_on_total") == {"done": 1}
    assert found["crag_step_failures_total", {"step": "answer", "error": "ModelUnavailable"}] == 1
    assert found["crag_decisions_total", {"category": "CORRECT"}] == 1
    assert found["crag_grades_total"] == 3
    assert found["crag_model_calls_total", {"step": "answer"}] == done.usage.calls == 2
    assert found["crag_step_seconds_sum", {"step": "answer"}] == pytest.approx(
        sum(step.seconds for step in done.steps if step.name == "answer")
    )


def test_a_stopped_run_and_a_bug_are_counted_and_nothing_stays_under_way() -> None:
    metrics = Metrics()
    cancel = threading.Event()
    cancel.set()
    bench = bench_with(metrics)
    bench.pipeline.run(QUESTION, Run(cancel=cancel))

    def break_down() -> None:
        raise ZeroDivisionError

    bench.evaluator.before = break_down
    with pytest.raises(ZeroDivisionError):
        bench.pipeline.run(QUESTION)
    found = read(metrics)
    assert endings(found) == {"stopped": 1, "failed": 1}
    assert (found["crag_bugs_total"], found["crag_runs_under_way"]) == (1, 0)


def test_ungraded_and_cached_grades_are_told_apart() -> None:
    def grade(passage: object) -> Grade:
        number = passage.id  # type: ignore[attr-defined]
        return {
            "p1": Grade("p1", None, "", raw="I am not sure.", cause="no score", usage=Usage(1, 1, 1)),
            "p2": Grade("p2", 0.9, "", from_cache=True),
        }.get(number, Grade(number, 0.9, ""))

    metrics = Metrics()
    bench_with(metrics, scoring=grade).pipeline.run(QUESTION)
    found = read(metrics)
    assert (found["crag_grades_total"], found["crag_grades_ungraded_total"], found["crag_grades_from_cache_total"]) == (
        *(3, 1, 1),
    )


def test_each_provider_that_was_asked_is_counted_with_what_came_of_it() -> None:
    attempts = (WebAttempt("SearXNG", WebOutcome.TIMED_OUT), WebAttempt("DuckDuckGo", WebOutcome.RATE_LIMITED))
    reply = WebReply(WebOutcome.RATE_LIMITED, "DuckDuckGo", attempts=attempts)
    metrics = Metrics()
    bench = bench_with(metrics, best=0.1, reply=reply)
    bench.pipeline.run(QUESTION)
    found = read(metrics)
    assert found["crag_web_searches_total", {"provider": "SearXNG", "outcome": "timed_out"}] == 1
    assert found["crag_web_searches_total", {"provider": "DuckDuckGo", "outcome": "rate_limited"}] == 1


# --- labels ---


def test_no_label_holds_text_of_a_run() -> None:
    metrics = Metrics()
    bench_with(metrics, best=0.1).pipeline.run(f"{QUESTION} SECRET")
    found = read(metrics)
    assert "SECRET" not in found.text and "ennick" not in found.text


# --- gauges -----------------------------------------------------------------------------------------------------------


def test_a_watched_figure_is_read_at_every_scrape() -> None:
    metrics = Metrics()
    waiting = [3]
    metrics.watch("crag_runs_waiting", lambda: waiting[0])
    metrics.watch("crag_model_server_busy", lambda: {"one": 1, "two": 0})
    assert read(metrics)["crag_runs_waiting"] == 3
    waiting[0] = 0
    found = read(metrics)
    assert found["crag_runs_waiting"] == 0
    assert found["crag_model_server_busy", {"server": "one"}] == 1


def test_a_figure_that_cannot_be_read_costs_no_other_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def away() -> float:
        raise OSError("postgresql://ann:secret@db is away")

    metrics = Metrics()
    metrics.watch("crag_runs_waiting", away)
    found = read(metrics)
    assert "crag_runs_waiting" not in found.names and "crag_runs_total" in found.names
    assert [record.getMessage() for record in caplog.records] == ["crag_runs_waiting cannot be read: OSError"]


# --- served -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "Set CRAG_METRICS_PORT to a free port."),
        (socket.gaierror(-2, "Name or service not known"), "Set CRAG_METRICS_ADDRESS to an address of this machine"),
        (OSError(errno.EADDRNOTAVAIL, "no"), "Set CRAG_METRICS_ADDRESS to an address of this machine"),
    ],
)
def test_figures_that_cannot_be_served_say_why_and_what_to_do(
    error: OSError, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(metrics_module, "start_http_server", refuse)
    with pytest.raises(PortUnavailable, match=f"Metrics cannot be served at port 9464: {error.strerror}") as refusal:
        serve(Metrics().registry, 9464, "elsewhere")
    assert refusal.value.hint.startswith(hint)


def test_the_targets_are_those_of_description_000() -> None:
    shares = (
        metrics_module.CORRECT_TARGET,
        metrics_module.CORRECTED_TARGET,
        metrics_module.SEARCHED_TARGET,
        metrics_module.IMPROVED_TARGET,
    )
    assert shares == (0.70, 0.30, 0.10, 0.80)
    assert (metrics_module.FAST_TARGET, metrics_module.SLOW_TARGET) == (70.0, 450.0)
