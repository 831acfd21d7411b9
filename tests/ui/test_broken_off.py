"""Streamlit may break a script off at any touch of the session's state; what had ended must be shown all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from crag_core.app.background_jobs import job_of
from tests import builders
from ui.session import app_state, background, current_run, keys, run_job


class BrokenOff(BaseException):
    """As Streamlit's own, which no `except Exception` catches."""


class Touchy(dict[str, Any]):
    """Session state that breaks the script off at its n-th change, once."""

    def __init__(self, n: int, **kept: Any) -> None:
        super().__init__(kept)
        self.left = n

    def __setitem__(self, key: str, value: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise BrokenOff
        super().__setitem__(key, value)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_run_whose_end_is_broken_off_is_shown_by_the_next_script(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = builders.trace(builders.policy("paper"))
    job = job_of(lambda run: trace, trace)
    job.start()
    job.wait()
    session = Touchy(n, jobs={"run": job})
    fake = SimpleNamespace(session_state=session, query_params={})
    for module in (app_state, background, current_run, keys):
        monkeypatch.setattr(module, "st", fake)
    broken = 0
    for _ in range(2):
        if (left := run_job.job()) is not None:
            try:
                run_job.finish(left)
            except BrokenOff:
                broken += 1
    assert session["jobs"] == {} and session["trace"] is trace
    assert broken == (n <= 3), "there are three changes"
