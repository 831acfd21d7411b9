"""The stages on the web as view data: rewrite, search, grade. Pure."""

from __future__ import annotations

from dataclasses import replace

from crag_core.base.text.display import counted
from crag_core.base.text.numbers import readable
from crag_core.base.types import CorrectionKind, WebOutcome, WebSearch
from crag_core.trace.reroute import Reroute
from crag_core.trace.trace import Trace
from crag_core.view.path.stage import Stage, StageState, kept, stage, why_not

_UNASKED = {WebOutcome.OFF: "web search is off", WebOutcome.COOLING: "too soon after the last"}


def web_stage(name: str, trace: Trace, routed: Reroute) -> Stage:
    web = trace.web
    if not routed.decision.wants(CorrectionKind.WEB_SEARCH):
        unused = "the record holds a search that is not used now" if web and web.passages else ""
        return stage(name, StageState.NOT_TAKEN, why_not(routed), unused)
    if web is None:
        return stage(name, StageState.WOULD_BE)
    if web.outcome in _UNASKED:
        return stage(name, StageState.SKIPPED, _UNASKED[web.outcome], web.message)
    if name == "rewrite":
        return stage(name, StageState.TAKEN, f"“{web.query}”", web.query_by)
    return _search(web) if name == "search" else _grade_web(web, routed)


def _search(web: WebSearch) -> Stage:
    by = web.provider or "the web"
    if web.outcome is WebOutcome.USED:
        cached = "from memory, nothing left this machine" if web.from_cache else ""
        return stage("search", StageState.TAKEN, f"{counted(len(web.passages), 'result')} from {by}", cached)
    return {
        WebOutcome.EMPTY: stage("search", StageState.TAKEN, f"nothing found by {by}", web.message),
        WebOutcome.REFUSED: stage("search", StageState.SKIPPED, "refused by you", "nothing left this machine"),
        WebOutcome.PENDING: stage("search", StageState.WAITING, "waits for your approval"),
        WebOutcome.APPROVED: stage("search", StageState.WOULD_BE),
    }.get(web.outcome, stage("search", StageState.FAILED, web.outcome.value, web.message))


def _grade_web(web: WebSearch, routed: Reroute) -> Stage:
    if web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED):
        return stage("grade_web", StageState.WOULD_BE)
    if not web.passages:
        return stage("grade_web", StageState.NOT_TAKEN, "no results to grade")
    if web.grades is None and web.strips is None:
        return stage("grade_web", StageState.WOULD_BE)
    scores = [grade.score for grade in web.grades or () if grade.score is not None]
    best = f"best {readable(max(scores))[0]}" if scores else ""
    external = routed.knowledge.external
    if external and not any(excerpt.strip_ids for excerpt in external):
        summary = f"{counted(len(external), 'result')} as {'it is' if len(external) == 1 else 'they are'}"
    else:
        summary = kept(routed.knowledge.verdicts, web.passages)
    return replace(stage("grade_web", StageState.TAKEN, summary, best), leads_on=bool(external))


def describe_web(trace: Trace, routed: Reroute) -> str:
    """What came of the web search, or why there was none; the query is told beside it."""
    web, is_wanted = trace.web, routed.decision.wants(CorrectionKind.WEB_SEARCH)
    if web is None:
        why = ", though this route asks for one" if is_wanted else ": this route asks for none"
        return f"No web search was made in this run{why}."
    if web.outcome in (WebOutcome.PENDING, WebOutcome.APPROVED):
        return "The web search was not made yet: it waits for approval, and nothing left this machine."
    unused = " Recorded, but not used under the present thresholds." if web.passages and not is_wanted else ""
    return f"{_outcome(web)}{unused}"


def _outcome(web: WebSearch) -> str:
    if web.outcome is WebOutcome.USED:
        return f"{counted(len(web.passages), 'result')} from {web.provider}{' from memory' if web.from_cache else ''}."
    if web.outcome is WebOutcome.OFF:
        return "This route asks for a web search, and web search is off."
    if web.outcome is WebOutcome.REFUSED:
        return "You refused this search; nothing left this machine."
    return f"The web search brought nothing ({web.outcome}). {web.message}".strip()
