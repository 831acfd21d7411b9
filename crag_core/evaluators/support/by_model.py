"""Whether the evidence supports a sentence of an answer, as a language model says in a verdict.

How well a model does depends on it: `benchmarks/support.py --judge ollama/NAME` measures yours beside words. One
without any judgement, SmolLM2-135M, called every sentence of three sets supported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crag_core.base.prompts.messages import JUDGED_CHARACTERS, JUDGED_ROOM, Prompts, shipped
from crag_core.base.prompts.replies import CHECK_SCHEMA, SUPPORT_SAID
from crag_core.base.protocols import Backing, Cancel, LanguageModel, Messages, Piece, Reply
from crag_core.base.reply_parsing import VerdictReply, parse_verdict
from crag_core.base.types.steps import Usage
from crag_core.trace.grounding.citation_check import MOST, TOGETHER, PieceSet, find_quotation
from crag_core.trace.grounding.claims import claim_of, content_of, is_prose
from crag_core.trace.grounding.quoted_answer import cited_in

SCORES = {"supported": 1.0, "partly": 0.45, "not supported": 0.0}
"""What each verdict counts as: supported, weakly supported, supported by nothing."""
_TAGS = 40  # bytes around a piece of evidence: its number, and what it stands between


@dataclass(frozen=True)
class _Claim:
    """A sentence of an answer that is to be checked; `text` is it without its citations, `content` its terms."""

    place: int
    text: str
    cited: tuple[int, ...]
    content: Mapping[str, str]


class ModelSupport:
    """Asks about a sentence alone, in any language, and not about one that says nothing by itself.

    A quotation scores 1 without being asked about. A reply that cannot be read is asked for once more with the failure
    named; then the sentence has no score. `measure` raises `ModelUnavailable`, `ModelMissing` or `Stopped`.
    """

    def __init__(self, model: LanguageModel, stop_words: frozenset[str], prompts: Prompts | None = None) -> None:
        self._model = model
        self._stop_words = stop_words
        self._prompts = prompts or shipped()

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; all calls at once, as far as the model allows."""
        evidence = PieceSet(tuple(pieces))
        found, claims = _claims_in(sentences, evidence, self._stop_words)
        shown = [_fitting(claim, evidence) for claim in claims]
        chats = [
            self._prompts.check(claim.text, [piece.text for piece in some])
            for claim, some in zip(claims, shown, strict=True)
        ]
        for claim, some, (said, usage) in zip(claims, shown, self._judge(chats, cancel), strict=True):
            found[claim.place] = _backing(said, some, usage)
        return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))

    def _judge(self, chats: Sequence[Messages], cancel: Cancel) -> list[tuple[VerdictReply, Usage]]:
        first = self._ask(chats, cancel)
        said = [parse_verdict(reply.text, SUPPORT_SAID) for reply in first]
        usage = [reply.usage for reply in first]
        unread = [at for at, one in enumerate(said) if one.verdict is None]
        again = [self._prompts.again(chats[at], first[at].text, said[at].cause) for at in unread]
        for at, reply in zip(unread, self._ask(again, cancel), strict=True):
            said[at] = parse_verdict(reply.text, SUPPORT_SAID)
            usage[at] += reply.usage
        return list(zip(said, usage, strict=True))

    def _ask(self, chats: Sequence[Messages], cancel: Cancel) -> list[Reply]:
        replies: list[Reply] = []
        for reply in self._model.complete_all(chats, cancel, CHECK_SCHEMA) if chats else ():
            if isinstance(reply, Exception):
                raise reply
            replies.append(reply)
        return replies


def _claims_in(
    sentences: Sequence[str], evidence: PieceSet, stop_words: frozenset[str]
) -> tuple[dict[int, Backing], list[_Claim]]:
    """What needs no model, by place, and the claims: a quotation scores 1, without any evidence a claim scores 0.

    A sentence that is in neither says nothing by itself, is code, or comes after the first `MOST`.
    """
    found, claims = dict[int, Backing](), list[_Claim]()
    for place, sentence in enumerate(sentences[:MOST]):
        claim, cited = claim_of(sentence), cited_in(sentence)
        content = content_of(claim, stop_words)
        if source := find_quotation(claim, cited, evidence):
            found[place] = Backing(1.0, source)
        elif content and is_prose(sentence) and evidence.pieces:
            claims.append(_Claim(place, claim, cited, content))
        elif content and is_prose(sentence):
            found[place] = Backing(0.0)
    return found, claims


def _fitting(claim: _Claim, evidence: PieceSet) -> list[Piece]:
    """The pieces that there is room for, in order: those first that hold most words of the claim."""

    def rank(at: int) -> tuple[int, bool]:
        return -len(claim.content.keys() & evidence.terms[at]), evidence.pieces[at].excerpt not in claim.cited

    taken, room = [], JUDGED_ROOM
    for at in sorted(range(len(evidence.pieces)), key=rank):
        shown = evidence.pieces[at].text[:JUDGED_CHARACTERS]
        room -= len(shown.encode("utf-8", "replace")) + _TAGS
        if room < 0:
            break
        taken.append(at)
    return [evidence.pieces[at] for at in sorted(taken)]


def _backing(said: VerdictReply, shown: Sequence[Piece], usage: Usage) -> Backing:
    if said.verdict is None:
        return Backing(None, usage=usage)
    named = dict.fromkeys(shown[number - 1].id for number in said.numbers if number <= len(shown))
    score = SCORES[said.verdict]
    return Backing(score, tuple(named)[:TOGETHER] if score else (), usage)
