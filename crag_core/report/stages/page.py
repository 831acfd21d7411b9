"""The stage at which each question of a log went wrong, as a page of its own for somebody who has no application."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.text.display import counted, moment, readable
from crag_core.base.types.decisions import Action
from crag_core.experiments.logs.findings import Findings
from crag_core.experiments.logs.record import LogRecord
from crag_core.experiments.logs.stages import MEANS, TITLES, Finding, Stage, Verdict
from crag_core.report import page, style_sheet

MOST = 200
"""Records that are listed, wrong ones first; the CSV has all."""
_TONES = {
    Verdict.WRONG: "incorrect",
    Verdict.DOUBTFUL: "ambiguous",
    Verdict.RIGHT: "correct",
    Verdict.PLAUSIBLE: "none",
}


@dataclass(frozen=True)
class Bar:
    """A stage: its count, its share of all in percent, and the parts of its bar as (tone, percent, words)."""

    title: str
    means: str
    count: int
    share: float
    parts: tuple[tuple[str, float, str], ...]


def render_stages(log: str, found: Findings, evaluator: str, created: str) -> str:
    """The page as HTML: counts by stage, and the records that went wrong, with their questions and answers.

    It needs no network and no script. Whatever the log holds shows as text. The same arguments always give the same.
    """
    style, key = style_sheet()
    faults = [pair for pair in found.pairs if pair[1].stage is not Stage.NONE]
    return (
        page()
        .environment.get_template("stages.html")
        .render(
            style=style,
            style_key=key,
            log=log,
            created=moment(created),
            found=found,
            policy=found.policy.title,
            evaluator=evaluator,
            thresholds=dict(zip(("lower", "upper", "cutoff"), readable(*found.policy.thresholds), strict=True)),
            bars=_bars(found),
            routes=[(action, found.routes[action]) for action in Action],
            faults=sorted(faults, key=_rank)[:MOST],
            left_out=max(len(faults) - MOST, 0),
            tones=_TONES,
            counted=counted,
        )
    )


def _bars(found: Findings) -> tuple[Bar, ...]:
    total = max(len(found.pairs), 1)
    most = max((sum(counts.values()) for counts in found.stages.values()), default=0) or 1
    return tuple(
        Bar(
            TITLES[stage],
            MEANS[stage],
            sum(counts.values()),
            100 * sum(counts.values()) / total,
            tuple((_TONES[one], 100 * count / most, f"{count} {one}") for one, count in counts.items() if count),
        )
        for stage, counts in found.stages.items()
    )


def _rank(pair: tuple[LogRecord, Finding]) -> tuple[int, int]:
    """Wrong before doubtful, then in the order of a run."""
    return list(Verdict).index(pair[1].verdict), list(Stage).index(pair[1].stage)
