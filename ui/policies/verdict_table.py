"""The verdicts of all policies as a table: the score on its scale, the action, what follows, and what it costs."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence

import streamlit as st

from crag_core.base.text.display import against, clean, counted, readable, sentence
from crag_core.base.types.decisions import Action, CorrectionKind, Decision, Handling
from crag_core.decision.policy import Policy
from crag_core.view.score_words import reason_of
from crag_core.view.verdict_lines import ONE_FOR_BOTH, is_one_for_both, own_name
from ui import PARTS
from ui.policies.verdicts import Scale, Verdict, scales
from ui.run.verdict import COLOURS, ICONS, headline
from ui.session import app_state
from ui.shell.text import plain

_CSS = (PARTS / "policies.css").read_text("utf-8")
_EFFECTS = {
    CorrectionKind.KEEP: "keep",
    CorrectionKind.DISCARD: "discard",
    CorrectionKind.REFINE: "refine",
    CorrectionKind.WEB_SEARCH: "web",
    CorrectionKind.EXPAND: "expand",
    CorrectionKind.READ: "read whole",
    CorrectionKind.RE_RETRIEVE: "re-retrieve",
}
"""What an action does besides answering, which all of them do, and rewriting, which is a part of the web search; also
the names of the icons in the style sheet."""
_ICONS = {
    CorrectionKind.KEEP: "check",
    CorrectionKind.DISCARD: "delete",
    CorrectionKind.REFINE: "content_cut",
    CorrectionKind.REWRITE: "edit",
    CorrectionKind.WEB_SEARCH: "public",
    CorrectionKind.EXPAND: "expand_content",
    CorrectionKind.READ: "menu_book",
    CorrectionKind.RE_RETRIEVE: "replay",
    CorrectionKind.GENERATE: "chat",
}

_HEADS = (
    ("Policy", ""),
    ("Verdict", ""),
    ("Score", "Dots: chunk scores. Bar: what the policy makes of them. Below: its thresholds."),
    ("Then", "Before the answer is written"),
    ("LLM calls", "With a language model that rewrites and answers"),
)


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
        table = f"<style>{_CSS}</style>{table_html(own, group or 'Verdicts')}"
        if not group:
            st.subheader(message, anchor=False)
            st.html(table)
            continue
        with st.expander(f"**{plain(group)}** {message}"):
            st.html(table)


def table_html(verdicts: Sequence[Verdict], name: str = "Verdicts") -> str:
    """Every text is escaped: policies and their names for actions may be of anybody's files."""
    row = "".join(
        f'<th scope="col" title="{hint}">{head}</th>' if hint else f'<th scope="col">{head}</th>'
        for head, hint in _HEADS
    )
    return (
        f'<table class="policies" aria-label="{_text(name)}"><thead><tr>{row}</tr></thead>'
        f"<tbody>{''.join(map(_row_html, verdicts))}</tbody></table>"
    )


def _row_html(verdict: Verdict) -> str:
    policy, decision = verdict.policy, verdict.decision
    kind = decision.action.lower() if decision.verdict else "none"
    name = decision.action if decision.verdict else decision.label
    own = f" <small>{_text(own)}</small>" if decision.verdict and (own := own_name(decision)) else ""
    found = scales(verdict)
    score = "".join(map(_scale_html, found)) or f'<span class="reason">{_text(sentence(reason_of(decision)))}</span>'
    title = f' title="{_text(sentence(reason_of(decision)))}"' if found else ""
    calls = verdict.calls
    number = str(calls.most) if calls.least == calls.most else f"{calls.least}–{calls.most}"
    return (
        f'<tr><th scope="row">{_text(policy.title)}</th>'
        f'<td class="verdict {kind}"><b>{_text(name)}</b>{own}</td>'
        f'<td class="scales"{title}>{score}</td>'
        f'<td class="then">{"".join(_effects_html(decision))}</td>'
        f'<td class="calls" data-name="LLM calls">{number}</td></tr>'
    )


