"""Runs the ONNX models of the trained evaluator, a cross-encoder and a bi-encoder, on word pieces of a text."""

from __future__ import annotations

import math
import os
import unicodedata
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from crag_core.base.concurrency import remembered
from crag_core.base.concurrency.priority import give_way
from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types.passages import Origin, Passage
from crag_core.evaluators.shared.model_files import (
    EMBEDDER,
    MODEL,
    TOKENIZER,
    ModelSettings,
    parse_settings,
    read_checked,
    unusable,
)

_MOST_UNREAD = 0.5  # share of a text


@dataclass(frozen=True)
class WordPieces:
    """A text in the word pieces of a vocabulary: their numbers, and where each stands: `text[start:end]`.

    `unknown` counts the pieces that the vocabulary does not know.
    """

    text: str
    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]
    unknown: int = 0


@dataclass(frozen=True)
class Window:
    ids: tuple[int, ...]
    text: str
    start: int


def cut_windows(pieces: WordPieces, room: int, overlap: int) -> list[Window]:
    """The text in windows of at most `room` pieces, each beginning with the last `overlap` pieces of the one before.

    The last one reaches further back instead of being short. Without pieces: no window.
    """
    if not 0 <= overlap < room:
        raise ValueError(f"expected an overlap of 0 to {room - 1}, found {overlap}")
    count = len(pieces.ids)
    starts = range(0, max(count - overlap, 1), room - overlap) if count else ()
    return [_window(pieces, max(min(start, count - room), 0), room) for start in starts]


def _window(pieces: WordPieces, start: int, room: int) -> Window:
    inside = pieces.offsets[start : start + room]
    return Window(tuple(pieces.ids[start : start + room]), pieces.text[inside[0][0] : inside[-1][1]], start)


def heading_of(passage: Passage) -> str:
    """What is read before the text: the headings above it, of a web result its title; "" where the text begins so."""
    above = passage.section or (passage.source if passage.origin is Origin.WEB else "")
    return f"{above}: " if above and not passage.text.lstrip("# ").startswith(above) else ""


def why_unread(pieces: WordPieces, what: str) -> str:
    """Why the evaluator does not judge this text (`what` names it); the empty string when it does.

    Most of Chinese and Thai is unknown to its vocabulary. Of Greek, Cyrillic, Arabic and others the vocabulary has the
    single letters and no words, so there the letters are counted.
    """
    unknown, other = pieces.unknown / max(len(pieces.ids), 1), share_of_other_scripts(pieces.text)
    if max(unknown, other) <= _MOST_UNREAD:
        return ""
    letters, signs = (
        f"{other:.0%} of the letters of this {what} are of another",
        f"{unknown:.0%} of this {what} is unknown",
    )
    return f"The trained evaluator reads Latin script, and {letters if other > _MOST_UNREAD else signs}."


def share_of_other_scripts(text: str) -> float:
    """Share of the letters that are not Latin; 0 for a text without letters."""
    letters = {sign: count for sign, count in Counter(text).items() if sign.isalpha()}
    other = sum(count for sign, count in letters.items() if "LATIN" not in unicodedata.name(sign, ""))
    return other / sum(letters.values()) if letters else 0.0


INPUTS = ("input_ids", "attention_mask", "token_type_ids")
PLACES = "places"
OUTPUTS = ("answering", "topical", PLACES)
EMBEDDER_INPUTS, EMBEDDER_OUTPUTS = INPUTS[:2], ("vector",)
_MOST_THREADS = 4

_REMEMBERED = 512
"""Pieces, readings of a window, and vectors that are kept: those of the chunks of a run, for its sentences."""
_LONGEST = 4000  # characters of a text whose pieces are kept

Ids = Sequence[int]


@dataclass(frozen=True)
class PairLogits:
    """What the model says of a passage: two logits, and of each piece the logit that the answer is there.

    `answering` is the log-sum-exp of `places` and of the place after the last piece.
    """

    answering: float
    topical: float
    places: tuple[float, ...]


