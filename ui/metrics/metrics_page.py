"""The Metrics page: decisions over time, eight figures, and both in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import Action
from crag_core.observability.trends import FEWEST, Figures, Share, Times
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


def cards(found: Figures) -> tuple[Card, ...]:
    """None is judged: what was asked here has no label."""
    return (
        _share("Routed CORRECT", found.of(Action.CORRECT), "decided runs",
               "Whatever was asked. Only a labelled set tells how many should be."),
        _share("Searched the web", found.searched, "decided runs",
               "A provider was asked, whether or not it found anything."),
        _share("Best score rose after correction", found.improved, "corrected runs",
               "Of corrected runs with grades before and after."),
        _times("Decision time", found.fast, "CORRECT run",
               "Question to decision, where CORRECT. Grades from the cache take none."),
        _times("Evidence time", found.slow, "corrected run",
               "Question to corrected evidence, elsewhere, without the web provider's own time."),
        Card("LLM calls", f"{found.calls:,}", f"{found.prompt_tokens + found.completion_tokens:,} tokens",
             float(found.calls), "As the servers report them."),
        _share("Not graded", found.ungraded, "grades", "Failed or unreadable grades."),
        _share("From cache", found.cached, "grades", "Grades an earlier run paid for."),
    )  # fmt: skip


def draw_whole(found: Seen) -> None:
    """Decisions over time, and the cards."""
    whole = found.whole
    shares = (f":{COLOURS[action]}[{action} {_percent(whole.of(action))}]" for action in Action)
    decided = sum(whole.of(action).hits for action in Action)
    rest = (("decided", decided), ("failed", whole.failed.hits), ("stopped", whole.stopped.hits))
    told = ", ".join(f"{count:,} {name}" for name, count in rest if count and count != whole.runs)
    runs = counted(whole.runs, "run") if whole.runs < 1000 else f"{whole.runs:,} runs"
    st.markdown(f"**{runs}** {f':gray[{told}] ' if told else ''}\u2003{' · '.join(shares)}")
    chart = decisions(found.parts, found.steps)
    st.plotly_chart(chart, config={"displayModeBar": False}, key="metrics_chart", alt="Runs by action over time")
    steps = [cards(one) for one in found.parts]
    with st.grid(4, min_column_width=190, gap="small") as grid:
        for place, card in enumerate(cards(whole)):
            course = [one[place].number for one in steps]
            is_drawn = sum(number is not None for number in course) > 1 and any(course)
            with grid.cell():
                st.metric(
                    card.name, card.value, card.of, delta_color="off", delta_arrow="off", border=True,
                    height="stretch", help=card.meaning, chart_type="bar",
                    chart_data=[number or 0.0 for number in course] if is_drawn else None,
                )  # fmt: skip
    st.caption("Imported runs, comparisons and graded sets are left out.")


def decisions(found: Sequence[Figures], steps: Sequence[datetime]) -> go.Figure:
    """A bar for each step of time, one part for each action."""
    starts = [start.replace(tzinfo=None) for start in steps[: len(found)]]  # else Plotly shows the time of UTC
    figure = go.Figure(
        [
            go.Bar(x=starts, y=[one.of(action).hits for one in found], name=action.value, marker_color=_TONES[action])
            for action in Action
        ]
    )
    figure.update_yaxes(tickformat=",d", rangemode="tozero", fixedrange=True)
    figure.update_xaxes(fixedrange=True)
    return figure.update_layout(
        barmode="stack", height=230, showlegend=False, margin={"l": 8, "r": 8, "t": 12, "b": 8}, hovermode="x unified"
    )


def draw_table(found: Sequence[Figures], steps: tuple[datetime, ...]) -> None:
    """The same in numbers, newest first; drawn once it is opened."""
    fold = st.expander(f"In numbers, by {width_of(steps)}", key="metrics_numbers", on_change="rerun")
    if not fold.open:
        return
    form = "%Y-%m-%d %H:%M" if width_of(steps) == "hour" else "%Y-%m-%d"
    rows = [
        {"From": start.strftime(form), "Runs": one.runs}
        | {action.value: one.of(action).hits for action in Action}
        | {card.name: card.value for card in cards(one)}
        for start, one in zip(steps, found, strict=False)
        if one.runs
    ]
    with fold:
        st.dataframe(rows[::-1], hide_index=True, key="metrics_table", alt="The figures by step of time")


def _share(name: str, share: Share, of: str, meaning: str) -> Card:
    return Card(name, _percent(share), f"{share.hits:,} of {share.of:,} {of}", share.value, meaning)


def _times(name: str, times: Times, of: str, meaning: str) -> Card:
    value = "–" if times.p50 is None else f"{times.p50:,.0f} ms"
    # Of fewer runs the 95th percentile says no more than the slowest of them.
    p95 = f", p95 {times.p95:,.0f} ms" if times.p95 is not None and times.count >= FEWEST else ""
    return Card(name, value, f"median of {counted(times.count, of)}{p95}", times.p50, meaning)


def _percent(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{share.value:.1%}" if 0 < share.value < 0.0995 or 0.9905 < share.value < 1 else f"{share.value:.0%}"
