"""The rounds of retrieval of a run."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types import Correction, Round
from crag_core.decision.plan import EXPAND
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui.run.verdict import headline
from ui.text import plain


def draw_course(trace: Trace, routed: Reroute) -> None:
    """Nothing for a run that looked once and retrieved once."""
    decision_path = routed.decision_path
    rounds = {found.path: found for found in trace.rounds}
    lines = []
    for number, iteration in enumerate(decision_path.iterations, start=1):
        found = _found(rounds[iteration.path]) if iteration.path else "first retrieval, meaning and words together"
        count = counted(len(iteration.passages), "chunk")
        why = plain(iteration.decision.reason)
        lines.append(f"**{number}** · {found} · {count} → {headline(iteration.decision)}: {why}")
    last = decision_path.iterations[-1]
    expansion = rounds.get((*last.path, EXPAND))
    if expansion and last.decision.next_round == EXPAND:  # else it is in the record, and this policy does not use it
        fused = counted(len(decision_path.evidence), "chunk")
        lines.append(f"**+** · {_found(expansion)} · both retrievals fused by rank: {fused}")
    if len(lines) > 1:
        with st.container(border=True):
            st.subheader(":material/replay: Looked again", anchor=False)
            st.markdown("\n\n".join(lines))


def draw_corrections(corrections: tuple[Correction, ...]) -> None:
    """What was really carried out, with the query where there was one."""
    st.table(
        [
            {
                "Correction": f"**{plain(one.kind.value)}**",
                "Why": plain(one.reason),
                "Query": plain(one.query) or "–",
                "Chunk": plain(one.passage_id or "") or "all",
            }
            for one in corrections
        ],
        hide_index=True,
        border="horizontal",
        alt="Corrections that were carried out, in order",
    )


def _found(found: Round) -> str:
    asked = found.retrievals[-1]
    added = "; ".join(f"{plain(term)} ({plain(why)})" for term, why in found.added)
    terms = f", with {added}" if added else ""
    return f"{plain(found.path[-1])}: “{plain(asked.query)}”, {plain(found.query_by)}, {asked.engine.value}{terms}"
