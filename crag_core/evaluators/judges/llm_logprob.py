"""A language model as judge by one token a passage: how probable it finds "yes"."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from crag_core.base.errors import NoLogProbabilities
from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.protocols import Cancel, LanguageModel, Reply
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.evaluators.judges.ask_model import failed
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.shared.yes_no import as_text, yes_or_no


class LLMLogprobEvaluator:
    """Asks whether the first 2000 characters of a passage help, yes or no: P(yes) against P(no) of the first token.

    Nothing is parsed, so nothing is asked twice. A passage is ungraded, with the tokens as raw reply, where neither
    word is among them; all are ungraded and `retryable`, after one call, where the server tells no probabilities.
    """

    card = EvaluatorCard(
        name="llm-logprob",
        title="Language model, one token",
        scale="the probability of yes against no as the first token, 0 to 1; each model has its own scale: tune for it",
        lower=0.30,
        upper=0.50,  # from here on the model finds yes likelier than no
        strip_cutoff=0.50,
        calls_model=True,
        cost="one model call of one token a chunk",
    )

    def __init__(self, model: LanguageModel, prompts: Prompts | None = None) -> None:
        self._model = model
        self._prompts = prompts or shipped()

    @classmethod
    def build(cls, parts: EvaluatorParts) -> Self:
        return cls(parts.model_for(cls.card.name), parts.prompts)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        """One grade a passage, in order, each with its own usage; raises `Stopped`."""
        started = time.perf_counter()
        chats = [self._prompts.judge_yes_no(question, passage.text) for passage in passages]
        try:
            replies = self._model.first_tokens(chats, cancel)
        except NoLogProbabilities as error:
            return failed(passages, error)
        each = (time.perf_counter() - started) / max(len(passages), 1)
        return tuple(_graded(passage, reply, each) for passage, reply in zip(passages, replies, strict=True))


def _graded(passage: Passage, reply: Reply | Exception, seconds: float) -> Grade:
    if isinstance(reply, Exception):
        return failed([passage], reply, seconds)[0]
    said = yes_or_no(reply)
    reason = f"yes {said.yes:.2f}, no {said.no:.2f} of the first token" if said.share is not None else ""
    raw = as_text(reply.top_logprobs) if reply.top_logprobs else reply.text
    return Grade(passage.id, said.share, reason, raw=raw, cause=said.cause, seconds=seconds, usage=reply.usage)
