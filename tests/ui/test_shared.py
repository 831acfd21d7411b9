"""What all sessions share, and what a message of a browser may empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st

from crag_core.base.concurrency import shared
from tests.ui.conftest import new_process
from ui.session import access, background, startup


@pytest.fixture(autouse=True)
def _process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CRAG_HOME", str(tmp_path))
    new_process()
    yield
    new_process()


@pytest.mark.parametrize(
    "get",
    [
        access._ended, background.live, startup.shared_workbench,
    ],
)  # fmt: skip
def test_emptying_the_caches_for_everybody_takes_nothing_from_anybody(get: Callable[[], object]) -> None:
    first = get()
    st.cache_data.clear()
    st.cache_resource.clear()  # as Streamlit does for a message `clear_cache`, whoever sends it
    assert get() is first


def test_what_could_not_be_made_is_tried_again() -> None:
    tried: list[int] = []

    def make() -> int:
        tried.append(1)
        return 12 // (len(tried) - 1)

    get = shared.shared(make)
    with pytest.raises(ZeroDivisionError):
        get()
    assert (get(), get(), len(tried)) == (12, 12, 2)
