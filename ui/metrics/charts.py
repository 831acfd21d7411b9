"""Charts of the Metrics page as HTML: runs by action over time, and the course of one figure for its card. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime

from crag_core.base.text.display import counted
from crag_core.base.types.decisions import Action
from crag_core.observability.trends import Figures
from ui.metrics.metrics_state import width_of

Steps = tuple[datetime, ...]


def decisions(found: Sequence[Figures], steps: Steps) -> str:
    """A bar for each step of time, one part for each action; the largest count and three times as its axes."""
    most = max((_decided(one) for one in found), default=0)
    bars = []
    for one, start in zip(found, steps, strict=False):
        hits = [(action, one.of(action).hits) for action in Action if one.of(action).hits]
        parts = "".join(f'<i class="{action.lower()}" style="flex:{count}"></i>' for action, count in hits)
        told = ", ".join(f"{count} {action}" for action, count in hits) or "no run"
        bars.append(_bar(_decided(one) / most if most else 0.0, f"{_named(start, steps)}: {told}", parts))
    times = [_named(steps[place], steps) for place in sorted({0, len(found) // 2, len(found) - 1})] if found else []
    axis = "".join(f"<span>{html.escape(one)}</span>" for one in times)
    label = "Runs by action over time"
    return (
        f'<div class="decisions"><span class="most">{most:,}</span>'
        f'<div class="bars" role="img" aria-label="{label}">{"".join(bars)}</div><div class="times">{axis}</div></div>'
    )


def course(values: Sequence[float | None], told: Sequence[str], steps: Steps, most: float | None = None) -> str:
    """A bar for each step, from 0 to `most`, by default the largest; none where there is no value.

    `told` has the value of each step in words. "" where fewer than two steps have a value.
    """
    known = [one for one in values if one is not None]
    top = most or max(*known, 0.0) if len(known) > 1 else 0.0
    if not top:
        return ""
    bars = "".join(
        _bar(0.0 if value is None else value / top, "" if value is None else f"{_named(start, steps)}: {words}")
        for value, words, start in zip(values, told, steps, strict=False)
    )
    return f'<div class="bars course" aria-hidden="true">{bars}</div>'


def legend(whole: Figures) -> str:
    """How many runs there are, how many of them were decided, and the share of each action in those."""
    shares = [(action, whole.of(action).value) for action in Action]
    parts = "".join(
        f'<span class="{action.lower()}">{action} {"–" if share is None else f"{share:.0%}"}</span>'
        for action, share in shares
    )
    runs = counted(whole.runs, "run") if whole.runs < 1000 else f"{whole.runs:,} runs"
    decided = "" if _decided(whole) == whole.runs else f"<small>{_decided(whole):,} decided</small>"
    return f'<div class="legend"><b>{runs}</b>{decided}{parts}</div>'


def _decided(found: Figures) -> int:
    return sum(found.of(action).hits for action in Action)


def _bar(share: float, told: str, parts: str = "<i></i>") -> str:
    title = f' title="{html.escape(told)}"' if told else ""
    return f'<div{title}><div style="height:{100 * share:.1f}%">{parts}</div></div>'


def _named(start: datetime, steps: Steps) -> str:
    return start.strftime("%a %H:%M") if width_of(steps) == "hour" else f"{start.day} {start:%b}"
