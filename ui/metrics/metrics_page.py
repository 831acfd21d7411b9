"""The Metrics page: decisions over time, cards beside targets, and a table."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from crag_core.base.text.display import counted
from crag_core.base.types import Action
from crag_core.observability import trends
from crag_core.observability.trends import FEWEST, Figures, Share, Times
from ui import PARTS
from ui.metrics import charts
from ui.metrics.metrics_state import Seen, width_of

_CSS = (PARTS / "metrics.css").read_text("utf-8")
_MEANINGS = """
- **Correct**: share of the decided runs.
- **Web search**: a provider was asked, whether or not it found anything.
- **Correction helped**: the evidence after correction is graded higher, in the mean, than what was retrieved.
- **Decision time**: question to decision, where CORRECT. **Evidence time**: question to corrected evidence,
  elsewhere, without the web provider's own time.
- **Not graded**: failed or unreadable grades.
- **From cache**: grades an earlier run paid for.

Imported runs, comparisons and graded sets are left out. Targets: `docs/observing.md`.
"""


@dataclass(frozen=True)
class Card:
    """One figure. `of`: what it is made from; `target` "": there is none; `is_met` None: it is not judged.

    `few`: why it is not judged though it has a target. `values` and `told`: the figure of each step, in words too.
    """

    name: str
    value: str
    of: str
    values: tuple[float | None, ...] = ()
    told: tuple[str, ...] = ()
    target: str = ""
    goal: float | None = None
    is_met: bool | None = None
    few: str = ""
    most: float | None = None


def cards(whole: Figures, parts: Sequence[Figures] = ()) -> tuple[Card, ...]:
    """Each judged by what it is made from: nothing is, of fewer than `FEWEST` runs."""
    return (
        _share_card("Correct", whole, parts, lambda one: one.of(Action.CORRECT), "≥", trends.CORRECT_TARGET),
        _share_card("Web search", whole, parts, lambda one: one.searched, "<", trends.SEARCHED_TARGET),
        _share_card("Correction helped", whole, parts, lambda one: one.improved, ">", trends.IMPROVED_TARGET),
        _times_card("Decision time", whole, parts, lambda one: one.fast, trends.FAST_TARGET),
        _times_card("Evidence time", whole, parts, lambda one: one.slow, trends.SLOW_TARGET),
        Card(
            "LLM calls", f"{whole.calls:,}", f"{whole.prompt_tokens + whole.completion_tokens:,} tokens",
            tuple(float(one.calls) for one in parts), tuple(counted(one.calls, "LLM call") for one in parts),
        ),
        _share_card("Not graded", whole, parts, lambda one: one.ungraded, of="grades"),
        _share_card("From cache", whole, parts, lambda one: one.cached, of="grades"),
    )  # fmt: skip


def draw_whole(found: Seen) -> None:
    """Decisions over time, and the cards; says that it judges nothing where there are few runs."""
    whole = found.whole
    if whole.runs < FEWEST:
        st.caption(f":material/info: {whole.runs} of {FEWEST} runs: too few to judge.")
    made = "".join(_card_html(card, found.steps, whole.runs >= FEWEST) for card in cards(whole, found.parts))
    decided = charts.legend(whole) + charts.decisions(found.parts, found.steps)
    st.html(f'<style>{_CSS}</style><div class="metrics">{decided}<div class="cards">{made}</div></div>')
    ended = [f"{share.hits} {name}" for name, share in (("failed", whole.failed), ("stopped", whole.stopped))]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        with st.popover("What counts", type="tertiary", icon=":material/info:"):
            st.markdown(_MEANINGS)
        if whole.failed.hits or whole.stopped.hits:
            st.caption(f"{counted(whole.runs, 'run')}: {', '.join(ended)}.")


def _card_html(card: Card, steps: tuple[datetime, ...], is_judged: bool) -> str:
    sign = {True: "met", False: "missed", None: ""}[card.is_met]
    if card.few:
        target = f"<p>{card.few}</p>" if is_judged else ""
    else:
        target = f'<p class="{sign}">target {html.escape(card.target)} {sign}</p>' if card.target else ""
    goal = card.goal if card.is_met is not None else None
    drawn = charts.course(card.values, card.told, steps, goal, card.most) if card.values else ""
    return f"<section><h3>{card.name}</h3><b>{card.value}</b><p>{card.of}</p>{target}{drawn}</section>"


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
            "Helped": f"{one.improved.hits} of {one.improved.of}" if one.improved.of else "–",
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


_SIGNS: dict[str, Callable[[float, float], bool]] = {"≥": float.__ge__, "<": float.__lt__, ">": float.__gt__}


def _share_card(
    name: str,
    whole: Figures,
    parts: Sequence[Figures],
    share_of: Callable[[Figures], Share],
    sign: str = "",
    goal: float | None = None,
    of: str = "",
) -> Card:
    share, shares = share_of(whole), [share_of(one) for one in parts]
    is_met, few = None, ""
    if goal is not None:
        is_judged = share.value is not None and share.of >= FEWEST
        is_met = _SIGNS[sign](share.value, goal) if is_judged and share.value is not None else None
        few = "" if is_judged else _few(share.of)
    message = f"{share.hits:,} of {share.of:,} {of}".strip()
    told = tuple(f"{_percent(one)}, {one.hits} of {one.of}" for one in shares)
    target = "" if goal is None else f"{sign} {goal:.0%}"
    values = tuple(one.value for one in shares)
    return Card(name, _percent(share), message, values, told, target, goal, is_met, few, most=1.0)


def _times_card(
    name: str, whole: Figures, parts: Sequence[Figures], times_of: Callable[[Figures], Times], goal: float
) -> Card:
    times, steps = times_of(whole), [times_of(one) for one in parts]
    is_judged = times.p50 is not None and times.count >= FEWEST
    is_met = times.p50 < goal if is_judged and times.p50 is not None else None
    value = "–" if times.p50 is None else f"{_ms(times.p50)} ms"
    message = f"median, p95 {_ms(times.p95)} ms" if is_judged else f"median of {counted(times.count, 'run')}"
    told = tuple(f"median {_ms(one.p50)} ms, {counted(one.count, 'run')}" for one in steps)
    few = "" if is_judged else _few(times.count)
    values = tuple(one.p50 for one in steps)
    return Card(name, value, message, values, told, f"< {goal:.0f} ms", goal, is_met, few)


def _few(count: int) -> str:
    return f"{count} of {FEWEST} runs: too few to judge"


def _percent(share: Share) -> str:
    if share.value is None:
        return "–"
    return f"{share.value:.1%}" if 0 < share.value < 0.0995 or 0.9905 < share.value < 1 else f"{share.value:.0%}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _p95(times: Times) -> str:
    """Of fewer runs it says no more than the slowest of them."""
    return _ms(times.p95) if times.count >= FEWEST else "–"
