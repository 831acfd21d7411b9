"""A workbench gives its observers to its pipelines, and its own state to a scrape."""

from __future__ import annotations

from pathlib import Path

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.evaluators.policies import find_policy
from crag_core.observability.audit_log import AuditLog
from crag_core.observability.logs import RunLog
from crag_core.observability.metrics import Metrics
from crag_core.observability.spans import Spans
from tests.observability.scraped import read
from tests.stand_ins.otlp_server import OTLPServer
from tests.word_embedder import WordEmbedder


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    return Workbench(Config(home=tmp_path, ollama_host="127.0.0.1:9", openai_url="http://me:s3cret@127.0.0.1:10/v1"))


def observers(workbench: Workbench, *, observed: bool = True) -> list[type]:
    choice = Choice(find_policy("paper", workbench.config), "cross-encoder")
    return [type(one) for one in workbench.engine(choice, observed=observed)._pipeline.observers]


def test_metrics_audit_and_log_hear_of_every_run(workbench: Workbench) -> None:
    assert observers(workbench) == [Metrics, AuditLog, RunLog]
    assert observers(workbench, observed=False) == []


def test_spans_are_made_where_an_endpoint_is_set_and_by_one_maker_for_the_process(workbench: Workbench) -> None:
    with OTLPServer() as collector:
        settings = Config(home=workbench.config.home, otel_endpoint=collector.url)
        assert observers(workbench.using(settings)) == [Spans, Metrics, AuditLog, RunLog]
        assert build.spans(collector.url) is build.spans(collector.url)
    build.spans.cache_clear()


def test_a_scrape_tells_of_line_parts_and_servers(workbench: Workbench) -> None:
    found = read(workbench.metrics)
    assert found["crag_runs_waiting"] == 0
    assert {labels["part"]: value for labels, value in found.all("crag_part_works")} == {
        "history": 1,
        "audit": 1,
        "cache": 1,
    }
    assert {labels["server"] for labels, _ in found.all("crag_model_server_busy")} == {
        "http://127.0.0.1:9",
        "http://127.0.0.1:10",
    }
    assert found["crag_build_info", {"version": build.VERSION}] == 1
