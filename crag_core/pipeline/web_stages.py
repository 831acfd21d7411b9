"""The stages on the web: rewrite, search, grade web; the approval of a query; and how queries are written."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from crag_core.base.errors import CragError, Stopped
from crag_core.base.protocols import Cancel, LanguageModel, Messages
from crag_core.base.reply_parsing import without_thoughts
from crag_core.base.text.display import counted
from crag_core.base.types.decisions import CorrectionKind
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.base.types.web import AS_ASKED, PageOutcome, WebOutcome, WebSearch
from crag_core.decision.policy import WebQuery
from crag_core.pipeline.grading import grades_by
from crag_core.pipeline.run import Parts, Result, Run, TimedCancel, WebMode
from crag_core.pipeline.stages import scored_strips
from crag_core.trace.edits import edited
from crag_core.trace.opinions import with_grades
from crag_core.trace.trace import Trace


def rewrite(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """The web query, written but not sent: `search` sends it once it is approved."""
    decision, policy = trace.decision, trace.settings.policy
    if decision is None or not decision.wants(CorrectionKind.WEB_SEARCH) or trace.web is not None:
        return None
    if trace.settings.web_mode == WebMode.OFF or parts.searcher is None:
        return Result({"web": WebSearch(WebOutcome.OFF, "", "")}, "web search is off", state=StepState.SKIPPED)
    left = parts.pause.left(policy.web.cooldown) if parts.pause and policy.web.cooldown else 0.0
    if left > 0:
        summary = f"The last search was just made; this policy waits {policy.web.cooldown:g} s, {left:.0f} s are left."
        cooling = WebSearch(WebOutcome.COOLING, "", "", message=summary)
        return Result({"web": cooling}, summary, state=StepState.SKIPPED)
    query, by, usage, note = _web_query(trace, parts, run)
    if trace.settings.web_mode == WebMode.ASK:
        waiting = WebSearch(WebOutcome.PENDING, query, by)
        return Result({"web": waiting}, f"“{query}”, {by}{note}, waits for your approval", usage, StepState.WAITING)
    return Result({"web": WebSearch(WebOutcome.APPROVED, query, by)}, f"“{query}”, {by}{note}", usage)


def search(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Search with the approved query, within the policy's time; the results are passages of origin web."""
    web, policy = trace.web, trace.settings.policy
    if web is None or web.outcome is not WebOutcome.APPROVED or parts.searcher is None:
        return None
    try:
        reply = parts.searcher.search(web.query, policy.web.limit, TimedCancel(run.cancel, policy.web.seconds))
    except Stopped:
        if run.cancel.is_set():
            raise
        if parts.pause:
            parts.pause.note()  # the query has left the machine
        summary = f"The web did not answer within the {policy.web.seconds:g} s that this policy allows."
        return Result({"web": replace(web, outcome=WebOutcome.TIMED_OUT, message=summary)}, summary)
    if parts.pause and not reply.from_cache:
        parts.pause.note()
    web = replace(
        web,
        outcome=reply.outcome,
        provider=reply.provider,
        message=reply.message,
        passages=_distinct(reply.passages),
        from_cache=reply.from_cache,
        attempts=reply.attempts,
        pages=() if reply.is_offline or parts.page_reader is None else None,
    )
    found = counted(len(web.passages), "result")
    summary = f"{found} for “{web.query}” from {web.provider}" if web.passages else web.message
    return Result({"web": web}, summary)


