"""Configurations side by side on one labelled set, as a page of its own for somebody who has never heard of CRAG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from crag_core.base.text.display import counted, limit_text, moment, readable
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import STAND_IN, Doubtful
from crag_core.experiments.comparison.table import Table
from crag_core.experiments.labelled.questions import LABELS, Expected
from crag_core.experiments.statistics.intervals import DRAWS
from crag_core.report import page, style_sheet
from crag_core.report.comparison import view
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.trace import RunSettings
from crag_core.view.verdict_lines import MEANINGS, Figure


@dataclass(frozen=True)
class Comparison:
    """What a page needs beside the table: `labelled` is the name of the set, `created` a time of day.

    `configurations` has a line for each by name, `command` makes the page again; "" where there is none. `remarks` tell
    what else must be known, such as that one of them is an earlier result.
    """

    labelled: str
    created: str
    configurations: Mapping[str, str]
    command: str = ""
    remarks: Sequence[str] = ()


def render_comparison(table: Table, about: Comparison) -> str:
    """The page as HTML: every figure is one of `table`, and every gain is over its first configuration.

    It needs no network and no script, and holds neither questions nor passages. Whatever comes from outside, such as a
    name, shows as text. The same arguments always give the same.
    """
    style, key = style_sheet()
    return (
        page()
        .environment.get_template("comparison.html")
        .render(
            style=style,
            style_key=key,
            table=table,
            about=about,
            created=moment(about.created),
            configurations=tuple((name, about.configurations.get(name, "")) for name in table.names),
            figures=_headline(table),
            kinds=_kinds(table),
            findings=view.findings_of(table),
            groups=[(group, list(rows)) for group, rows in groupby(table.rows, lambda row: row.measure.group)],
            results=view,
            counted=counted,
            labels=LABELS,
            actions=tuple(Action),
            meanings=tuple((action, MEANINGS[action]) for action in Action),
            draws=f"{DRAWS:,}",
        )
    )


def described(made: RunSettings, searched: str = "") -> str:
    """A configuration in one line; `searched` names the web providers, "" for none."""
    policy, answers = made.policy, f"answers written by {made.writer}"
    if made.writer == EXTRACTIVE:
        answers = "answers are quotations, without a language model"
    parts = [f"policy {policy.title}", f"evaluator {made.evaluator.title}"]
    if policy.is_plain:
        parts = [f"policy {policy.title}", "nothing is graded"]
    else:
        lower, upper, cutoff = (readable(one)[0] for one in policy.thresholds)
        parts.append(f"lower {lower}, upper {upper}, sentence cut-off {cutoff}")
        parts.append(limit_text(policy.refinement.top))
    if policy.doubtful is Doubtful.ABSTAIN:
        parts.append("abstains where it is in doubt")
    if made.writer == EXTRACTIVE and policy.needs_model:
        parts.append(f"{STAND_IN}: {policy.without_model[:1].lower()}{policy.without_model[1:].rstrip('.')}")
    web = f"web searched through {searched}" if searched else "web search off"
    checked = [] if made.support == WORDS else [f"sentences of answers judged by {made.support}"]
    return "; ".join((*parts, answers, *checked, web, counted(made.top_k, "chunk") + " a question"))


def _headline(table: Table) -> tuple[Figure, ...]:
    return (
        Figure("Configurations", str(len(table.names))),
        Figure("Questions compared", str(len(table.questions))),
        Figure("Questions left out", str(table.left_out), hint="not finished by every configuration"),
    )


def _kinds(table: Table) -> tuple[tuple[int, str], ...]:
    """Questions by label, of the labels that occur."""
    labels = [asked.expected for asked in table.questions]
    counts = ((labels.count(expected), LABELS[expected]) for expected in Expected)
    return tuple((count, label) for count, label in counts if count)
