"""A passage with its sentences in place: kept ones on green, the others struck through, each score at the cut-off."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from crag_core.base.text.display import clean
from crag_core.base.types import Handling, Origin, Passage, StripVerdict
from crag_core.decision.policy import Policy
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from ui import PARTS

_HEADING = re.compile(r"#{1,6}\s+\S")
_RULE = re.compile(r"[|:\-\s]+$")
_SIGNS = "†‡§¶"
_component = st.components.v2.component(
    "sentences",
    html=(
        '<div class="box" role="group"><div class="top"><span class="note"></span>'
        '<span class="legend"><span></span></span></div><ol></ol></div>'
    ),
    css=(PARTS / "sentences.css").read_text("utf-8"),
    js=(PARTS / "sentences.js").read_text("utf-8"),
)


def draw_sentences(
    passage: Passage,
    verdicts: Sequence[StripVerdict],
    key: str,
    label: str,
    cutoff: float | None = None,
    then: Collection[str] | None = None,
) -> None:
    """All that a tooltip could say is on the page too, in words or signs that never change the height of a row.

    `cutoff` where it decides what is kept. `then` are the ids of the strips that were kept when the run was taken.
    Without `verdicts` the text as it is.
    """
    cutoff = cutoff if verdicts else None
    signs = _signs(verdicts, cutoff)
    changes = [_change(verdict, then) for verdict in verdicts]
    rows = [
        _row(verdict, signs.get(verdict.reason, ""), change, _starts(passage, verdicts, at))
        for at, (verdict, change) in enumerate(zip(verdicts, changes, strict=True))
    ]
    _component(
        data={
            "label": label,
            "cutoff": cutoff,
            "legend": "" if cutoff is None else f"cut-off {cutoff:.2f}",
            "note": _note(signs, changes),
            "rows": rows or [_plain_row(line) for line in passage.text.splitlines() if line.strip()],
        },
        key=key,
    )


def deciding_cutoff(trace: Trace, policy: Policy, routed: Reroute, origin: Origin) -> float | None:
    """The strip cut-off, where it is what keeps and strikes out the sentences of this origin."""
    handling = routed.decision.handling
    if origin is Origin.WEB:
        is_refined = policy.refine_web
    else:
        is_refined = handling is Handling.REFINE or (handling is Handling.EXTRACT and trace.extractions is None)
    return policy.strips.cutoff if is_refined else None


def _row(verdict: StripVerdict, sign: str, change: str, starts: bool) -> dict[str, Any]:
    strip = verdict.strip
    score = "–" if strip.score is None else f"{strip.score:.2f}"
    message = "not graded" if strip.score is None else f"score {score}"
    reason = "" if verdict.kept or verdict.reason == message else f", {verdict.reason}"
    since = {"new": ", new since the run was taken", "gone": ", kept when the run was taken"}.get(change, "")
    spoken = f"{'kept' if verdict.kept else 'struck out'}, {message}{reason}{since}"
    return {
        "lines": _lines(strip.text),
        "starts": starts,
        "kept": verdict.kept,
        "score": strip.score,
        "told": f"{score}{sign}",
        "spoken": spoken,
        "hint": f"{spoken[:1].upper()}{spoken[1:]}.",
        "change": change,
    }


def _plain_row(line: str) -> dict[str, Any]:
    return {"lines": _lines(line), "kept": None, "starts": False, "hint": "", "change": ""}


def _starts(passage: Passage, verdicts: Sequence[StripVerdict], at: int) -> bool:
    """Whether a new paragraph starts with this strip."""
    return at > 0 and passage.text[verdicts[at - 1].strip.end : verdicts[at].strip.start].count("\n") > 1


def _change(verdict: StripVerdict, then: Collection[str] | None) -> str:
    if then is None or verdict.kept == (verdict.strip.id in then):
        return ""
    return "new" if verdict.kept else "gone"


def _signs(verdicts: Sequence[StripVerdict], cutoff: float | None) -> dict[str, str]:
    """A sign for each reason that neither the bar nor the line of the cut-off tells; "" for one that all share."""
    struck = [verdict for verdict in verdicts if not verdict.kept]
    reasons = dict.fromkeys(verdict.reason for verdict in struck if not _is_evident(verdict, cutoff))
    if len(reasons) == 1 and all(verdict.reason in reasons for verdict in verdicts):
        return dict.fromkeys(reasons, "")
    return {reason: _SIGNS[min(at, len(_SIGNS) - 1)] for at, reason in enumerate(reasons)}


def _is_evident(verdict: StripVerdict, cutoff: float | None) -> bool:
    return cutoff is not None and verdict.strip.score is not None and verdict.strip.score <= cutoff


def _note(signs: dict[str, str], changes: Sequence[str]) -> str:
    message = [f"{sign} {reason}" if sign else f"All struck out: {reason}" for reason, sign in signs.items()]
    message += [words for kind, words in (("new", "+ new"), ("gone", "− gone")) if kind in changes]
    return " · ".join(message)


def _lines(text: str) -> list[tuple[str, bool]]:
    """(words, are they a heading?), without the marks of headings, and without the rules of tables."""
    lines = [clean(line) for line in text.splitlines() if line.strip() and not _RULE.match(line.strip())]
    return [(line.lstrip("# "), True) if _HEADING.match(line) else (line, False) for line in lines]
