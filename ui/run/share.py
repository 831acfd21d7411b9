"""Shares a run as a link, a record or a report, and opens what was shared.

In a link settings stand as the sidebar's widgets write them into the address, and are checked by these. What else comes
back is anybody's text, which `unusable` checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from crag_core import report
from crag_core.app.uploads import LARGEST_MB, read_record
from crag_core.base.errors import CragError
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace
from ui.session import app_state, current_run, run_job
from ui.session.app_state import DOUBTFUL, LOWER, SENTENCES, THRESHOLDS, UPPER
from ui.session.demos import demo_of
from ui.session.fragments import fragment
from ui.session.uploads import empty_uploader, uploader_key
from ui.shell.text import plain

RUN, POLICY, EVALUATOR, STRIPS, DROPPED, PINNED = "run", "policy", "evaluator", "strips", "dropped", "pinned"
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_NAMES = (
    RUN, POLICY, EVALUATOR, STRIPS, DROPPED, PINNED, THRESHOLDS, LOWER, UPPER, SENTENCES, DOUBTFUL, "collection",
)  # fmt: skip
"""Of a link; where some part of it cannot be used, nothing else stays in the address."""
_MARKS = re.compile(r"[0-9a-f]{8}(\.[0-9a-f]{8}){0,999}")
_CALLED = {DROPPED: "dropped chunks", PINNED: "pinned chunks"}
_HERE = ("localhost", "127.0.0.1", "::1")

Parameters = dict[str, list[str]]


def link_parameters(trace: Trace, policy: Policy) -> Parameters:
    """Of a link to `trace` with its edits and evaluator, under `policy` with its thresholds.

    A policy or evaluator that cannot be chosen here is left out, and so is what plain RAG has no slider for.
    """
    pairs = {RUN: [trace.id] if RUN_ID.fullmatch(trace.id) else []}
    if not policy.is_plain:
        known, cards = app_state.policies(), app_state.evaluators()
        lower, upper = str(policy.lower), str(policy.upper)
        judge = trace.settings.evaluator.name
        pairs |= {
            POLICY: [known[policy.name].title] if policy.name in known else [],
            EVALUATOR: [cards[judge].title] if judge in cards else [],
            **({LOWER: [lower], UPPER: [upper]} if policy.compares_two_scores else {THRESHOLDS: [lower, upper]}),
            STRIPS: [str(policy.cutoff)],
            SENTENCES: [app_state.limit_title(policy.refinement.top or app_state.NO_LIMIT)],
            DOUBTFUL: [app_state.DOUBTFUL_TITLES[policy.doubtful]],
        }
    for name, ids in ((DROPPED, trace.edits.dropped), (PINNED, trace.edits.pinned)):
        pairs[name] = [".".join(map(_mark, ids))] if ids else []
    return {name: values for name, values in pairs.items() if values}


def link(url: str, parameters: Parameters) -> str:
    """`url` with these parameters in the place of its own; its user and password, if any, are left out."""
    parts = urlsplit(url)
    return urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", urlencode(parameters, doseq=True), "")
    )


def unusable(
    given: Mapping[str, Sequence[str]], policies: Mapping[str, Policy], evaluators: Mapping[str, EvaluatorCard]
) -> tuple[str, ...]:
    """Names of the parameters of an address that cannot be used where these can be chosen, by title or name."""
    fits: dict[str, Callable[[str], object]] = {
        RUN: RUN_ID.fullmatch,
        POLICY: lambda text: _name_of(text, policies),
        EVALUATOR: lambda text: _name_of(text, evaluators),
        DROPPED: _MARKS.fullmatch,
        PINNED: _MARKS.fullmatch,
    }
    wrong = [name for name in fits if name in given and not (len(given[name]) == 1 and fits[name](given[name][0]))]
    return (*wrong, *([THRESHOLDS] if THRESHOLDS in given and not _is_range(given[THRESHOLDS]) else []))


def _name_of(text: str, known: Mapping[str, Policy] | Mapping[str, EvaluatorCard]) -> str | None:
    """Widgets write titles into the address; in a link there may be a name."""
    return next((name for name, one in known.items() if text in (name, one.title)), None)


def _is_range(values: Sequence[str]) -> bool:
    """In their order, though the slider takes its two ends in any."""
    found = app_state.shares(values, 2)
    return found is not None and float(values[0]) == found[0]


def edits_of(dropped: str, pinned: str, trace: Trace) -> tuple[Edits, str]:
    """The edits that the marks of a link ask for, without signals; a sentence on those that this run cannot have."""
    ids = {_mark(passage.id): passage.id for passage in trace.every_passage}
    marks = [list(dict.fromkeys(filter(None, text.split(".")))) for text in (dropped, pinned)]
    out = tuple(ids[mark] for mark in marks[0] if mark in ids)
    kept = tuple(ids[mark] for mark in marks[1] if mark in ids and mark not in marks[0])
    lost = len(marks[0]) + len(marks[1]) - len(out) - len(kept)
    message = f"{counted(lost, 'chunk')} that this link drops or pins cannot be dropped or pinned in this run."
    return Edits(out, kept), message if lost else ""


def _mark(passage_id: str) -> str:
    """Short, and of harmless signs whatever the id is."""
    return fingerprint(passage_id)[:8]


# --- the buttons ------------------------------------------------------------------------------------------------------


def draw_share(taken: Trace, trace: Trace, policy: Policy, url: str | None, no_link: str) -> None:
    """A button that opens link and downloads. `taken` is the run as recorded, `trace` and `policy` what is on the page.

    `url` is where the page is. `no_link` says why there can be no link, such as a history that is off.
    """
    with st.popover("Share", icon=":material/share:", type="tertiary"):
        st.markdown("**A link to this decision**")
        if no_link or not url:
            _draw_small(f"No link can lead here: {plain(no_link or 'the address of this page is not known.')}")
        else:
            host = urlsplit(url).hostname or ""
            who = "whoever sits at this computer" if host in _HERE else f"whoever can reach {host}"
            st.code(link(url, link_parameters(trace, policy)), language=None, wrap_lines=True)
            _draw_small(
                f"Opens the same run with the same settings for {plain(who)}, as long as the run is kept here. They "
                "see the question, the chunks and the answer; the link itself tells only the run's number and the "
                "settings."
            )
        st.markdown("**A file to send**")
        with st.container(horizontal=True, gap="small"):
            _draw_downloads(replace(taken, edits=trace.edits), trace, policy)
        _draw_small("The record opens here again, with every number. The report is one page that needs no program.")


def _draw_downloads(record: Trace, trace: Trace, policy: Policy) -> None:
    """`record` as JSON, and what is on the page as a report; neither is made before somebody wants it."""
    name = record.id if RUN_ID.fullmatch(record.id) else "record"
    st.download_button(
        "Record (JSON)",
        # Half a character, which UTF-8 does not have, becomes the escape that JSON has for it.
        lambda: record.to_json().encode("utf-8", "backslashreplace"),
        f"crag-run-{name}.json", "application/json", icon=":material/data_object:", on_click="ignore",
    )  # fmt: skip
    st.download_button(
        "Report (HTML)", lambda: report.render(trace, policy).encode("utf-8", "replace"),
        f"crag-run-{name}.html", "text/html", icon=":material/article:", on_click="ignore",
    )  # fmt: skip


def _draw_import() -> None:
    """Takes one exported run; a file of no use stays there with the reason."""
    file = st.file_uploader(
        "Open a record", "json", key=uploader_key("record"), max_upload_size=LARGEST_MB,
        help="The JSON file that Share saves. Everything is shown from it; nothing is asked again.",
    )  # fmt: skip
    if file is None:
        return
    try:
        found = read_record(file.getvalue())
    except CragError as error:
        st.error(plain(str(error)), icon=":material/error:", title="This file cannot be opened")
        return
    empty_uploader("record")
    with suppress(CragError):  # where nothing is kept it can be looked at all the same
        found = run_job.keep_import(found)
    current_run.open_later(found)
    st.rerun()


def _draw_small(words: str) -> None:
    st.markdown(f":small[:gray[{words}]]")


@fragment(current_run.SHARING)
def draw_sharing(busy: bool) -> None:
    """The buttons that send what is on the page, also after a threshold was moved, and open what was sent."""
    view = current_run.view()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        if view is not None and not busy:
            history = app_state.workbench().history
            is_kept = history.is_on and not history.problem
            no_link = "" if is_kept or demo_of(view.taken.id) else history.problem or "runs are not kept (CRAG_HISTORY)"
            draw_share(view.taken, view.trace, view.policy, st.context.url, no_link)
        with st.popover("Open", icon=":material/file_open:", type="tertiary", disabled=busy):
            _draw_import()


def draw_share_of(kept: Trace) -> None:
    """For the History page: a kept run as it was taken; the link leads to the Ask page."""
    url = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix("/history")
    draw_share(kept, kept, kept.settings.policy, url or None, "")


# --- opening ----------------------------------------------------------------------------------------------------------


def follow() -> None:
    """For app.py, before the sidebar is drawn: at a session's first visit open, or follow, the run of its address."""
    if st.session_state.get("followed"):
        return
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    policies, evaluators = app_state.policies(), app_state.evaluators()
    if wrong := unusable(given, policies, evaluators):
        left_out = ", ".join(f"its {_CALLED.get(name, name)}" for name in wrong)
        app_state.report(f"This link was opened without {left_out}, which cannot be used here.")
        kept = {name: values for name, values in given.items() if name in _NAMES and name not in wrong}
        st.query_params.from_dict(kept)
        st.rerun()  # else the widgets would take up what was refused
    st.session_state["followed"] = True
    marks = ("".join(given.get(name, ())) for name in (DROPPED, PINNED))
    for name in (DROPPED, PINNED):
        st.query_params.pop(name, None)
    for name, known in ((POLICY, policies), (EVALUATOR, evaluators)):
        if name in given and (chosen := _name_of(given[name][0], known)):
            st.session_state[name] = chosen
            if given[name] == [chosen]:
                st.query_params[name] = known[chosen].title
    if THRESHOLDS in given:  # also of a policy that has had two sliders since
        app_state.put_marks(*map(float, given[THRESHOLDS]))
    if RUN in given:
        _open(given[RUN][0], set(given) | ({THRESHOLDS} if LOWER in given else set()), *marks)


def _open(run_id: str, chosen: set[str], dropped: str, pinned: str) -> None:
    """`chosen`: the widgets that the address sets, whatever the run was made with."""
    if run_job.rejoin(run_id):
        if joined := run_job.job():
            app_state.switch_plain(joined.progress.trace)
        return
    with app_state.reporting():
        found = find(run_id)
        if found is None:
            app_state.report(f"The run {run_id} of this link is not kept here. Ask its question again.")
            return
        edits, lost = edits_of(dropped, pinned, found)
        if lost:
            app_state.report(lost)
        current_run.open_run(found, own_settings=False)
        app_state.use_settings_of(found, but=chosen)
        if edits:
            current_run.edit(found, edits)


def find(run_id: str) -> Trace | None:
    """A recorded demo or a kept run; raises `CragError`."""
    demo = demo_of(run_id)
    return demo.trace if demo else app_state.workbench().history.load(run_id)