def _distinct(results: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Of two with one id, which a user's own provider may give, the first."""
    found: dict[str, Passage] = {}
    for one in results:
        found.setdefault(one.id, one)
    return tuple(found.values())


def grade_web(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Score the results and their strips; a model judges them only where the policy refines web text too."""
    web, view, settings = trace.web, edited(trace).web, trace.settings
    if web is None or view is None:
        return None
    counting = view.evidence(settings.policy.web.pages)
    asks_model = settings.evaluator.calls_model
    settled = tuple(grade for grade in trace.web_grades or () if not grade.retryable)  # who was away may be back
    given = {grade.passage_id for grade in settled} | set(trace.edits.pinned if asks_model else ())
    scored = {strip.passage_id for strip in web.strips or ()}
    judged = settings.policy.web.refine or not asks_model
    wanted = counting if asks_model else view.passages
    ungraded = tuple(one for one in wanted if judged and one.id not in given)
    unscored = tuple(one for one in view.passages if web.strips is None or (one.id not in scored and one.text.strip()))
    if not (ungraded or unscored):
        return None
    summary, usage, changes = [], Usage(), dict[str, Any]()
    if ungraded:
        grades = grades_by(parts.evaluator, trace.question, ungraded, run.cancel)
        graded = sum(grade.score is not None for grade in grades)
        summary.append(f"{graded} of {counted(len(ungraded), 'web text')} graded")
        usage = sum((grade.usage for grade in grades), usage)
        changes["opinions"] = with_grades(trace, grades)
    if unscored:
        strips, what = scored_strips(trace.question, unscored, parts, run)
        changes["web"] = replace(web, strips=(web.strips or ()) + strips)
        summary.append(what)
    return Result(changes, ", ".join(summary), usage)


def _web_query(trace: Trace, parts: Parts, run: Run) -> tuple[str, str, Usage, str]:
    """(query, who wrote it, cost, a note); a model that fails here must not cost the user the search."""
    policy, own, model = trace.settings.policy, shortened(trace.question), parts.model
    if policy.web.query is WebQuery.QUESTION or model is None:
        return own, AS_ASKED, Usage(), ""
    if policy.web.query is WebQuery.PHRASES:
        limit = policy.web.phrases
        asked, read = parts.prompts.phrases(trace.question, limit), lambda reply: key_phrases(reply, limit)
    else:
        asked, read = parts.prompts.rewrite(trace.question, policy.web.words), clean_query
    query, usage, why = ask_for_query(model, asked, read, run.cancel)
    return (query, f"written by {model.name}", usage, "") if query else (own, AS_ASKED, usage, f", {why}")


# --- approval of a query ----------------------------------------------------------------------------------------------


def is_waiting(trace: Trace) -> bool:
    """Whether the run waits for the user's word on a web query, or on pages, that its decision asks for."""
    return wants_web(trace) and trace.web is not None and trace.web.is_waiting


def approve(trace: Trace, query: str = "") -> Trace:
    """The run with the user's word on the query, "": as it is, or on the pages that it waits to read; resume it."""
    return _with_word(trace, "approved by you", WebOutcome.APPROVED, PageOutcome.APPROVED, query)


def refuse(trace: Trace) -> Trace:
    return _with_word(trace, "refused by you", WebOutcome.REFUSED, PageOutcome.REFUSED)


def _with_word(trace: Trace, word: str, outcome: WebOutcome, of_pages: PageOutcome, query: str = "") -> Trace:
    web = trace.web
    if web is not None and web.outcome is WebOutcome.PENDING:
        by = web.query_by if query in ("", web.query) else "edited by you"
        web = replace(web, outcome=outcome, query=query or web.query, query_by=by)
    elif web is not None and web.pages_waiting:
        pages = (replace(one, outcome=of_pages) if one in web.pages_waiting else one for one in web.pages or ())
        web = replace(web, pages=tuple(pages))
    else:
        raise ValueError("this run does not wait for approval")
    return replace(trace, web=web, steps=answered(trace, word))


def wants_web(trace: Trace) -> bool:
    return trace.decision is not None and trace.decision.wants(CorrectionKind.WEB_SEARCH)


def answered(trace: Trace, word: str) -> tuple[Step, ...]:
    return tuple(
        replace(step, state=StepState.DONE, summary=f"{step.summary}: {word}")
        if step.state is StepState.WAITING
        else step
        for step in trace.steps
    )


# --- queries ----------------------------------------------------------------------------------------------------------


_LONGEST = 200  # characters of a query
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_NAMES = (
    "query queries question keyword keywords phrase phrases output answer rewritten rephrased reworded reformulated "
    "refined revised improved optimized optimised suchanfrage anfrage suchbegriff suchbegriffe stichwörter requête "
    "recherche consulta búsqueda mots palabras"
)
_OTHER_NAMES = "version word words term terms string result rewrite"
_BESIDE = (
    "sure certainly ok okay of course here s this is are the a an your my one for web search engine google internet "
    "online key friendly focused better best new final short possible suggested original user optimierte verbesserte "
    "optimisée optimizada clave clés der die de la le für"
)
"""The words of a label before a query, such as "Here is the web-optimized version of the query:"."""
_ECHO = re.compile(r"^\W*(?:original(?:\s+\w+)?|question)\s*:", re.IGNORECASE)
"""Of the request, before the query itself."""
_TAG = re.compile(r"^\W*<[\w\-]+>|</[\w\-]+>\W*$|^\s*```\w*\s*$")


def ask_for_query(
    model: LanguageModel, messages: Messages, read: Callable[[str], str], cancel: Cancel, tried: Sequence[str] = ()
) -> tuple[str, Usage, str]:
    """(the model's query, cost, ""), or ("", cost, why there is none that was not tried); raises `Stopped` alone."""
    try:
        reply = model.complete(messages, cancel)
    except Stopped:
        raise
    except CragError as error:
        return "", Usage(calls=1), f"since: {error.message}"
    query = read(reply.text)
    if query and query.casefold() not in {text.casefold() for text in tried}:
        return query, reply.usage, ""
    return "", reply.usage, f"since {model.name} {'repeated a query' if query else 'gave no query'}"


def clean_query(reply: str) -> str:
    """The query in a model's reply: its first line that says something new, bare; perhaps ""."""
    lines = without_thoughts(reply).splitlines()
    said = next(_bare_lines(line for line in lines if not _ECHO.match(line)), "")
    return shortened(said or next(_bare_lines(lines), ""))


def key_phrases(reply: str, limit: int) -> str:
    """The first `limit` phrases of a reply, with commas between; they stand on one line, or are the items of a list."""
    text = without_thoughts(reply)
    items = [line for line in text.splitlines() if _ITEM.match(line)]
    said = (
        "\n".join(_ITEM.sub("", line) for line in items) if len(items) > 1 else next(_bare_lines(text.splitlines()), "")
    )
    phrases = [bare for part in re.split(r"[,;，、；\n]+", said) if (bare := _bare(part))]
    distinct = list({phrase.casefold(): phrase for phrase in reversed(phrases)}.values())[::-1][:limit]
    while len(distinct) > 1 and len(", ".join(distinct)) > _LONGEST:
        distinct.pop()
    return shortened(", ".join(distinct))


def keyword_query(question: str, keywords: Callable[[str], list[str]]) -> str:
    kept = [word.strip(".,;:!?\"'()[]“”„¿¡") for word in question.split() if keywords(word)]
    return shortened(" ".join(kept) or question)


def shortened(query: str) -> str:
    text = " ".join(query.split())
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(" ")[0] or text[:_LONGEST]


def _bare_lines(lines: Iterable[str]) -> Iterator[str]:
    return (bare for line in lines if (bare := _bare(line)) and not bare.endswith((":", "：")))


def _bare(text: str) -> str:
    return " ".join(_unlabelled(_TAG.sub("", text)).strip(" \t\"'`*“”„«».-{}").split())


def _unlabelled(text: str) -> str:
    """Without the labels that stand before it; any other word before a colon is a part of the query."""
    names, others, beside = (frozenset(one.split()) for one in (_NAMES, _OTHER_NAMES, _BESIDE))
    while True:
        head, *rest = re.split(r"[:：]|\s[-–—]\s", text, maxsplit=1)
        said = {word for word in re.findall(r"\w+", head.casefold()) if not word.isdecimal()}
        names_it = said & names or (len(said) > 1 and said & others)
        if not (rest and names_it and said <= names | others | beside):
            return text
        text = rest[0]
