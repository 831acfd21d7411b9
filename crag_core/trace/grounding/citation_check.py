"""The support of each sentence of an answer in the evidence, by words or by a model's verdict. Pure.

A score of words says how much of a sentence stands in the evidence; it proves nothing. Other words for the same thing,
words in another order and a fact of somebody else are beyond it; `benchmarks/support.py` measures how often each fools
it.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from crag_core.base.protocols import Piece
from crag_core.base.text.display import counted
from crag_core.base.text.words import language_of, script_of, words
from crag_core.base.types.answers import Support
from crag_core.base.types.knowledge import Excerpt, Strip
from crag_core.decision.refine import decompose
from crag_core.trace.grounding.claims import (
    bare_word,
    claim_of,
    content_of,
    contradicts,
    is_quotation,
    names_in,
    spoken,
    stands_in,
    terms_of,
)
from crag_core.trace.grounding.numbers import missing_numbers

WORDS = "words"

SUPPORTED, WEAK = 0.55, 0.35
"""From here on a sentence counts as supported; nothing in the evidence supports one that scores less than `WEAK`.

Chosen so that of true sentences of written answers about 85 in 100 count as supported, and 3 or 4 by nothing.
"""

LACKING = 0.5  # the most that a sentence scores with a number, name or "not" that its evidence lacks: weakly supported
TOGETHER = 3
MOST = 200  # sentences of an answer that are measured; the rest of a longer one is not

_GAIN = 0.05  # of a sentence's weight; a piece that adds less says nothing new
_AS_GOOD = 0.1


class SupportLevel(StrEnum):
    """How a sentence stands to the evidence; the value is what a model's verdict says to people, as it stands."""

    SUPPORTED = "supported"
    WEAK = "weakly supported"
    NONE = "nothing in the evidence supports this"
    UNCHECKED = "not checked"

    def said(self, by: str) -> str:
        return _FOUND[self] if by == WORDS else self.value


_FOUND = {
    SupportLevel.SUPPORTED: "words found",
    SupportLevel.WEAK: "words found in part",
    SupportLevel.NONE: "words not found",
    SupportLevel.UNCHECKED: "not checked",
}


@dataclass(frozen=True)
class Match:
    """The mean of how much of a claim's weight stands in the best of the pieces at `places`, the first, and in all.

    `lacking` holds the names that stand nowhere in the evidence.
    """

    places: tuple[int, ...] = ()
    score: float = 0.0
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True)
class PieceSet:
    pieces: tuple[Piece, ...]

    @cached_property
    def terms(self) -> tuple[frozenset[str], ...]:
        return tuple(terms_of(piece.text) for piece in self.pieces)

    @cached_property
    def spoken(self) -> tuple[str, ...]:
        return tuple(spoken(piece.text) for piece in self.pieces)

    @cached_property
    def written_in(self) -> tuple[tuple[str, str], ...]:
        """Script and language of each piece, in the language of them all where it does not tell its own."""
        whole = language_of(" ".join(piece.text for piece in self.pieces))
        languages = (language_of(piece.text).strip("?") or whole.strip("?") for piece in self.pieces)
        return tuple((script_of(piece.text), language) for piece, language in zip(self.pieces, languages, strict=True))

    @cached_property
    def _words(self) -> frozenset[str]:
        found = {bare_word(word) for piece in self.pieces for word in words(piece.text)}
        return frozenset(found | {part for word in found if "-" in word for part in word.split("-")})

    def has(self, name: str) -> bool:
        return all(self._has_word(part) for part in name.split("-") if part)

    def _has_word(self, word: str) -> bool:
        """ "Berlin" in "Berliner" and the other way round."""
        if len(word) > 5 and not self._words.isdisjoint((word[:-1], word[:-2])):
            return True
        return any(other.startswith(word) and len(other) <= len(word) + 3 for other in self._words)


def support_level(score: float | None) -> SupportLevel:
    if score is None:
        return SupportLevel.UNCHECKED
    return SupportLevel.SUPPORTED if score >= SUPPORTED else SupportLevel.WEAK if score >= WEAK else SupportLevel.NONE


def pieces_of(excerpts: Sequence[Excerpt], strips: Iterable[Strip]) -> tuple[Piece, ...]:
    """What an answer was given, sentence by sentence; `strips` are those of the record, of corpus and web."""
    recorded = {strip.id: strip for strip in strips}
    own: dict[str, list[str]] = {}
    for strip in recorded.values():
        own.setdefault(strip.passage_id, []).append(strip.id)
    found: list[Piece] = []
    for number, excerpt in enumerate(excerpts, start=1):
        ids = excerpt.strip_ids or own.get(excerpt.passage.id, ())
        found += [Piece(id_, recorded[id_].text, number) for id_ in ids]
        if not ids:
            found += [
                Piece(excerpt.passage.id, strip.text, number)
                for strip in decompose(replace(excerpt.passage, text=excerpt.text))
            ]
    return tuple(found)


