"""Whether the evidence supports a sentence of an answer: by words, numbers, names and negation, or as a model says.

By words, measured by `benchmarks/support.py`, mean AUROC over nine kinds of mistake: words alone 0.76, capped by facts
0.84. The trained evaluator's reading beside that gave 0.85, on no kind clearly more, and cosines 0.84; so no model is
asked here; `ModelSupport` asks one, where the settings say so. Kappa of supported or not against the labels: 0.62 of
right and hallucinated answers, 0.76 of sentences with their own passages and with others.

How well a model does depends on it: `benchmarks/support.py --judge ollama/NAME` measures yours beside words. One
without any judgement, SmolLM2-135M (`--words-only --judge small --judged 60`), called every sentence of three sets (62,
55 and 64) supported: AUROC 0.50 and kappa 0.00 against the labels, 1.5 to 10 s a sentence on one thread. On the same
sentences words reached AUROC 0.99, 0.91 and 0.97 and kappa 0.59, 0.61 and 0.59, in 1 to 6 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crag_core.base.prompts.messages import JUDGED_CHARACTERS, JUDGED_ROOM, Prompts, shipped
from crag_core.base.prompts.replies import CHECK_SCHEMA, VERDICTS
from crag_core.base.protocols import Backing, Cancel, LanguageModel, Messages, Piece, Reply
from crag_core.base.reply_parsing import VerdictReply, parse_verdict
from crag_core.base.text.words import language_of, script_of
from crag_core.base.types import Usage
from crag_core.evaluators.shared.model_files import RARITY, Rarity, parse_rarity, read_file
from crag_core.trace.grounding.citation_check import (
    LACKING,
    SUPPORTED,
    TOGETHER,
    WEAK,
    Evidence,
    Match,
    disagreements,
    match,
    quoted,
)
from crag_core.trace.grounding.claims import claim_of, content_of, is_prose, names_in
from crag_core.trace.grounding.quoted_answer import cited_in

# --- by words ---------------------------------------------------------------------------------------------------------


MOST = 200
"""Sentences of an answer that are measured; the rest of a longer one is not."""

SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC")
"""Those that the score was measured in. In others, many without spaces between words, only quotations are found."""


class WordSupport:
    """Measures with the word counts in `folder`, read at the first use; `measure` raises `EvaluatorUnavailable`.

    A quotation scores 1. What cannot be compared gets no score: another script, a language other than the evidence's,
    code, and what says nothing by itself ("According to the documents:").
    """

    def __init__(self, folder: Path, stop_words: frozenset[str]) -> None:
        self._folder = folder
        self._stop_words = stop_words
        self._rarity: Rarity | None = None

    def measure(self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel) -> tuple[Backing, ...]:
        """One a sentence of an answer, in order; it takes milliseconds, so nobody has to stop it."""
        if self._rarity is None:
            self._rarity = parse_rarity(read_file(self._folder, RARITY))
        evidence = Evidence(tuple(pieces))
        whole = language_of(" ".join(claim_of(sentence) for sentence in sentences[:MOST]))
        found = (self._measure_one(sentence, whole, evidence, self._rarity) for sentence in sentences[:MOST])
        return (*found, *(Backing(None) for _ in sentences[MOST:]))

    def _measure_one(self, sentence: str, whole: str, evidence: Evidence, rarity: Rarity) -> Backing:
        claim, cited = claim_of(sentence), cited_in(sentence)
        if source := quoted(claim, cited, evidence):
            return Backing(1.0, source)
        content, script = content_of(claim, self._stop_words), script_of(claim)
        if not content or not is_prose(sentence) or script not in ("", *SCRIPTS):
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


def _score(claim: str, found: Match, evidence: Evidence, content: Collection[str]) -> float:
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


def _is_beyond(places: Sequence[int], cited: Sequence[int], evidence: Evidence) -> bool:
    """Whether half or more of what it may rest on cannot be compared: of the cited excerpts, else of all."""
    asked = [at for at, piece in enumerate(evidence.pieces) if piece.excerpt in cited] or range(len(evidence.pieces))
    return bool(asked) and 2 * len(set(asked) & set(places)) <= len(asked)


# --- by a language model ----------------------------------------------------------------------------------------------


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

    def __init__(self, model: LanguageModel, stop_words: frozenset[str], prompts: Prompts | None = None) -> None:
        """`prompts` None: the shipped ones."""
        self._model = model
        self._stop_words = stop_words
        self._prompts = prompts or shipped()

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
                asked[place] = _Asked(places, self._prompts.check(claim, [evidence.pieces[at].text for at in places]))
        found |= self._judge(asked, evidence, cancel)
        return tuple(found.get(place, Backing(None)) for place in range(len(sentences)))

    def _judge(self, asked: Mapping[int, _Asked], evidence: Evidence, cancel: Cancel) -> dict[int, Backing]:
        found = {place: Backing(0.0) for place, one in asked.items() if not one.places}
        replies = self._ask({place: one.chat for place, one in asked.items() if one.places}, cancel)
        message = {place: parse_verdict(reply.text, VERDICTS) for place, reply in replies.items()}
        unread = {
            place: self._prompts.again(asked[place].chat, replies[place].text, one.cause)
            for place, one in message.items()
            if one.verdict is None
        }
        second = self._ask(unread, cancel)
        message |= {place: parse_verdict(reply.text, VERDICTS) for place, reply in second.items()}
        for place, one in message.items():
            usage = replies[place].usage + (second[place].usage if place in second else Usage())
            found[place] = _backing(one, [evidence.pieces[at] for at in asked[place].places], usage)
        return found

    def _ask(self, chats: Mapping[int, Messages], cancel: Cancel) -> dict[int, Reply]:
        """The reply to each chat; raises what kept any of them from coming."""
        found = {}
        message = self._model.complete_all(list(chats.values()), cancel, CHECK_SCHEMA) if chats else []
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

    taken, room = [], JUDGED_ROOM
    for at in sorted(range(len(evidence.pieces)), key=rank):
        shown = evidence.pieces[at].text[:JUDGED_CHARACTERS]
        room -= len(shown.encode("utf-8", "replace")) + _TAGS
        if room < 0:
            break
        taken.append(at)
    return tuple(sorted(taken))
