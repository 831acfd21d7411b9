"""One recorded run, or two side by side, on the History page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, shortened
from crag_core.base.types import AnswerState, Knowledge
from crag_core.storage.history.run_summary import KeptRun
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace
from crag_core.view.evidence_table import side_by_side
from ui import PARTS
from ui.compare.compare_page import cost, lines_html
from ui.history import history_state
from ui.history.run_diff import differing
from ui.run.share import open_link
from ui.run.verdict import headline
from ui.text import paragraphs, plain, versioned

_CSS = (PARTS / "versus.css").read_text("utf-8")
_LETTERS = "AB"
_LONGEST_QUESTION = 200


def draw_selected(selected: Sequence[KeptRun]) -> None:
    """What there is to see of one or two; of more, what can be done."""
    if not selected:
        st.caption("Select a row to open its run, two to compare them.")
        return
    if len(selected) > 2:
        st.caption(f"{counted(len(selected), 'run')} selected. Select one to open it, two to compare them.")
        return
    found = []
    for run in selected:
        try:
            trace = history_state.load(run)
        except CragError as error:
            _draw_unreadable(run, error)
            return
        if trace is None:
            st.info("This run was deleted meanwhile. Press Look again.", icon=":material/info:")
            return
        found.append(trace)
    if len(found) == 1:
        _draw_one(selected[0], found[0])
    else:
        _draw_pair(selected, found)


def settings_line(trace: Trace) -> str:
    """Settings and versions of a run in one line, with their fingerprint."""
    made = trace.settings
    lower, upper, cutoff = made.policy.thresholds
    message = [
        f"policy {made.policy.title}, {lower:.3f} and {upper:.3f}, sentences above {cutoff:.2f}",
        f"evaluator {versioned(made.evaluator.title, made.evaluator.version)}",
        f"embedding {made.embedding}",
        f"answer by {versioned(made.writer, made.writer_version)}",
        f"{counted(made.top_k, 'chunk')}, web {made.web_mode}",
        f"settings {trace.fingerprint}",
    ]
    return " · ".join(message)


def _draw_unreadable(run: KeptRun, error: CragError) -> None:
    st.error(
        plain(f"The record of “{shortened(run.question, 80)}” cannot be read. {error}"), icon=":material/error:",
        title="This run cannot be opened",
    )  # fmt: skip
    st.caption("It stays as it is; a version of the program that knows it can open it. It can be deleted above.")


def _draw_one(run: KeptRun, trace: Trace) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(plain(shortened(trace.question, _LONGEST_QUESTION)), anchor=False)
        _draw_verdict(trace)
        st.caption(plain(settings_line(trace)))
        whose = f" · asked by {run.asked_by}" if run.asked_by else ""
        edits = len(trace.edits.dropped) + len(trace.edits.pinned)
        changed = f" · {counted(edits, 'chunk')} dropped or pinned" if edits else ""
        st.caption(plain(f"{cost(trace)}{changed}{whose} · kept {history_state.format_time(run)} · run {run.id}"))
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            open_link.draw_share_of(trace)


def _draw_verdict(trace: Trace) -> None:
    if trace.failure:
        st.markdown(f":red[:material/error:] {plain(f'{trace.failure.summary} {trace.failure.hint}'.strip())}")
    if trace.decision is None:
        st.markdown(":gray[:material/pending: Nothing was decided.]")
        return
    reason = trace.decision.reason
    st.markdown(f"**{headline(trace.decision)}**  \n{plain(f'{reason[:1].upper()}{reason[1:]}.')}")


# Two of them


def _draw_pair(runs: Sequence[KeptRun], found: Sequence[Trace]) -> None:
    routes = [reroute(trace, trace.settings.policy) for trace in found]
    same = len({trace.question for trace in found}) == 1
    st.subheader("Side by side", anchor=False)
    if same:
        st.markdown(f"**{plain(shortened(found[0].question, _LONGEST_QUESTION))}**")
    with st.grid(2, min_column_width=330, gap="small") as grid:
        for letter, run, trace in zip(_LETTERS, runs, found, strict=True):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                _draw_side(letter, run, trace, not same)
    _draw_settings(found)
    _draw_evidence(found, routes)


def _draw_side(letter: str, run: KeptRun, trace: Trace, tells_question: bool) -> None:
    made = trace.settings
    st.markdown(f"**{letter} · {plain(made.policy.title)}** :gray[:small[{plain(history_state.format_time(run))}]]")
    if tells_question:
        st.markdown(f"**{plain(shortened(trace.question, _LONGEST_QUESTION))}**")
    _draw_verdict(trace)
    decision = trace.decision
    if decision is not None:
        score = "none" if decision.score is None else f"{decision.score:.3f}"
        graded = sum(grade.score is not None for grade in trace.grades or ())
        st.caption(f"Overall score {score}, from {counted(graded, 'graded passage')}.")
    answer = trace.answer
    if answer is None or answer.state is not AnswerState.COMPLETE:
        st.markdown(f":material/block: {plain(answer.message if answer else 'No answer.')}")
    else:
        st.markdown(paragraphs(answer.text))
    st.caption(f":material/receipt: {cost(trace)}")
    if st.button("Open in Ask", key=f"history_open_{letter}", type="tertiary", icon=":material/open_in_new:"):
        history_state.open_on_ask(trace)


def _draw_settings(found: Sequence[Trace]) -> None:
    st.markdown("**Settings that differ**")
    rows = differing(found[0].settings, found[1].settings)
    if not rows:
        st.markdown(f"None: both ran under the settings {found[0].fingerprint}.")
        return
    st.table(
        [{"setting": plain(row.setting), "A": plain(row.first), "B": plain(row.second)} for row in rows],
        border="horizontal", hide_index=True, alt="Settings that differ between the two runs",
    )  # fmt: skip


def _draw_evidence(found: Sequence[Trace], routes: Sequence[Reroute]) -> None:
    # A run that broke off before its evidence was put together has given nothing to read.
    given = [
        Knowledge((), (), ()) if trace.context is None else routed.knowledge
        for trace, routed in zip(found, routes, strict=True)
    ]
    lines = side_by_side(given)
    st.markdown("**What each answer was given to read**")
    if not lines:
        st.markdown("Neither was given any sentence.")
        return
    both = sum(all(line.held) for line in lines)
    only = [sum(line.held == sides for line in lines) for sides in ((True, False), (False, True))]
    st.markdown(f"{counted(both, 'sentence')} in both, {only[0]} in A alone, {only[1]} in B alone.")
    differs = st.toggle("Only what differs", key="history_only", disabled=not any(only))
    names = [trace.settings.policy.title for trace in found]
    st.html(f"<style>{_CSS}</style>{lines_html(names, lines, differs and any(only))}")
