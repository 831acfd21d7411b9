"""Whether the evidence supports a sentence of an answer, by the fact-checking model `bespoke-minicheck` on Ollama.

Its prompt is the one that its page on ollama.com gives, and none of ours: the model was trained on no other. It replies
Yes or No; where the server tells log probabilities, the score is P(yes), else 1 or 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crag_core.base.errors import NoLogProbabilities
from crag_core.base.prompts.delimiters import harmless
from crag_core.base.protocols import Backing, Cancel, LanguageModel, Messages, Piece
from crag_core.base.types.steps import Usage
from crag_core.evaluators.shared.yes_no import yes_or_no
from crag_core.evaluators.support.parts import claims_in, fitting, in_order, nearest, whole
from crag_core.trace.grounding.citation_check import WEAK, PieceSet

PROMPT = "Document: {document}\nClaim: {claim}"
_YES_NO = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


class MiniCheckSupport:
    """One call a sentence, with the evidence that there is room for as one document of a line an excerpt.

    A quotation scores 1 without being asked about; a sentence whose reply is neither yes nor no has no score. The model
    names no evidence: the pieces are the nearest ones by words. `measure` raises `ModelUnavailable`, `ModelMissing` or
    `Stopped`.
    """

    def __init__(self, model: LanguageModel, stop_words: frozenset[str]) -> None:
        self._model = model
        self._stop_words = stop_words

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; all calls at once, as far as the model allows."""
        evidence = PieceSet(tuple(pieces))
        found, claims = claims_in(sentences, evidence, self._stop_words)
        chats = [asked(claim.text, fitting(claim, evidence)) for claim in claims]
        for claim, (score, usage) in zip(claims, self._scores(chats, cancel), strict=True):
            near = nearest(claim, evidence) if score is not None and score >= WEAK else ()
            found[claim.place] = Backing(score, near, usage)
        return in_order(found, sentences)

    def _scores(self, chats: Sequence[Messages], cancel: Cancel) -> list[tuple[float | None, Usage]]:
        """By log probabilities, else by what the model writes; raises what kept any reply from coming."""
        if not chats:
            return []
        try:
            return [(yes_or_no(reply).share, reply.usage) for reply in whole(self._model.first_tokens(chats, cancel))]
        except NoLogProbabilities:
            return [(said(reply.text), reply.usage) for reply in whole(self._model.complete_all(chats, cancel))]


def asked(claim: str, pieces: Sequence[Piece]) -> Messages:
    """The documented prompt; document and claim cannot begin a line of it themselves."""
    texts: dict[int, list[str]] = {}
    for piece in pieces:
        texts.setdefault(piece.excerpt, []).append(" ".join(piece.text.split()))
    document = "\n".join(" ".join(found) for found in texts.values())
    return (("user", PROMPT.format(document=harmless(document), claim=harmless(" ".join(claim.split())))),)


def said(reply: str) -> float | None:
    match = _YES_NO.match(reply)
    return float(match[1].lower() == "yes") if match else None
