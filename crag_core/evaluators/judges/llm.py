"""A language model as judge of one, five or twenty passages a call."""

from __future__ import annotations

from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.replies import SCORE_SCHEMA, batch_schema, list_schema
from crag_core.base.reply_parsing import parse_score, parse_scores
from crag_core.base.types.grades import EvaluatorCard
from crag_core.evaluators.judges.ask_model import Inquiry, ModelEvaluator


class LLMEvaluator(ModelEvaluator):
    """Judges the first 2000 characters of each passage by a rubric of six bands (description 004)."""

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


class LLMBatchEvaluator(ModelEvaluator):
    """Judges five passages a call by their first 800 characters each, with reasons (description 002).

    The passages of one call are seen together, so a grade may differ with its neighbours.
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


class LLMListEvaluator(ModelEvaluator):
    """Judges up to twenty passages a call by their first 800 to 2,000 characters each (description 001).

    Numbers without names are told apart by their order alone: a list of the wrong length grades nothing.
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
