"""One recorded run, or two side by side with the settings in which they differ, on the History page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted, readable, sentence, shortened
from crag_core.storage.history.runs import KeptRun
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import Trace
from crag_core.view.record import asked_as, settings_of
from crag_core.view.score_words import reason_of
from ui.compare.side_by_side import cost, draw_answer, draw_cost, draw_evidence
from ui.history import history_state
from ui.run import share
from ui.run.verdict import headline
from ui.shell.text import plain, versioned

_LONGEST_QUESTION = 200
_OWN = ("Run", "Fingerprint of the settings")
"""Which no two runs, or no two settings, share."""


def draw_selected(selected: Sequence[KeptRun]) -> None:
    """One run, or two side by side; of more, what can be done."""
    if not selected:
        st.caption("Select a row to see its run, two to compare.")
        return
    if len(selected) > 2:
        st.caption(f"{counted(len(selected), 'run')} selected. Select one to see it, two to compare.")
        return
    found = []
    for run in selected:
        try:
            trace = history_state.load(run)
        except CragError as error:
            told = f"The record of “{shortened(run.question, 80)}” cannot be read. {error}"
            st.error(plain(told), icon=":material/error:", title="This run cannot be opened")
            st.caption("The record is unchanged; a newer version may open it. Delete it above if you do not need it.")
            return
        if trace is None:
            st.info("This run has been deleted. Press Refresh.", icon=":material/info:")
            return
        found.append(trace)
    if len(found) == 1:
        _draw_one(selected[0], found[0])
    else:
        _draw_pair(selected, found)


def _draw_one(run: KeptRun, trace: Trace) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(plain(shortened(trace.question, _LONGEST_QUESTION)), anchor=False)
        if asked := asked_as(trace):
            st.caption(plain(shortened(asked, _LONGEST_QUESTION)))
        _draw_verdict(trace)
        made = trace.settings
        lower, upper, cutoff = (readable(one)[0] for one in made.policy.thresholds)
        message = (
            f"policy {made.policy.title}, lower {lower}, upper {upper}, cut-off {cutoff}",
            f"evaluator {versioned(made.evaluator.title, made.evaluator.version)}",
            f"embedding {made.embedding}",
            f"answer by {versioned('quotations' if made.writer == EXTRACTIVE else made.writer, made.writer_version)}",
            f"{counted(made.top_k, 'chunk')}, web {made.web_mode}",
            f"settings {trace.fingerprint}",
        )
        st.caption(plain(" · ".join(message)))
        whose = f" · asked by {run.asked_by}" if run.asked_by else ""
        edits = len(trace.edits.dropped) + len(trace.edits.pinned)
        changed = f" · {counted(edits, 'chunk')} dropped or pinned" if edits else ""
        st.caption(plain(f"{cost(trace)}{changed}{whose} · kept {history_state.format_time(run)} · run {run.id}"))
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            share.draw_share_of(trace)


def _draw_verdict(trace: Trace) -> None:
    if trace.failure:
        st.markdown(f":red[:material/error:] {plain(f'{trace.failure.summary} {trace.failure.hint}'.strip())}")
    if trace.asks_back:
        st.markdown(f":violet[:material/contact_support: Asks back:] {plain(trace.asks_back)}")
    elif trace.decision is None:
        st.markdown(":gray[:material/pending: No decision.]")
    if trace.decision is not None:
        st.markdown(
            f"**{headline(trace.decision)}**  \n{plain(sentence(reason_of(trace.decision, trace.settings.policy)))}"
        )


def _draw_pair(runs: Sequence[KeptRun], found: Sequence[Trace]) -> None:
    is_one_question = found[0].question == found[1].question
    st.subheader("Side by side", anchor=False)
    if is_one_question:
        _draw_question(found[0])
    with st.grid(2, min_column_width=330, gap="small") as grid:
        for letter, run, trace in zip("AB", runs, found, strict=True):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                title, when = plain(trace.settings.policy.title), plain(history_state.format_time(run))
                st.markdown(f"**{letter} · {title}** :gray[:small[{when}]]")
                if not is_one_question:
                    _draw_question(trace)
                _draw_verdict(trace)
                if (decision := trace.decision) is not None:
                    graded = counted(sum(grade.score is not None for grade in trace.grades or ()), "graded chunk")
                    st.caption(graded if decision.verdict else f"{plain(decision.label)}: nothing graded")
                draw_answer(trace)
                draw_cost(trace, f"history_open_{letter}")
    st.markdown("**Settings that differ**")
    if rows := differing(*found):
        st.table(
            [{"setting": name, "A": plain(one), "B": plain(other)} for name, (one, other) in rows.items()],
            border="horizontal", hide_index=True, alt="Settings that differ between the two runs",
        )  # fmt: skip
    else:
        is_same = found[0].fingerprint == found[1].fingerprint
        st.markdown("None." if is_same else "None in words: rules of the policy, or which files were pinned.")
    st.markdown("**Evidence of each answer**")
    draw_evidence(found, "history_only")


def _draw_question(trace: Trace) -> None:
    st.markdown(f"**{plain(shortened(trace.question, _LONGEST_QUESTION))}**")


def differing(first: Trace, second: Trace) -> dict[str, tuple[str, str]]:
    """Each setting that reads otherwise in the two records, by its name, with its values."""
    one, other = dict(settings_of(first)), dict(settings_of(second))
    names = [name for name in one | other if name not in _OWN]
    found = {name: (one.get(name, "–"), other.get(name, "–")) for name in names}
    return {name: values for name, values in found.items() if values[0] != values[1]}
