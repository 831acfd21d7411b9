"""Shares a run as a link, a record or a report, and opens what was shared.

In a link settings stand as the sidebar's widgets write them into the address: a choice by its title, a range as the
same name twice, and the thresholds of a policy that compares two scores by a name each. What comes back is anybody's
text, so every part is checked here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from crag_core import report
from crag_core.app.uploads import LARGEST_MB, read_record
from crag_core.base.errors import CragError
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted
from crag_core.base.types.edits import Edits
from crag_core.decision.policy import Doubtful, Policy
from crag_core.trace.edits import measured
from crag_core.trace.trace import Trace
from ui.session import app_state, current_run, run_job
from ui.session.demos import demo_of
from ui.session.fragments import fragment
from ui.session.uploads import empty_uploader, uploader_key
from ui.shell.text import plain

RUN, POLICY, EVALUATOR, STRIPS, SENTENCES = "run", "policy", "evaluator", "strips", app_state.SENTENCES
THRESHOLDS, LOWER, UPPER = app_state.THRESHOLDS, app_state.LOWER, app_state.UPPER
DOUBTFUL = app_state.DOUBTFUL
DROPPED, PINNED = "dropped", "pinned"
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_EDITS = re.compile(r"[0-9a-f]{8}(\.[0-9a-f]{8}){0,999}")
_NUMBER = re.compile(r"[0-9]{0,30}\.?[0-9]{1,30}([eE][+-]?[0-9]{1,3})?")
_LIMIT = re.compile(r"[1-9][0-9]{0,2}")
_CALLED = {
    STRIPS: "sentence cut-off",
    SENTENCES: "limit of sentences",
    LOWER: "lower threshold",
    UPPER: "upper threshold",
    DOUBTFUL: "doubtful ending",
    DROPPED: "dropped chunks",
    PINNED: "pinned chunks",
}

Parameters = dict[str, list[str]]
Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True)
class Titles:
    """What can be chosen here: names with their titles, and which of the policies compare two scores."""

    policies: Mapping[str, str]
    evaluators: Mapping[str, str]
    two_scores: frozenset[str] = frozenset()

    def has_two(self, policy: str | None) -> bool:
        """Whether the policy, the first one if none is named, compares two scores."""
        return (policy or next(iter(self.policies), "")) in self.two_scores


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
    sentences: int | None = None
    doubtful: Doubtful | None = None
    dropped: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    problem: str = ""


def view_of(trace: Trace, policy: Policy) -> SharedView:
    """`trace` with the edits and the evaluator, and `policy` with the thresholds, that are to be seen."""
    is_plain = policy.is_plain  # no slider has its thresholds
    return SharedView(
        run_id=trace.id if RUN_ID.fullmatch(trace.id) else None,
        policy=None if is_plain else policy.name,
        evaluator=None if is_plain else trace.settings.evaluator.name,
        thresholds=None if is_plain else (policy.lower, policy.upper),
        strips=None if is_plain else policy.cutoff,
        sentences=None if is_plain else policy.refinement.top or app_state.NO_LIMIT,
        doubtful=None if is_plain else policy.doubtful,
        dropped=tuple(map(_mark, trace.edits.dropped)),
        pinned=tuple(map(_mark, trace.edits.pinned)),
    )


def link_parameters(view: SharedView, titles: Titles) -> Parameters:
    """A policy or evaluator that cannot be chosen here is left out."""
    pairs = {
        RUN: [view.run_id or ""],
        POLICY: [titles.policies.get(view.policy or "", "")],
        EVALUATOR: [titles.evaluators.get(view.evaluator or "", "")],
        **_written(view, titles),
        STRIPS: [] if view.strips is None else [str(view.strips)],
        SENTENCES: [] if view.sentences is None else [app_state.limit_title(view.sentences)],
        DOUBTFUL: [] if view.doubtful is None else [app_state.DOUBTFUL_TITLES[view.doubtful]],
        DROPPED: [".".join(view.dropped)],
        PINNED: [".".join(view.pinned)],
    }
    return {name: values for name, values in pairs.items() if any(values)}


def _written(view: SharedView, titles: Titles) -> Parameters:
    if view.thresholds is None:
        return {}
    lower, upper = map(str, view.thresholds)
    return {LOWER: [lower], UPPER: [upper]} if titles.has_two(view.policy) else {THRESHOLDS: [lower, upper]}


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
        LOWER: ("lower", lambda values: _number(_only(values))),
        UPPER: ("upper", lambda values: _number(_only(values))),
        STRIPS: ("strips", lambda values: _number(_only(values))),
        SENTENCES: ("sentences", lambda values: _limit(_only(values))),
        DOUBTFUL: ("doubtful", lambda values: _read_choice(values, app_state.DOUBTFUL_TITLES)),
        DROPPED: ("dropped", _read_edits),
        PINNED: ("pinned", _read_edits),
    }
    read = {name: (field, of(parameters[name])) for name, (field, of) in readers.items() if name in parameters}
    lost = [f"its {_CALLED.get(name, name)}" for name, (_, value) in read.items() if value is None]
    problem = f"This link was opened without {', '.join(lost)}, which cannot be used here." if lost else ""
    found = {field: value for field, value in read.values() if value is not None}
    lower, upper = found.pop("lower", None), found.pop("upper", None)
    is_wanted = titles.has_two(found.get("policy")) or "thresholds" not in found
    if lower is not None and upper is not None and is_wanted:
        found["thresholds"] = (lower, upper)
    return SharedView(**found, problem=problem)


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


def _read_choice(values: Sequence[str], known: Mapping[Choice, str]) -> Choice | None:
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


def _limit(text: str) -> int | None:
    if text == app_state.limit_title(app_state.NO_LIMIT):
        return app_state.NO_LIMIT
    return int(text) if _LIMIT.fullmatch(text) else None


# --- the buttons ------------------------------------------------------------------------------------------------------


_HERE = ("localhost", "127.0.0.1", "::1")


def draw_share(taken: Trace, trace: Trace, policy: Policy, titles: Titles, url: str | None, no_link: str) -> None:
    """A button that opens link and downloads. `taken` is the run as recorded, `trace` and `policy` what is on the page.

    `url` is where the page is. `no_link` says why there can be no link, such as a history that is off.
    """
    with st.popover("Share", icon=":material/share:", type="tertiary"):
        st.markdown("**A link to this decision**")
        if no_link or not url:
            _draw_small(f"No link can lead here: {plain(no_link or 'the address of this page is not known.')}")
        else:
            _draw_link(link(url, link_parameters(view_of(trace, policy), titles)))
        st.markdown("**A file to send**")
        with st.container(horizontal=True, gap="small"):
            draw_downloads(replace(taken, edits=trace.edits), trace, policy)
        _draw_small("The record opens here again, with every number. The report is one page that needs no program.")


def draw_downloads(record: Trace, trace: Trace, policy: Policy) -> None:
    """`record` as JSON, and what is on the page as a report; neither is made before somebody wants it."""
    name = record.id if RUN_ID.fullmatch(record.id) else "record"
    st.download_button(
        "Record (JSON)",
        # Half a character, which UTF-8 does not have, becomes the escape that JSON has for it.
        lambda: record.to_json().encode("utf-8", "backslashreplace"),
        f"crag-run-{name}.json",
        "application/json",
        icon=":material/data_object:",
        on_click="ignore",
    )
    st.download_button(
        "Report (HTML)",
        lambda: report.render(trace, policy).encode("utf-8", "replace"),
        f"crag-run-{name}.html",
        "text/html",
        icon=":material/article:",
        on_click="ignore",
    )


def draw_import(on_trace: Callable[[Trace], None], key: str) -> None:
    """Takes one exported run; a file of no use stays there with the reason.

    `on_trace` gets the run at once, at every redraw until the uploader has another `key`.
    """
    file = st.file_uploader(
        "Open a record",
        "json",
        key=key,
        max_upload_size=LARGEST_MB,
        help="The JSON file that Share saves. Everything is shown from it; nothing is asked again.",
    )
    if file is None:
        return
    try:
        trace = read_record(file.getvalue())
    except CragError as error:
        st.error(plain(str(error)), icon=":material/error:", title="This file cannot be opened")
    else:
        on_trace(trace)


def _draw_link(address: str) -> None:
    host = urlsplit(address).hostname or ""
    st.code(address, language=None, wrap_lines=True)
    who = "whoever sits at this computer" if host in _HERE else f"whoever can reach {host}"
    _draw_small(
        f"Opens the same run with the same settings for {plain(who)}, as long as the run is kept here. They see the "
        "question, the chunks and the answer; the link itself tells only the run's number and the settings."
    )


def _draw_small(words: str) -> None:
    st.markdown(f":small[:gray[{words}]]")


# --- opening ----------------------------------------------------------------------------------------------------------


def follow() -> None:
    """For app.py, before the sidebar is drawn: at a session's first visit open, or follow, the run of its address."""
    if st.session_state.get("followed"):
        return
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    asked = parse_link(given, _titles())
    wanted = link_parameters(asked, _titles())
    is_old = THRESHOLDS in given and LOWER in wanted  # from before two scores had two sliders
    if asked.problem or is_old:
        if asked.problem:
            app_state.report(asked.problem)
        st.query_params.from_dict(wanted)  # the widgets would take up what was refused
        st.rerun()
    st.session_state["followed"] = True
    for edit in (DROPPED, PINNED):
        st.query_params.pop(edit, None)
    for name in (POLICY, EVALUATOR, STRIPS, SENTENCES, DOUBTFUL):
        if (value := getattr(asked, name)) is not None:
            st.session_state[name] = value
    if asked.thresholds is not None:
        app_state.put_marks(*asked.thresholds)
    if asked.run_id is None:
        return
    if run_job.rejoin(asked.run_id):
        if joined := run_job.job():
            app_state.switch_plain(joined.progress.trace)
        return
    try:
        found = find(asked.run_id)
    except CragError as error:
        app_state.report(str(error))
        return
    if found is None:
        app_state.report(f"The run {asked.run_id} of this link is not kept here. Ask its question again.")
    else:
        _open(found, asked)


