"""The recorded demos that ship with the application, and the way to their story."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st

from crag_core.base.data_files import DATA
from crag_core.trace.trace import Trace
from crag_core.view.story.moves import Move

FOLDER = DATA / "runs"
ABOUT = "Asked of the sample documents: 24 documents of Northmoor Ferries, an invented company."
WRITTEN = "These web pages were written for the recording."


@dataclass(frozen=True)
class Demo:
    """A recorded run, with what it shows.

    `move` is where its story puts a threshold, None: to the nearest place that changes the decision. `other` names the
    policy that reads the same scores at its end, "": none. `notes` are said on its steps, by their ids.
    """

    title: str
    note: str
    trace: Trace
    move: Move | None = None
    other: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)


@st.cache_resource(show_spinner=False)
def demos() -> tuple[Demo, ...]:
    """In the order in which they are best looked at."""
    listed = tomllib.loads((FOLDER / "runs.toml").read_text("utf-8"))["run"]
    return tuple(
        Demo(
            one["title"],
            one["note"],
            Trace.from_json((FOLDER / one["file"]).read_text("utf-8")),
            next((Move(name, to) for name, to in one.get("move", {}).items()), None),
            one.get("other", ""),
            {"answer": one["note"], **one.get("notes", {})},
        )
        for one in listed
    )


def demo_of(run_id: str) -> Demo | None:
    return next((demo for demo in demos() if demo.trace.id == run_id), None)


def open_story(run_id: str) -> None:
    st.switch_page("pages/demo.py", query_params={"run": run_id})
