"""The answer of a report, or plainly why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.base.types import AnswerState, WebOutcome
from crag_core.trace.reroute import Missing
from crag_core.view.answer.answer_blocks import AnswerBlocks, Source, sources_of
from crag_core.view.run_view import RunView


@dataclass(frozen=True)
class ReportedAnswer:
    """`blocks` None: `why_not` says why there is no answer."""

    blocks: AnswerBlocks | None
    sources: tuple[Source, ...]
    why_not: str = ""


def answer_of(view: RunView) -> ReportedAnswer:
    """Only the answer that belongs to this decision and this evidence; an old one is never shown under a new action."""
    answer = view.routed.answer
    if answer is None:
        return ReportedAnswer(None, sources_of(view), _why_none(view))
    if answer.state is AnswerState.CANNOT_ANSWER:
        why = answer.message or "This cannot be answered from the evidence."
        return ReportedAnswer(None, sources_of(view), why)
    blocks = AnswerBlocks(view, answer, view.trace.support or ())
    return ReportedAnswer(blocks, blocks.sources)


def _why_none(view: RunView) -> str:
    trace, failure = view.trace, view.trace.failure
    if trace.answer is not None:
        return (
            "No answer was written from this evidence. The run as taken has one, from other evidence or under "
            "another action; it is not shown here, since it would not be the answer to this decision."
        )
    if trace.web and trace.web.outcome is WebOutcome.PENDING:
        return f"No answer was written yet: the web search for “{trace.web.query}” waits for approval."
    if failure:
        return f"No answer was written: the run ended at the step “{failure.name}”. {failure.summary} {failure.hint}"
    lacking = [f"{one}" for one in view.routed.missing if one is not Missing.ANSWER]
    return f"No answer was written.{' This route would first need: ' + '; '.join(lacking) + '.' if lacking else ''}"