@fragment(current_run.SHARING)
def draw_sharing(busy: bool) -> None:
    """The buttons that send what is on the page, also after a threshold was moved, and open what was sent."""
    view = current_run.view()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        if view is not None and not busy:
            history = app_state.workbench().history
            is_kept = history.is_on and not history.problem
            no_link = "" if is_kept or demo_of(view.taken.id) else history.problem or "runs are not kept (CRAG_HISTORY)"
            draw_share(view.taken, view.trace, view.policy, _titles(), st.context.url, no_link)
        with st.popover("Open", icon=":material/file_open:", type="tertiary", disabled=busy):
            draw_import(_take, uploader_key("record"))


def draw_share_of(kept: Trace) -> None:
    """For the History page: a kept run as it was taken; the link leads to the Ask page."""
    url = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix("/history")
    draw_share(kept, kept, kept.settings.policy, _titles(), url or None, "")


def _take(found: Trace) -> None:
    """Show an imported run; the next redraw has an empty uploader."""
    empty_uploader("record")
    with suppress(CragError):  # where nothing is kept it can be looked at all the same
        found = run_job.keep_import(found)
    current_run.open_later(found)
    st.rerun()


def find(run_id: str) -> Trace | None:
    """A recorded demo or a kept run; raises `CragError`."""
    demo = demo_of(run_id)
    return demo.trace if demo else app_state.workbench().history.load(run_id)


def _open(found: Trace, asked: SharedView) -> None:
    edits, lost = edits_of(asked, found)
    if lost:
        app_state.report(lost)
    current_run.remember(found)
    app_state.show(found)
    app_state.use_settings_of(found, but={name: value for name, value in vars(asked).items() if value is not None})
    if edits:
        st.session_state["edits"] = measured(found, edits, app_state.workbench().meter)
    st.session_state["ask_question"] = found.asked


def _titles() -> Titles:
    policies = {name: policy.title for name, policy in app_state.policies().items()}
    two_scores = frozenset(name for name, policy in app_state.policies().items() if policy.compares_two_scores)
    return Titles(policies, {name: card.title for name, card in app_state.evaluators().items()}, two_scores)
