"""Under which headings a passage stands."""

from __future__ import annotations

import pytest

from crag_core.retrieval.sections import find_sections
from crag_core.retrieval.store import PassageStore
from tests.retrieval.fakes import write_prose

GUIDE = "Before.\n\n# Guide\n\nIntro.\n\n## Fares\n\nFour pounds.\n\n### Late ##\n\nSix.\n\n## Times\n\nAt nine."


@pytest.mark.parametrize(
    ("pieces", "sections"),
    [
        (["Before.", "Intro.", "Four", "Six.", "At nine."],
         ["", "Guide", "Guide › Fares", "Guide › Fares › Late", "Guide › Times"]),
        (["# Guide\n\nIntro.", "## Fares\n\nFour pounds.\n\n### Late ##\n\nSix."], ["Guide", "Guide › Fares"]),
        (["nowhere to be found", "At nine."], ["", "Guide › Times"]),
        ([], []),
    ],
)  # fmt: skip
def test_a_passage_stands_under_the_headings_before_it(pieces: list[str], sections: list[str]) -> None:
    assert find_sections(GUIDE, pieces) == sections


def test_a_passage_that_begins_with_headings_stands_under_all_of_them() -> None:
    assert find_sections(GUIDE, ["# Guide\n\nIntro."]) == ["Guide"]
    text = "# Guide\n\n## Fares\n\n### Late\n\nSix."
    assert find_sections(text, [text]) == ["Guide › Fares › Late"]


def test_the_same_words_twice_are_looked_for_one_after_the_other() -> None:
    text = "# One\n\nThe same.\n\n# Two\n\nThe same."
    assert find_sections(text, ["The same.", "The same."]) == ["One", "Two"]


def test_code_has_no_headings_and_long_ones_are_cut() -> None:
    assert find_sections("# Real\n\n```\n# no heading\n```\n\nText.", ["Text."]) == ["Real"]
    assert len(find_sections(f"# {'x' * 900}\n\nText.", ["Text."])[0]) == 200


def test_sections_are_stored_with_the_passages_and_found_again(store: PassageStore) -> None:
    store.ingest(
        [("guide.md", b"# Guide\n\n## Fares\n\n" + write_prose("fares", 60)), ("plain.txt", b"# Not one\n\nX.")]
    )
    guide = next(document for document in store.documents() if document.name == "guide.md")
    assert {passage.section for passage in store.passages_of(guide.id)} == {"Guide › Fares"}
    assert store.search_keyword("fares", 1)[0].passage.section == "Guide › Fares"
    plain = next(document for document in store.documents() if document.name == "plain.txt")
    assert [passage.section for passage in store.passages_of(plain.id)] == [""]
