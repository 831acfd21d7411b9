"""Saves thresholds as a preset, and exports them: TOML, HTML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import readable
from crag_core.experiments.store import set_name_of
from crag_core.experiments.thresholds.guarantee import Pair
from crag_core.experiments.thresholds.objective import Objective
from crag_core.experiments.thresholds.preset import TunedPreset, preset_of
from crag_core.experiments.thresholds.recommend import Recommendation
from crag_core.pipeline.run import now
from crag_core.report.thresholds.page import render_thresholds
from ui.session import access, app_state, labelled_sets
from ui.session.keys import kept
from ui.shell import presets
from ui.shell.text import plain
from ui.tune import tune_state
from ui.tune.tune_state import Seen, TunePage

_NAME = "tune_preset_name"


def draw_preset(seen: Seen, objective: Objective, confidence: float | None, found: Recommendation) -> None:
    """The name, and a button for each pair that stands above: the recommended one, where it is another, and yours."""
    policy = app_state.policy()
    own = policy.lower, policy.upper
    make = partial(_preset, seen, objective, confidence, found)
    is_better = not found.why_not and not found.keep and not found.is_at(*own)
    whose = "nearest" if found.misses else "recommended"
    offered = [(whose, (found.lower, found.upper))] if is_better else []
    used = presets.in_use(policy)
    name = set_name_of(_draw_name(f"{seen.labelled.name} {policy.name}"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for whose, pair in [*offered, ("mine", own)]:
            if access.is_administrator():
                st.button(
                    f"Keep {whose}: {' and '.join(readable(*pair))}", on_click=_keep, args=(make, name, pair),
                    type="primary" if whose == "recommended" or not (offered or used) else "secondary",
                    icon=":material/bookmark_add:", key=f"tune_keep_{whose}",
                )  # fmt: skip
        _draw_export(make(name, own), seen, objective, found)
    names = app_state.workbench().experiments.preset_names()
    if name in names and (used is None or used.name != name):
        st.caption(f"Replaces the kept preset “{plain(name)}”.")
    elif used is not None:
        st.caption(f":material/check: Kept as “{plain(used.name)}”, and in use. On Ask it is among the presets.")


def _draw_name(title: str) -> str:
    """What the field holds; it starts with a name that no preset has, and does so again for another set or policy."""
    names = app_state.workbench().experiments.preset_names()
    tried = (set_name_of(title if number == 1 else f"{title[:56]} {number}") for number in count(1))
    start = next(one for one in tried if one not in names)
    page = kept(TunePage)
    if page.preset_start != start:
        page.preset_start = st.session_state[_NAME] = start
    return st.text_input("Name of the preset", max_chars=60, key=_NAME, width=320)


def _preset(
    seen: Seen, objective: Objective, confidence: float | None, found: Recommendation, name: str, pair: Pair
) -> TunedPreset:
    """`pair` under the sidebar's policy, with what it was chosen for."""
    policy = app_state.policy().with_thresholds(*pair)
    reason = found.reason(objective.describe(confidence)) if found.is_at(*pair) else "set by hand"
    return preset_of(name, policy, seen.conditions, seen.labelled, len(seen.graded), reason=reason, created=now())


@app_state.reporting()
def _keep(make: Callable[[str, Pair], TunedPreset], name: str, pair: Pair) -> None:
    """For a callback: save the preset, and put the thresholds there."""
    access.require_administrator()
    app_state.workbench().experiments.save_preset(make(name, pair))
    presets.forget()
    app_state.put_marks(*pair)
    st.rerun()  # the sidebar, which offers it, and the list of those that are kept


def _draw_export(preset: TunedPreset, seen: Seen, objective: Objective, found: Recommendation) -> None:
    with st.popover("Export", icon=":material/download:", type="tertiary"):
        st.download_button(
            "Report", partial(render_thresholds, preset, tune_state.board(seen), found, objective),
            f"{preset.name}.html", "text/html", icon=":material/description:", on_click="ignore", key="tune_report",
            help="One HTML page for whoever has to agree to these thresholds.",
        )  # fmt: skip
        st.download_button(
            "TOML", preset.to_toml(), f"{preset.name}.toml", "application/toml", icon=":material/download:",
            on_click="ignore", key="tune_toml",
        )  # fmt: skip


def draw_kept() -> None:
    """The kept presets, with a warning where something has changed since, and a button that deletes."""
    names = app_state.workbench().experiments.preset_names()
    if not names:
        return
    with st.expander("Kept presets", icon=":material/bookmarks:"):
        for name in names:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(_describe(name), width="stretch")
                if access.is_administrator():
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
    message = f"**{plain(name)}** {plain(preset.policy)}, {' and '.join(readable(preset.lower, preset.upper))}"
    message += f": {plain(preset.reason)}"
    found = labelled_sets.in_use()
    now = labelled_sets.conditions(found.questions if found else ())
    warning = preset.warning(now) if preset.conditions.evaluator == now.evaluator else ""
    return f"{message}  \n:orange[:material/warning: {plain(warning)}]" if warning else message


@app_state.reporting()
def _delete(name: str) -> None:
    access.require_administrator()
    app_state.workbench().experiments.delete_preset(name)
    presets.forget()
