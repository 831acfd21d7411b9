"""The sidebar of every page: policy, thresholds, models, web and health."""

from __future__ import annotations

import streamlit as st

from crag_core.app.workbench import Models
from crag_core.decision.policy import Aggregation, Policy
from crag_core.evaluators import cards
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from ui.session import app_state, current_run
from ui.shell import health, presets, sign_in
from ui.text import plain

_WEB_MODES = {WebMode.AUTO: "Auto", WebMode.ASK: "Ask first", WebMode.OFF: "Off"}


def draw() -> None:
    models = app_state.look_for_models(app_state.settings())
    app_state.start_choices(models)
    with st.sidebar:
        sign_in.draw_who()
        _draw_policy()
        current_run.mark_drawn(current_run.THRESHOLDS)
        _draw_thresholds()
        _draw_collection()
        health.draw_live(_draw_writer, models)
        _draw_web_mode()
        health.draw_health(models)


def _draw_policy() -> None:
    policies = app_state.policies()
    name = st.selectbox(
        "Policy",
        list(policies),
        format_func=lambda name: policies[name].title if name in policies else str(name),
        key="policy",
        bind="query-params",
        on_change=app_state.start_policy,
        help="How the scores of the chunks become one decision, and what each decision does.",
    )
    st.caption(plain(policies[name].summary))
    for problem in app_state.shared_workbench().problems:
        st.caption(f":orange[:material/warning: {plain(problem)}]")
    known = cards()
    evaluator = st.selectbox(
        "Evaluator",
        list(known),
        format_func=lambda name: known[name].title if name in known else str(name),
        key="evaluator",
        bind="query-params",
        on_change=app_state.start_thresholds,
        help="Who grades each chunk against the question. Another evaluator grades at the next run.",
    )
    if known[evaluator].calls_model and st.session_state["model"] == EXTRACTIVE:
        st.caption(":orange[:material/warning:] Needs a language model: choose one below.")
    elif not policies[name].reads_grades:
        st.caption("This policy decides by measures of the whole set; the grades are shown beside them.")


@st.fragment(key=current_run.THRESHOLDS)
def _draw_thresholds() -> None:
    """A moved threshold redraws this and what it decides, not the page."""
    start = app_state.suited(st.session_state["policy"], st.session_state["evaluator"])
    st.slider(
        "Thresholds, lower and upper",
        0.0,
        1.0,
        (start.lower, start.upper),
        0.005,
        format="%.3f",
        key="thresholds",
        bind="query-params",
        on_change=current_run.slide,
        help="Moving them decides again at once, from what was recorded. No model is called.",
    )
    st.slider(
        "Sentence cut-off",
        0.0,
        1.0,
        start.strips.cutoff,
        0.01,
        key="strips",
        bind="query-params",
        on_change=current_run.slide,
        help="Sentences that do not score above it are struck out, where the policy refines.",
    )
    policy = app_state.policy()
    _draw_legend(policy)
    presets.draw_in_use(policy)
    with st.container(horizontal=True):
        tuned = presets.kept_for(policy.name)
        if policy.presets or tuned:
            _draw_presets(policy, tuned)
        if policy.thresholds != start.thresholds:
            st.button(
                "Back to the defaults", on_click=_set_thresholds, args=(start,), type="tertiary", icon=":material/undo:"
            )


def _set_thresholds(at: Policy) -> None:
    app_state.set_thresholds(*at.thresholds)
    st.rerun()


def _draw_presets(policy: Policy, tuned: tuple[TunedPreset, ...]) -> None:
    with st.popover("Presets", icon=":material/bookmarks:", type="tertiary"):
        for mine in tuned:
            st.button(
                f"{plain(mine.name)}: {mine.lower:g} and {mine.upper:g}",
                key=f"tuned_{mine.name}",
                on_click=presets.use,
                args=(mine,),
                icon=":material/bookmark:",
            )
            st.caption(plain(f"Tuned with {mine.questions} questions of {mine.labelled}: {mine.reason}."))
        for preset in policy.presets:
            st.button(
                f"{plain(preset.name.replace('-', ' ').capitalize())}: {preset.lower:g} and {preset.upper:g}",
                key=f"preset_{preset.name}",
                on_click=_set_thresholds,
                args=(policy.preset(preset.name),),
            )
            st.caption(plain(preset.note))


def _draw_legend(policy: Policy) -> None:
    above = "above" if policy.upper_is_exclusive else "from"
    below = "up to" if policy.lower_is_inclusive else "below"
    between = "between"
    if policy.aggregation is Aggregation.TWO_SIGNAL:
        reached = "above" if policy.lower_is_inclusive else "from"
        between = f"· else topical {reached} {policy.lower:g}"
        above, below = f"· answering {above}", f"· topical {below}"
    st.caption(
        f":green[:material/check_circle: {plain(policy.correct.label)}] {above} {policy.upper:g}  \n"
        f":orange[:material/help: {plain(policy.ambiguous.label)}] {between}  \n"
        f":red[:material/cancel: {plain(policy.incorrect.label)}] {below} {policy.lower:g}"
    )


def _draw_collection() -> None:
    """Only where there is something to choose, or was: one that is emptied, or cannot be read, stays chosen."""
    names = app_state.collections()
    chosen = st.session_state.get("collection") or ""
    if len(names) < 2 and not chosen:
        st.session_state.pop("collection", None)
        return
    st.selectbox(
        "Search in",
        list(dict.fromkeys(("", *names, chosen))),
        format_func=lambda name: plain(name) if name else "All collections",
        key="collection",
        persist_state="session",
        help="Documents are put into collections on the Documents page. The next run searches there.",
    )
    if chosen and chosen not in names:
        st.caption(f":orange[:material/warning: {plain(chosen)} (not there now)]")


def _draw_writer(models: Models, drawn_at: float) -> None:
    """A model that is away stays chosen, and so does that of the settings, until somebody chooses another.

    What is wrong with it stands beside it: the browser knows an option by its words, which must not change.
    """
    now = health.models_now(models, drawn_at)
    wanted = app_state.settings().model
    st.selectbox(
        "Answers written by",
        list(dict.fromkeys((*now.choices, *([wanted] if wanted else []), st.session_state["model"]))),
        format_func=app_state.called,
        key="model",
        persist_state="session",
        on_change=st.rerun,
        help="A model of your own server, or plain quotations of the best sentences.",
    )
    chosen = st.session_state["model"]
    if why := app_state.why_away(chosen, now):
        st.caption(f":orange[:material/warning: {plain(app_state.called(chosen))} ({why})]")


def _draw_web_mode() -> None:
    st.segmented_control(
        "Web search",
        list(_WEB_MODES),
        format_func=lambda mode: _WEB_MODES[WebMode(mode)],
        default=WebMode(app_state.settings().web),
        required=True,
        key="web",
        persist_state="session",
        help="Auto searches when the policy asks for it. Ask first shows the exact query before it is sent.",
    )
