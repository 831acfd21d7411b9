"""The files of the trained evaluator, verified by its evaluator.json: fusion weights and word counts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crag_core.base.errors import BadRecord, EvaluatorUnavailable
from crag_core.base.serialization import from_plain
from crag_core.base.text.words import words


@dataclass(frozen=True)
class Rarity:
    """In how many of `documents` texts each word stands; a word that is not listed stands in none."""

    documents: int
    words: Mapping[str, int]

    def idf(self, word: str) -> float:
        """Inverse document frequency: log((N + 1) / (n + 1))."""
        return math.log((self.documents + 1) / (self.words.get(word, 0) + 1))

    def weigh(self, question: str, stop_words: frozenset[str]) -> dict[str, float]:
        """The question's distinct words with their idf, stop words left out."""
        return {word: self.idf(word) for word in words(question) if word not in stop_words}


def coverage(weights: Mapping[str, float], text: str) -> float:
    """Share of the weight, in 0..1, whose words stand in `text`; 0 when there is no weight."""
    there = set(words(text))
    total = math.fsum(weights.values())
    return math.fsum(weight for word, weight in weights.items() if word in there) / total if total > 0 else 0.0


SETTINGS, MODEL, EMBEDDER = "evaluator.json", "model.onnx", "embedder.onnx"
TOKENIZER, RARITY = "tokenizer.json", "rarity.json"
VERSION = 3
"""Of the shape of evaluator.json."""
FRAME = 3  # the pieces [CLS], [SEP] and [SEP] around passage and question
_HINT = "Restore data/models/retrieval-evaluator from the repository."


@dataclass(frozen=True)
class Fusion:
    """How the model's two logits, the coverage of the question's words and the cosine become log-odds."""

    bias: float
    answering: float
    topical: float
    coverage: float
    cosine: float

    def odds(self, answering: float, topical: float, coverage: float, cosine: float) -> float:
        seen = (self.answering * answering, self.topical * topical, self.coverage * coverage, self.cosine * cosine)
        return math.fsum((self.bias, *seen))


@dataclass(frozen=True)
class Joint:
    """How the log-odds that a passage on the subject answers, and the log of the chance that it is on the subject,
    become the log-odds that it answers. With weights of 1 and low odds that is the product of both chances."""

    bias: float
    given: float
    topical: float


@dataclass(frozen=True)
class Signals:
    """`given`: does a passage answer, given that it is on the subject? `topical`: is it? `joint` makes one of both."""

    given: Fusion
    topical: Fusion
    joint: Joint

    def scores(self, answering: float, topical: float, coverage: float, cosine: float) -> tuple[float, float]:
        """Probabilities of answering and topical, from the two logits, the coverage and the cosine."""
        seen = (answering, topical, coverage, cosine)
        on_subject = self.topical.odds(*seen)
        joint = self.joint
        answers = joint.bias + joint.given * self.given.odds(*seen) + joint.topical * log_chance(on_subject)
        return chance(answers), chance(on_subject)


def chance(odds: float) -> float:
    """The probability with these log-odds, in 0..1."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1.0 + math.exp(odds))


def log_chance(odds: float) -> float:
    """The logarithm of `chance`, without losing what is next to 0."""
    return -math.log1p(math.exp(-odds)) if odds >= 0 else odds - math.log1p(math.exp(odds))


@dataclass(frozen=True)
class ModelSettings:
    """evaluator.json: lengths in pieces of the vocabulary, the SHA-256 of each file, and the calibrated signals.

    `tokens` is the longest pair, its frame included. A question is cut at `question_tokens`; of windows of a passage
    each has `overlap` pieces of the one before. `question_first`: the model reads the question before the passage.
    """

    version: int
    tokens: int
    question_tokens: int
    overlap: int
    files: tuple[tuple[str, str], ...]
    signals: Signals
    question_first: bool = False

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"expected version {VERSION}, found {self.version}")
        if missing := {MODEL, EMBEDDER, TOKENIZER, RARITY} - {name for name, _ in self.files}:
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
        return from_plain(ModelSettings, _load_json(data), SETTINGS)
    except BadRecord as error:
        raise unusable(str(error)) from error
    except ValueError as error:
        raise unusable(f"{SETTINGS}: {error}") from error


def parse_rarity(data: bytes) -> Rarity:
    """Raises `EvaluatorUnavailable` unless it holds {"documents": N, "words": {word: n, …}} with 0 <= n <= N."""
    try:
        found = _load_json(data)
    except ValueError as error:
        raise unusable(f"{RARITY}: {error}") from error
    keys = set(found) if isinstance(found, dict) else set()
    documents, known = (found["documents"], found["words"]) if keys == {"documents", "words"} else (None, None)
    if not (type(documents) is int and isinstance(known, dict)):
        raise unusable(f"{RARITY}: expected a number of documents, and words")
    if not all(type(count) is int and 0 <= count <= documents for count in known.values()):
        raise unusable(f"{RARITY}: expected for each word a number from 0 to {documents}")
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
    return {name: _read_checked(folder, name, expected) for name, expected in settings.files}


def _read_checked(folder: Path, name: str, expected: str) -> bytes:
    data = read_file(folder, name)
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise EvaluatorUnavailable(
            f"The trained evaluator is altered: expected {name} with sha256 {expected[:16]}…, found {found[:16]}….",
            hint=_HINT,
        )
    return data


def unusable(found: str) -> EvaluatorUnavailable:
    """The error for files that are as evaluator.json says, and still do not do: `found` begins with the file's name."""
    first = found.strip().splitlines()[0].rstrip(".")
    return EvaluatorUnavailable(f"The trained evaluator cannot be used: {first[:300]}.", hint=_HINT)


def _load_json(data: bytes) -> Any:
    """Raises `ValueError` for text that is no JSON, or not JSON that Python can hold."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("expected a few levels, found a deeply nested file") from error
