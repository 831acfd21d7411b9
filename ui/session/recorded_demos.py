"""The recorded demos that ship with the application."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

import streamlit as st

from crag_core.app.workbench import DATA
from crag_core.trace.trace import Trace

FOLDER = DATA / "runs"


@dataclass(frozen=True)
class Demo:
    """A recorded run, with what it shows."""

    title: str
    note: str
    trace: Trace


@st.cache_resource(show_spinner=False)
def demos() -> tuple[Demo, ...]:
    """In the order in which they are best looked at."""
    listed = tomllib.loads((FOLDER / "runs.toml").read_text("utf-8"))["run"]
    return tuple(
        Demo(one["title"], one["note"], Trace.from_json((FOLDER / one["file"]).read_text("utf-8"))) for one in listed
    )


def demo_of(run_id: str) -> Demo | None:
    return next((demo for demo in demos() if demo.trace.id == run_id), None)