def find_quotation(claim: str, cited: Collection[int], evidence: PieceSet) -> tuple[str, ...]:
    """The piece that the claim stands in word for word, one of a cited excerpt if there is; () where in none."""
    least = 1 if is_quotation(claim) else 4
    found = [
        piece for piece, said in zip(evidence.pieces, evidence.spoken, strict=True) if stands_in(claim, said, least)
    ]
    return tuple(piece.id for piece in sorted(found, key=lambda piece: piece.excerpt not in cited)[:1])


def match(
    weights: Mapping[str, float],
    names: Collection[str],
    evidence: PieceSet,
    places: Sequence[int],
    cited: Collection[int] = (),
) -> Match:
    """Look a claim up in the pieces at `places`; `weights` has the weight of each of its terms."""
    found = _gather(weights, evidence, places)
    there = _gather(weights, evidence, [at for at in places if evidence.pieces[at].excerpt in cited])
    if there.places and there.score >= found.score - _AS_GOOD:
        found = replace(found, places=there.places)
    return replace(found, lacking=tuple(sorted(name for name in names if not evidence.has(name))))


def _gather(weights: Mapping[str, float], evidence: PieceSet, places: Iterable[int]) -> Match:
    total = math.fsum(weights.values())
    hits = {at: weights.keys() & evidence.terms[at] for at in places}
    left, chosen, shares = dict(weights), list[int](), list[float]()
    while hits and total > 0 and len(chosen) < TOGETHER:
        gains = {at: math.fsum(left[term] for term in terms if term in left) for at, terms in hits.items()}
        at = max(gains, key=lambda one: gains[one])
        if gains[at] / total <= (_GAIN if chosen else 0.0):
            break
        chosen.append(at)
        shares.append(gains[at] / total)
        left = {term: weight for term, weight in left.items() if term not in hits[at]}
    return Match(tuple(chosen), (shares[0] + min(math.fsum(shares), 1.0)) / 2) if shares else Match()


# --- what to say of it ----------------------------------------------------------------------------------------------


def short_sum(support: Sequence[Support], by: str) -> str:
    """ "words of 2 of 3 sentences found", or of a model "2 of 3 sentences supported"."""
    found = sum(support_level(one.score) is SupportLevel.SUPPORTED for one in support)
    message = f"{found} of {counted(len(support), 'sentence')}"
    return f"words of {message} found" if by == WORDS else f"{message} supported"


def summed_up(support: Sequence[Support], by: str = WORDS) -> str:
    found = [support_level(one.score) for one in support]
    supported, weak, none, unchecked = map(found.count, SupportLevel)
    checked = len(found) - unchecked
    if not checked:
        message = "No sentence could be checked against the evidence."
        return message if by == WORDS else f"Judged by {by}: {message[:1].lower()}{message[1:]}"
    whole = {1: "the sentence", 2: "both sentences"}.get(checked, f"all {checked} sentences")
    what = whole if supported == len(found) else f"{supported} of {counted(checked, 'sentence')}"
    if by == WORDS:
        message = f"The words of {what} are found in the evidence"
        message += f", of {weak} in part" if weak else ""
        message += f", of {none} not" if none else ""
    else:
        message = f"Judged by {by}: {what} {'is' if checked == 1 else 'are'} supported by the evidence"
        message += f", {weak} weakly" if weak else ""
        message += f", {none} by nothing in it" if none else ""
    return f"{message}; {unchecked} could not be checked." if unchecked else f"{message}."


def supported_elsewhere(one: Support, pieces: Sequence[Piece]) -> tuple[int, ...]:
    """The excerpts that support a sentence which cites only others; () where it cites one of them, or none at all."""
    excerpts: dict[str, set[int]] = {}
    for piece in pieces:
        excerpts.setdefault(piece.id, set()).add(piece.excerpt)
    found = [sorted(excerpts[id_]) for id_ in one.pieces if id_ in excerpts]
    is_cited = any(set(one.cited) & set(numbers) for numbers in found)
    return () if not one.cited or is_cited else tuple(dict.fromkeys(numbers[0] for numbers in found))


def lacking(sentence: str, evidence: PieceSet, behind: Collection[str]) -> tuple[str, ...]:
    """What may keep a sentence at `LACKING`: names that the evidence lacks, and what else the pieces with the ids in
    `behind` do not say.
    """
    claim = claim_of(sentence)
    names = () if language_of(claim) == "de" else names_in(claim, ())
    places = [at for at, piece in enumerate(evidence.pieces) if piece.id in behind]
    return (
        *sorted(name for name in names if not evidence.has(name)),
        *disagreements(claim, evidence, places, content_of(claim, ())),
    )


def disagreements(claim: str, evidence: PieceSet, places: Sequence[int], content: Collection[str]) -> tuple[str, ...]:
    """The numbers of a claim that stand neither in the pieces at `places` nor beside them, and a "not" of only one."""
    beside = {near for at in places for near in (at - 1, at, at + 1) if 0 <= near < len(evidence.pieces)}
    lost = missing_numbers(claim, [evidence.pieces[at].text for at in beside])
    is_turned = contradicts(claim, content, [evidence.pieces[at].text for at in places])
    return (*lost, "not") if is_turned else lost
