"""Shares a run: link, JSON and report; opens a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

import streamlit as st

from crag_core import report
from crag_core.base.errors import CragError
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace
from ui.run.share.share_links import RUN_ID, Titles, link, link_parameters, view_of
from ui.session.trace_upload import LARGEST_MB, read_record
from ui.text import plain

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
