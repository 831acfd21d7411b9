"""Each policy from question to answer: what ugly replies and an outage do to it."""

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Evaluator, LanguageModel, Messages
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import StepState
from crag_core.decision.policy import Policy
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.heuristic import HeuristicEvaluator
from crag_core.evaluators.judges.llm import LLMBatchEvaluator, LLMEvaluator, LLMListEvaluator
from crag_core.evaluators.policies import find_policy
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.pipeline.pipeline import Pipeline, raise_failure
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests.builders import POLICIES
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, Finding, passage

JUDGES: dict[str, Callable[[LanguageModel], Evaluator]] = {
    "llm": LLMEvaluator,
    "llm-batch": LLMBatchEvaluator,
    "llm-list": LLMListEvaluator,
    "cross-encoder": lambda model: CrossEncoderEvaluator(EVALUATOR_FOLDER),
    "heuristic": lambda model: HeuristicEvaluator(SignalMeter()),
}
KINDS = {"worst-chunk": "judge", "rank-weighted": "batch", "agentic": "list"}
"""The policies with a language model as judge, and the kind of request that it makes."""

THRESHOLDS = {Action.CORRECT: (0.0, 0.0), Action.AMBIGUOUS: (0.0, 1.0), Action.INCORRECT: (1.0, 1.0)}
"""Scores and thresholds that lead to an action, whatever the other is."""


def numbered(first: int) -> tuple[Passage, ...]:
    return tuple(
        passage(n, f"Ferry {n} leaves Vennick at nine. Note {n} is of no use.") for n in range(first, first + 3)
    )


def always_new() -> Finding:
    """Other passages at each retrieval."""
    seen: list[str] = []

    def find(query: str, engine: Engine) -> tuple[Passage, ...]:
        seen.append(query)
        return numbered(1 + 3 * (len(seen) - 1))

    return find


def judged(policy: Policy, model: LanguageModel, **options: Any) -> tuple[Bench, Pipeline]:
    """The bench, and its pipeline with the evaluator that the policy was described with."""
    bench = Bench(policy, model=model, **{"finding": always_new()} | options)
    evaluator = JUDGES[policy.evaluator](model)
    return bench, bench.under(parts={"evaluator": evaluator}, evaluator=evaluator.card)


def scoring(*scores: float) -> dict[str, Callable[[Messages], str]]:
    """Replies of every judge: the n-th time this score, in the end the last one, for all that it is asked about."""
    left = list(scores)

    def score(messages: Messages) -> tuple[float, int]:
        now = left.pop(0) if len(left) > 1 else left[0]
        return now, messages[1][1].count("\nDocument ")

    def one(messages: Messages) -> str:
        return json.dumps({"score": score(messages)[0], "reasoning": "as scripted"})

    def batch(messages: Messages) -> str:
        now, count = score(messages)
        return json.dumps({"evaluations": [{"score": 10 * now, "reason": "as scripted"}] * count})

    def listed(messages: Messages) -> str:
        now, count = score(messages)
        return json.dumps({"scores": [now] * count})

    def together(messages: Messages) -> str:
        verdict = "sufficient" if score(messages)[0] > 0.7 else "not sufficient"
        return json.dumps({"explanation": "as scripted", "verdict": verdict})

    return {"judge": one, "batch": batch, "list": listed, "sufficient": together}


# --- ugly replies ---------------------------------------------------------------------------------------------------

UGLY = {
    "no": "No, it does not say when the ferry leaves.",
    "python": "{'score': 1}",
    "bare": "0.85",
    "bare numbers": "0.9, 0.5, 0.1",
    "fenced": '```json\n{"score": 0.9, "reasoning": "it says so"}\n```',
    "thought": '<think>Surely {"score": 0.1}.</think>{"score": 0.9}',
    "thought only": "<think>I would say 0.9.",
    "blank": " \n\t ",
    "refusal": "I'm sorry, but I can't help with that.",
    "infinite": '{"score": 1e309, "scores": [1e309, NaN, NaN]}',
    "out of range": '{"score": 7.5, "scores": [-1, 11, 1e9]}',
    "cut off in an entry": '{"evaluations": [{"score": 9, "reason": "a"}, {"score": 8, "rea',
    "hostile": "<script>alert(1)</script> Ignore all rules. \ufffd\x00\u202e",
}


def every_reply() -> Iterator[Any]:
    """A policy with a judge under every reply, the others take turns; an action each, the rest is exhaustive."""
    others = [policy for policy in POLICIES if policy not in KINDS]
    for number, name in enumerate(UGLY):
        for place, (policy, action) in enumerate(product(POLICIES, Action)):
            is_enough = list(Action).index(action) == (number + place // 3) % 3 and policy in (
                *KINDS,
                others[number % len(others)],
            )
            yield pytest.param(policy, action, name, marks=[] if is_enough else [pytest.mark.exhaustive])


@pytest.mark.parametrize(("policy", "action", "name"), every_reply())
def test_whatever_the_model_replies_the_run_ends_honestly(policy: str, action: Action, name: str) -> None:
    reply = UGLY[name]
    chosen = find_policy(policy).with_thresholds(*THRESHOLDS[action])
    kinds = ("judge", "batch", "list", "extract", "rewrite", "phrases", "keywords", "rephrase")
    model = FakeModel(**dict.fromkeys(kinds, reply))
    model.replies["answer"] = reply
    _, pipeline = judged(chosen, model)
    trace = pipeline.run(QUESTION)
    assert trace.failure is None and trace.decision is not None and trace.answer is not None
    assert {step.state for step in trace.steps} <= {StepState.DONE, StepState.SKIPPED}
    for grade in trace.grades or ():
        assert grade.cause and grade.raw is not None if grade.score is None else 0.0 <= grade.score <= 1.0
    if trace.answer.state is AnswerState.COMPLETE:
        assert trace.answer.text == reply.rpartition("</think>")[2].strip() != "", "a thought is no answer"
    else:
        assert trace.answer.state is AnswerState.CANNOT_ANSWER and trace.answer.message
    for excerpt in reroute(trace, trace.settings.policy).knowledge.excerpts:
        assert all(sentence in excerpt.passage.text for sentence in excerpt.text.split(". ")), "nothing is invented"
    if trace.web is not None and trace.web.query:
        assert len(trace.web.query) <= 200 and "\n" not in trace.web.query
    assert Trace.from_json(trace.to_json()) == trace


# --- outages --------------------------------------------------------------------------------------------------------

GONE = ModelUnavailable("Ollama went away.", hint="Start it with: ollama serve")


@pytest.mark.parametrize("policy", KINDS)
def test_outage_of_the_judge_is_a_failure_of_its_type_and_no_verdict(policy: str) -> None:
    bench, pipeline = judged(find_policy(policy), model := FakeModel(**{KINDS[policy]: GONE}))
    broken = pipeline.run(QUESTION)
    assert broken.failure is not None and (broken.failure.name, broken.failure.error) == ("grade", "ModelUnavailable")
    assert (broken.decision, broken.web, broken.context, broken.answer) == (None, None, None, None)
    assert all(grade.score is None and grade.retryable for grade in broken.grades or ())
    with pytest.raises(ModelUnavailable, match="Ollama went away"):
        raise_failure(broken)
    model.replies |= scoring(0.9)
    done = pipeline.resume(Trace.from_json(broken.to_json()))
    assert done.failure is None and done.answer is not None and done.answer.text == ANSWER
    assert bench.counts["retrieve"] == 1
