"""Whether the evidence supports a sentence of an answer, as a language model says in a verdict.

How well a model does depends on it: `benchmarks/support.py --judge ollama/NAME` measures yours beside words. One
without any judgement, SmolLM2-135M (`--judge small --judged 60`), called every sentence of three sets (62,
55 and 64) supported: AUROC 0.50 and kappa 0.00 against the labels, 1.5 to 10 s a sentence on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crag_core.base.prompts.messages import Prompts, shipped
from crag_core.base.prompts.replies import CHECK_SCHEMA, SUPPORT_SAID
from crag_core.base.protocols import Backing, Cancel, LanguageModel, Messages, Piece, Reply
from crag_core.base.reply_parsing import VerdictReply, parse_verdict
from crag_core.base.types.steps import Usage
from crag_core.evaluators.support.parts import claims_in, fitting, whole
from crag_core.trace.grounding.citation_check import TOGETHER, Evidence

SCORES = {"supported": 1.0, "partly": 0.45, "not supported": 0.0}
"""What each verdict counts as: supported, weakly supported, supported by nothing."""


@dataclass(frozen=True)
class _Asked:
    """A sentence that the model is asked about beside the pieces of evidence at `places`, numbered in that order."""

    places: tuple[int, ...]
    chat: Messages


class ModelSupport:
    """Asks about a sentence alone, in any language, and not about one that says nothing by itself.

    A quotation scores 1 without being asked about. A reply that cannot be read is asked for once more with the failure
    named; then the sentence has no score. `measure` raises `ModelUnavailable`, `ModelMissing` or `Stopped`.
    """

    def __init__(self, model: LanguageModel, stop_words: frozenset[str], prompts: Prompts | None = None) -> None:
        """`prompts` None: the shipped ones."""
        self._model = model
        self._stop_words = stop_words
        self._prompts = prompts or shipped()

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; all calls at once, as far as the model allows."""
        evidence = Evidence(tuple(pieces))
        found, claims = claims_in(sentences, evidence, self._stop_words)
        asked = dict[int, _Asked]()
        for claim in claims:
            places = fitting(claim, evidence)
            chat = self._prompts.check(claim.text, [evidence.pieces[at].text for at in places])
            asked[claim.place] = _Asked(places, chat)
        found |= self._judge(asked, evidence, cancel)
        return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))

    def _judge(self, asked: Mapping[int, _Asked], evidence: Evidence, cancel: Cancel) -> dict[int, Backing]:
        replies = self._ask({place: one.chat for place, one in asked.items()}, cancel)
        message = {place: parse_verdict(reply.text, SUPPORT_SAID) for place, reply in replies.items()}
        unread = {
            place: self._prompts.again(asked[place].chat, replies[place].text, one.cause)
            for place, one in message.items()
            if one.verdict is None
        }
        second = self._ask(unread, cancel)
        message |= {place: parse_verdict(reply.text, SUPPORT_SAID) for place, reply in second.items()}
        found = dict[int, Backing]()
        for place, one in message.items():
            usage = replies[place].usage + (second[place].usage if place in second else Usage())
            found[place] = _backing(one, [evidence.pieces[at] for at in asked[place].places], usage)
        return found

    def _ask(self, chats: Mapping[int, Messages], cancel: Cancel) -> dict[int, Reply]:
        """The reply to each chat; raises what kept any of them from coming."""
        replies = self._model.complete_all(list(chats.values()), cancel, CHECK_SCHEMA) if chats else []
        return dict(zip(chats, whole(replies), strict=True))


def _backing(message: VerdictReply, shown: Sequence[Piece], usage: Usage) -> Backing:
    """A number that no piece was shown under says nothing."""
    if message.verdict is None:
        return Backing(None, usage=usage)
    named = dict.fromkeys(shown[number - 1].id for number in message.numbers if number <= len(shown))
    score = SCORES[message.verdict]
    return Backing(score, tuple(named)[:TOGETHER] if score else (), usage)
