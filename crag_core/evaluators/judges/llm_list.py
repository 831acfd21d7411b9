"""A language model as judge of all passages in one call: one number each, no reasons."""

from __future__ import annotations

from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.replies import list_schema
from crag_core.base.reply_parsing import parse_scores
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.judges.ask_model import Inquiry, ModelEvaluator


class LLMListEvaluator(ModelEvaluator):
    """Judges up to twenty passages a call by their first 800 to 2,000 characters each (description 001).

    Numbers without names are distinguished by their order alone: a list of the wrong length is asked for once more,
    and then the whole call is ungraded.
    """

    card = EvaluatorCard(
        name="llm-list",
        title="Language model, twenty at once",
        scale="a rubric from 0 (nothing to do with it) to 1 (answers completely), without reasons",
        lower=0.30,
        upper=0.70,
        strip_cutoff=0.50,
        calls_model=True,
        cost="one model call for twenty chunks",
        batch=20,
    )

    @classmethod
    def inquiry(cls, prompts: Prompts) -> Inquiry:
        return Inquiry(cls.card.batch, prompts.judge_list, list_schema, parse_scores, prompts.again)
