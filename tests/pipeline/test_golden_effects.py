"""What the actions of every description do: model calls, web searches, and what the model reads, worked out by hand."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.protocols import Evaluator, LanguageModel, Messages, WebReply
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Doubtful
from crag_core.evaluators.judges.llm import LLMBatchEvaluator, LLMEvaluator, LLMListEvaluator
from crag_core.llamaindex.synthesizer import metadata_of
from crag_core.pipeline.call_budget import budget
from crag_core.pipeline.run import WebMode
from crag_core.service.answers import answered
from crag_core.trace.summary import summarize
from tests.builders import policy_file
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, Finding, passage, web_passage

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parents[1] / "golden" / "effects.json").read_text("utf-8"))["cases"]
JUDGES: dict[str, Callable[[LanguageModel], Evaluator]] = {
    "worst-chunk": LLMEvaluator,
    "rank-weighted": LLMBatchEvaluator,
    "agentic": LLMListEvaluator,
}
FOUND = WebReply(WebOutcome.USED, "Fake search", tuple(web_passage(n, f"Page {n} says so.") for n in (1, 2)))
SENTENCE = re.compile(r"Fact (\d+)([AB]) stands here\.")


def chunk(number: int, case: Case) -> Passage:
    """Two sentences, A and B; the second is of no use."""
    near = {"found_by": ("dense",), "scores": (("cosine", case["cosine"]),)} if "cosine" in case else {}
    return passage(number, f"Fact {number}A stands here. Fact {number}B stands here.", **near)


def finding(case: Case) -> Finding:
    """The first list of numbers for the question, and the next one for each further query."""
    lists: Sequence[Sequence[int]] = case.get("finds") or [range(1, len(case["scores"]) + 1)]
    asked: dict[tuple[str, Engine], int] = {}

    def find(query: str, engine: Engine) -> tuple[Passage, ...]:
        place = asked.setdefault((query, engine), len(asked))
        return tuple(chunk(number, case) for number in lists[min(place, len(lists) - 1)])

    return find


def model_of(case: Case) -> FakeModel:
    scores: list[float] = case["scores"]
    answers = ["CANNOT ANSWER"] * case.get("declines", 0)

    def shown(messages: Messages) -> list[int]:
        return [int(number) for number, letter in SENTENCE.findall(messages[1][1]) if letter == "A"]

    def batch(messages: Messages) -> str:
        return json.dumps({"evaluations": [{"score": 10 * scores[n - 1], "reason": "r"} for n in shown(messages)]})

    def extract(messages: Messages) -> str:
        left = [n for n in shown(messages) if n not in case.get("extracts_nothing_of", ())]
        return json.dumps({"sentences": [f"Fact {n}A stands here." for n in left]})

    def consolidate(messages: Messages) -> str:
        pieces = case.get("pieces", [[str(number)] for number in range(1, len(shown(messages)) + 1)])
        records = [{"text": _said(sources), "sources": sources, "contradicts": []} for sources in pieces]
        return json.dumps({"passages": records})

    return FakeModel(
        judge=lambda messages: json.dumps({"score": scores[shown(messages)[0] - 1], "reasoning": "r"}),
        batch=batch,
        list=lambda messages: json.dumps({"scores": [scores[n - 1] for n in shown(messages)]}),
        extract=extract,
        answer=lambda _: answers.pop(0) if answers else ANSWER,
        classify=json.dumps({"verdict": case.get("class", "C")}),
        recall=json.dumps({"passages": ["Memory 1 says so."] * case.get("knows", 0)}),
        consolidate=consolidate,
        sufficient=json.dumps({"explanation": "r", "verdict": case.get("together", "sufficient")}),
    )


def score_sentence(text: str, given: dict[str, float]) -> float:
    """Of the web, 0.9; of a chunk as given, else 0.9 for A and 0.1 for B."""
    named = ["".join(found) for found in SENTENCE.findall(text)]
    return given.get(named[0], 0.1 if named[0].endswith("B") else 0.9) if named else 0.9


def read_by(model: FakeModel) -> list[str]:
    """What the model answered from in the end, [] no answer.

    "2" is a whole chunk, "2A" its first sentence, "D2" its document, "w1" a web result.
    """
    asked = [messages[1][1] for kind, messages in model.asked if kind == "answer"]
    blocks = re.findall(r"<evidence>\n(.*?)\n</evidence>", asked[-1], re.DOTALL) if asked else []
    return [_name(block) for block in blocks]


def _said(sources: Sequence[str]) -> str:
    first = sources[0]
    return "Memory 1 says so." if first == "M1" else f"Fact {first}A stands here. Fact {first}B stands here."


def _name(block: str) -> str:
    if page := re.search(r"URL: https://example.org/(\d+)", block):
        return f"w{page.group(1)}"
    if page := re.search(r"Whole document (\d+)", block):
        return f"D{page.group(1)}"
    if "Memory 1" in block:
        return "M1"
    found = SENTENCE.findall(block)
    return found[0][0] + ("" if len(found) == 2 else found[0][1])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_effects_worked_out_by_hand(case: Case) -> None:
    name, web, model = case["policy"], case.get("web"), model_of(case)
    policy = policy_file(name).with_thresholds(*case.get("thresholds", (None, None)))
    policy = policy.with_doubtful(Doubtful(case.get("doubtful", policy.doubtful)))
    bench = Bench(
        policy,
        scoring=lambda one: case["scores"][int(one.id[1:]) - 1] if one.id[0] == "p" else 0.5,
        finding=finding(case),
        synonyms={"ferry": ("boat",)},
        model=model,
        web=WebMode.OFF if web == "off" else WebMode.AUTO,
        reply=WebReply(WebOutcome.EMPTY, "Fake search") if web == "empty" else FOUND,
    )
    whole = ((n, f"Whole document {n}. {chunk(n, case).text}") for n in case.get("documents", ()))
    bench.retriever.files = {f"d{n}": replace(passage(n, text), id=f"file-d{n}") for n, text in whole}
    bench.strip_evaluator.scoring = lambda one: score_sentence(one.text, case.get("sentences", {}))
    judge = JUDGES.get(name, lambda _: bench.evaluator)(model)
    trace = bench.under(parts={"evaluator": judge}, evaluator=judge.card).run(QUESTION)
    assert trace.failure is None and trace.decision is not None
    found = {
        "action": trace.decision.action.value,
        "rule": trace.decision.rule,
        "score": None if trace.decision.score is None else round(trace.decision.score, 4),
        "asked": dict(Counter(model.kinds)),
        "searches": [limit for _, limit in bench.searcher.asked],
        "retrievals": bench.counts["retrieve"],
        "reads": read_by(model),
        "ending": summarize(trace).ending.value,
    }
    said = {metadata_of(trace)["crag_summary"]["ending"], answered(trace, kept=False, with_record=False).ending}
    assert said == {found["ending"]}, "one ending, wherever it is said"
    assert {key: found[key] for key in case["expect"]} == case["expect"], case.get("working")
    told = budget(policy, judge.card, len(trace.passages or ()), writer=True, searches=web != "off")
    calls, promised = len(model.kinds), told[trace.decision.action]
    goes_without = web == "empty" or (name == "self-route" and not case.get("documents"))  # what was hoped for
    assert calls == trace.usage.calls <= promised.most and (goes_without or promised.least <= calls)


def test_later_rounds_are_graded_against_the_original_question() -> None:
    case: Case = {"scores": [0.5, 0.5, 0.5, 0.9, 0.9, 0.9], "finds": [[1, 2, 3], [4, 5, 6]]}
    model = model_of(case)
    bench = Bench("agentic", finding=finding(case), model=model)
    judge = LLMListEvaluator(model)
    bench.under(parts={"evaluator": judge}, evaluator=judge.card).run(QUESTION)
    asked = [messages[1][1] for kind, messages in model.asked if kind == "list"]
    assert len(asked) == 2 and all(text.startswith(f"Question: {QUESTION}\n") for text in asked)
