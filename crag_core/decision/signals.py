"""Set-level measures without a model: the criteria of descriptions 000 and 003."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

from crag_core.base.text.words import estimate_tokens, words
from crag_core.base.types.passages import Passage, Scores

TOKENS_PER_PASSAGE = 100
CRITERIA: Scores = (("keyword_overlap", 0.30), ("coherence", 0.40), ("length_adequacy", 0.15), ("diversity", 0.15))

RERANK = "rerank_top3"  # the one signal that is made of grades: the mean of the three best
SUFFICIENCY = "sufficiency"
"""What a language model says of the whole context: 1 it is enough to answer from, 0 it is not (arXiv 2411.06037)."""

CLASS = "class"
"""How much has to be looked up for the question (arXiv 2403.14403): 0 nothing, 0.5 one retrieval, 1 several."""

UNSURE = "unsure"  # 1 where the question is two of a conversation, by which nothing is decided
REPEATED = "repeated"
"""1 where the best sentence speaks of what the question before asked for, and not of what this one does."""

CLASSES = {"A": 0.0, "B": 0.5, "C": 1.0}

_ASKS = frozenset(["who", "whom", "whose", "what", "when", "where", "which", "why", "how"])

NAMES = (*(name for name, _ in CRITERIA), "keyword_coverage", "agreement", RERANK)


@dataclass(frozen=True)
class SignalMeter:
    """Measures a question against what was retrieved; `stop_words` are ignored in `keyword_overlap` only."""

    stop_words: frozenset[str] = frozenset()

    def measure(self, question: str, passages: Sequence[Passage], agreement: float | None = None) -> Scores:
        """Named signals in 0..1; a signal that cannot be measured is left out, and nothing retrieved gives ().

        keyword_overlap: share of the question's keywords (no stop words, longer than two letters) found in the text.
        coherence: mean cosine x (1 - min(variance, 0.3)). length_adequacy: tokens against 100 a passage.
        diversity: distinct sources (`Passage.stems_from`) over passages. keyword_coverage: share of all the question's
        words found.
        agreement: as measured by the retriever, the mean pairwise cosine of the passages.
        """
        if not passages:
            return ()
        text = "\n".join(passage.text for passage in passages).lower()
        signals = [("keyword_overlap", _share_found(self.keywords(question), text))]
        cosines = [cosine for passage in passages if (cosine := passage.score("cosine")) is not None]
        if cosines:
            signals.append(("coherence", _coherence(cosines)))
        tokens = sum(estimate_tokens(passage.text) for passage in passages)
        signals.append(("length_adequacy", min(tokens / (TOKENS_PER_PASSAGE * len(passages)), 1.0)))
        signals.append(("diversity", len({passage.stems_from for passage in passages}) / len(passages)))
        signals.append(("keyword_coverage", _share_found(sorted(set(words(question))), text)))
        if agreement is not None:
            signals.append(("agreement", min(max(agreement, 0.0), 1.0)))
        return tuple(signals)

    def keywords(self, question: str) -> list[str]:
        return [
            word for word in words(question) if word not in self.stop_words and (len(word) > 2 or not word.isascii())
        ]


def class_by_rule(question: str) -> float:
    """`CLASS` without a language model: several where there is more than one question mark or interrogative, else one.

    Interrogatives are those of English; nothing is ever answered without a document.
    """
    marks = sum(question.count(sign) for sign in "?？؟")
    return CLASSES["C" if marks > 1 or sum(word in _ASKS for word in words(question)) > 1 else "B"]


def _share_found(terms: list[str], text: str) -> float:
    return sum(term in text for term in terms) / len(terms) if terms else 0.0


def _coherence(cosines: list[float]) -> float:
    return min(max(fmean(cosines) * (1.0 - min(pvariance(cosines), 0.3)), 0.0), 1.0)
