"""Streamlit may break a script off at any touch of the session's state; what had ended must be shown all the same."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from crag_core.app.background_jobs import job_of
from tests import builders
from ui.session import app_state, background, current_run, keys, run_job


class BrokenOff(BaseException):
    """As Streamlit's own, which no `except Exception` catches."""


class Touchy(dict[str, Any]):
    """Session state that breaks the script off at its n-th touch, once."""

    def __init__(self, n: int, **kept: Any) -> None:
        super().__init__(kept)
        self.left = n

    def _touch(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise BrokenOff

    def __setitem__(self, key: str, value: Any) -> None:
        self._touch()
        super().__setitem__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        self._touch()
        return super().get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        self._touch()
        return super().setdefault(key, default)


@pytest.mark.parametrize("n", range(1, 7))
def test_run_whose_end_is_broken_off_is_shown_by_the_next_script(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = builders.trace(builders.policy("paper"))
    job = job_of(lambda run: trace, trace)
    job.start()
    job.wait()
    session = Touchy(n, jobs={"run": job})
    fake = SimpleNamespace(session_state=session, query_params={})
    for module in (app_state, background, current_run, keys):
        monkeypatch.setattr(module, "st", fake)
    for _ in range(2):
        with suppress(BrokenOff):
            if (left := run_job.job()) is not None:
                run_job.finish(left)
    assert session["jobs"] == {} and session["trace"] is trace
    assert session.left <= 0, "fewer touches than this case supposes"
