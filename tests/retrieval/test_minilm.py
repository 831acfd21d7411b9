"""The real embedding model, without a network."""

from __future__ import annotations

import math
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.retrieval.embedding import HuggingFaceEmbedder, check_weights
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.conftest import REPOSITORY

HEAVY = ("torch", "llama_index", "lancedb", "pyarrow", "transformers", "pypdfium2", "docx", "bs4", "numpy", "streamlit")


@pytest.fixture(scope="module")
def minilm() -> Iterator[HuggingFaceEmbedder]:
    """The default model, loaded while every connection is refused: it must come from this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HF_HUB_OFFLINE", raising=False)
        patch.setattr(socket.socket, "connect", _refuse)
        patch.setattr(socket, "getaddrinfo", _refuse)
        embedder = HuggingFaceEmbedder()
        embedder.load()
    yield embedder


def _refuse(*args: Any) -> None:
    raise AssertionError(f"the default model asked the network: {args}")


def test_importing_the_adapters_and_building_them_loads_nothing_heavy() -> None:
    code = (
        "import sys, crag_core.retrieval.hybrid as h, crag_core.retrieval.embedding as e\n"
        "import crag_core.retrieval.index.store as s, crag_core.retrieval.chunking.split, crag_core.retrieval.readers\n"
        "m = e.HuggingFaceEmbedder(); st = s.PassageStore('nowhere', m); h.HybridRetriever(st)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_altered_or_missing_weights_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    with pytest.raises(EmbeddingUnavailable, match="no readable file"):
        check_weights(weights)
    weights.write_bytes(b"poisoned")
    with pytest.raises(EmbeddingUnavailable, match="altered") as fault:
        check_weights(weights)
    assert "pip install" in fault.value.hint


def test_a_model_of_a_model_server_is_refused_before_any_hub_is_asked() -> None:
    with pytest.raises(EmbeddingUnavailable, match="not offered, found CRAG_EMBEDDING=ollama/all-minilm") as fault:
        HuggingFaceEmbedder("ollama/all-minilm").load()
    assert "Leave it empty" in fault.value.hint


def test_vectors_have_length_one_and_meaning(minilm: HuggingFaceEmbedder) -> None:
    question = minilm.embed_question("How old is the ship?")
    near, far = minilm.embed_texts(["The vessel was built in 1987.", "Crab sandwiches cost eight pounds."])
    assert len(question) == 384
    assert all(math.hypot(*vector) == pytest.approx(1.0, abs=1e-4) for vector in (question, near, far))
    likeness = [sum(a * b for a, b in zip(question, vector, strict=True)) for vector in (near, far)]
    assert likeness[0] > likeness[1] + 0.1
    assert minilm.embed_texts([]) == []


def test_threads_get_the_vectors_that_one_would(minilm: HuggingFaceEmbedder) -> None:
    texts = [f"Sentence number {number} about ship {number % 3}." for number in range(24)]
    alone = minilm.embed_texts(texts)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda text: minilm.embed_texts([text])[0], texts))
    for one, other in zip(alone, together, strict=True):
        assert other == pytest.approx(one, abs=1e-4)


def test_no_passage_is_longer_than_the_model_reads(minilm: HuggingFaceEmbedder, tmp_path: Path) -> None:
    store = PassageStore(tmp_path, minilm)
    prose = {
        "english.txt": "The relief vessel, built in 1987, reaches Corsay pier after the evening tide has turned. " * 60,
        "deutsch.txt": "Die Fährverbindung zwischen Kelderport und Corsay wird während der Wintermonate eingestellt. "
        * 40,
        "日本語.txt": "東京タワーは東京都港区にある電波塔です。毎日多くの人が訪れます。" * 30,
        "ohne-punkt.txt": "wort " * 900,
        "hash.txt": "0123456789abcdef" * 200,
    }
    outcomes = store.ingest([(name, text.encode()) for name, text in prose.items()])
    lengths = [len(minilm.tokenize(p.text)) for one in outcomes for p in store.passages_of(one.document_id)]
    assert len(lengths) > 15
    # 256 less the two special pieces that frame every text.
    assert max(lengths) <= 254


def test_packed_layers_give_the_same_vectors(minilm: HuggingFaceEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that was made without them stays what it was."""
    monkeypatch.setattr("crag_core.retrieval.packed_layers.is_supported", lambda: False)
    plain = HuggingFaceEmbedder()
    texts = ["Ferry.", "The ferry sails at nine. " * 60, "潮汐表は港で手に入ります。" * 9, ""]
    for one, other in zip(plain.embed_texts(texts), minilm.embed_texts(texts), strict=True):
        assert other == pytest.approx(one, abs=1e-5)
    assert minilm.embed_question("When does it sail?") == pytest.approx(
        plain.embed_question("When does it sail?"), abs=1e-5
    )
