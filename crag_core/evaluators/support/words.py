"""Whether the evidence supports a sentence of an answer, by words, numbers, names and negation.

Measured by `61b35418:benchmarks/support.py`, mean AUROC over nine kinds of mistake: words alone 0.76, capped by facts
0.84. Kappa of found or not against the labels: 0.62 of right and hallucinated answers, 0.74 of sentences with their own
passages and with others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from crag_core.base.protocols import Backing, Cancel, Piece
from crag_core.base.text.words import language_of, script_of
from crag_core.evaluators.shared.model_files import RARITY, Rarity, parse_rarity, read_file
from crag_core.trace.grounding.citation_check import (
    LACKING,
    MOST,
    SUPPORTED,
    WEAK,
    Match,
    PieceSet,
    disagreements,
    find_quotation,
    match,
)
from crag_core.trace.grounding.claims import claim_of, content_of, is_prose, names_in
from crag_core.trace.grounding.quoted_answer import cited_in

SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC")
"""Those that the score was measured in. In others, many without spaces between words, only quotations are found."""


class WordSupport:
    """Measures with the word counts in `folder`, read at the first use; `measure` raises `EvaluatorUnavailable`.

    A quotation scores 1. What cannot be compared gets no score: another script, a language other than the evidence's,
    code, and what says nothing by itself ("According to the documents:", "The answer is: 3.1").
    """

    def __init__(self, folder: Path, stop_words: frozenset[str]) -> None:
        self._folder = folder
        self._stop_words = stop_words

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; it takes milliseconds, so nobody has to stop it."""
        rarity = rarity_in(self._folder)
        evidence = PieceSet(tuple(pieces))
        whole = language_of(" ".join(claim_of(sentence) for sentence in sentences[:MOST]))
        found = (self._measure_one(sentence, whole, evidence, rarity) for sentence in sentences[:MOST])
        return (*found, *(Backing(None) for _ in sentences[MOST:]))

    def _measure_one(self, sentence: str, whole: str, evidence: PieceSet, rarity: Rarity) -> Backing:
        claim, cited = claim_of(sentence), cited_in(sentence)
        if source := find_quotation(claim, cited, evidence):
            return Backing(1.0, source)
        content, script = content_of(claim, self._stop_words), script_of(claim)
        says_a_number_alone = all(term.isdigit() for term in content)  # of a section, a page, anything
        if says_a_number_alone or not is_prose(sentence) or script not in ("", *SCRIPTS):
            return Backing(None)
        language = language_of(claim) or whole
        own = (script, language or ("" if _is_english(content.values(), rarity) else "not en"))
        places = [at for at, written in enumerate(evidence.written_in) if _is_comparable(own, written)]
        weights = {term: rarity.idf(word) for term, word in content.items()}
        names = () if language == "de" else names_in(claim, self._stop_words)
        found = match(weights, names, evidence, places, cited)
        score = _score(claim, found, evidence, content)
        if score < SUPPORTED and _is_beyond(places, cited, evidence):
            return Backing(None)
        behind = tuple(dict.fromkeys(evidence.pieces[at].id for at in found.places))
        return Backing(score, behind if score >= WEAK else ())


@lru_cache(2)
def rarity_in(folder: Path) -> Rarity:
    return parse_rarity(read_file(folder, RARITY))


def _score(claim: str, found: Match, evidence: PieceSet, content: Collection[str]) -> float:
    """The mean of what the best piece holds and of what they hold together; capped where they lack a fact."""
    is_capped = found.score > LACKING and bool(found.lacking or disagreements(claim, evidence, found.places, content))
    return LACKING if is_capped else found.score


def _is_english(content: Collection[str], rarity: Rarity) -> bool:
    """By its rarer words, which the table knows at least half of: a short text may hold no little word."""
    return 2 * sum(word in rarity.words for word in content) >= len(content)


def _is_comparable(own: tuple[str, str], other: tuple[str, str]) -> bool:
    """Script and language of a claim with those of a piece; what has none may be compared with any."""
    if own[1] == "not en":
        return _is_comparable((own[0], ""), other) and other[1] != "en"
    return all("" in both or both[0] == both[1] for both in zip(own, other, strict=True))


def _is_beyond(places: Sequence[int], cited: Sequence[int], evidence: PieceSet) -> bool:
    """Whether half or more of what it may rest on cannot be compared: of the cited excerpts, else of all."""
    asked = [at for at, piece in enumerate(evidence.pieces) if piece.excerpt in cited] or range(len(evidence.pieces))
    return bool(asked) and 2 * len(set(asked) & set(places)) <= len(asked)
