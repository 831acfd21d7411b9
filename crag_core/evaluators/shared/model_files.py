"""The files of the trained evaluator, verified by its evaluator.json: its signals, and how rare words are."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crag_core.base.errors import BadRecord, EvaluatorUnavailable
from crag_core.base.serialization import from_plain

SETTINGS, MODEL, EMBEDDER = "evaluator.json", "model.onnx", "embedder.onnx"
TOKENIZER, RARITY = "tokenizer.json", "rarity.json"
VERSION = 4
"""Of the shape of evaluator.json."""
FRAME = 3  # the pieces [CLS], [SEP] and [SEP] around passage and question
_HINT = "Restore data/models/retrieval-evaluator from the repository."


@dataclass(frozen=True)
class Rarity:
    """In how many of `documents` texts each word stands; a word that is not listed stands in none."""

    documents: int
    words: Mapping[str, int]

    def idf(self, word: str) -> float:
        """Inverse document frequency: log((N + 1) / (n + 1))."""
        return math.log((self.documents + 1) / (self.words.get(word, 0) + 1))


@dataclass(frozen=True)
class Topical:
    """How the model's logit and the cosine of question and passage become the log-odds of being on the subject."""

    bias: float
    logit: float
    cosine: float


@dataclass(frozen=True)
class Answering:
    """How the model's logit and the log of the chance of being on the subject become the log-odds of answering."""

    bias: float
    logit: float
    topical: float


@dataclass(frozen=True)
class Signals:
    answering: Answering
    topical: Topical

    def scores(self, answering: float, topical: float, cosine: float) -> tuple[float, float]:
        """Probabilities of answering and of being on the subject, from the two logits and the cosine."""
        own = self.answering
        on_subject = self.topical.bias + self.topical.logit * topical + self.topical.cosine * cosine
        answers = own.bias + own.logit * answering + own.topical * log_chance(on_subject)
        return chance(answers), chance(on_subject)


def chance(odds: float) -> float:
    """The probability with these log-odds, in 0..1."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1.0 + math.exp(odds))


def log_chance(odds: float) -> float:
    """The logarithm of `chance`, without losing what is next to 0."""
    return -math.log1p(math.exp(-odds)) if odds >= 0 else odds - math.log1p(math.exp(odds))


@dataclass(frozen=True)
class SentenceCurve:
    """How far the log-odds of a sentence, by its places, lie behind those of the best sentence of its passage becomes
    the log-odds that it holds the answer, given that the passage does."""

    bias: float
    behind: float

    def scores(self, odds: Sequence[float]) -> list[float]:
        best = max(odds, default=0.0)
        return [chance(self.bias - self.behind * (best - one)) for one in odds]


@dataclass(frozen=True)
class ModelSettings:
    """evaluator.json: lengths in pieces of the vocabulary, the SHA-256 of each file, and the calibrated signals.

    `tokens` is the longest pair, its frame included. A question is cut at `question_tokens`; of windows of a passage
    each has `overlap` pieces of the one before.
    """

    version: int
    tokens: int
    question_tokens: int
    overlap: int
    files: Mapping[str, str]
    signals: Signals
    sentence: SentenceCurve

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"expected version {VERSION}, found {self.version}")
        if missing := {MODEL, EMBEDDER, TOKENIZER, RARITY} - self.files.keys():
            raise ValueError(f"expected a SHA-256 of each file, found none of {', '.join(sorted(missing))}")
        room = self.tokens - FRAME - self.question_tokens
        if not (self.question_tokens > 0 and 0 <= self.overlap < room):
            raise ValueError(
                "expected tokens for a question, and an overlap smaller than what they leave to a chunk, "
                f"found tokens {self.tokens}, question_tokens {self.question_tokens}, overlap {self.overlap}"
            )


def parse_settings(data: bytes) -> ModelSettings:
    """Raises `EvaluatorUnavailable` for what evaluator.json must not be."""
    try:
        return from_plain(ModelSettings, json.loads(data), SETTINGS)
    except BadRecord as error:
        raise unusable(str(error)) from error
    except RecursionError as error:
        raise unusable(f"{SETTINGS}: expected a few levels, found a deeply nested file") from error
    except ValueError as error:
        raise unusable(f"{SETTINGS}: {error}") from error


def parse_rarity(data: bytes) -> Rarity:
    """Raises `EvaluatorUnavailable` unless it holds {"documents": N, "words": {word: n, …}} with 0 <= n <= N."""
    try:
        found = json.loads(data)
        documents, known = found["documents"], found["words"]
        is_sound = all(type(count) is int and 0 <= count <= documents for count in known.values())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        is_sound = False
    if not is_sound:
        raise unusable(f"{RARITY}: expected a number of documents, and for each word a number up to it")
    return Rarity(documents, known)


def read_file(folder: Path, name: str) -> bytes:
    """Raises `EvaluatorUnavailable` when it cannot be read."""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        found = f"{error.strerror}" if folder.is_dir() else "no such folder"
        raise EvaluatorUnavailable(
            f"The trained evaluator is not there: expected its file {name} in {folder}, found: {found}.", hint=_HINT
        ) from error


def read_checked(folder: Path, settings: ModelSettings) -> dict[str, bytes]:
    """Each file of `settings` by its name; raises `EvaluatorUnavailable` unless it has the digest written there."""
    files = {name: read_file(folder, name) for name in settings.files}
    for name, expected in settings.files.items():
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            raise EvaluatorUnavailable(
                f"The trained evaluator is altered: expected {name} with sha256 {expected[:16]}…, found {found[:16]}….",
                hint=_HINT,
            )
    return files


def unusable(found: str) -> EvaluatorUnavailable:
    """The error for files that are as evaluator.json says, and still do not do: `found` begins with the file's name."""
    first = found.strip().splitlines()[0].rstrip(".")
    return EvaluatorUnavailable(f"The trained evaluator cannot be used: {first[:300]}.", hint=_HINT)
