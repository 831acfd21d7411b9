"""One run as a page of its own: a single HTML file that needs no network, no script and no application."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from crag_core.base.text.display import clean, literal, moment, shortened
from crag_core.decision.policy import Policy
from crag_core.report import text
from crag_core.report.run.sections import (
    answer_of,
    cards_of,
    changes_of,
    edges_of,
    limits_of,
    path_of,
    signals_of,
    verdict_of,
)
from crag_core.trace.trace import Trace
from crag_core.view.answer.answer_blocks import sources_of
from crag_core.view.answer.consolidated import consolidated_view
from crag_core.view.chunk_cards import chunk_cards, snippet_cards
from crag_core.view.opinions import comparisons
from crag_core.view.path.stages import describe_page, describe_web
from crag_core.view.record import asked_as, cost_of, round_rows, settings_of, step_title
from crag_core.view.run_view import view_run
from crag_core.view.score_line import picture, why_no_picture
from crag_core.view.score_words import reason_of
from crag_core.view.verdict_lines import headline

_TEMPLATES = Path(__file__).parent / "templates"


def render(trace: Trace, policy: Policy | None = None) -> str:
    """The run as HTML, decided under `policy`; None: under the policy of the run, as it was taken.

    Whatever the record holds shows as text: it is escaped, and cannot run, load, submit or disguise anything.
    """
    view = view_run(trace, policy)
    scores, answer = picture(view), answer_of(view)
    style, key = style_sheet()
    return page().render(
        style=style,
        style_key=key,
        view=view,
        trace=trace,
        taken=moment(trace.created),
        verdict=verdict_of(view),
        changes=changes_of(view),
        path=path_of(view),
        rounds=round_rows(view),
        scores=scores,
        edges=edges_of(scores),
        limits_of=limits_of,
        why_no_scores=why_no_picture(view),
        signals=signals_of(view),
        why_not=answer if isinstance(answer, str) else "",
        answer=None if isinstance(answer, str) else answer,
        consolidated=consolidated_view(view),
        sources=sources_of(view) if isinstance(answer, str) else answer.sources,
        cards=cards_of(view, chunk_cards(view)),
        web_cards=cards_of(view, snippet_cards(view)),
        web_text=describe_web(trace, view.routed),
        web_pages=[(one.url, describe_page(one)) for one in (trace.web.pages if trace.web else None) or ()],
        comparisons=comparisons(
            view, lambda card: view.policy.with_thresholds_for(card, trace.settings.strip_evaluator)
        ),
        abstains=view.abstains,
        headline=headline,
        reason_of=reason_of,
        cost_of=cost_of,
        step_title=step_title,
        settings=settings_of(trace),
        asked_as=asked_as(trace),
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
    environment.filters["shortened"] = lambda value, length: shortened(clean(value), length)
    return environment.get_template("report.html")


def _cleaned(value: Any) -> Any:
    """Every text on its way into the page passes here; only our own style sheet is markup."""
    return literal(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def style_sheet() -> tuple[Markup, str]:
    """The style sheet and its hash, so that the page allows this one and no other."""
    sheet = (_TEMPLATES / "report.css").read_text("utf-8")
    return Markup(sheet), text.allowed(sheet)
