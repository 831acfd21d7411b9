"""The sidebar of every page: policy, thresholds, models, web, and the health of each part in one line."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import streamlit as st

from crag_core.app.model_servers import Models
from crag_core.base.errors import CragError
from crag_core.base.text.display import clean, counted, readable
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import Doubtful, Policy
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.view.run_view import model_name
from ui.session import app_state, current_run, startup
from ui.session.fragments import fragment, ticking
from ui.shell import evaluator_choice, presets, sign_in
from ui.shell.text import plain

_MOVED = "Recomputed at once from the record: 0 LLM calls."


def draw(has_who: bool = True) -> None:
    """`has_who`: with who is signed in, and the way out."""
    models = app_state.look_for_models(app_state.settings())
    app_state.start_choices(models)
    with st.sidebar:
        if has_who:
            sign_in.draw_who()
        with st.container(key="route"):
            _draw_policy()
            _draw_thresholds()
        _draw_collection()
        _draw_writer(models)
        with st.container(key="web_mode"):
            _draw_web_mode()
            _draw_doubtful()
        draw_health(models)


def _draw_policy() -> None:
    policies = app_state.policies()
    name = st.selectbox(
        "Policy", list(policies), format_func=lambda name: policies[name].title if name in policies else str(name),
        key="policy", bind="query-params", on_change=app_state.start_policy,
        help="How the scores of the chunks become one decision, and what each decision does.",
    )  # fmt: skip
    st.caption(plain(policies[name].summary))
    if policies[name].without_model and not app_state.has_model():
        st.caption(f":orange[:material/warning:] No language model: {plain(policies[name].without_model)}")
    for problem in startup.shared_workbench().problems:
        st.caption(f":orange[:material/warning: {plain(problem)}]")
    evaluator_choice.draw(policies[name])


@fragment(current_run.THRESHOLDS)
def _draw_thresholds() -> None:
    """A moved threshold redraws this and what it decides, not the page."""
    app_state.hold_choices(*app_state.SLIDERS)
    start = app_state.suited_now()
    if start.compares_two_scores:
        _threshold_slider(
            "Bar for an answer", start.upper, app_state.UPPER,
            f"Upper threshold. Best answer score at or above it: {Action.CORRECT}. {_MOVED}",
        )  # fmt: skip
        _threshold_slider(
            "Bar for the subject", start.lower, app_state.LOWER,
            f"Lower threshold. Otherwise, best subject score below it: {Action.INCORRECT}. {_MOVED}",
        )  # fmt: skip
    else:
        _threshold_slider("Thresholds, lower and upper", (start.lower, start.upper), app_state.THRESHOLDS, _MOVED)
    st.slider(
        "Sentence cut-off", 0.0, 1.0, start.cutoff, 0.01, key="strips", bind="query-params",
        on_change=current_run.slide, help="Where the policy refines, only sentences that score above it are kept.",
    )  # fmt: skip
    first, now = start.refinement.top or app_state.NO_LIMIT, st.session_state[app_state.SENTENCES]
    numbers = sorted({*app_state.LIMITS, first, now} - {app_state.NO_LIMIT})
    st.select_slider(
        "Sentences kept, at most", [*numbers, app_state.NO_LIMIT], first, format_func=app_state.limit_title,
        key=app_state.SENTENCES, bind="query-params", on_change=current_run.slide,
        help="Where the policy refines, the best so many of the documents are kept, and as many of the web.",
    )  # fmt: skip
    policy = app_state.policy()
    _draw_legend(policy)
    presets.draw_in_use(policy)
    with st.container(horizontal=True):
        presets.draw(policy)
        if (policy.thresholds, policy.refinement.top) != (start.thresholds, start.refinement.top):
            st.button(
                "Back to the defaults", on_click=presets.put, args=(start,), type="tertiary", icon=":material/undo:"
            )


def _threshold_slider(label: str, start: float | tuple[float, float], key: str, hint: str) -> None:
    st.slider(
        label, 0.0, 1.0, start, 0.005, format="%.3g", key=key, bind="query-params", on_change=current_run.slide,
        help=hint,
    )  # fmt: skip


def _draw_legend(policy: Policy) -> None:
    policy = policy if app_state.has_model() else policy.without_language_model()
    above = "above" if policy.at_upper is Action.AMBIGUOUS else "from"
    below = "up to" if policy.at_lower is Action.INCORRECT else "below"
    between = "between"
    low, high = readable(policy.lower, policy.upper)
    if policy.score == "two_signals":
        reached = "above" if policy.at_lower is Action.INCORRECT else "from"
        between = f"· else subject {reached} {low}"
        above, below = f"· answer {above}", f"· subject {below}"
    is_never = policy.lower == 0.0 and policy.at_lower is not Action.INCORRECT  # no score is below it
    texts = (f"{above} {high}", between, "· nothing retrieved" if is_never else f"{below} {low}")
    if policy.judges_together and is_never:
        texts = ("· enough together", "· not enough", texts[2])
    st.caption(
        f":green[:material/check_circle: {plain(policy.bare_label(Action.CORRECT))}] {texts[0]}  \n"
        f":orange[:material/help: {plain(policy.bare_label(Action.AMBIGUOUS))}] {texts[1]}  \n"
        f":red[:material/cancel: {plain(policy.bare_label(Action.INCORRECT))}] {texts[2]}"
    )


def _draw_collection() -> None:
    """Only where there is something to choose, or was: one that is emptied, or cannot be read, stays chosen."""
    names = app_state.collections()
    chosen = st.session_state.get("collection") or ""
    if len(names) < 2 and not chosen:
        st.session_state.pop("collection", None)
        return
    st.selectbox(
        "Search in", list(dict.fromkeys(("", *names, chosen))),
        format_func=lambda name: clean(name) if name else "All collections", key="collection",
        bind="query-params", persist_state="session",
        help="Documents are put into collections on the Documents page. The next run searches there.",
    )  # fmt: skip
    if chosen and chosen not in names:
        st.caption(f":orange[:material/warning: {plain(chosen)} (not there now)]")


def _draw_writer(models: Models) -> None:
    """A model that is away stays chosen, and so does that of the settings, until somebody chooses another.

    What is wrong with it stands beside it: the browser knows an option by its words, which must not change.
    """
    wanted = app_state.settings().model
    st.selectbox(
        "Answers written by",
        list(dict.fromkeys((*models.choices, *([wanted] if wanted else []), st.session_state["model"]))),
        format_func=app_state.called, key="model", persist_state="session", on_change=st.rerun,
        help="A model of your own server, or plain quotations of the best sentences.",
    )  # fmt: skip
    chosen = app_state.model()
    if why := app_state.unavailable_reason(chosen, models):
        st.caption(f":orange[:material/warning: {plain(app_state.called(chosen))} ({why})]")
    elif not app_state.workbench().servers.chats(chosen):
        name = plain(app_state.called(chosen))
        st.caption(f":orange[:material/warning: {name} has no chat template: it may not answer, and not stop.]")


def _draw_web_mode() -> None:
    usual = WebMode(app_state.settings().web)
    mode = st.segmented_control(
        "Web search", list(app_state.WEB_TITLES), format_func=lambda mode: app_state.WEB_TITLES[WebMode(mode)],
        default=usual, required=True, key="web", persist_state="session",
        help="Auto searches when the policy asks for it. Ask first shows the exact query before it is sent.",
    )  # fmt: skip
    if mode is None or mode == usual:
        st.query_params.pop("web", None)
    else:  # for a reload; not bound, since a link may not switch it on
        st.query_params["web"] = app_state.WEB_TITLES[mode]


def _draw_doubtful() -> None:
    st.segmented_control(
        "If doubtful", list(Doubtful), format_func=lambda one: app_state.DOUBTFUL_TITLES[Doubtful(one)],
        default=app_state.policies()[st.session_state["policy"]].doubtful, required=True, key=app_state.DOUBTFUL,
        bind="query-params",
        help="Show the nearest sentences, or only that the documents do not answer it. Neither counts as an answer.",
    )  # fmt: skip


# --- health -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Health:
    """`ok` None: not in use or not known yet."""

    name: str
    ok: bool | None
    message: str
    hint: str = ""


_LOOK_EVERY = 6.0
"""Seconds between two looks at a server that is away."""
_ICONS = {
    True: ":green[:material/check_circle:]",
    False: ":orange[:material/warning:]",
    None: ":gray[:material/circle:]",
}


def draw_health(models: Models) -> None:
    with st.container(border=True, gap="xsmall"):
        is_chosen_away = app_state.unavailable_reason(app_state.model(), models)
        if is_chosen_away or not all(one.reachable for one in (models.ollama, models.openai) if one):
            _await_server(models, time.monotonic())
        else:
            _draw(_model(models))
        _draw_writer_offer(models)
        for health in (_embedding(), _web(), _store(), *_troubles()):
            _draw(health)


def _draw_writer_offer(models: Models) -> None:
    """Where a local model is there and none writes: one click takes it, and what a run then costs."""
    best = models.choices[0]
    if app_state.model() != EXTRACTIVE or best == EXTRACTIVE:
        return
    st.button(
        f"Let {plain(model_name(best))} write the answers", "writer_best", on_click=_take_writer, args=(best,),
        icon=":material/edit:", type="tertiary",
    )  # fmt: skip
    calls = replace(app_state.asked_choice(), model=best).calls_by_action(condenses=current_run.trace() is not None)
    costs = " · ".join(f"{action} {cost}" for action, cost in calls.items())
    st.caption(f"LLM calls of a run then: {costs}")


def _take_writer(choice: str) -> None:
    st.session_state["model"] = choice


@ticking(_LOOK_EVERY)
def _await_server(models: Models, drawn_at: float) -> None:
    """What was found when the page was drawn; once something else is found, the page is drawn anew."""
    if time.monotonic() - drawn_at > _LOOK_EVERY / 2 and app_state.look_again(app_state.settings()) != models:
        st.rerun()
    _draw(_model(models))


def _draw(health: Health) -> None:
    hint = f"  \n`{health.hint}`" if health.hint and "`" not in health.hint else ""
    st.markdown(f":small[{_ICONS[health.ok]} **{plain(health.name)}** {plain(health.message)}]{hint}")


def _model(models: Models) -> Health:
    writers = len(models.choices) - 1
    chosen = app_state.model()
    if why := app_state.unavailable_reason(chosen, models):
        server = models.ollama if chosen.startswith("ollama/") else models.openai
        summary, hint = (server.message, server.hint) if server else ("OPENAI_BASE_URL is not set.", "")
        there = f", {writers} others available" if writers else ""
        return Health(
            "Model", False, f"{app_state.called(chosen)} ({why}) stays chosen{there}. {summary}".strip(), hint
        )
    if writers:
        more = [one.message for one in (models.ollama, models.openai) if one and one.models and one.message]
        return Health("Model", True, " ".join((f"{writers} available", *more)))
    away = models.openai if models.openai and not models.openai.models else models.ollama
    return Health("Model", None, f"none: answers are quotations. {away.message}", away.hint)


def _embedding() -> Health:
    workbench, warming, loading = app_state.workbench(), startup.warm_up(), startup.model_loading()
    if error := warming.error or loading.error:
        return Health("Embedding", False, error.message, error.hint)
    if workbench.own_engine is not None:
        return Health("Embedding", None, "that of your own engine")
    try:
        name = workbench.store.index_version.embedding
    except CragError:
        return Health("Embedding", None, "not known while the index cannot be read")
    return Health("Embedding", None if loading.is_running and not warming.error else True, name)


def _web() -> Health:
    if st.session_state.get("web") == WebMode.OFF:
        return Health("Web", None, "off")
    last = app_state.workbench().searcher.last
    if last is None:
        return Health("Web", None, f"{app_state.workbench().searcher.name}, not asked yet")
    if last.outcome.is_reply:
        return Health("Web", True, f"{last.provider} answers")
    return Health("Web", False, last.message)


def _troubles() -> tuple[Health, ...]:
    """What works in the background, only where it does not."""
    workbench = app_state.workbench()
    parts = {
        "Grade cache": workbench.cache,
        "History": workbench.history,
        "Audit log": workbench.audit,
        "Metrics": workbench.metrics,
    }
    return tuple(Health(name, False, part.problem) for name, part in parts.items() if part and part.problem)


def _store() -> Health:
    workbench = app_state.workbench()
    if (engine := workbench.own_engine) is not None:
        if engine.problem is None:
            return Health("Store", None, f"{engine.where}, not asked yet")
        return Health("Store", not engine.problem, engine.problem or f"{engine.kind} of {engine.where}, read only")
    if workbench.vector_store is not None and workbench.vector_store.problem:
        return Health("Store", False, workbench.vector_store.problem)
    try:
        count = workbench.store.count()
    except CragError as error:
        return Health("Store", False, error.message, error.hint)
    if not count and startup.warm_up().is_running:
        return Health("Store", None, "the sample documents are on their way in")
    if not count:
        return Health("Store", False, "empty: add documents on the Documents page")
    where = f", vectors in {workbench.vector_store.where}" if workbench.vector_store else ""
    return Health("Store", True, f"{counted(count, 'chunk')}{where}")
