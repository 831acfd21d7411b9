"""The Metrics page: decisions over time, eight figures, and both in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import Action
from crag_core.observability.metrics import own_retrieval_ms
from crag_core.trace.summary import Ending, Measured
from ui.metrics.metrics_state import Seen, width_of
from ui.run.verdict import COLOURS
from ui.tune.charts import GREEN, ORANGE, RED

_TONES = {Action.CORRECT: GREEN, Action.AMBIGUOUS: ORANGE, Action.INCORRECT: RED}


@dataclass(frozen=True)
class Card:
    """One figure as number and in words; `of`: what it is made from."""

    name: str
    value: str
    of: str
    number: float | None
    meaning: str


def cards(runs: Sequence[Measured]) -> tuple[Card, ...]:
    """None is judged: what was asked here has no label. Shares of actions and searches are of what was decided."""
    decided = [run for run in runs if run.action is not None]
    improved = [run.improved for run in runs if run.improved is not None]
    fast = [run.decided_ms for run in decided if run.action is Action.CORRECT]
    slow = [own_retrieval_ms(run) for run in decided if run.action is not Action.CORRECT]
    grades = sum(run.graded + run.ungraded for run in runs)
    calls, tokens = sum(run.calls for run in runs), sum(run.prompt_tokens + run.completion_tokens for run in runs)
    return (
        _share("Routed CORRECT", len(fast), len(decided), "decided run",
               "Whatever was asked. Only a labelled set tells how many should be."),
        _share("Searched the web", sum(run.searched for run in decided), len(decided), "decided run",
               "A provider was asked, whether or not it found anything."),
        _share("Best score rose after correction", sum(improved), len(improved), "twice graded run",
               "Of corrected runs with grades before and after."),
        _median("Decision time", fast, "CORRECT run",
                "Question to decision, where CORRECT. Grades from the cache take none."),
        _median("Evidence time", slow, "corrected run",
                "Question to corrected evidence, elsewhere, without the web provider's own time."),
        Card("LLM calls", f"{calls:,}", f"{tokens:,} tokens", float(calls), "As the servers report them."),
        _share("Not graded", sum(run.ungraded for run in runs), grades, "grade", "Failed or unreadable grades."),
        _share("From cache", sum(run.cached for run in runs), grades, "grade", "Grades an earlier run paid for."),
    )  # fmt: skip


def draw_whole(found: Seen) -> None:
    routes = _routes(found.whole)
    decided = sum(routes.values())
    shares = (f":{COLOURS[action]}[{action} {_percent(count, decided)}]" for action, count in routes.items())
    endings = Counter(run.ending for run in found.whole)
    rest = {"decided": decided} | {one.value: endings[one] for one in (Ending.FAILED, Ending.STOPPED)}
    count = len(found.whole)
    told = ", ".join(f"{number:,} {name}" for name, number in rest.items() if number and number != count)
    runs = counted(count, "run") if count < 1000 else f"{count:,} runs"
    st.markdown(f"**{runs}** {f':gray[{told}] ' if told else ''}\u2003{' · '.join(shares)}")
    chart = decisions(found.parts, found.steps)
    st.plotly_chart(chart, config={"displayModeBar": False}, key="metrics_chart", alt="Runs by action over time")
    steps = [cards(one) for one in found.parts]
    has_course = sum(map(bool, found.parts)) > 1
    with st.grid(4, min_column_width=190, gap="small") as grid:
        for place, card in enumerate(cards(found.whole)):
            course = [one[place].number for one in steps]
            is_drawn = has_course and sum(number is not None for number in course) > 1 and any(course)
            with grid.cell():
                st.metric(
                    card.name, card.value, card.of, delta_color="off", delta_arrow="off", border=True,
                    height="stretch", help=card.meaning, chart_type="bar",
                    chart_data=[number or 0.0 for number in course] if is_drawn else None,
                )  # fmt: skip
    st.caption("Imported runs, comparisons and graded sets are left out.")


def _routes(runs: Sequence[Measured]) -> dict[Action, int]:
    found = Counter(run.action for run in runs)
    return {action: found[action] for action in Action}


def decisions(found: Sequence[Sequence[Measured]], steps: Sequence[datetime]) -> go.Figure:
    starts = [start.replace(tzinfo=None) for start in steps[: len(found)]]  # else Plotly shows the time of UTC
    routes = list(map(_routes, found))
    figure = go.Figure(
        [
            go.Bar(x=starts, y=[one[action] for one in routes], name=action.value, marker_color=_TONES[action])
            for action in Action
        ]
    )
    figure.update_yaxes(tickformat=",d", rangemode="tozero", fixedrange=True)
    figure.update_xaxes(fixedrange=True)
    return figure.update_layout(
        barmode="stack", height=230, showlegend=False, margin={"l": 8, "r": 8, "t": 12, "b": 8}, hovermode="x unified"
    )


def draw_table(found: Sequence[Sequence[Measured]], steps: tuple[datetime, ...]) -> None:
    """The same in numbers, newest first; drawn once it is opened."""
    fold = st.expander(f"In numbers, by {width_of(steps)}", key="metrics_numbers", on_change="rerun")
    if not fold.open:
        return
    form = "%Y-%m-%d %H:%M" if width_of(steps) == "hour" else "%Y-%m-%d"
    rows = [
        {"From": start.strftime(form), "Runs": len(runs)}
        | {action.value: count for action, count in _routes(runs).items()}
        | {card.name: card.value for card in cards(runs)}
        for start, runs in zip(steps, found, strict=False)
        if runs
    ]
    with fold:
        st.dataframe(rows[::-1], hide_index=True, key="metrics_table", alt="The figures by step of time")


def _share(name: str, hits: int, count: int, of: str, meaning: str) -> Card:
    among = f"{hits:,} of {count:,} {of}{'' if count == 1 else 's'}"
    return Card(name, _percent(hits, count), among, hits / count if count else None, meaning)


def _median(name: str, found: Sequence[float | None], of: str, meaning: str) -> Card:
    known = [one for one in found if one is not None]
    middle = median(known) if known else None
    value = "–" if middle is None else f"{middle:,.0f} ms"
    return Card(name, value, f"median of {counted(len(known), of)}", middle, meaning)


def _percent(hits: int, count: int) -> str:
    if not count:
        return "–"
    return f"{hits / count:.1%}" if 0 < hits / count < 0.0995 or 0.9905 < hits / count < 1 else f"{hits / count:.0%}"
