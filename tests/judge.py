"""What a scripted model says to each prompt of the project, and which prompts a stand-in server has heard."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from tests.fakes import kind_of
from tests.stand_ins.engines import Message, Reply, Token
from tests.stand_ins.model_server import ModelServer

ANSWER = "As the evidence has it [1]."
WEB_QUERY = "harbour dues yacht"
JUDGING = ("judge", "yes-no", "batch", "list")


def judging(score: float = 0.9, answer: str = ANSWER) -> Callable[[Sequence[Message]], Reply]:
    """Every judge gives every passage `score`; the writer picks the first line of a passage and `answer`s."""

    def reply(messages: Sequence[Message]) -> Reply:
        asked = [str(message["content"]) for message in messages]
        counted = re.search(r"each of (\d+) documents", asked[0])
        count = int(counted[1]) if counted else 1
        first = re.search(r"<evidence>\s*(.*?)\n", asked[-1])
        replies: dict[str, Reply] = {
            "judge": {"score": score, "reasoning": "as told"},
            "yes-no": Token(Yes=score, No=1 - score),
            "batch": {"evaluations": [{"score": round(10 * score), "reason": "as told"}] * count},
            "list": {"scores": [score] * count},
            "extract": {"sentences": [first[1]] if first else []},
            "classify": {"verdict": "C"},
            "alone": "As far as I remember.",
            "sufficient": {"explanation": "as told", "verdict": "sufficient" if score > 0.7 else "not sufficient"},
            "recall": {"passages": ["A night is free, as far as I know."]},
            "consolidate": {
                "passages": [
                    {"text": first[1] if first else "", "sources": ["1"], "contradicts": [2]},
                    {"text": "A night is free.", "sources": ["M1"], "contradicts": [1]},
                ]
            },
            "check": {"verdict": "partly", "sentences": [1]},
            "rewrite": WEB_QUERY,
            "keywords": "berth fee boat",
            "rephrase": "How much is a night in the harbour?",
            "answer": answer,
        }
        return replies[_kind(messages)]

    return reply


def heard(server: ModelServer) -> Counter[str]:
    """How often each kind of prompt was asked."""
    return Counter(_kind(body["messages"]) for path, body in server.requests if path == server.chat_path)


def grading_calls(server: ModelServer) -> int:
    counts = heard(server)
    return sum(counts[kind] for kind in JUDGING)


def _kind(messages: Sequence[Message]) -> str:
    return kind_of([(message["role"], message["content"]) for message in messages])
