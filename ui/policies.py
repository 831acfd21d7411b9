"""What each policy makes of one recorded run, as a table: action, reason in numbers, what follows, what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import streamlit as st

from crag_core.base.text.display import counted, sentence
from crag_core.base.types.decisions import Action, CorrectionKind, Decision
from crag_core.decision.policy import Policy
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.score_words import reason_of
from crag_core.view.verdict_lines import ONE_FOR_BOTH, is_one_for_both
from ui.run.verdict import COLOURS, ICONS, headline
from ui.shell.text import plain

_EFFECTS = {
    CorrectionKind.KEEP: "keep",
    CorrectionKind.DISCARD: "discard",
    CorrectionKind.REFINE: "refine",
    CorrectionKind.WEB_SEARCH: "web",
    CorrectionKind.EXPAND: "expand",
    CorrectionKind.READ: "read whole",
    CorrectionKind.RE_RETRIEVE: "re-retrieve",
}
"""What an action does besides answering, which all of them do, and rewriting, which is a part of the web search."""


@dataclass(frozen=True)
class Verdict:
    """What one policy decides on the grades of a run; `needs`: what the run lacks to carry it out."""

    policy: Policy
    decision: Decision
    calls: Calls
    """With a language model that rewrites and answers."""
    needs: tuple[str, ...]


def judge_run(trace: Trace, policies: Iterable[Policy]) -> list[Verdict]:
    """Every policy with its starting thresholds for the evaluator that graded the run."""
    verdicts, made = [], trace.settings
    for policy in policies:
        suited = policy.with_thresholds_for(made.evaluator, made.strip_evaluator)
        routed = reroute(trace, suited)
        needs = tuple(item.value.partition(":")[0] for item in routed.missing if item is not Missing.ANSWER)
        decided = trace.decided_by(suited)
        calls = budget(decided, made.evaluator, made.top_k, writer=True, searches=True)[routed.decision.action]
        verdicts.append(Verdict(decided, routed.decision, calls, needs))
    return verdicts


def draw_table(verdicts: Sequence[Verdict]) -> None:
    """How many policies say what, then one row a policy; those of a group are folded under its name."""
    groups: dict[str, list[Verdict]] = {}
    for one in verdicts:
        groups.setdefault(one.policy.group, []).append(one)
    for group, own in groups.items():
        counts = Counter(one.decision.verdict for one in own)
        message = " · ".join(
            f":{COLOURS[action]}[:material/{ICONS[action]}: {counts[action]} {action}]"
            for action in Action
            if counts[action]
        )
        if counts[None]:
            message += f" · :gray[{counts[None]} without verdict]" if message else "no verdict"
        if not group:
            st.subheader(message, anchor=False)
        with st.expander(f"**{plain(group)}** {message}") if group else st.container():
            st.table(
                [row_of(one) for one in own], hide_index=True, border="horizontal",
                alt="Verdict, reason, effects and LLM calls by policy",
            )  # fmt: skip


def row_of(verdict: Verdict) -> dict[str, str]:
    """As Markdown. Every text is escaped: policies and their names for actions may be of anybody's files."""
    policy, decision = verdict.policy, verdict.decision
    one = f" {ONE_FOR_BOTH}" if is_one_for_both(policy, decision) else ""
    return {
        "Policy": f"**{plain(policy.title)}**",
        "Verdict": headline(decision),
        "Why": plain(sentence(reason_of(decision, policy))) + one,
        "Then": " · ".join(_effects(decision)),
        "LLM calls": str(verdict.calls),
        "Not in this run": plain(", ".join(verdict.needs)) or "–",
    }


def _effects(decision: Decision) -> Iterator[str]:
    """Each thing that the action does, in its order; single chunks that are discarded are counted."""
    single = sum(one.kind is CorrectionKind.DISCARD and one.passage_id is not None for one in decision.plan)
    if single:
        yield f"discard {counted(single, 'chunk')}"
    for one in decision.plan:
        if one.kind in _EFFECTS and one.passage_id is None:
            yield _EFFECTS[one.kind]
