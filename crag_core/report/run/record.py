"""What a report tells of the run itself: its web search, steps and settings, and what the record does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crag_core.base.types import EvaluatorCard, Step
from crag_core.report.text import duration, moment
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.reroute import Missing
from crag_core.view.run_view import RunView


@dataclass(frozen=True)
class StepRow:
    name: str
    state: str
    summary: str
    hint: str
    time: str
    calls: str


def steps_of(view: RunView) -> tuple[StepRow, ...]:
    return tuple(_row(step) for step in view.trace.steps)


def _row(step: Step) -> StepRow:
    usage = step.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    calls = f"{usage.calls} ({tokens} tokens)" if usage.calls else "–"
    calls += ", taken over from an earlier run" if step.taken_over else ""
    return StepRow(step.name, step.state, step.summary, step.hint, duration(step.seconds), calls)


def settings_of(view: RunView) -> tuple[tuple[str, str], ...]:
    """Everything that the run depended on, as name and value; the policy is that of the run."""
    trace, own = view.trace, view.trace.settings
    policy = own.policy
    found = {
        "Policy": f"{policy.title} ({policy.name}): {policy.summary}",
        "Described in": policy.source,
        "Thresholds of the run": f"lower {policy.lower:.3f}, upper {policy.upper:.3f}, "
        f"cut-off for sentences {policy.strips.cutoff:.3f}",
        "Chunks graded by": _card(own.evaluator),
        "Sentences scored by": _card(own.strip_evaluator),
        "Embedding model": own.embedding,
        "Answer by": f"{own.writer}, version {own.writer_version}" if own.writer_version else own.writer,
        "Answer checked by": "comparing words" if own.support == WORDS else own.support,
        "Web search": own.web_mode,
        "Chunks asked for": str(own.top_k),
        "Searched in": f"the collection {own.collection!r}" if own.collection else "all collections",
        "Files read whole": str(len(own.pinned)) + (", and the others searched too" if own.search_too else ""),
        "Version": f"CRAG Explorer {own.version}, prompts {own.prompts}, record schema {trace.schema}",
        "Fingerprint of the settings": trace.fingerprint,
        "Run": f"{trace.id}, {moment(trace.created)}",
    }
    return tuple(found.items())


def _card(card: EvaluatorCard) -> str:
    version = f", version {card.version}" if card.version else ""
    return f"{card.title} ({card.name}{version}), scale {card.scale}"


def absences(view: RunView) -> tuple[str, ...]:
    """What a reader might look for and does not find, each said once."""
    return tuple(_absent(view))


def _absent(view: RunView) -> Iterator[str]:
    trace = view.trace
    if trace.passages is None:
        yield "Nothing was retrieved, so there is no evidence to show."
    elif trace.grades is None:
        yield "No chunk was graded."
    if trace.passages and trace.strips is None:
        yield "No sentence was scored, so chunks are shown without any kept or struck out."
    for lacking in view.routed.missing if view.is_decided else ():
        if lacking is not Missing.ANSWER:
            yield f"This decision would need {lacking}."
    if view.routed.answer is None:
        yield "There is no answer to this decision."
    elif trace.support is None:
        yield "How well the evidence supports each sentence of the answer was not measured."
    if trace.web is None:
        yield "The web was not searched."
    if not trace.opinions:
        yield "No second evaluator was asked for its opinion."
    yield "The documents themselves are not in this file, only the chunks that were found in them."
    yield "This file cannot be opened in the application; for that there is the record of the run as JSON."
