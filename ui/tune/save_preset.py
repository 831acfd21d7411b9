"""Saves thresholds as a preset, and exports them: TOML, Python, HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.experiments.statistics.monitoring import binned
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.report.thresholds.page import render_thresholds
from ui.session import access, app_state, tune_state
from ui.session.access import Right
from ui.session.tune_state import Seen
from ui.shell import presets
from ui.text import plain


def draw_preset(seen: Seen, objective: Objective, confidence: float | None, found: Recommendation) -> None:
    """The thresholds of the sidebar, with what they were chosen for; `found` are those that are recommended."""
    policy = app_state.policy()
    st.markdown(
        f"The thresholds of the sidebar, lower **{policy.lower:.3f}**, upper **{policy.upper:.3f}** and sentence "
        f"cut-off **{policy.cutoff:.2f}**, for {plain(policy.title)} with {plain(seen.conditions.evaluator)}."
    )
    promised = found.guaranteed is not None and found.guaranteed.covers(policy.lower, policy.upper)
    made, message = tune_state.calibration(seen)
    st.caption(f":material/straighten: {plain(message)}")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            "Name", f"{policy.name} {seen.labelled.name}"[:60], max_chars=60, key="tune_preset_name", width=320
        )
        preset = TunedPreset(
            name=name.strip() or "preset",
            policy=policy.name,
            lower=policy.lower,
            upper=policy.upper,
            cutoff=policy.cutoff,
            sentences=policy.strips.top or 0,
            conditions=seen.conditions,
            labelled=seen.labelled.name,
            labels=seen.labelled.fingerprint,
            questions=len(seen.graded),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            reason=_reason(objective.describe(confidence), found, found.is_at(policy.lower, policy.upper)),
            calibration=made,
            promise=found.guaranteed.limits if found.guaranteed and promised else None,
            scores=binned(tune_state.board(seen).deciding().upper),
        )
        if access.may(Right.TUNE) and st.button(
            "Keep this preset", type="primary", icon=":material/bookmark_add:", key="tune_preset_keep"
        ):
            _keep(preset)
        st.download_button(
            "TOML", preset.to_toml(), f"{preset.name}.toml", "application/toml", icon=":material/download:",
            on_click="ignore", key="tune_toml",
        )  # fmt: skip
        st.download_button(
            "Report", partial(render_thresholds, preset, tune_state.board(seen), found, objective, tune_state.prices()),
            f"{preset.name}.html", "text/html", icon=":material/description:", on_click="ignore", key="tune_report",
            help="One page for somebody who has to agree to these thresholds. Opens in any browser, without network.",
        )  # fmt: skip
    st.caption("On the Ask page it is among the presets of the sidebar; on the command line `--preset`, in Python:")
    st.code(preset.to_python(preset.name), language="python", wrap_lines=True)


def _reason(aim: str, found: Recommendation, is_at: bool) -> str:
    if not is_at:
        return "set by hand"
    return f"kept: nothing else was better by {aim}" if found.keep else aim


def _keep(preset: TunedPreset) -> None:
    with app_state.reporting():
        access.require(Right.TUNE)
        app_state.workbench().experiments.save_preset(preset)
        presets.forget()
    st.rerun()  # the sidebar, which offers it, and the list of those that are kept


def draw_kept() -> None:
    """The kept presets, with a warning where something has changed since, and a button that deletes."""
    names = app_state.workbench().experiments.preset_names()
    if not names:
        return
    with st.expander("Kept presets", icon=":material/bookmarks:"):
        for name in names:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(_describe(name), width="stretch")
                if access.may(Right.TUNE):
                    st.button(
                        "Delete", on_click=_delete, args=(name,), icon=":material/delete:", type="tertiary",
                        key=f"tune_delete_{name}",
                    )  # fmt: skip


def _describe(name: str) -> str:
    try:
        preset = app_state.workbench().experiments.load_preset(name)
    except CragError as error:
        return f":orange[:material/warning: {plain(str(error))}]"
    if fault := presets.fault(preset):
        return f":orange[:material/warning: {plain(f'{name}: {fault}')}]"
    message = f"**{plain(name)}** {plain(preset.policy)}, lower {preset.lower:g}, upper {preset.upper:g}"
    message += f": {plain(preset.reason)}"
    now = tune_state.conditions()
    warning = preset.warning(now) if preset.conditions.evaluator == now.evaluator else ""
    if warning:
        return f"{message}  \n:orange[:material/warning: {plain(warning)}]"
    seen = tune_state.watched(preset)
    icon = ":material/monitoring:" if seen.is_well else ":orange[:material/warning:]"
    return "  \n".join([message, *(f"{icon} {plain(line)}" for line in seen.lines)])


@app_state.reporting()
def _delete(name: str) -> None:
    access.require(Right.TUNE)
    app_state.workbench().experiments.delete_preset(name)
    presets.forget()
