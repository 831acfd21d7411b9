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

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted, shortened
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
    """Read all values of every parameter. What cannot be used is left out and told; names of others mean nothing.

    A policy or evaluator may stand there by its name too.
    """
    readers: dict[str, tuple[str, Callable[[Sequence[str]], Any]]] = {
        RUN: ("run_id", _read_run_id),
        POLICY: ("policy", lambda values: _read_choice(values, titles.policies)),
        EVALUATOR: ("evaluator", lambda values: _read_choice(values, titles.evaluators)),
        THRESHOLDS: ("thresholds", _read_thresholds),
        STRIPS: ("strips", _read_cutoff),
        DROPPED: ("dropped", _read_edits),
        PINNED: ("pinned", _read_edits),
    }
    found: dict[str, Any] = {}
    problems = []
    for name, (field, read) in readers.items():
        if name in parameters:
            try:
                found[field] = read(parameters[name])
            except BadRecord as error:
                problems.append(f"its {_CALLED.get(name, name)} ({error})")
    problem = f"This link was opened without {', '.join(problems)}." if problems else ""
    return SharedView(**found, problem=problem)


def edits_of(view: SharedView, trace: Trace) -> tuple[Edits, str]:
    """The edits that a link asks for, without signals, and a sentence on those that this run cannot have."""
    web = trace.web.passages if trace.web else ()
    ids = {_mark(passage.id): passage.id for passage in (*web, *trace.all_passages)}
    dropped = tuple(ids[mark] for mark in view.dropped if mark in ids)
    pinned = tuple(ids[mark] for mark in view.pinned if mark in ids and mark not in view.dropped)
    lost = len(view.dropped) + len(view.pinned) - len(dropped) - len(pinned)
    message = f"{counted(lost, 'chunk')} that this link drops or pins cannot be dropped or pinned in this run."
    return Edits(dropped, pinned), message if lost else ""


def _mark(passage_id: str) -> str:
    """Short, and of harmless signs whatever the id is."""
    return fingerprint(passage_id)[:8]


def _read_run_id(values: Sequence[str]) -> str:
    given = _only(values)
    if not RUN_ID.fullmatch(given):
        raise BadRecord(f"expected up to 64 letters, digits, - and _, found {_show(given)}")
    return given


def _read_choice(values: Sequence[str], known: Mapping[str, str]) -> str:
    given = _only(values)
    found = next((name for name, title in known.items() if given in (name, title)), None)
    if found is None:
        raise BadRecord(f"{_show(given)} is not known here")
    return found


def _read_thresholds(values: Sequence[str]) -> tuple[float, float]:
    numbers = [_number(value) for value in values]
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise BadRecord(f"expected two numbers from 0 to 1, the lower first, found {_show(' and '.join(values))}")
    return numbers[0], numbers[1]


def _read_cutoff(values: Sequence[str]) -> float:
    return _number(_only(values))


def _read_edits(values: Sequence[str]) -> tuple[str, ...]:
    given = _only(values)
    if not _EDITS.fullmatch(given):
        raise BadRecord(f"expected marks as this program writes them, found {_show(given)}")
    return tuple(dict.fromkeys(given.split(".")))


def _only(values: Sequence[str]) -> str:
    if len(values) != 1:
        raise BadRecord(f"expected it once, found it {len(values)} times")
    return values[0]


def _number(text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0.0 <= value <= 1.0:
        raise BadRecord(f"expected a number from 0 to 1, found {_show(text)}")
    return abs(value)  # no -0.0


def _show(text: str) -> str:
    return shortened(repr(text), 40)
