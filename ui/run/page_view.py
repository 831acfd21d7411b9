"""A passage where it stands in its document: the page of a PDF with its sentences marked, or the text around it."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, sentence
from crag_core.base.types.knowledge import StripVerdict
from crag_core.base.types.passages import Origin, Passage
from crag_core.view.sentences import describe_verdict, text_lines
from ui import PARTS
from ui.shell.text import link, plain

if TYPE_CHECKING:
    from crag_core.app.workbench import Workbench

_component = st.components.v2.component(
    "place", html='<div class="place"></div>', css=(PARTS / "place.css").read_text("utf-8"),
    js=(PARTS / "place.js").read_text("utf-8"),
)  # fmt: skip
_DRAWER = 900  # pixels
_LONGEST = 20_000  # characters of a file that was read whole
_WHOLE = 0.98
_ALONE = (
    "The index does not hold this document, or not in this version: here is the chunk alone, as the run "
    "recorded it. Add the document on the Documents page to see it in its place."
)
_OF_ENGINE = "Your own engine gives chunks, and no documents to show them in: here is the chunk alone."

Verdicts = Sequence[StripVerdict]


def open_place(passage: Passage, verdicts: Verdicts, workbench: Workbench) -> None:
    """Open the drawer that shows a passage in its document; to be called in the run in which its button was pressed.

    `verdicts` are those on the passage's strips, in their order.
    """
    where = "On the web" if passage.origin is Origin.WEB else "In the document"
    # Each opening starts at the passage's own page, wherever the last one was left.
    opened = f"place_{time.monotonic_ns()}"
    drawer = st.dialog(where, width=_DRAWER, position="right", icon=":material/find_in_page:")
    drawer(draw_place)(passage, verdicts, workbench, opened)


def draw_place(passage: Passage, verdicts: Verdicts, workbench: Workbench, key: str = "place") -> None:
    """The passage in its document; where its page cannot be shown, why not, and the text around it instead."""
    verdicts = sorted(verdicts, key=lambda verdict: verdict.strip.start)
    if passage.origin is Origin.WEB:
        _draw_web(passage, verdicts, key)
    elif workbench.own_engine is None and workbench.places.has_pages(passage):
        try:
            _draw_page(passage, verdicts, workbench, key)
        except CragError as error:
            _draw_text(passage, verdicts, workbench, key, str(error))
    else:
        _draw_text(passage, verdicts, workbench, key)


def _draw_page(passage: Passage, verdicts: Verdicts, workbench: Workbench, key: str) -> None:
    """Raises `CragError` before the picture is drawn."""
    show = partial(workbench.places.picture, passage, [(v.strip.start, v.strip.end, v.kept) for v in verdicts])
    with st.spinner("Opening the page"):
        own = picture = show()
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        title = st.empty()
        if own.pages > 1:
            page = st.pagination(own.pages, default=own.page, max_visible_pages=0, key=f"{key}_page")
            picture = own if page == own.page else show(page=page)
    title.markdown(_title(passage, f"page {picture.page} of {picture.pages}"))
    if picture.page == own.page and (share := picture.found_share) < _WHOLE and passage.page:
        found = f"Only {share:.0%} of the chunk could be found" if share else "The chunk could not be found"
        st.warning(f"{found} on this page. All of its text is below the picture.", icon=":material/search_off:")
    elif picture.page != own.page and not picture.boxes:
        st.caption(f"Nothing of the chunk is on this page: it stands on page {own.page}.")
    if picture.boxes:
        _draw_legend(verdicts)
    across, down = 100 / picture.width, 100 / picture.height  # to percent
    boxes = [
        {
            "left": across * box.left,
            "top": down * box.top,
            "width": across * box.width,
            "height": down * box.height,
            "hint": "" if box.span is None else sentence(describe_verdict(verdicts[box.span])),
        }
        for box in picture.boxes
    ]
    alt = _described(passage, verdicts, picture.page, is_marked=bool(boxes))
    png = base64.b64encode(picture.png).decode()
    _component(key=key, data={"png": png, "width": picture.width, "height": picture.height, "alt": alt, "boxes": boxes})
    with st.expander("The chunk as text", icon=":material/notes:"):
        _draw_lines("", passage, verdicts, "", f"{key}_text", is_still=True)


def _draw_text(passage: Passage, verdicts: Verdicts, workbench: Workbench, key: str, no_page: str = "") -> None:
    """`no_page` says why this stands in for the picture of a page."""
    before, after, why = "", "", _OF_ENGINE if workbench.own_engine else _ALONE
    try:
        with st.spinner("Looking it up"):
            around = workbench.store.surround(passage)
        if around is not None:
            why = no_page
            before = around.before if around.starts else f"… {around.before}"
            after = around.after if around.ends else f"{around.after} …"
    except CragError as error:
        why = str(error)
    st.markdown(_title(passage, f"page {passage.page}" if passage.page else ""))
    if why:
        st.info(plain(why), icon=":material/picture_as_pdf:" if why == no_page else ":material/folder_off:")
    _draw_legend(verdicts)
    _draw_lines(before, passage, verdicts, after, key)


def _draw_web(passage: Passage, verdicts: Verdicts, key: str) -> None:
    st.markdown(f"**{link(passage.source, passage.url or '')}**")
    st.caption("Only these words of the page were graded. The link opens the page as it is now.")
    _draw_legend(verdicts)
    _draw_lines("", passage, verdicts, "", key)


def _draw_lines(
    before: str, passage: Passage, verdicts: Verdicts, after: str, key: str, is_still: bool = False
) -> None:
    text = passage.text[:_LONGEST]
    if len(text) < len(passage.text):
        st.caption(f"The first {_LONGEST:,} of {len(passage.text):,} characters.")
        after = " …"
    _component(data={"lines": to_plain(text_lines(before, text, verdicts, after)), "still": is_still}, key=key)


def _draw_legend(verdicts: Verdicts) -> None:
    if verdicts:
        kept = sum(verdict.kept for verdict in verdicts)
        st.markdown(
            f":small[:green-background[:material/check: **{kept} kept**, on green with a line below] · "
            f":gray-background[:material/close: **{len(verdicts) - kept} struck out**, crossed out]]"
        )
    else:
        st.markdown(":small[:blue-background[The chunk, with a line below]; its sentences were not judged one by one]")


def _title(passage: Passage, where: str) -> str:
    return f"**{plain(passage.source)}**" + (f" · {where}" if where else "")


def _described(passage: Passage, verdicts: Verdicts, page: int, is_marked: bool) -> str:
    """What a reader who cannot see the picture needs: the page, and what is marked on it."""
    where = f"Page {page} of {passage.source}"
    if not is_marked:
        return f"{where}. Nothing is marked on it."
    kept = sum(verdict.kept for verdict in verdicts)
    marked = f"{counted(kept, 'sentence')} kept, {len(verdicts) - kept} struck out" if verdicts else "marked as a whole"
    return f"{where} with the chunk marked: {marked}. Its text stands below the picture."
