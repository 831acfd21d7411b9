"""The path of a run as a diagram; each stage is a button to its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import streamlit as st

from crag_core.base.text.display import clean, shortened
from crag_core.base.types.decisions import Handling
from crag_core.decision.policy import Policy
from crag_core.view.path.run_path import RunPath, run_path
from crag_core.view.path.stages import Stage, StageState
from crag_core.view.run_view import RunView
from ui import PARTS
from ui.run.verdict import COLOURS

_LONGEST = 240  # characters
_PATH = st.components.v2.component(
    "crag_path", html='<div class="frame">\n<nav class="path"><ol role="list"></ol></nav>\n</div>',
    css=(PARTS / "path.css").read_text("utf-8"), js=(PARTS / "path.js").read_text("utf-8"),
)  # fmt: skip
_WAYS = (
    ("retrieve", "grade"),
    ("grade", "route"),
    ("route", "again"),
    ("again", "retrieve"),
    ("route", "refine"),
    ("refine", "assemble"),
    ("route", "rewrite"),
    ("rewrite", "search"),
    ("search", "grade_web"),
    ("grade_web", "assemble"),
    ("assemble", "answer"),
    ("answer", "check"),
)
_BEFORE_THE_DECISION = ("retrieve", "grade", "again")
_UNTAKEN = (StageState.NOT_TAKEN, StageState.SKIPPED)
_ABSENT = (*_UNTAKEN, StageState.TO_COME)
_REACHED = (StageState.TAKEN, StageState.FAILED, StageState.STOPPED, StageState.WAITING, StageState.RUNNING)
_TONES = {StageState.FAILED: "red", StageState.STOPPED: "orange", StageState.WAITING: "orange"}
_MARKS = {StageState.FAILED: "alert", StageState.STOPPED: "stop", StageState.WAITING: "wait"}
_HANDLING_ICONS = {
    Handling.KEEP: "page",
    Handling.DOCUMENTS: "page",
    Handling.EXTRACT: "quote",
    Handling.DISCARD: "discard",
}


def draw_path(
    view: RunView, key: str = "path", running: str | None = None, progress: tuple[int, int] | None = None
) -> None:
    """`running` names the step of the pipeline that goes on now, `progress` how much of it is done, and of how much.

    A click leads to the part of the page with the stage's anchor.
    """
    path = run_path(view.trace, view.routed, running)
    if progress:
        done = "{} of {}".format(*progress)
        path = {
            name: replace(one, headline=done) if one.state is StageState.RUNNING else one for name, one in path.items()
        }
    _PATH(key=key, data=path_data(path, view.policy))


_SMALL = ("retrieve", "grade", "route", "refine", "search", "answer")
_SMALL_HEIGHT = 104  # pixels
_SMALL_WAYS = (
    ("retrieve", "grade"), ("grade", "route"), ("route", "refine"), ("refine", "answer"), ("route", "search"),
    ("search", "answer"),
)  # fmt: skip


def draw_small_path(view: RunView, key: str) -> None:
    """The same as a picture: which way a run went, without what came of each stage."""
    path = run_path(view.trace, view.routed)
    tone = _tone_of(path)
    named = {name: replace(path[name], headline="") for name in _SMALL}
    named["search"] = replace(named["search"], title="Web")
    taken = ", ".join(str(one.action or one.title) for one in named.values() if one.state in _REACHED)
    data = {
        "label": _clean(f"Path: {taken}"),
        "stages": [_drawn(stage, _tone(stage.id, tone)) for stage in named.values()],
        "lines": _ways(named, _SMALL_WAYS, tone),
        "is_small": True,
    }
    _PATH(key=key, data=data, height=_SMALL_HEIGHT)


def path_data(path: RunPath, policy: Policy) -> dict[str, Any]:
    """What the component draws: plain text, and names of its own shapes and tones."""
    tone = _tone_of(path)
    return {
        "label": _clean(f"The path of this run under policy {policy.title}"),
        "stages": [_drawn(stage, _tone(stage.id, tone)) for stage in path.values()],
        "lines": _ways(path, _WAYS, tone),
    }


def _tone_of(path: RunPath) -> str:
    action = path["route"].action
    return COLOURS[action] if action else "plain"


def _tone(stage_id: str, tone: str) -> str:
    return "plain" if stage_id in _BEFORE_THE_DECISION else tone


def _drawn(stage: Stage, tone: str) -> dict[str, str]:
    icon = _HANDLING_ICONS.get(stage.handling, stage.id) if stage.handling else stage.id
    called = f"{stage.title}: {stage.action}" if stage.action else stage.title
    state = "" if stage.state is StageState.TAKEN else f"{stage.state}: "
    name, cost = _clean(f"{called}, {state}{stage.headline}"), stage.cost
    more = _clean(stage.detail) if stage.detail != stage.headline else ""
    return {
        "id": stage.id,
        "shown": str(stage.action or stage.title),
        "state": stage.state.value,
        # The reason of the decision stands above, that of a way not taken in its tip.
        "headline": "" if stage.id == "route" or stage.state in _UNTAKEN else _clean(stage.headline),
        "name": f"{name}, {cost}" if cost else name,
        "tip": f"{name}. {more}" if more else name,
        "anchor": stage.anchor,
        "tone": _TONES.get(stage.state, tone),
        "icon": _MARKS.get(stage.state, icon),
    }


def _ways(stages: RunPath, ways: Iterable[tuple[str, str]], tone: str) -> list[dict[str, str]]:
    ends = [(stages[start], stages[end]) for start, end in ways if end in stages]
    return [{"from": a.id, "to": b.id, "how": _how(a, b), "tone": _tone(_later(a, b), tone)} for a, b in ends]


def _later(start: Stage, end: Stage) -> str:
    """The stage that gives a line its colour; the decision colours what comes after it."""
    return start.id if end.id == "route" else end.id if end.id != "retrieve" else start.id


def _how(start: Stage, end: Stage) -> str:
    """Grading that was not needed is passed; any other stage that is absent ends the way."""
    passed = StageState.TAKEN if _is_passed(start) else start.state
    reached = StageState.TAKEN if _is_passed(end) else end.state
    if passed in _ABSENT or reached in _ABSENT or not start.leads_on:
        return "off"
    return "on" if passed is StageState.TAKEN and reached in _REACHED else "would"


def _is_passed(stage: Stage) -> bool:
    return stage.id == "grade" and stage.state is StageState.SKIPPED


def _clean(text: str) -> str:
    """On one line, at most as long as a tooltip, without marks that turn the direction of what follows."""
    return shortened(clean(text), _LONGEST)
