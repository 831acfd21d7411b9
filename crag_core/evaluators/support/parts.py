"""What those who check answers share: which sentences are claims, and which evidence is near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crag_core.base.prompts.messages import JUDGED_CHARACTERS, JUDGED_ROOM
from crag_core.base.protocols import Backing, Piece, Reply
from crag_core.trace.grounding.citation_check import PieceSet, find_quotation
from crag_core.trace.grounding.claims import claim_of, content_of, is_prose
from crag_core.trace.grounding.quoted_answer import cited_in

MOST = 200
"""Sentences of an answer that are measured; the rest of a longer one is not."""

_TAGS = 40  # bytes around a piece of evidence: its number, and what it stands between


def whole(replies: Sequence[Reply | Exception]) -> list[Reply]:
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return [reply for reply in replies if isinstance(reply, Reply)]


def in_order(found: Mapping[int, Backing], sentences: Sequence[str]) -> tuple[Backing, ...]:
    """One a sentence; what is not in `found` has no score."""
    return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer that is to be checked; `text` is it without its citations, `content` its terms."""

    place: int
    sentence: str
    text: str
    cited: tuple[int, ...]
    content: Mapping[str, str]


def claims_in(
    sentences: Sequence[str], evidence: PieceSet, stop_words: frozenset[str]
) -> tuple[dict[int, Backing], list[Claim]]:
    """What needs no model, by place, and the claims: a quotation scores 1, without any evidence a claim scores 0.

    A sentence that is in neither says nothing by itself, is code, or comes after the first `MOST`.
    """
    found, claims = dict[int, Backing](), list[Claim]()
    for place, sentence in enumerate(sentences[:MOST]):
        claim, cited = claim_of(sentence), cited_in(sentence)
        content = content_of(claim, stop_words)
        if source := find_quotation(claim, cited, evidence):
            found[place] = Backing(1.0, source)
        elif content and is_prose(sentence) and evidence.pieces:
            claims.append(Claim(place, sentence, claim, cited, content))
        elif content and is_prose(sentence):
            found[place] = Backing(0.0)
    return found, claims


def fitting(claim: Claim, evidence: PieceSet) -> list[Piece]:
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
