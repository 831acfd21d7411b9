"""Limits that hold in Python, whatever a widget allows: the question, uploads, records."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app import uploads
from crag_core.app.uploads import check_files, read_record
from crag_core.base.errors import BadRecord
from crag_core.llamaindex.query_engine import CRAGQueryEngine
from crag_core.pipeline.run import LONGEST_QUESTION
from tests.fakes import Bench
from tests.ui.conftest import ask, home, shown, start  # noqa: F401  # fixtures

ROOT = Path(__file__).parents[2]
LONG = "why " * 1000


def test_no_run_begins_with_a_question_that_is_too_long() -> None:
    bench = Bench()
    for begin in (bench.pipeline.run, bench.pipeline.begin, CRAGQueryEngine(bench.pipeline).query):
        with pytest.raises(BadRecord, match=r"at most 2,000 characters, found 4,000"):
            begin(LONG)  # type: ignore[operator]
    assert bench.retriever.asked == []
    assert bench.pipeline.run("w" * LONGEST_QUESTION).decision is not None


@pytest.mark.exhaustive
def test_the_page_cuts_what_a_client_sends_beyond_the_widget(start: Callable[..., AppTest]) -> None:  # noqa: F811
    app = ask(start(), LONG)
    assert len(app.session_state["trace"].question) <= 1000
    assert "Traceback" not in shown(app)


def test_a_record_with_such_a_question_is_refused() -> None:
    plain = Bench().pipeline.run("When?").to_dict()
    plain["question"] = LONG
    with pytest.raises(BadRecord, match="4,000 characters"):
        read_record(json.dumps(plain).encode())


def test_a_record_beyond_its_size_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadRecord, match="expected at most 20"):
        read_record(b"{" + b" " * (uploads.LARGEST_MB * 2**20))


def test_an_upload_has_a_number_and_a_size_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    check_files([("a.txt", b"x")] * 100)
    with pytest.raises(BadRecord, match="20,001 files"):
        check_files([("a.txt", b"x")] * 20_001)
    monkeypatch.setattr(uploads, "MOST_MB", 1)
    with pytest.raises(BadRecord, match="2 MB"):
        check_files([("a.txt", b"x" * 2**20), ("b.txt", b"x" * 2**20)])


def test_the_server_takes_no_larger_upload_than_the_settings_say() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert config["server"]["maxUploadSize"] <= 50
