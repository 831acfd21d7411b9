from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crag_core.retrieval import sample_vectors
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.sample_vectors import find_vector
from training.sample_vectors import sample_texts, write_vectors

QUESTION = "How many days of paid leave do full-time staff receive?"


def test_every_chunk_and_question_of_the_sample_has_the_vector_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sample_texts(tmp_path)
    kept = [find_vector(text) for text in texts]
    assert [text for text, vector in zip(texts, kept, strict=True) if vector is None] == [], (
        "run python -m training.sample_vectors"
    )
    some = texts[::15]
    monkeypatch.setattr("crag_core.retrieval.embedding.find_vector", lambda text: None)
    made = HuggingFaceEmbedder().embed_texts(some)
    np.testing.assert_allclose(np.array([vector for vector in kept[::15]]), np.array(made), atol=1e-4)


def test_a_known_text_needs_no_model_and_others_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    class Model:
        def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
            asked.append(texts)
            return [[float(len(text))] for text in texts]

    embedder = HuggingFaceEmbedder()
    monkeypatch.setattr(embedder, "_load", Model)
    known = find_vector(QUESTION)
    assert embedder.embed_question(QUESTION) == known
    assert asked == []
    assert embedder.embed_texts(["ab", QUESTION, "abc"]) == [[2.0], known, [3.0]]
    assert asked == [["ab", "abc"]]


def test_vectors_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    write_vectors({"one": [0.6, 0.8], "two \ud800": [1.0, 0.0]}, path)
    read = sample_vectors._read(path)
    assert np.allclose(sorted(read.values()), [[0.6, 0.8], [1.0, 0.0]])
    assert sample_vectors._read(tmp_path / "absent.npz") == {}
