"""The Policies page: all policies on one set of scores, of a run or entered by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from crag_core.base.text.display import sentence
from crag_core.base.types import (
    ANSWERING,
    TOPICAL,
    Action,
    CorrectionKind,
    Decision,
    EvaluatorCard,
    Grade,
    Passage,
    Scores,
)
from crag_core.decision.decide import decide
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import known_card, second_card, suit
from crag_core.pipeline.call_budget import budget
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.verdict_lines import ONE_FOR_BOTH, is_one_for_both
from ui.run.verdict import headline
from ui.session import app_state
from ui.text import plain

_ICONS = {
    CorrectionKind.KEEP: "check",
    CorrectionKind.DISCARD: "delete",
    CorrectionKind.REFINE: "content_cut",
    CorrectionKind.REWRITE: "edit",
    CorrectionKind.WEB_SEARCH: "public",
    CorrectionKind.EXPAND: "expand_content",
    CorrectionKind.RE_RETRIEVE: "replay",
    CorrectionKind.GENERATE: "chat",
}
_NAMES = {CorrectionKind.WEB_SEARCH: "web search", CorrectionKind.RE_RETRIEVE: "retrieve again"}


@dataclass(frozen=True)
class Verdict:
    """What one policy decides on the scores of `judge`; `needs`: what a recorded run lacks to carry it out."""

    policy: Policy
    decision: Decision
    judge: EvaluatorCard
    passages: int
    needs: tuple[str, ...] | None = None

    @property
    def cost(self) -> str:
        calls = budget(
            self.policy,
            self.judge,
            self.passages,
            writer=True,
            searches=True,
            second=second_card(self.policy, self.judge.name),
        )[self.decision.action]
        return f"{calls} model {'call' if calls.most == 1 else 'calls'} with a language model to rewrite and answer"


def judge_run(trace: Trace, policies: Iterable[Policy]) -> list[Verdict]:
    """Every policy with its starting thresholds for the evaluator that graded the run."""
    verdicts = []
    for policy in policies:
        suited = policy.suited_to(trace.settings.evaluator, trace.settings.strip_evaluator)
        routed = reroute(trace, suited)
        needs = tuple(item.value.partition(":")[0] for item in routed.missing if item is not Missing.ANSWER)
        verdicts.append(Verdict(suited, routed.decision, trace.settings.evaluator, trace.settings.top_k, needs))
    return verdicts


def judge_scores(
    passages: tuple[Passage, ...], grades: tuple[Grade, ...], signals: Scores, policies: Iterable[Policy]
) -> list[Verdict]:
    """Every policy with the evaluator and thresholds of its description, on scores entered by hand."""
    return [
        Verdict(policy, decide(policy, passages, grades, signals), known_card(policy.evaluator), len(passages))
        for policy in (suit(one, one.evaluator) for one in policies)
    ]


def draw_verdicts(verdicts: list[Verdict]) -> None:
    """Cards, three in a row, of equal height within a row."""
    for start in range(0, len(verdicts), 3):
        for column, verdict in zip(st.columns(3), verdicts[start : start + 3], strict=False):
            with column.container(border=True, height="stretch"):
                _draw(verdict)


def _draw(verdict: Verdict) -> None:
    policy, decision = verdict.policy, verdict.decision
    st.markdown(f"**{plain(policy.title)}**", help=plain(policy.source))
    st.subheader(headline(decision), anchor=False)
    st.markdown(_numbers(policy, decision))
    one = f"  \n:small[:gray[{ONE_FOR_BOTH}]]" if is_one_for_both(policy, decision) else ""
    st.markdown(plain(sentence(decision.reason)) + one)
    st.markdown("  \n".join(f":small[{line}]" for line in _describe(decision, policy)))
    st.caption(f":material/receipt: {verdict.cost}{_needed(verdict)}")


def _numbers(policy: Policy, decision: Decision) -> str:
    sure = f"confidence {'–' if decision.confidence is None else f'{decision.confidence:.2f}'}"
    score = "–" if decision.score is None else f"{decision.score:.3f}"
    if decision.topical is None:
        return f"**{score}** :gray[against {policy.lower:g} and {policy.upper:g} · {sure}]"
    answering = f"**{score}** :gray[answering, against upper {policy.upper:g}]"
    topical = f"**{decision.topical:.3f}** :gray[topical, against lower {policy.lower:g}]"
    return f"{answering}  \n{topical}  \n:gray[{sure}]"


def _describe(decision: Decision, policy: Policy) -> list[str]:
    """One line a kind; single passages discarded are counted."""
    lines, plan = [], decision.plan
    single = [one for one in plan if one.kind is CorrectionKind.DISCARD and one.passage_id is not None]
    if single:
        lines.append(f":material/delete: discard {len(single)}: {plain(single[0].reason)}{' …' * (len(single) > 1)}")
    for one in plan:
        if one not in single:
            lines.append(f":material/{_ICONS[one.kind]}: {_NAMES.get(one.kind, one.kind.value)}: {plain(one.reason)}")
    if decision.verdict is Action.AMBIGUOUS:
        lines.append(f":material/help: without web evidence: {app_state.DOUBTFUL_TITLES[policy.doubtful].lower()}")
    return lines


def _needed(verdict: Verdict) -> str:
    if verdict.needs is None:
        return ""
    return f"  \n:material/playlist_add: not in the record: {plain(', '.join(verdict.needs) or 'nothing')}"


# --- scores by hand ---------------------------------------------------------------------------------------------------


_START = [
    {"score": 0.9, "answering": 0.85, "topical": 0.95, "cosine": 0.82, "found by": "dense"},
    {"score": 0.5, "answering": 0.15, "topical": 0.85, "cosine": 0.61, "found by": "dense"},
    {"score": 0.25, "answering": 0.05, "topical": 0.45, "cosine": 0.43, "found by": "keyword"},
]
_SIGNALS = {
    "keyword_overlap": 0.8,
    "coherence": 0.6,
    "length_adequacy": 1.0,
    "diversity": 0.7,
    "keyword_coverage": 0.6,
    "agreement": 0.5,
}
_MOST = 20  # passages


def draw_made_up() -> tuple[tuple[Passage, ...], tuple[Grade, ...], Scores]:
    """The table and the sliders of the whole set; returns their chunks, grades and signals."""
    share: dict[str, Any] = {"min_value": 0.0, "max_value": 1.0, "step": 0.01}
    number = st.column_config.NumberColumn
    whole = st.container(horizontal=True)
    with whole.container(width=640):
        rows: list[dict[str, Any]] = st.data_editor(
            _START, num_rows="dynamic", key="policies_rows",
            column_config={
                "score": number("Score", help="Empty: the evaluator's reply was unreadable.", **share),
                "answering": number("Answering", help="Does the chunk hold the answer?", **share),
                "topical": number("Topical", help="Is the chunk on the subject?", **share),
                "cosine": number("Cosine", min_value=-1.0, max_value=1.0, step=0.01),
                "found by": st.column_config.SelectboxColumn("Found by", options=["dense", "keyword", "read_file"]),
            },
        )  # fmt: skip
        st.caption(
            "Chunks in rank order; add and remove rows as you like, up to twenty. Only Two signals reads answering "
            "and topical, in place of the score; where one is empty, the score replaces it."
        )
    with whole, st.expander("Measures of the whole set", icon=":material/tune:"):
        signals = tuple(
            (name, st.slider(name.replace("_", " ").capitalize(), 0.0, 1.0, value, 0.01, key=f"policies_{name}"))
            for name, value in _SIGNALS.items()
        )
    return *read_rows(rows[:_MOST]), signals


def read_rows(rows: list[dict[str, Any]]) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    passages, grades = [], []
    for number, row in enumerate(rows, start=1):
        cosine, score = row.get("cosine"), row.get("score")
        scores: Scores = () if cosine is None else (("cosine", float(cosine)),)
        found_by = (str(row.get("found by") or "dense"),)
        passages.append(Passage(f"p{number}", "Made up.", f"Chunk {number}", found_by=found_by, scores=scores))
        cause = "" if score is not None else "left empty"
        parts = tuple((name, float(value)) for name in (ANSWERING, TOPICAL) if (value := row.get(name)) is not None)
        grades.append(Grade(f"p{number}", None if score is None else float(score), parts=parts, cause=cause))
    return tuple(passages), tuple(grades)
