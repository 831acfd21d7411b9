"""A language model as judge: one call a passage, a score with a reason, or "not graded"."""

from __future__ import annotations

from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.replies import SCORE_SCHEMA
from crag_core.base.reply_parsing import parse_score
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.judges.ask_model import Inquiry, ModelEvaluator


class LLMEvaluator(ModelEvaluator):
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
        cost="one model call a chunk",
    )

    @classmethod
    def inquiry(cls, prompts: Prompts) -> Inquiry:
        return Inquiry(
            batch=cls.card.batch,
            chat=lambda question, texts: prompts.judge(question, texts[0]),
            schema=lambda count: SCORE_SCHEMA,
            read=lambda reply, count: (parse_score(reply),),
            again=prompts.again,
        )
