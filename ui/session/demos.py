"""The recorded demos that ship with the application, their replay, which calls nothing, and the way to their story."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from crag_core.base.data_files import DATA
from crag_core.base.types import StepName
from crag_core.pipeline.run import Run
from crag_core.trace.trace import Trace
from crag_core.view.story.moves import Move

FOLDER = DATA / "runs"
ABOUT = "Asked of the sample documents: 24 documents of Northmoor Ferries, an invented company."
WRITTEN = "These web pages were written for the recording."
_MADE_BY: Mapping[str, tuple[str, ...]] = {
    StepName.RETRIEVE: ("passages",),
    StepName.GRADE: ("grades",),
    StepName.ROUTE: ("decision",),
    StepName.RETRIEVE_AGAIN: ("rounds",),
    StepName.SCORE_STRIPS: ("strips",),
    StepName.EXTRACT: ("extractions",),
    StepName.SEARCH: ("web",),
    StepName.ASSEMBLE: ("context", "corrections"),
    StepName.ANSWER: ("answer",),
    StepName.CHECK_ANSWER: ("support",),
}
_SHORTEST, _LONGEST = 0.35, 1.6  # seconds a step is shown for: long enough to read, short enough to wait for
_WORD = 0.03


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
            {"question": one["note"], **one.get("notes", {})},
        )
        for one in listed
    )


def demo_of(run_id: str) -> Demo | None:
    return next((demo for demo in demos() if demo.trace.id == run_id), None)


def open_story(run_id: str) -> None:
    """Show this run, recorded or one's own, as a story on the Demo page."""
    st.switch_page("pages/demo.py", query_params={"run": run_id})


def so_far(trace: Trace, count: int) -> Trace:
    """What `trace` held when its first `count` steps were done; the whole of it after the last."""
    if count >= len(trace.steps):
        return trace
    done = {step.name for step in trace.steps[:count]}
    later = {field for name, fields in _MADE_BY.items() if name not in done for field in fields}
    later -= {field for name in done for field in _MADE_BY.get(name, ())}
    empty: dict[str, Any] = {field: () if field == "rounds" else None for field in later}
    return replace(trace, steps=trace.steps[:count], **empty)


def play(trace: Trace, run: Run) -> Trace:
    """Tell `run.listener` the steps at about their own pace; a stop shows the end at once."""
    for count, step in enumerate(trace.steps):
        run.listener.started(step.name)
        if step.name == StepName.ANSWER and trace.answer:
            _write(trace.answer.text, run)
        elif run.cancel.wait(min(max(step.seconds, _SHORTEST), _LONGEST)):
            break
        run.listener.finished(step, so_far(trace, count + 1))
    return trace


def _write(text: str, run: Run) -> None:
    for word in text.split(" "):
        run.listener.wrote(f"{word} ")
        if run.cancel.wait(_WORD):
            break
