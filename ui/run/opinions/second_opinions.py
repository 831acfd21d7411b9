"""What another evaluator says of the same passages: where the two disagree, and whether that would change the route."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from crag_core.app.workbench import OWN_JUDGE, known_card
from crag_core.base.text.display import counted, shortened
from crag_core.base.types import Action, EvaluatorCard, Grade
from crag_core.decision.policy import Policy
from crag_core.trace.opinions import Disagreement, Row, Suited, disagreement
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace
from crag_core.view.run_view import evaluator_name, view_run
from ui.run.opinions.disagreement_chart import figure
from ui.run.passages.sentence_table import card_name
from ui.run.verdict import COLOURS, ICONS, headline
from ui.text import plain


def draw_opinions(
    trace: Trace,
    policy: Policy,
    evaluators: Sequence[EvaluatorCard],
    on_ask: Callable[[str], None],
    on_adopt: Callable[[str], None],
    *,
    suited: Suited | None = None,
    has_model: bool = True,
) -> None:
    """`on_ask` and `on_adopt` are given the name of an evaluator. `has_model`: one that needs a model can be asked.

    `suited` gives the policy to read another evaluator's scores by; None: `policy` with thresholds that suit it.
    Folded, and drawn only when it is open, until the record holds a second opinion.
    """
    main = trace.settings.evaluator
    other = suited or partial(_suited, policy)
    drawer = st.expander(
        "What does another evaluator say?",
        expanded=bool(trace.opinions),
        key=f"opinions_{len(trace.opinions)}",
        icon=":material/balance:",
        on_change="rerun",
    )
    if not drawer.open:
        return
    with drawer:
        for found in disagreement(trace, lambda card: policy if card == main else other(card)):
            _draw_disagreement(found, _names(trace), on_adopt)
        _draw_asking(trace, evaluators, on_ask, has_model)


def _suited(policy: Policy, card: EvaluatorCard) -> Policy:
    return policy.suited_to(card, known_card(OWN_JUDGE))


def _draw_asking(
    trace: Trace, evaluators: Sequence[EvaluatorCard], on_ask: Callable[[str], None], has_model: bool
) -> None:
    known = {trace.settings.evaluator.name, *(opinion.evaluator.name for opinion in trace.opinions)}
    left = {card.name: card for card in evaluators if card.name not in known}
    if not left:
        st.caption("Every evaluator has graded these passages.")
        return
    costs = {name: calls_for(trace, card) for name, card in left.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Grade the same passages with",
            list(left),
            format_func=lambda name: f"{left[name].title} · {_calls(costs[name])}" if name in left else str(name),
            key="opinion_of",
            width=420,
        )
        lacks_model = left[name].calls_model and not has_model
        st.button(
            f"Grade with this one too ({_calls(costs[name])})",
            "opinion_ask",
            on_click=on_ask,
            args=(name,),
            disabled=lacks_model,
            icon=":material/balance:",
        )
    if lacks_model:
        st.caption(":orange[:material/warning:] It needs a language model: choose one in the sidebar.")
    else:
        st.caption(
            plain(f"{left[name].scale}; {left[name].cost}. The decision stays as it is until you say otherwise.")
        )


def calls_for(trace: Trace, card: EvaluatorCard) -> int:
    """Model calls for an opinion on every passage of the run, if no reply must be asked for twice."""
    if not card.calls_model:
        return 0
    corpus = len(decision_path_of(trace, trace.settings.policy).looked_at)
    web = len(trace.web.passages) if trace.web else 0
    return sum(math.ceil(count / card.batch) for count in (corpus, web))


def _calls(count: int) -> str:
    return counted(count, "model call") if count else "no model call"


def _names(trace: Trace) -> dict[str, str]:
    """Every passage by the number and name that its card has."""
    return {id_: card_name(label) for id_, label in view_run(trace).labels.items()}


def _draw_disagreement(found: Disagreement, names: dict[str, str], on_adopt: Callable[[str], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(_describe(found), width="stretch")
        st.button(
            "Decide by this one",
            f"adopt_{found.other.evaluator.name}_{found.other.writer}",
            on_click=on_adopt,
            args=(found.other.evaluator.name,),
            icon=":material/gavel:",
        )
    key = f"{found.other.evaluator.name}_{found.other.writer}"
    st.plotly_chart(
        figure(found, names),
        config={"displayModeBar": False},
        alt=f"{_summary(found)} Numbers below.",
        key=f"gaps_{key}",
    )
    st.table(
        [_cells(row, found, names) for row in found.rows],
        hide_index=True,
        border="horizontal",
        alt="Both opinions by passage",
    )


def _describe(found: Disagreement) -> str:
    main, other = found.main, found.other
    names = [plain(evaluator_name(one.evaluator, one.writer)) for one in (main, other)]
    lines = [
        f"**{names[0]}** → {headline(main.decision)}: {plain(main.decision.reason)}",
        f"**{names[1]}** alone → {headline(other.decision)}: {plain(other.decision.reason)}",
        plain(_summary(found)),
    ]
    return "  \n".join(lines)


def _summary(found: Disagreement) -> str:
    """How far the two are from each other, in a sentence or two."""
    same = found.main.decision.action is found.other.decision.action
    route = "the route would be the same" if same else "the route would be another"
    marked = " (marked ≠)" if found.apart else ""
    message = [f"They put {found.apart} of {counted(found.compared, 'passage')} in different bands{marked}; {route}."]
    if found.correlation is not None:
        message.append(f"Agreement of their orders: {found.correlation:.2f} (1 the same, 0 none, −1 reversed).")
    for verdict in (found.main, found.other):
        if verdict.ungraded:
            name = evaluator_name(verdict.evaluator, verdict.writer)
            message.append(f"{name} has not graded {counted(verdict.ungraded, 'passage')}.")
    return " ".join(message)


def _cells(row: Row, found: Disagreement, names: dict[str, str]) -> dict[str, str]:
    cells = {"Passage": f"{'≠ ' if row.is_apart else ''}{plain(names[row.passage.id])}"}
    for verdict, grade, band in zip((found.main, found.other), row.grades, row.bands, strict=True):
        cells[plain(evaluator_name(verdict.evaluator, verdict.writer))] = _grade(grade, band)
    return cells | {"Gap": "–" if row.gap is None else f"{row.gap:.2f}"}


def _grade(grade: Grade | None, band: Action | None) -> str:
    """Score, band and reason, one below the other."""
    if grade is None:
        return "–"
    if grade.score is None or band is None:
        return f":orange[not graded] {plain(grade.cause)}"
    reason = f"  \n:small[{plain(shortened(grade.reason, 300))}]" if grade.reason else ""
    return f"**{grade.score:.2f}** :{COLOURS[band]}[:material/{ICONS[band]}: {band}]{reason}"
