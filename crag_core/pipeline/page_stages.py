"""The stage that reads the pages that a web search found."""

from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.errors import Stopped
from crag_core.base.protocols import PageText
from crag_core.base.text.display import counted
from crag_core.base.text.words import words
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import StepState
from crag_core.base.types.web import PageOutcome, WebOutcome, WebPage, WebSearch
from crag_core.pipeline.run import Parts, Result, Run, TimedCancel, WebMode
from crag_core.pipeline.web_stages import wants_web
from crag_core.trace.edits import edited
from crag_core.trace.trace import Trace

CHUNKS_OF_A_PAGE = 3  # the best of a page go on, as many as a page may have at most
_SCORED = 20  # chunks of a page


def read_pages(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Read the pages of the first results, within the policy's time; their best chunks are passages of origin web."""
    web, policy = trace.web, trace.settings.policy
    if web is None or web.outcome is not WebOutcome.USED or not policy.web.pages or not wants_web(trace):
        return None
    if web.pages is None:
        if trace.settings.web_mode == WebMode.OFF or parts.page_reader is None:
            why = "web search is off" if trace.settings.web_mode == WebMode.OFF else "no page is read here"
            return Result({"web": replace(web, pages=())}, why, state=StepState.SKIPPED)
        web = replace(web, pages=_listed(trace, web))
    if web.pages_waiting:
        if trace.web == web:
            return None
        listed = ", ".join(page.url for page in web.pages_waiting)
        return Result({"web": web}, f"{listed}: wait for your approval", state=StepState.WAITING)
    pages, results = web.pages or (), {one.id: one for one in web.results}
    approved = [page for page in pages if page.outcome is PageOutcome.APPROVED and page.result in results]
    if not approved:
        return None
    texts = _texts_of([results[page.result].url or "" for page in approved], parts, run, policy.web.seconds)
    chunks = {
        page.result: _best_chunks(trace.question, results[page.result], text, parts, run)
        for page, text in zip(approved, texts, strict=True)
    }
    read = {page.result: _read(page, text, chunks[page.result]) for page, text in zip(approved, texts, strict=True)}
    pages = tuple(read.get(page.result, page) for page in pages)
    passages = tuple(one for passage in web.passages for one in (passage, *chunks.get(passage.id, ())))
    return Result({"web": replace(web, pages=pages, passages=passages)}, _describe_pages(pages))


def _listed(trace: Trace, web: WebSearch) -> tuple[WebPage, ...]:
    outcome = PageOutcome.PENDING if trace.settings.web_mode == WebMode.ASK else PageOutcome.APPROVED
    found = (edited(trace).web or web).results[: trace.settings.policy.web.pages]
    return tuple(WebPage(one.id, one.url or "", outcome) for one in found)


def _texts_of(urls: Sequence[str], parts: Parts, run: Run, seconds: float | None) -> tuple[PageText, ...]:
    if parts.page_reader is None:
        return tuple(PageText(why="was not read, since no page is read here") for _ in urls)
    try:
        return parts.page_reader.read(urls, TimedCancel(run.cancel, seconds))
    except Stopped:
        if run.cancel.is_set():
            raise
        why = f"was not read within the {seconds:g} s that this policy allows"
        return tuple(PageText(why=why) for _ in urls)


def _read(page: WebPage, text: PageText, chunks: tuple[Passage, ...]) -> WebPage:
    return replace(
        page,
        outcome=PageOutcome.READ if chunks else PageOutcome.FAILED,
        message=text.why,
        seconds=text.seconds,
        characters=text.characters,
        cut=len(text.chunks),
        chunks=tuple(chunk.id for chunk in chunks),
    )


def _best_chunks(question: str, result: Passage, page: PageText, parts: Parts, run: Run) -> tuple[Passage, ...]:
    """The chunks of a page that the scorer of sentences thinks most of, in reading order; ungraded ones come last."""
    cut = tuple(
        replace(result, id=f"{result.id}-{at}", text=text, ordinal=at, found_by=("web page",), section=section)
        for at, (text, section) in enumerate(page.chunks)
    )
    if not cut:
        return ()
    chunks, judge = _likely(cut, parts.meter.keywords(question)), parts.strip_evaluator
    scores = {grade.passage_id: grade.score for grade in judge.grade(question, chunks, run.cancel)}
    best = sorted(chunks, key=lambda one: (-(scores.get(one.id) or 0.0), one.ordinal))[:CHUNKS_OF_A_PAGE]
    return tuple(
        replace(one, scores=() if scores.get(one.id) is None else ((judge.card.name, scores[one.id] or 0.0),))
        for one in sorted(best, key=lambda one: one.ordinal)
    )


def _likely(chunks: tuple[Passage, ...], keywords: Sequence[str]) -> tuple[Passage, ...]:
    """So many as are scored: of a longer page those that hold most of the question's keywords, the first ones first."""
    wanted = frozenset(keywords)
    found = sorted(chunks, key=lambda one: -len(wanted.intersection(words(one.text))))[:_SCORED]
    return tuple(sorted(found, key=lambda one: one.ordinal))


def _describe_pages(pages: Sequence[WebPage]) -> str:
    read = [page for page in pages if page.outcome is PageOutcome.READ]
    chosen, cut = sum(len(page.chunks) for page in read), sum(page.cut for page in read)
    summary = f"{len(read)} of {counted(len(pages), 'page')} read"
    summary += f", the best {chosen} of their {counted(cut, 'chunk')} used" if read else ""
    failed = [f"{page.url} {page.message}" for page in pages if page.outcome is PageOutcome.FAILED]
    return "; ".join([summary, *(f"{why}, so its snippet is used" for why in failed)])
