"""One run as a page of its own: a single HTML file that needs no network, no script and no application."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from crag_core.decision.policy import Policy
from crag_core.report import text
from crag_core.report.reported_run import look
from crag_core.report.run import answer, evidence, opinions, record, score_line, verdict
from crag_core.report.run import score_table as scores
from crag_core.report.run.path import looks_of, path_of
from crag_core.trace.trace import Trace

_TEMPLATES = Path(__file__).parent / "templates"


def render(trace: Trace, policy: Policy | None = None) -> str:
    """The run as HTML, decided under `policy`; None: under the policy of the run, as it was taken.

    Whatever the record holds shows as text: it is escaped, and cannot run, load, submit or disguise anything.
    """
    shown = look(trace, policy)
    style, key = style_sheet()
    return page().render(
        style=style,
        style_key=key,
        shown=shown,
        trace=trace,
        taken=text.moment(trace.created),
        verdict=verdict.verdict_of(shown),
        changes=verdict.changes(shown),
        path=path_of(shown),
        looks=looks_of(shown),
        score_lines=score_line.lines_of(shown),
        score_table=scores.table_of(shown),
        signals=scores.signals_of(shown),
        answer=answer.answer_of(shown),
        cards=evidence.corpus_cards(shown),
        web_cards=evidence.web_cards(shown),
        web_text=record.describe_web(shown),
        comparisons=opinions.comparisons(shown),
        steps=record.steps_of(shown),
        settings=record.settings_of(shown),
        absences=record.absences(shown),
    )


@cache
def page() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _cleaned(value: Any) -> Any:
    """Every text on its way into the page passes here; only our own style sheet is markup."""
    return text.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def style_sheet() -> tuple[Markup, str]:
    """The style sheet and its hash, so that the page allows this one and no other."""
    sheet = (_TEMPLATES / "report.css").read_text("utf-8")
    digest = hashlib.sha256(sheet.encode()).digest()
    return Markup(sheet), f"sha256-{base64.b64encode(digest).decode()}"
