"""Passages in a plane: the same every time, what lies apart in it is apart, and the question among them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.retrieval import corpus_map
from crag_core.retrieval.corpus_map import Maps, find_plane
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import embed_words, write_prose

TOPICS = ("seals", "gulls", "buoys")


@pytest.fixture
def filled(store: PassageStore) -> PassageStore:
    store.ingest([(f"{topic}.txt", write_prose(topic, 200)) for topic in TOPICS])
    store.ingest([("ferry.md", b"# Ferry\n\n## Times\n\nThe ferry sails at nine.")], collection="ships")
    return store


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_the_plane_is_that_of_the_singular_value_decomposition(count: int, size: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
    plane = find_plane(vectors)
    points = plane.project(vectors)
    assert points.shape == (count, 2) and 0.0 <= plane.share <= 1.0
    assert np.allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-6)
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    assert np.isclose(float((points**2).sum()), float(values[:2].sum()), rtol=1e-3, atol=1e-5)
    between = np.linalg.norm(points[0] - points[-1])
    assert between <= np.linalg.norm(vectors[0] - vectors[-1]) + 1e-4, "what lies apart in it is apart"


def test_all_alike_and_alone_are_one_point() -> None:
    for vectors in (np.ones((4, 3)), np.ones((1, 3))):
        plane = find_plane(vectors)
        assert plane.share == 1.0 and not plane.project(vectors).any()


def test_every_passage_is_on_the_map_and_documents_lie_apart(filled: PassageStore) -> None:
    found = Maps(filled).draw()
    assert found is not None and len(found.points) == found.passages == filled.count()
    assert len({point.id for point in found.points}) == filled.count()
    assert {point.where for point in found.points if point.name == "ferry.md"} == {"Ferry › Times"}
    middles = {
        topic: np.mean([(point.x, point.y) for point in found.points if point.name == f"{topic}.txt"], axis=0)
        for topic in TOPICS
    }
    apart = [np.linalg.norm(middles[one] - middles[other]) for one, other in (TOPICS[:2], TOPICS[1:])]
    inside = [
        np.linalg.norm(np.array((point.x, point.y)) - middles[point.name.removesuffix(".txt")])
        for point in found.points
        if point.name != "ferry.md"
    ]
    assert min(apart) > np.mean(inside)


def test_a_map_is_of_one_collection_or_of_all(filled: PassageStore) -> None:
    filled.ingest([(f"ship-{number}.txt", b"A ship named %d." % number) for number in range(4)], collection="ships")
    found = Maps(filled).draw("ships")
    assert found is not None and found.passages == len(found.points) == 5
    assert {point.name.partition("-")[0] for point in found.points} == {"ship", "ferry.md"}


def test_of_many_passages_an_even_sample_is_drawn(filled: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_map, "MOST_POINTS", 10)
    found = Maps(filled).draw()
    assert found is not None and len(found.points) == 10 and found.passages == filled.count() > 10
    assert {point.name for point in found.points} >= {f"{topic}.txt" for topic in TOPICS}


def test_the_question_stands_among_its_passages_in_their_order(filled: PassageStore) -> None:
    maps = Maps(filled)
    hits = filled.search_keyword("gulls", 3)
    ids = [hit.passage.id for hit in hits]
    question, *passages = maps.place("Something about gulls?", [*ids, "0" * 32 + "-7", "web-1", "x' OR 'a'='a"])
    assert (question.id, question.text) == ("", "Something about gulls?")
    assert [point.id for point in passages] == ids
    drawn = maps.draw()
    assert drawn is not None
    own = next(point for point in drawn.points if point.id == ids[0])
    assert (own.x, own.y) == pytest.approx((passages[0].x, passages[0].y))
    plane = maps._find("")
    assert plane and plane[0].project(np.asarray([embed_words("Something about gulls?")]))[0] == pytest.approx(
        (question.x, question.y), abs=1e-5
    )


def test_a_map_is_drawn_again_only_when_documents_change(filled: PassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    maps, drawn = Maps(filled), []
    whole = find_plane
    monkeypatch.setattr(corpus_map, "find_plane", lambda vectors: drawn.append(len(vectors)) or whole(vectors))
    maps.draw()
    maps.draw()
    maps.place("gulls", [])
    assert len(drawn) == 1
    filled.ingest([("more.txt", b"More.")])
    maps.draw()
    assert drawn[1] == drawn[0] + 1


def test_too_few_passages_have_no_map(store: PassageStore) -> None:
    maps = Maps(store)
    assert maps.draw() is None and maps.place("x", []) == ()
    store.ingest([("one.txt", b"One."), ("two.txt", b"Two.")])
    assert maps.draw() is None
