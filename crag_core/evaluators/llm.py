"""A language model as judge: one call a passage, a score with a reason, or plainly "not graded"."""

from __future__ import annotations

import time
from collections.abc import Sequence

from crag_core import prompts
from crag_core.errors import CragError, Stopped
from crag_core.protocols import Cancel, LanguageModel, Messages, Reply
from crag_core.replies import parse_score
from crag_core.types import EvaluatorCard, Grade, Passage, Usage


class LLMEvaluator:
    """Judges the first 2000 characters of each passage by a rubric of six bands (description 004).

    A reply that cannot be read is asked for once more with the failure named; then the passage is ungraded. When the
    server is away its passages are ungraded and `retryable`.
    """

    card = EvaluatorCard(
        name="llm",
        title="Language model",
        scale="a rubric from 0 (nothing to do with it) to 1 (answers completely)",
        lower=0.30,
        upper=0.70,
        strip_cutoff=0.50,
        calls_model=True,
        cost="one model call a passage",
    )

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        first = {passage.id: prompts.judge(question, passage.text) for passage in passages}
        grades = self._ask(first, cancel)
        second = {
            grade.passage_id: prompts.again(first[grade.passage_id], grade.raw or "", grade.cause)
            for grade in grades.values()
            if grade.score is None and not grade.retryable
        }
        if second:
            for passage_id, grade in self._ask(second, cancel).items():
                grades[passage_id] = _joined(grades[passage_id], grade)
        return tuple(grades[passage.id] for passage in passages)

    def _ask(self, chats: dict[str, Messages], cancel: Cancel) -> dict[str, Grade]:
        started = time.perf_counter()
        replies = self._model.complete_all(list(chats.values()), cancel, prompts.SCORE_SCHEMA)
        each = (time.perf_counter() - started) / max(len(chats), 1)
        return {passage_id: _grade(passage_id, reply, each) for passage_id, reply in zip(chats, replies, strict=True)}


def _grade(passage_id: str, reply: Reply | Exception, seconds: float) -> Grade:
    if isinstance(reply, Stopped) or (isinstance(reply, Exception) and not isinstance(reply, CragError)):
        raise reply
    if isinstance(reply, CragError):
        return Grade(passage_id, None, cause=str(reply), retryable=True, seconds=seconds, usage=Usage(calls=1))
    parsed = parse_score(reply.text)
    return Grade(
        passage_id, parsed.score, parsed.reason, raw=reply.text, cause=parsed.cause, seconds=seconds, usage=reply.usage
    )


def _joined(first: Grade, second: Grade) -> Grade:
    """The second attempt's grade, with what both cost and, if both failed, both raw replies."""
    failed = second.score is None
    return Grade(
        second.passage_id,
        second.score,
        second.reason,
        raw=f"{first.raw}\n--- asked again ---\n{second.raw or ''}" if failed else second.raw,
        cause=f"{second.cause} (asked twice)" if failed else "",
        retryable=second.retryable,
        seconds=first.seconds + second.seconds,
        usage=first.usage + second.usage,
    )
