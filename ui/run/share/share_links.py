"""Encodes a decision as a link: run, policy, evaluator, thresholds and edits. Pure.

Settings stand in it as the sidebar's widgets write them into the address: a choice by its title, a range as the same
name twice. What comes back is anybody's text, so every part is checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted
from crag_core.base.types import Edits
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace

RUN, POLICY, EVALUATOR, THRESHOLDS, STRIPS = "run", "policy", "evaluator", "thresholds", "strips"
DROPPED, PINNED = "dropped", "pinned"
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_EDITS = re.compile(r"[0-9a-f]{8}(\.[0-9a-f]{8}){0,999}")
_NUMBER = re.compile(r"[0-9]{0,30}\.?[0-9]{1,30}([eE][+-]?[0-9]{1,3})?")
_CALLED = {STRIPS: "sentence cut-off", DROPPED: "dropped chunks", PINNED: "pinned chunks"}

Parameters = dict[str, list[str]]


@dataclass(frozen=True)
class Titles:
    """What can be chosen here: names with their titles."""

    policies: Mapping[str, str]
    evaluators: Mapping[str, str]


@dataclass(frozen=True)
class SharedView:
    """What a link asks for; None or empty where it does not, or not in a way that can be used.

    `dropped` and `pinned` name passages by marks, which `edits_of` finds in the run. `problem` is one sentence on what
    was left out, "" when nothing was.
    """

    run_id: str | None = None
    policy: str | None = None
    evaluator: str | None = None
    thresholds: tuple[float, float] | None = None
    strips: float | None = None
    dropped: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    problem: str = ""


def view_of(trace: Trace, policy: Policy) -> SharedView:
    """`trace` with the edits and the evaluator, and `policy` with the thresholds, that are to be seen."""
    return SharedView(
        run_id=trace.id if RUN_ID.fullmatch(trace.id) else None,
        policy=policy.name,
        evaluator=trace.settings.evaluator.name,
        thresholds=(policy.lower, policy.upper),
        strips=policy.strips.cutoff,
        dropped=tuple(map(_mark, trace.edits.dropped)),
        pinned=tuple(map(_mark, trace.edits.pinned)),
    )


def link_parameters(view: SharedView, titles: Titles) -> Parameters:
    """A policy or evaluator that cannot be chosen here is left out."""
    pairs = {
        RUN: [view.run_id or ""],
        POLICY: [titles.policies.get(view.policy or "", "")],
        EVALUATOR: [titles.evaluators.get(view.evaluator or "", "")],
        THRESHOLDS: [str(value) for value in view.thresholds or ()],
        STRIPS: [] if view.strips is None else [str(view.strips)],
        DROPPED: [".".join(view.dropped)],
        PINNED: [".".join(view.pinned)],
    }
    return {name: values for name, values in pairs.items() if any(values)}


def link(url: str, parameters: Parameters) -> str:
    """`url` with these parameters in the place of its own; its user and password, if any, are left out."""
    parts = urlsplit(url)
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", urlencode(parameters, doseq=True), "")
    )


def parse_link(parameters: Mapping[str, Sequence[str]], titles: Titles) -> SharedView:
    """Read all values of every parameter. What cannot be used is left out and reported; other parameters mean nothing.

    A policy or evaluator may stand there by its name too.
    """
    readers: dict[str, tuple[str, Callable[[Sequence[str]], Any]]] = {
        RUN: ("run_id", _read_run_id),
        POLICY: ("policy", lambda values: _read_choice(values, titles.policies)),
        EVALUATOR: ("evaluator", lambda values: _read_choice(values, titles.evaluators)),
        THRESHOLDS: ("thresholds", _read_thresholds),
        STRIPS: ("strips", lambda values: _number(_only(values))),
        DROPPED: ("dropped", _read_edits),
        PINNED: ("pinned", _read_edits),
    }
    read = {name: (field, of(parameters[name])) for name, (field, of) in readers.items() if name in parameters}
    lost = [f"its {_CALLED.get(name, name)}" for name, (_, value) in read.items() if value is None]
    problem = f"This link was opened without {', '.join(lost)}, which cannot be used here." if lost else ""
    return SharedView(**{field: value for field, value in read.values() if value is not None}, problem=problem)


def edits_of(view: SharedView, trace: Trace) -> tuple[Edits, str]:
    """The edits that a link asks for, without signals, and a sentence on those that this run cannot have."""
    ids = {_mark(passage.id): passage.id for passage in trace.every_passage}
    dropped = tuple(ids[mark] for mark in view.dropped if mark in ids)
    pinned = tuple(ids[mark] for mark in view.pinned if mark in ids and mark not in view.dropped)
    lost = len(view.dropped) + len(view.pinned) - len(dropped) - len(pinned)
    message = f"{counted(lost, 'chunk')} that this link drops or pins cannot be dropped or pinned in this run."
    return Edits(dropped, pinned), message if lost else ""


def _mark(passage_id: str) -> str:
    """Short, and of harmless signs whatever the id is."""
    return fingerprint(passage_id)[:8]


# Each reads the values of one parameter; None for what cannot be used.


def _read_run_id(values: Sequence[str]) -> str | None:
    return found[0] if (found := RUN_ID.fullmatch(_only(values))) else None


def _read_choice(values: Sequence[str], known: Mapping[str, str]) -> str | None:
    return next((name for name, title in known.items() if _only(values) in (name, title)), None)


def _read_thresholds(values: Sequence[str]) -> tuple[float, float] | None:
    numbers = [number for value in values if (number := _number(value)) is not None]
    return (numbers[0], numbers[1]) if len(numbers) == len(values) == 2 and numbers[0] <= numbers[1] else None


def _read_edits(values: Sequence[str]) -> tuple[str, ...] | None:
    given = _only(values)
    return tuple(dict.fromkeys(given.split("."))) if _EDITS.fullmatch(given) else None


def _only(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else ""


def _number(text: str) -> float | None:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return abs(value) if 0.0 <= value <= 1.0 else None  # no -0.0
