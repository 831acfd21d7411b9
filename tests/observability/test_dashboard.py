"""The dashboard, the alerts and docs/observing.md name what the registries really expose, and targets of the design."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from crag_core.base.errors import ModelUnavailable
from crag_core.observability.metrics import (
    CORRECT_TARGET,
    CORRECTED_TARGET,
    FAST_TARGET,
    IMPROVED_TARGET,
    KNOWN,
    SEARCHED_TARGET,
    SLOW_TARGET,
    Metrics,
)
from crag_core.pipeline.run import WebMode
from tests.fakes import QUESTION, Bench, FakeModel, card
from tests.observability.scraped import Scraped, read

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "crag-explorer.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
ADDED = {"instance", "job"}
"""Labels that Prometheus itself gives to everything that it scrapes."""

_FUNCTIONS = {"sum", "max", "min", "count", "increase", "rate", "histogram_quantile"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_GROUPED = re.compile(r"\bby\s*\(([^)]*)\)")


@cache
def exposed() -> Scraped:
    """After runs of every kind, with every gauge that can be watched."""
    metrics = Metrics("1.2.3")
    for name, (_, label) in KNOWN.items():
        metrics.watch(name, (lambda: {"one": 1.0}) if label else (lambda: 1.0))
    model, away = FakeModel(), FakeModel(answer=ModelUnavailable("away"))
    observed: dict[str, Any] = {"observers": (metrics,), "judge": card(calls_model=True)}
    kinds = [{"best": best, "model": who} for best in (0.9, 0.5, 0.1) for who in (model, away)]
    kinds += [{"best": 0.1, "model": model, "web": WebMode.ASK}]
    for kind in kinds:
        Bench(**observed, **kind).pipeline.run(QUESTION)
    return read(metrics)


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    rules = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"][0]["rules"]
    return asked + [rule["expr"] for rule in rules]


def wanted(expression: str) -> list[tuple[str, set[str]]]:
    """(metric, labels asked of it) of a PromQL expression, as far as ours go."""
    bare = re.sub(r"\[[^\]]*\]|\b\d[\w.]*", "", re.sub(r'"[^"]*"', '""', expression))
    return [one for part in re.split(r"\band\b|\bunless\b|/", bare) for one in _wanted_by(part)]


def _wanted_by(part: str) -> list[tuple[str, set[str]]]:
    grouped = {label for inner in _GROUPED.findall(part) for label in _NAME.findall(inner)}
    found = []
    for name, selector, call in re.findall(r"\b([A-Za-z_]\w*)\b(\s*\{[^}]*\})?(\s*\()?", _GROUPED.sub("", part)):
        if call:
            assert name in _FUNCTIONS, f"{name} in {part}"
        else:
            found.append((name, grouped | set(_NAME.findall(selector))))
    return found


def test_every_metric_and_label_that_is_asked_for_is_exposed() -> None:
    for expression in expressions():
        check_exposed(expression)


def check_exposed(expression: str) -> None:
    asked = wanted(expression)
    assert asked, expression
    for name, labels in asked:
        if name == "up":
            continue
        assert name in exposed().names, f"{name} in {expression}"
        assert labels - ADDED <= exposed().labels_of(name), f"{name}: {labels} in {expression}"


def test_values_of_labels_that_are_picked_out_can_come() -> None:
    """Those of closed sets: a wrong one would be a panel that stays empty for ever."""
    closed = {"action", "path", "outcome", "state", "ending"}
    known = {
        "state": {"failed", "stopped", "waiting", "cannot_answer", "doubtful"},
        "outcome": {"improved", "used", "empty", "failed", "timed_out", "rate_limited"},
        "path": {"fast", "corrected", "all"},
    }
    for label, value in re.findall(r'(\w+)[!=]=?~?"([^"]*)"', "\n".join(expressions())):
        if label in closed:
            values = known.get(label) or {
                labels[label] for name in exposed().names for labels, _ in exposed().all(name) if label in labels
            }
            assert set(value.split("|")) <= values, f"{label}={value}"


@pytest.mark.parametrize(
    ("title", "target"),
    [
        ("Relevant", CORRECT_TARGET),
        ("Corrected", CORRECTED_TARGET),
        ("Searched the web", SEARCHED_TARGET),
        ("Best score rose after correction", IMPROVED_TARGET),
        ("Fast path, median", FAST_TARGET / 1000),
        ("Fast path", FAST_TARGET / 1000),
        ("Corrected path, median", SLOW_TARGET / 1000),
        ("Corrected path", SLOW_TARGET / 1000),
    ],
)
def test_the_targets_are_drawn(title: str, target: float) -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    (panel,) = [one for one in panels if one["title"] == title]
    assert [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]] == [None, target]


def test_the_targets_are_edges_of_the_buckets_so_that_shares_beside_them_are_exact() -> None:
    edges = {labels["le"] for labels, _ in exposed().all("crag_path_seconds_bucket")}
    assert {f"{FAST_TARGET / 1000}", f"{SLOW_TARGET / 1000}"} <= edges


# --- docs/observing.md names every metric with its labels, and nothing else ------------------------------------------


PAGE = (Path(__file__).parents[2] / "docs" / "observing.md").read_text("utf-8")
ROWS = {
    name: set(re.findall(r"`(\w+)`", labels)) for name, labels in re.findall(r"^\| `(\w+)` \| ([^|]*)\|", PAGE, re.M)
}


def test_every_metric_of_a_run_is_told_with_its_labels() -> None:
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in exposed().names
        if name.startswith("crag_") and not name.endswith("_created")
    }
    assert set(ROWS) == names
    for name, labels in ROWS.items():
        sample = f"{name}_count" if name.endswith("_seconds") else name
        assert exposed().labels_of(sample) == labels, name
