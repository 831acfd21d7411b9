"""The corrective workflow of LlamaIndex's documentation, said again as a configuration of ours.

A language model says yes or no to every retrieved passage. Those with a yes are used; a single no, and the question is
rewritten and sent to the web, whose five results are used as they come.
Source: developers.llamaindex.ai/python/examples/workflow/corrective_rag_pack, read in November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.prompts.messages import shipped
from crag_core.base.protocols import Cancel, Evaluator, LanguageModel, Messages
from crag_core.base.reply_parsing import ScoreReply
from crag_core.base.types.grades import EvaluatorCard, Grade
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import parse_policy
from crag_core.evaluators.judges.ask_model import Inquiry
from crag_core.experiments.comparison.metrics import ANSWERS
from crag_core.experiments.comparison.outcome import of_passage
from crag_core.experiments.labelled.questions import LabelledQuestion

_POLICY = """
title = "Any no"
summary = "A single passage that is not relevant sends the question to the web; the others are used beside it."
source = "LlamaIndex documentation, Corrective RAG Workflow"
evaluator = "cross-encoder"
labels = ["All yes", "Some no", "Never"]
score = "worst"
lower = 0.0
upper = 0.5
correct = ["keep"]
ambiguous = ["keep", { drop = 0.5 }, "web"]
incorrect = ["discard", "web"]

[web]
query = "rewritten"
words = 20
limit = 5
"""

_SCHEMA = {
    "type": "object",
    "properties": {"relevant": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["relevant"],
}
_ASK = (
    "You decide whether one passage is relevant to one question: whether it holds words or a meaning that belong to "
    'the question. Reply with JSON only: {"relevant": "yes"} or {"relevant": "no"}'
)


def any_no() -> Policy:
    return parse_policy(_POLICY, "any-no")


def _card(name: str, title: str, calls_model: bool) -> EvaluatorCard:
    cost = "one model call a passage" if calls_model else "no model call"
    return EvaluatorCard(name, title, "yes is 1, no is 0", 0.5, 0.5, 0.5, calls_model, cost)


class ModelSaysYes:
    """A call a passage, as the workflow does it; the schema holds the model to yes or no."""

    card = _card("yes-no", "Yes or no by the model", calls_model=True)

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._inquiry = Inquiry(1, _chat, lambda count: _SCHEMA, lambda reply, count: (_read(reply),), shipped().again)

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        return self._inquiry.grade(self._model, question, passages, cancel)


class ScoreSaysYes:
    """Yes where another evaluator gives at least its own threshold for CORRECT."""

    card = _card("score-yes-no", "Yes or no by the trained evaluator", calls_model=False)

    def __init__(self, evaluator: Evaluator, upper: float) -> None:
        self._evaluator, self._upper = evaluator, upper

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        graded = self._evaluator.grade(question, passages, cancel)
        return tuple(replace(one, score=float((one.score or 0.0) >= self._upper), parts=()) for one in graded)


class LabelsSayYes:
    """Yes where the labels say that a passage answers: no judge can do better. Of other questions no."""

    card = _card("labels-yes-no", "Yes or no by the labels", calls_model=False)

    def __init__(self, questions: Sequence[LabelledQuestion]) -> None:
        self._asked = {one.question: one for one in questions}

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        asked = self._asked.get(question)
        return tuple(Grade(one.id, float(asked is not None and of_passage(one, asked) == ANSWERS)) for one in passages)


def _chat(question: str, texts: Sequence[str]) -> Messages:
    (_, (role, asked)) = shipped().judge(question, texts[0])
    return (("system", _ASK), (role, asked))


def _read(reply: str) -> ScoreReply:
    try:
        said = json.loads(reply)["relevant"]
    except (ValueError, KeyError, TypeError):
        return ScoreReply(None, cause="the reply is neither yes nor no")
    return ScoreReply(float(said == "yes"))
