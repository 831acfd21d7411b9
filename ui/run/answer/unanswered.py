"""No answer, and that is one: what was looked for and where, what came nearest, and what can be done."""

from __future__ import annotations

import streamlit as st

from crag_core.base.text.display import shortened
from crag_core.base.types import Answer
from crag_core.trace.grounding.quoted_answer import quotable
from crag_core.view.answer.unanswered import Nearest, unanswered
from crag_core.view.run_view import RunView, name_of
from ui.text import plain

_LONGEST = 300


def draw_unanswered(view: RunView, answer: Answer) -> None:
    found = unanswered(view.trace, view.policy, view.routed)
    with st.container(border=True, gap="small"):
        st.subheader(":material/do_not_disturb_on: Cannot be answered from this evidence", anchor=False)
        st.markdown(plain(answer.message))
        if answer.text:
            st.markdown(f"Its words: “{plain(shortened(answer.text, _LONGEST))}”")
        asked = [f"“{plain(shortened(words, _LONGEST))}” :gray[{plain(by)}]" for words, by in found.asked]
        _draw_row("Looked for", asked)
        _draw_row("Where", [plain(where) for where in found.where])
        if found.nearest:
            _draw_row("Nearest miss", [_nearest(found.nearest)])
        _draw_row("What you can do", [plain(way) for way in found.ways])


def _draw_row(title: str, lines: list[str]) -> None:
    name, summary = st.columns([1, 5], gap="small")
    name.markdown(f":gray[{title}]")
    summary.markdown(lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines))


def _nearest(nearest: Nearest) -> str:
    passage = nearest.passage
    score = f"score {nearest.score:.2f}"
    why = nearest.why if nearest.why.startswith("score ") else f"{score}: {nearest.why}"
    quoted = plain(shortened(quotable(nearest.text) or nearest.text, _LONGEST))
    return f"“{quoted}” :gray[{plain(str(name_of(passage)))} · {plain(why)}]"
