"""The Metrics page: decisions over time, cards, and a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import Action
from crag_core.observability.trends import FEWEST, Figures, Share, Times
from ui import PARTS
from ui.metrics import charts
from ui.metrics.metrics_state import Seen, width_of

_CSS = (PARTS / "metrics.css").read_text("utf-8")
_MEANINGS = """
- **Routed CORRECT**: of the decided runs, whatever was asked. Only a labelled set tells how many should be.
- **Searched the web**: a provider was asked, whether or not it found anything.
- **Best score rose after correction**: of corrected runs with grades before and after.
- **Decision time**: question to decision, where CORRECT. **Evidence time**: question to corrected evidence,
  elsewhere, without the web provider's own time. Grades from the cache take none.
- **Not graded**: failed or unreadable grades.
- **From cache**: grades an earlier run paid for.

Imported runs, comparisons and graded sets are left out.
"""


@dataclass(frozen=True)
class Card:
    """One figure. `of`: what it is made from. `values` and `told`: the figure of each step, in words too."""

    name: str
    value: str
    of: str
    values: tuple[float | None, ...] = ()
    told: tuple[str, ...] = ()
    most: float | None = None


def cards(whole: Figures, parts: Sequence[Figures] = ()) -> tuple[Card, ...]:
    """None is judged: what was asked here has no label."""
    return (
        _share_card("Routed CORRECT", whole, parts, lambda one: one.of(Action.CORRECT), "decided runs"),
        _share_card("Searched the web", whole, parts, lambda one: one.searched, "decided runs"),
        _share_card("Best score rose after correction", whole, parts, lambda one: one.improved, "corrected runs"),
        _times_card("Decision time", whole, parts, lambda one: one.fast, "CORRECT run"),
        _times_card("Evidence time", whole, parts, lambda one: one.slow, "corrected run"),
        Card(
            "LLM calls", f"{whole.calls:,}", f"{whole.prompt_tokens + whole.completion_tokens:,} tokens",
            tuple(float(one.calls) for one in parts), tuple(counted(one.calls, "LLM call") for one in parts),
        ),
        _share_card("Not graded", whole, parts, lambda one: one.ungraded, "grades"),
        _share_card("From cache", whole, parts, lambda one: one.cached, "grades"),
    )  # fmt: skip


def draw_whole(found: Seen) -> None:
    """Decisions over time, and the cards."""
    whole = found.whole
    made = "".join(_card_html(card, found.steps) for card in cards(whole, found.parts))
    decided = charts.legend(whole) + charts.decisions(found.parts, found.steps)
    st.html(f'<style>{_CSS}</style><div class="metrics">{decided}<div class="cards">{made}</div></div>')
    ended = [f"{share.hits} {name}" for name, share in (("failed", whole.failed), ("stopped", whole.stopped))]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        with st.popover("What counts", type="tertiary", icon=":material/info:"):
            st.markdown(_MEANINGS)
        if whole.failed.hits or whole.stopped.hits:
            st.caption(f"{counted(whole.runs, 'run')}: {', '.join(ended)}.")


def _card_html(card: Card, steps: tuple[datetime, ...]) -> str:
    drawn = charts.course(card.values, card.told, steps, card.most) if card.values else ""
    return f"<section><h3>{card.name}</h3><b>{card.value}</b><p>{card.of}</p>{drawn}</section>"


def draw_table(found: Sequence[Figures], steps: tuple[datetime, ...]) -> None:
    """The same in numbers, newest first; drawn once it is opened."""
    fold = st.expander(f"In numbers, by {width_of(steps)}", key="metrics_numbers", on_change="rerun")
    if not fold.open:
        return
    is_hourly = width_of(steps) == "hour"
    rows = [
        {
            "From": start.strftime("%Y-%m-%d %H:%M" if is_hourly else "%Y-%m-%d"),
            "Runs": one.runs,
            **{action.value: one.of(action).hits for action in Action},
            "Web": one.searched.hits,
            "Best score rose": f"{one.improved.hits} of {one.improved.of}" if one.improved.of else "–",
            "Correct, p50 ms": _ms(one.fast.p50),
            "Correct, p95 ms": _p95(one.fast),
            "Corrected, p50 ms": _ms(one.slow.p50),
            "Corrected, p95 ms": _p95(one.slow),
            "Failed": one.failed.hits,
            "Not graded": one.ungraded.hits,
            "Cached": _percent(one.cached),
            "LLM calls": one.calls,
            "Tokens": one.prompt_tokens + one.completion_tokens,
        }
        for start, one in zip(steps, found, strict=False)
        if one.runs
    ]
    with fold:
        st.dataframe(rows[::-1], hide_index=True, key="metrics_table")


def _share_card(
    name: str, whole: Figures, parts: Sequence[Figures], share_of: Callable[[Figures], Share], of: str
) -> Card:
    share, shares = share_of(whole), [share_of(one) for one in parts]
    told = tuple(f"{_percent(one)}, {one.hits} of {one.of}" for one in shares)
    values = tuple(one.value for one in shares)
    return Card(name, _percent(share), f"{share.hits:,} of {share.of:,} {of}", values, told, most=1.0)


def _times_card(
    name: str, whole: Figures, parts: Sequence[Figures], times_of: Callable[[Figures], Times], of: str
) -> Card:
    times, steps = times_of(whole), [times_of(one) for one in parts]
    value = "–" if times.p50 is None else f"{_ms(times.p50)} ms"
    p95 = f", p95 {_ms(times.p95)} ms" if times.count >= FEWEST else ""
    told = tuple(f"median {_ms(one.p50)} ms, {counted(one.count, 'run')}" for one in steps)
    return Card(name, value, f"median of {counted(times.count, of)}{p95}", tuple(one.p50 for one in steps), told)


def _percent(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{share.value:.1%}" if 0 < share.value < 0.0995 or 0.9905 < share.value < 1 else f"{share.value:.0%}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _p95(times: Times) -> str:
    """Of fewer runs it says no more than the slowest of them."""
    return _ms(times.p95) if times.count >= FEWEST else "–"
