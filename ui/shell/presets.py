"""Presets in the sidebar: choosing one, and showing it while its thresholds are in use."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from crag_core.base.errors import CragError
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


def use(preset: TunedPreset) -> None:
    """For a callback: its evaluator and thresholds in the sidebar."""
    app_state.choose_evaluator(preset.conditions.evaluator)
    app_state.set_thresholds(preset.applied_to(app_state.policies()[preset.policy]))
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


def probability(score: float | None) -> str:
    """What a score is worth by the calibration of the preset in use, in words; "" without one."""
    preset = in_use(app_state.policy())
    if preset is None or preset.calibration is None or score is None:
        return ""
    made = preset.calibration
    share = f"{made.probability(score):.0%} of the questions that score like this are answerable"
    return f"{share}, by the curve fitted to {made.questions} labelled ones"


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
