"""Who grades, in the sidebar: the choice, and an evaluator of somebody else by name."""

from __future__ import annotations

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.decision.policy import Policy
from crag_core.evaluators.cascade import SHOWN_FORM, parse_cascade
from crag_core.evaluators.named.names import SHOWN_FORMS, is_named, parse_name
from crag_core.evaluators.policies import known_card
from ui.session import access, app_state
from ui.session.keys import hand, take
from ui.shell.text import plain

_TYPED = "evaluator_by_name"
_REFUSED = "evaluator_refused"


def draw(policy: Policy) -> None:
    known = app_state.evaluators()
    evaluator = st.selectbox(
        "Evaluator", list(known), format_func=lambda name: known[name].title if name in known else str(name),
        key="evaluator", bind="query-params", on_change=app_state.start_thresholds,
        help="Who grades each chunk against the question. Another evaluator grades at the next run.",
    )  # fmt: skip
    if known[evaluator].calls_model and not app_state.has_model():
        st.caption(":orange[:material/warning:] Needs a language model: choose one below.")
    elif not (policy if app_state.has_model() else policy.without_language_model()).reads_grades:
        st.caption("This policy scores the whole set; the grades of single chunks decide nothing.")
    if is_named(evaluator):
        _draw_calibration(evaluator)
    if access.is_administrator():
        _draw_adding()


def _draw_adding() -> None:
    with st.popover("Another by name", icon=":material/add:", type="tertiary"):
        st.text_input("Model", key=_TYPED, placeholder="hf:BAAI/bge-reranker-base")
        st.caption(
            f"A reranker: {SHOWN_FORMS}. Safetensors only; none of its code is run. Or two evaluators: {SHOWN_FORM} "
            "asks the second about scores from 0.5 to 0.9."
        )
        st.button("Add", on_click=_add_typed, key="evaluator_add")
        if refused := take(_REFUSED):  # told here, since the popover lies over where the page tells it
            st.error(plain(refused), icon=":material/error:")


def _add_typed() -> None:
    try:
        add(st.session_state[_TYPED])
    except CragError as error:
        hand(_REFUSED, str(error))


def add(text: str) -> None:
    """For a callback: offer an evaluator by name, and choose it; it is offered to all once it is calibrated.

    Raises `CragError` for what is no such name.
    """
    access.require_administrator()
    name = text.strip()
    name = known_card(name).name if parse_cascade(name) else str(parse_name(name))
    st.session_state["added_evaluators"] = tuple(dict.fromkeys((*app_state.added_evaluators(), name)))
    app_state.choose_evaluator(name)


def _draw_calibration(name: str) -> None:
    """On what it was calibrated; where no run can be started with it, why, and what to do."""
    workbench = app_state.workbench()
    try:
        workbench.named(name)
    except CragError as error:
        st.caption(f":orange[:material/warning:] {plain(str(error))}")
        return
    found = workbench.experiments.evaluators()[name]
    on = f"{counted(found.curve.questions, 'question')} of {plain(found.labelled)}"
    remark = " :orange[:material/warning:] None of them reaches CORRECT." if found.remark else ""
    auroc = f"{found.apart.value:.2f} ({found.apart.low:.2f}–{found.apart.high:.2f})"
    told = f"Calibrated on {on}: AUROC {auroc}, {found.seconds * 1000:.0f} ms a chunk.{remark}"
    st.caption(told, help=plain(found.remark) or None)
