"""Asks a language model whether the evidence supports a sentence of an answer: one call a sentence.

How well depends on the model: `benchmarks/support.py --judge ollama/NAME` measures yours beside words. One without any
judgement, SmolLM2-135M (`--words-only --judge small --judged 60`), called every sentence of three sets (62, 55 and 64)
supported: AUROC 0.50 and kappa 0.00 against the labels, 1.5 to 10 s a sentence on one thread. On the same sentences
words reached AUROC 0.99, 0.91 and 0.97 and kappa 0.59, 0.61 and 0.59, in 1 to 6 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from crag_core.base import prompts
from crag_core.base.protocols import Backing, Cancel, LanguageModel, Messages, Piece, Reply
from crag_core.base.reply_parsing import VerdictReply, parse_verdict
from crag_core.base.types import Usage
from crag_core.evaluators.citations.word_check import MOST
from crag_core.evaluators.shared.ask_model import ROOM
from crag_core.trace.grounding.citation_check import TOGETHER, Evidence, quoted
from crag_core.trace.grounding.claims import claim_of, content_of, is_prose
from crag_core.trace.grounding.quoted_answer import cited_in

SCORES = {"supported": 1.0, "partly": 0.45, "not supported": 0.0}
"""What each verdict counts as: supported, weakly supported, supported by nothing."""

_TAGS = 40  # bytes around a piece of evidence: its number, and what it stands between


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

    def __init__(self, model: LanguageModel, stop_words: frozenset[str]) -> None:
        self._model = model
        self._stop_words = stop_words

    def measure(self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; all calls at once, as far as the model allows."""
        evidence = Evidence(tuple(pieces))
        found, asked = dict[int, Backing](), dict[int, _Asked]()
        for place, sentence in enumerate(sentences[:MOST]):
            claim, cited = claim_of(sentence), cited_in(sentence)
            content = content_of(claim, self._stop_words)
            if source := quoted(claim, cited, evidence):
                found[place] = Backing(1.0, source)
            elif content and is_prose(sentence):
                places = _fitting(content, cited, evidence)
                asked[place] = _Asked(places, prompts.check(claim, [evidence.pieces[at].text for at in places]))
        found |= self._judge(asked, evidence, cancel)
        return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))

    def _judge(self, asked: Mapping[int, _Asked], evidence: Evidence, cancel: Cancel) -> dict[int, Backing]:
        found = {place: Backing(0.0) for place, one in asked.items() if not one.places}
        replies = self._ask({place: one.chat for place, one in asked.items() if one.places}, cancel)
        message = {place: parse_verdict(reply.text, prompts.VERDICTS) for place, reply in replies.items()}
        unread = {
            place: prompts.again(asked[place].chat, replies[place].text, one.cause)
            for place, one in message.items()
            if one.verdict is None
        }
        second = self._ask(unread, cancel)
        message |= {place: parse_verdict(reply.text, prompts.VERDICTS) for place, reply in second.items()}
        for place, one in message.items():
            usage = replies[place].usage + (second[place].usage if place in second else Usage())
            found[place] = _backing(one, [evidence.pieces[at] for at in asked[place].places], usage)
        return found

    def _ask(self, chats: Mapping[int, Messages], cancel: Cancel) -> dict[int, Reply]:
        """The reply to each chat; raises what kept any of them from coming."""
        found = {}
        message = self._model.complete_all(list(chats.values()), cancel, prompts.CHECK_SCHEMA) if chats else []
        for place, reply in zip(chats, message, strict=True):
            if isinstance(reply, Exception):
                raise reply
            found[place] = reply
        return found


def _backing(message: VerdictReply, shown: Sequence[Piece], usage: Usage) -> Backing:
    """A number that no piece was shown under says nothing."""
    if message.verdict is None:
        return Backing(None, usage=usage)
    named = dict.fromkeys(shown[number - 1].id for number in message.numbers if number <= len(shown))
    score = SCORES[message.verdict]
    return Backing(score, tuple(named)[:TOGETHER] if score else (), usage)


def _fitting(content: Mapping[str, str], cited: Collection[int], evidence: Evidence) -> tuple[int, ...]:
    """The places of the pieces that there is room for, in order: those first that hold most words of the claim."""

    def rank(at: int) -> tuple[int, bool]:
        return -len(content.keys() & evidence.terms[at]), evidence.pieces[at].excerpt not in cited

    taken, room = [], ROOM
    for at in sorted(range(len(evidence.pieces)), key=rank):
        shown = evidence.pieces[at].text[: prompts.JUDGED_CHARACTERS]
        room -= len(shown.encode("utf-8", "replace")) + _TAGS
        if room < 0:
            break
        taken.append(at)
    return tuple(sorted(taken))
