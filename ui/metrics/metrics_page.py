"""The Metrics page: cards, charts and table, beside targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types import Action
from crag_core.observability import trends
from crag_core.observability.trends import Figures, Share, Times
from ui.metrics import charts
from ui.metrics.metrics_state import width_of

MANY = 20
"""Runs from which on a 95th percentile says more than the slowest run."""

_MEANINGS = """
- **Correct, ambiguous, incorrect**: shares of the runs that came to a decision.
- **Needed correction**: the action was not CORRECT, whatever its policy calls it.
- **Asked the web**: a provider was asked, whether or not it found anything.
- **Correction helped**: of the corrected runs with grades before and after, those whose evidence for the answer is
  graded higher, in the mean, than what was retrieved first. A correction that left nothing did not help.
- **Time to decide, correct**: from the question to the decision, where it was CORRECT; refining comes after it.
  **Time to evidence, corrected**: from the question to the evidence for the answer, where the decision was another,
  without what the web provider took. A language model that grades, extracts or rewrites counts in full.
- **Not graded**: grades that could not be made, or whose reply could not be read. **From the cache**: an earlier run
  paid for the grade.
- **Model calls and tokens**: as the servers report them; a server that reports no tokens adds none.

Targets are those of the description that the policy *Heuristic* comes from, for documents that suit their questions
and no language model in the way. Imported runs, graded sets and comparisons are left out: nobody asked their
questions here.
"""

_CARD, _CHART = 232, 484  # pixels: four cards or two charts on a wide page, two or one on a narrow one


@dataclass(frozen=True)
class Card:
    """`target` "": there is none; `is_met` None: nothing to compare with it."""

    name: str
    value: str
    of: str
    target: str = ""
    is_met: bool | None = None


def cards(found: Figures) -> tuple[Card, ...]:
    def of_grades(share: Share) -> str:
        return f"{share.hits:,} of {counted(share.of, 'grade')}"

    return (
        _share_card("Correct", found.of(Action.CORRECT), "at least", trends.CORRECT_TARGET, float.__ge__),
        _share_card("Needed correction", found.corrected, "below", trends.CORRECTED_TARGET, float.__lt__),
        _share_card("Asked the web", found.searched, "below", trends.SEARCHED_TARGET, float.__lt__),
        _share_card("Correction helped", found.improved, "above", trends.IMPROVED_TARGET, float.__gt__),
        _times_card("Time to decide, correct", found.fast, trends.FAST_TARGET),
        _times_card("Time to evidence, corrected", found.slow, trends.SLOW_TARGET),
        Card("Not graded", _percent(found.ungraded), of_grades(found.ungraded)),
        Card("From the cache", _percent(found.cached), of_grades(found.cached)),
    )


def draw_cards(found: Figures) -> None:
    """In rows that wrap; an icon says whether a target is met, not the colour alone."""
    with st.container(horizontal=True, gap="small"):
        for card in cards(found):
            with st.container(border=True, width=_CARD, gap="xsmall"):
                st.metric(card.name, card.value)
                target = f"{_sign(card.is_met)} {card.target}" if card.target else ":gray[no target]"
                st.markdown(f":small[:gray[{card.of}]]")
                st.markdown(f":small[{target}]")


def draw_rest(found: Figures) -> None:
    """What has no target, in one line."""
    st.markdown(
        f"{counted(found.runs, 'run')}: {_percent(found.failed)} broke off, {_percent(found.stopped)} were stopped, "
        f"{counted(found.calls, 'model call')}, {found.prompt_tokens:,} tokens read and "
        f"{found.completion_tokens:,} written by models."
    )


def draw_over_time(found: Sequence[Figures], steps: tuple[datetime, ...]) -> None:
    st.caption(f"Each point and bar is one {width_of(steps)} of your clock; dashed lines are targets.")
    with st.container(horizontal=True, gap="medium"):  # which wraps where columns would only grow narrow
        for place, (title, chart) in enumerate(
            (
                ("Decisions", charts.decisions),
                ("Rates", charts.rates),
                ("Time until the evidence is ready", charts.latencies),
                ("Model calls and tokens", charts.costs),
                ("Grades", charts.grades),
            )
        ):
            with st.container(width=_CHART):
                st.subheader(title, anchor=False)
                st.plotly_chart(chart(found, steps), key=f"metrics_{place}", config={"displayModeBar": False})
        with st.container(width=_CHART):
            st.subheader("What the words mean", anchor=False)
            st.markdown(_MEANINGS)


def draw_table(found: Sequence[Figures], steps: tuple[datetime, ...]) -> None:
    """The same in numbers, newest first."""
    is_hourly = width_of(steps) == "hour"
    rows = [
        {
            "From": start.strftime("%Y-%m-%d %H:%M" if is_hourly else "%Y-%m-%d"),
            "Runs": one.runs,
            **{action.value: one.of(action).hits for action in Action},
            "Web": one.searched.hits,
            "Helped": f"{one.improved.hits} of {one.improved.of}" if one.improved.of else "–",
            "Correct, p50 ms": _ms(one.fast.p50),
            "Correct, p95 ms": _ms(one.fast.p95),
            "Corrected, p50 ms": _ms(one.slow.p50),
            "Corrected, p95 ms": _ms(one.slow.p95),
            "Failed": one.failed.hits,
            "Not graded": one.ungraded.hits,
            "Cached": _percent(one.cached),
            "Calls": one.calls,
            "Tokens": one.prompt_tokens + one.completion_tokens,
        }
        for start, one in zip(steps, found, strict=False)
        if one.runs
    ]
    with st.expander(f"In numbers, by {width_of(steps)}"):
        st.dataframe(rows[::-1], hide_index=True, key="metrics_table")


def _share_card(name: str, share: Share, word: str, target: float, compare: Callable[[float, float], bool]) -> Card:
    is_met = None if share.value is None else compare(share.value, target)
    return Card(name, _percent(share), f"{share.hits:,} of {share.of:,}", f"target {word} {target:.0%}", is_met)


def _times_card(name: str, times: Times, target: float) -> Card:
    message = f"p95 {_ms(times.p95)} ms of {times.count:,}" if times.count >= MANY else counted(times.count, "run")
    is_met = None if times.p50 is None else times.p50 < target
    value = "–" if times.p50 is None else f"{_ms(times.p50)} ms"
    return Card(name, value, message, f"target p50 below {target:.0f} ms", is_met)


def _sign(is_met: bool | None) -> str:
    if is_met is None:
        return ":gray[:material/remove: nothing to compare ·]"
    return ":green[:material/check: met ·]" if is_met else ":orange[:material/priority_high: missed ·]"


def _percent(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{share.value:.1%}" if 0 < share.value < 0.0995 or 0.9905 < share.value < 1 else f"{share.value:.0%}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
