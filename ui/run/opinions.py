"""What another evaluator says of the same passages: where the two disagree, and whether that would change the route."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from crag_core.base.text.display import model_calls, shortened
from crag_core.base.types.grades import EvaluatorCard
from crag_core.pipeline.call_budget import grading_calls
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import Trace
from crag_core.view.opinions import Cell, Comparison, Side, Suited, comparisons
from crag_core.view.run_view import RunView
from crag_core.view.score_words import reason_of
from ui.run.verdict import COLOURS, ICONS, headline
from ui.shell.text import plain


def draw_opinions(
    view: RunView,
    evaluators: Callable[[], Sequence[EvaluatorCard]],
    on_ask: Callable[[str], None],
    on_adopt: Callable[[str], None],
    *,
    suited: Suited,
    has_model: bool,
) -> None:
    """`on_ask` and `on_adopt` are given the name of an evaluator. `has_model`: one that needs a model can be asked.

    `suited` gives the policy to read another evaluator's scores by. Folded, and drawn only when it is open, until the
    record holds a second opinion.
    """
    trace, others = view.trace, len(view.trace.other_opinions)
    drawer = st.expander(
        "What does another evaluator say?", expanded=bool(others), key=f"opinions_{others}",
        icon=":material/balance:", on_change="rerun",
    )  # fmt: skip
    if not drawer.open:
        return
    with drawer:
        for found in comparisons(view, suited):
            _draw_comparison(found, on_adopt)
        _draw_asking(trace, evaluators(), on_ask, has_model)


def _draw_asking(
    trace: Trace, evaluators: Sequence[EvaluatorCard], on_ask: Callable[[str], None], has_model: bool
) -> None:
    known = {trace.settings.evaluator.name, *(opinion.evaluator.name for opinion in trace.opinions)}
    left = {card.name: card for card in evaluators if card.name not in known}
    if not left:
        st.caption("Every evaluator has graded these chunks.")
        return
    costs = {name: calls_for(trace, card) for name, card in left.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Grade the same chunks with", list(left),
            format_func=lambda name: f"{left[name].title} · {model_calls(costs[name])}" if name in left else str(name),
            key="opinion_of", width=420,
        )  # fmt: skip
        lacks_model = left[name].calls_model and not has_model
        st.button(
            f"Grade with this one too ({model_calls(costs[name])})", "opinion_ask", on_click=on_ask, args=(name,),
            disabled=lacks_model, icon=":material/balance:",
        )  # fmt: skip
    if lacks_model:
        st.caption(":orange[:material/warning:] It needs a language model: choose one in the sidebar.")
    else:
        st.caption(
            plain(f"{left[name].scale}; {left[name].cost}. The decision stays as it is until you say otherwise.")
        )


def calls_for(trace: Trace, card: EvaluatorCard) -> int:
    """Model calls for an opinion on every passage of the run, if no reply must be asked for twice."""
    corpus = len(decision_path_of(trace, trace.settings.policy).looked_at)
    return grading_calls(card, corpus) + grading_calls(card, len(trace.web_passages))


def _draw_comparison(found: Comparison, on_adopt: Callable[[str], None]) -> None:
    main, other = found.sides
    key = f"{other.evaluator.name}_{other.writer}"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        lines = (_lead(main, ""), _lead(other, " alone"), plain(found.summary))
        st.markdown("  \n".join(lines), width="stretch")
        st.button(
            "Decide by this one", f"adopt_{key}", on_click=on_adopt, args=(other.evaluator.name,),
            icon=":material/gavel:",
        )  # fmt: skip
    cells = [
        {"Chunk": f"{row.sign} {plain(row.label.short)}".strip()}
        | {plain(side.name): _cell(cell) for side, cell in zip(found.sides, row.cells, strict=True)}
        | {"Gap": row.gap}
        for row in found.rows
    ]
    st.table(cells, hide_index=True, border="horizontal", alt="Both opinions by chunk")


def _lead(side: Side, alone: str) -> str:
    decision = side.decision
    said = f"{headline(decision)}: {plain(reason_of(decision, side.policy))}" if side.is_decided else "not graded yet"
    return f"**{plain(side.name)}**{alone} → {said}"


def _cell(cell: Cell) -> str:
    if cell.band is None:
        return f":orange[{cell.score}] {plain(cell.reason)}" if cell.reason else cell.score
    reason = f"  \n:small[{plain(shortened(cell.reason, 300))}]" if cell.reason else ""
    return f"**{cell.score}** :{COLOURS[cell.band]}[:material/{ICONS[cell.band]}: {cell.band}]{reason}"