class PairReader:
    """The loaded models, safe to share between threads; constructing it raises `EvaluatorUnavailable`.

    They read one pair or text a run, a few at the same time on one core each. In a run of several pairs the 8-bit
    arithmetic takes its scale from all of them, so that a score depends on its company; and twenty passages together
    took longer than one by one.
    """

    def __init__(self, folder: Path, settings: ModelSettings) -> None:
        files = read_checked(folder, settings)
        self.settings = settings
        self._tokenizer = _open_tokenizer(files[TOKENIZER])
        self._first, self._between, self._unknown = (_id(self._tokenizer, sign) for sign in ("[CLS]", "[SEP]", "[UNK]"))
        self._session = _open_session(MODEL, files[MODEL], INPUTS, OUTPUTS)
        self._embedder = _open_session(EMBEDDER, files[EMBEDDER], EMBEDDER_INPUTS, EMBEDDER_OUTPUTS)
        self._threads = ThreadPoolExecutor(_count_threads(), "pair-reader", initializer=give_way)
        self._pieces = lru_cache(_REMEMBERED)(self._pieces_anew)
        self._read_pair = lru_cache(_REMEMBERED)(self._read_anew)
        self._vector = lru_cache(_REMEMBERED)(self._vector_anew)
        remembered.register(self)

    def forget(self) -> None:
        self._pieces.cache_clear()
        self._read_pair.cache_clear()
        self._vector.cache_clear()

    def pieces(self, text: str) -> WordPieces:
        """The pieces of a text, whatever it holds; "[SEP]" in it is read as the letters that it is made of."""
        sound = text.encode("utf-8", "replace").decode()  # halves of a surrogate pair become "?", sign for sign
        return (self._pieces if len(sound) <= _LONGEST else self._pieces_anew)(sound)

    def _pieces_anew(self, text: str) -> WordPieces:
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return WordPieces(text, found.ids, found.offsets, found.ids.count(self._unknown))

    def read(self, question: Ids, passages: Sequence[Ids], cancel: Cancel) -> list[PairLogits]:
        """Each passage read, in order, the last ones not again; raises `Stopped` soon after `cancel` is set,
        `EvaluatorUnavailable`."""
        return list(self._threads.map(partial(self._read_one, question, cancel), passages))

    def cosines(self, question: Ids, passages: Sequence[Ids], cancel: Cancel) -> list[float]:
        """The cosine of the question's and each passage's vector, in -1..1, in order; raises as `read` does."""
        if not passages:
            return []
        asked, *message = self._threads.map(partial(self._embed_one, cancel), (question, *passages))
        return [math.fsum(a * b for a, b in zip(asked, vector, strict=True)) for vector in message]

    def frame(self, passage: Ids, question: Ids) -> tuple[list[int], list[int], list[int]]:
        """(ids, attention, segments) of [CLS] question [SEP] passage [SEP]; the passage is segment 1."""
        ids = [self._first, *question, self._between, *passage, self._between]
        return ids, [1] * len(ids), [0] * (len(question) + 2) + [1] * (len(passage) + 1)

    def _read_one(self, question: Ids, cancel: Cancel, passage: Ids) -> PairLogits:
        _check(cancel)
        return self._read_pair(tuple(question), tuple(passage))

    def _read_anew(self, question: tuple[int, ...], passage: tuple[int, ...]) -> PairLogits:
        """The logits of the places are moved as one, so that the score of the whole is theirs."""
        rows = self._run(MODEL, self._session, INPUTS, self.frame(passage, question))
        answering, topical, places = float(rows[0][0]), float(rows[1][0]), rows[2][0][len(question) + 2 :].tolist()
        beyond = answering - log_sum_exp(places)
        return PairLogits(answering, topical, tuple(place + beyond for place in places[:-1]))

    def _embed_one(self, cancel: Cancel, text: Ids) -> tuple[float, ...]:
        _check(cancel)
        return self._vector(tuple(text))

    def _vector_anew(self, text: tuple[int, ...]) -> tuple[float, ...]:
        """Of length 1."""
        ids = [self._first, *text, self._between]
        (vectors,) = self._run(EMBEDDER, self._embedder, EMBEDDER_INPUTS, (ids, [1] * len(ids)))
        return tuple(map(float, vectors[0]))

    def _run(self, name: str, session: Any, inputs: Sequence[str], rows: Sequence[Ids]) -> list[Any]:
        """The outputs of one run over one row; raises `EvaluatorUnavailable`."""
        import numpy as np

        arrays = (np.array([row], np.int64) for row in rows)
        try:
            found: list[Any] = session.run(None, dict(zip(inputs, arrays, strict=True)))
        # The errors of the library have no type in common but this one.
        except Exception as error:
            raise unusable(f"{name}: {error}") from error
        for array in found:
            if not np.isfinite(array).all():
                raise unusable(
                    f"{name}: expected finite numbers, found {array.ravel()[~np.isfinite(array.ravel())][0]}"
                )
        return found


def log_sum_exp(values: Sequence[float]) -> float:
    """The logarithm of the sum of the exponentials; minus infinity of none."""
    if not values:
        return -math.inf
    most = max(values)
    return most + math.log(math.fsum(math.exp(value - most) for value in values))


def _check(cancel: Cancel) -> None:
    if cancel.is_set():
        raise Stopped()


_readers: dict[tuple[Path, bytes], PairReader] = {}
_loading = Lock()


def open_reader(folder: Path, settings: bytes) -> PairReader:
    """The model in `folder` that this text of evaluator.json describes: loaded once in a process, in part of a second.

    Raises `EvaluatorUnavailable`.
    """
    place = (folder.resolve(), settings)
    with _loading:
        if place not in _readers:
            _readers[place] = PairReader(folder, parse_settings(settings))
        return _readers[place]


def _open_session(file: str, model: bytes, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise _not_installed("onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # in the thread that calls: none waits by spinning
    options.log_severity_level = 4  # what fails is raised here; the library would write it to the server's log too
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # The library raises nearly anything for a model that is broken.
    except Exception as error:
        raise unusable(f"{file}: {error}") from error
    names = [[one.name for one in some] for some in (session.get_inputs(), session.get_outputs())]
    if sorted(names[0]) != sorted(inputs) or names[1] != list(outputs):
        raise unusable(f"{file}: expected inputs {inputs} and outputs {outputs}, found {names[0]} and {names[1]}")
    return session


def _open_tokenizer(text: bytes) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _not_installed("tokenizers") from error
    try:
        tokenizer = Tokenizer.from_str(text.decode())
    # The library raises a plain exception for a file that is broken.
    except Exception as error:
        raise unusable(f"{TOKENIZER}: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # a document must not be able to end the passage and ask for itself
    return tokenizer


def _id(tokenizer: Any, sign: str) -> int:
    found = tokenizer.token_to_id(sign)
    if found is None:
        raise unusable(f"{TOKENIZER}: expected a piece {sign} in the vocabulary, found none")
    return int(found)


def _not_installed(package: str) -> EvaluatorUnavailable:
    return EvaluatorUnavailable(
        f"The trained evaluator needs the package {package!r}, which is not installed.",
        hint="Run: pip install -r requirements.txt",
    )


def _count_threads() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return min(usable, _MOST_THREADS)
