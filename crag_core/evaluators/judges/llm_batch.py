"""A language model as judge of several passages a call: 0 to 10 and a reason for each."""

from __future__ import annotations

from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.replies import batch_schema
from crag_core.base.reply_parsing import parse_scores
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.judges.ask_model import Inquiry, ModelEvaluator


class LLMBatchEvaluator(ModelEvaluator):
    """Judges five passages a call by their first 800 characters each (description 002).

    The passages of one call are seen together, so a grade may differ with its neighbours. A reply in which any score
    cannot be read is asked for once more; what was read stays, the rest is ungraded.
    """

    card = EvaluatorCard(
        name="llm-batch",
        title="Language model, five at once",
        scale="0 (nothing to do with it) to 10 (answers completely), recorded as 0 to 1",
        lower=0.30,
        upper=0.70,
        strip_cutoff=0.50,
        calls_model=True,
        cost="one model call for five chunks",
        batch=5,
    )

    @classmethod
    def inquiry(cls, prompts: Prompts) -> Inquiry:
        return Inquiry(
            batch=cls.card.batch,
            chat=prompts.judge_batch,
            schema=batch_schema,
            read=lambda reply, count: parse_scores(reply, count, scale=10.0),
            again=prompts.again,
        )
