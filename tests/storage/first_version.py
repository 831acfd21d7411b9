"""A history as version 1 of the tables has it, by the SQL that the released program ran."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from crag_core.base.serialization import to_plain
from crag_core.trace.feedback import Label
from crag_core.trace.trace import Trace

TABLES = (
    "CREATE TABLE crag_history (version INTEGER NOT NULL)",
    "CREATE TABLE crag_runs (id VARCHAR(64) NOT NULL, kept_at FLOAT NOT NULL, created TEXT NOT NULL, "
    "question TEXT NOT NULL, action TEXT NOT NULL, policy TEXT NOT NULL, evaluator TEXT NOT NULL, "
    "imported BOOLEAN NOT NULL, record TEXT NOT NULL, PRIMARY KEY (id))",
    "CREATE INDEX ix_crag_runs_kept_at ON crag_runs (kept_at)",
    'CREATE TABLE crag_labels ("key" VARCHAR(64) NOT NULL, run_id VARCHAR(64) NOT NULL, kept_at FLOAT NOT NULL, '
    'label TEXT NOT NULL, PRIMARY KEY ("key"))',
    "CREATE INDEX ix_crag_labels_run_id ON crag_labels (run_id)",
    "CREATE INDEX ix_crag_labels_kept_at ON crag_labels (kept_at)",
    "INSERT INTO crag_history (version) VALUES (1)",
)
_RUN = "INSERT INTO crag_runs VALUES ({0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0})"
_LABEL = "INSERT INTO crag_labels VALUES ({0}, {0}, {0}, {0})"

Execute = Callable[..., Any]


def write(execute: Execute, sign: str, runs: Sequence[Trace], labels: Sequence[Label] = (), broken: str = "") -> None:
    """`execute(statement, *values)`; `sign` stands for a value. `broken` is the id of one more run, of no use."""
    for statement in TABLES:
        execute(statement)
    for number, trace in enumerate(runs):
        made = trace.settings
        plain = {name: value for name, value in trace.to_dict().items()}
        del plain["settings"]["writer_version"]  # as it was written then
        told = (trace.created, _plain(trace.question)[:300], trace.decision.action.value if trace.decision else "")
        values = (trace.id, 1000.0 + number, *told, made.policy.name, made.evaluator.name, number % 2 == 1)
        execute(_RUN.format(sign), *values, json.dumps(plain))
    if broken:
        execute(
            _RUN.format(sign), broken, 5000.0, "then", "Wie BREIT?", "SIDEWAYS", "mine", "x", False, '{"schema": 99}'
        )
    for label in labels:
        execute(_LABEL.format(sign), label.key, label.run_id, 1.0, json.dumps(to_plain(label)))


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "?")
