"""Under which headings a passage stands."""

from __future__ import annotations

import pytest

from crag_core.retrieval.chunking.split import cut_pages, headings_in, section_at
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.readers import Page
from tests.retrieval.fakes import write_prose

GUIDE = "Before.\n\n# Guide\n\nIntro.\n\n## Fares\n\nFour pounds.\n\n### Late ##\n\nSix.\n\n## Times\n\nAt nine."


def sections_of(text: str, *pieces: str) -> list[str]:
    """Of each piece where it stands first."""
    places = [*headings_in(text)]
    return [section_at(places, text.index(piece), piece) for piece in pieces]


@pytest.mark.parametrize(
    ("pieces", "sections"),
    [
        (["Before.", "Intro.", "Four", "Six.", "At nine."],
         ["", "Guide", "Guide › Fares", "Guide › Fares › Late", "Guide › Times"]),
        (["# Guide\n\nIntro.", "## Fares\n\nFour pounds.\n\n### Late ##\n\nSix."], ["Guide", "Guide › Fares"]),
        (["# Guide\n\nIntro."], ["Guide"]),
        ([], []),
    ],
)  # fmt: skip
def test_a_passage_stands_under_the_headings_before_it(pieces: list[str], sections: list[str]) -> None:
    assert sections_of(GUIDE, *pieces) == sections


def test_code_has_no_headings_and_long_ones_are_cut() -> None:
    assert sections_of("# Real\n\n```\n# no heading\n```\n\nText.", "Text.") == ["Real"]
    assert len(sections_of(f"# {'x' * 900}\n\nText.", "Text.")[0]) == 200
    assert sections_of(f"# {'x' * 900}\n\n## y\n\nText.", "Text.") == ["x" * 200]


def test_sections_are_stored_with_the_passages_and_found_again(store: PassageStore) -> None:
    store.ingest(
        [("guide.md", b"# Guide\n\n## Fares\n\n" + write_prose("fares", 60)), ("plain.txt", b"# Not one\n\nX.")]
    )
    guide = next(document for document in store.documents() if document.name == "guide.md")
    assert {passage.section for passage in store.passages_of(guide.id)} == {"Guide › Fares"}
    assert store.search_keyword("fares", 1)[0].passage.section == "Guide › Fares"
    plain = next(document for document in store.documents() if document.name == "plain.txt")
    assert [passage.section for passage in store.passages_of(plain.id)] == ["Not one"]


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("rules.txt", "\n House rules 2025 \n\nQuiet from ten.", "House rules 2025"),
        ("rules.md", "**House rules:**\nNo dogs.", "House rules"),
        ("rules.txt", "Quiet from ten.\n\nMore.", ""),
        ("rules.txt", f"{'long ' * 30}\n\nMore.", ""),
        ("prices.csv", "item: kayak, price: 9", ""),
        ("empty.txt", " \n", ""),
        ("run.md", "Run it\n\n```\n# no heading\n```\n", "Run it"),
    ],
)
def test_without_headings_a_chunk_stands_under_the_title_of_its_document(name: str, text: str, title: str) -> None:
    assert {chunk.section for chunk in cut_pages([Page(text)], name)} <= {title}