def _scale_html(scale: Scale) -> str:
    """The zones of the actions from 0 to 1 with the thresholds below; a dot for each chunk, a bar for the score."""
    limits = [one for one in (scale.lower, scale.upper) if one is not None]
    zones, marks = "", ""
    edges = [(0.0, "incorrect" if scale.upper is None else "below")]
    if scale.lower is not None:
        edges = [(0.0, "incorrect"), (scale.lower, "ambiguous")]
    if scale.upper is not None:
        edges.append((scale.upper, "correct"))
    for (start, kind), end in zip(edges, [*(at for at, _ in edges[1:]), 1.0], strict=True):
        zones += f'<i class="{kind}" style="left:{100 * start:.1f}%;width:{100 * (end - start):.1f}%"></i>'
    for kind, limit in (("lower", scale.lower), ("upper", scale.upper)):
        if limit is not None:
            marks += f'<small class="{kind}" style="left:{100 * limit:.1f}%">{readable(limit)[0]}</small>'
    dots = "".join(f'<i class="dot" style="left:{100 * one:.1f}%"></i>' for one in scale.chunks)
    return (
        f'<div class="scale"><span>{scale.name} <b>{against(scale.score, *limits)[0]}</b></span>'
        f'<div class="band">{zones}{dots}<i class="mark" style="left:{100 * scale.score:.1f}%"></i>{marks}</div></div>'
    )


def _effects_html(decision: Decision) -> Iterator[str]:
    """Each thing that the action does, in its order; single chunks that are discarded are counted."""
    single = sum(one.kind is CorrectionKind.DISCARD and one.passage_id is not None for one in decision.plan)
    if single:
        yield f'<span class="effect discard">discard {single}</span>'
    for one in decision.plan:
        if one.kind in _EFFECTS and one.passage_id is None:
            name = _EFFECTS[one.kind]
            yield f'<span class="effect {one.kind}" title="{_text(one.reason)}">{name}</span>'


def _text(words: str) -> str:
    return html.escape(clean(words))


# --- one of them in detail --------------------------------------------------------------------------------------------


def draw_details(verdicts: Sequence[Verdict]) -> None:
    """Of the policy that is chosen below the table: its reason, its plan and where it comes from."""
    by_name = {one.policy.name: one for one in verdicts}
    chosen = st.selectbox(
        "Details", list(by_name), index=None, placeholder="Details", key="policies_details", width=300,
        label_visibility="collapsed",
        format_func=lambda name: clean(by_name[name].policy.title) if name in by_name else name,
    )  # fmt: skip
    if chosen in by_name:
        verdict = by_name[chosen]
        policy, decision = verdict.policy, verdict.decision
        one = f" {ONE_FOR_BOTH}" if is_one_for_both(policy, decision) else ""
        made = "" if verdict.needs is None else f"  \nNot in this run: {plain(', '.join(verdict.needs) or 'nothing')}."
        sure = "" if decision.confidence is None else f"Confidence {decision.confidence:.2f}. "
        with st.container(border=True, gap="small"):
            st.subheader(f"{plain(policy.title)}: {headline(decision)}", anchor=False)
            st.markdown(plain(sentence(reason_of(decision))) + one)
            st.markdown("  \n".join(_plan(decision, policy)))
            source = f"Source: {plain(policy.source)}. More: `docs/policies.md`."
            st.caption(f"{sure}LLM calls: {verdict.calls}.{made}  \n{source}")


def _plan(decision: Decision, policy: Policy) -> list[str]:
    """One line a kind."""
    lines, plan = [], decision.plan
    single = [one for one in plan if one.kind is CorrectionKind.DISCARD and one.passage_id is not None]
    if single:
        chunks = counted(len(single), "chunk")
        lines.append(f":material/delete: discard {chunks}: {plain(single[0].reason)}{' …' * (len(single) > 1)}")
    for one in plan:
        if one not in single:
            name = _EFFECTS.get(one.kind, one.kind.value)
            lines.append(f":material/{_ICONS[one.kind]}: {name}: {plain(one.reason)}")
    is_kept = decision.handling is not Handling.DISCARD or "keep_if_nothing" in policy.steps(Action.INCORRECT)
    if decision.verdict is Action.AMBIGUOUS or (decision.verdict is Action.INCORRECT and is_kept):
        lines.append(f":material/help: if doubtful: {app_state.DOUBTFUL_TITLES[policy.doubtful].lower()}")
    return lines
