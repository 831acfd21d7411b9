"""Presets in the sidebar: choosing one, and showing it while its thresholds are in use."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import readable
from crag_core.decision.policy import Policy
from crag_core.experiments.thresholds.preset import TunedPreset
from ui.session import app_state, labelled_sets
from ui.shell.text import plain


def kept_for(policy: str) -> tuple[TunedPreset, ...]:
    """Those that were chosen for a policy and can be used; the Tune page tells of those that cannot."""
    return tuple(
        preset for preset in _kept(str(app_state.settings().home)) if preset.policy == policy and not fault(preset)
    )


def fault(preset: TunedPreset) -> str:
    """Why a preset cannot be used here, "" where it can."""
    for kind, name, known in (
        ("policy", preset.policy, app_state.policies()),
        ("evaluator", preset.conditions.evaluator, app_state.evaluators()),
    ):
        if name not in known:
            return f"its {kind} {name!r} is not known here"
    if not app_state.policies()[preset.policy].allows(preset.lower, preset.upper):
        return "its lower threshold exceeds its upper one"
    return ""


def draw(policy: Policy) -> None:
    """To choose one: those kept here, and those of the policy's file, for the evaluator that it was described with."""
    tuned = kept_for(policy.name)
    described = policy.presets if app_state.evaluator() == policy.evaluator else ()
    if not (tuned or described):
        return
    with st.popover("Presets", icon=":material/bookmarks:", type="tertiary"), st.container(key="choose_preset"):
        for mine in tuned:
            at = mine.applied_to(app_state.policies()[mine.policy])
            note = f"Tuned with {mine.questions} questions of {mine.labelled}: {mine.reason}."
            _draw_one(mine.name, f"tuned_{mine.name}", at, note, mine.conditions.evaluator)
        for one in described:
            name = one.name.replace("-", " ").capitalize()
            _draw_one(name, f"preset_{one.name}", policy.preset(one.name), one.note)


def _draw_one(name: str, key: str, at: Policy, note: str, evaluator: str = "") -> None:
    icon = ":material/bookmark:" if evaluator else None
    label = f"{plain(name)}: {' and '.join(readable(at.lower, at.upper))}"
    st.button(label, key=key, on_click=put, args=(at, evaluator), icon=icon)
    st.caption(plain(note))


def put(at: Policy, evaluator: str = "") -> None:
    """For a callback: these thresholds in the sidebar, and with them an evaluator, if one is named."""
    if evaluator:
        app_state.choose_evaluator(evaluator)
    app_state.set_thresholds(at)
    st.rerun()


def in_use(policy: Policy) -> TunedPreset | None:
    """The preset whose thresholds and evaluator the sidebar has, the newest of several."""
    evaluator = app_state.evaluator()
    fitting = [
        preset
        for preset in kept_for(policy.name)
        if preset.conditions.evaluator == evaluator
        and (round(preset.lower, 3), round(preset.upper, 3)) == (round(policy.lower, 3), round(policy.upper, 3))
    ]
    return max(fitting, key=lambda preset: preset.created, default=None)


def draw_in_use(policy: Policy) -> None:
    """Which preset is in use, and whether anything that it was chosen for has changed since."""
    preset = in_use(policy)
    if preset is None:
        return
    st.caption(f":material/bookmark: Preset “{plain(preset.name)}”")
    try:
        warning = preset.warning(labelled_sets.conditions(()))
    except CragError:
        return  # the sidebar says why nothing can be graded
    if warning:
        st.caption(f":orange[:material/warning: {plain(warning)}]")


def forget() -> None:
    """After a preset was kept or deleted."""
    _kept.clear()


@st.cache_data(ttl=5, show_spinner=False)
def _kept(home: str) -> tuple[TunedPreset, ...]:
    kept, found = app_state.workbench().experiments, []
    with suppress(CragError):
        for name in kept.preset_names():
            with suppress(CragError):
                found.append(kept.load_preset(name))
    return tuple(found)
