"""The drawer that shows a passage in its document: the page, the text around it, or why neither can be shown."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from crag_core.base.text.sentences import split
from crag_core.base.types.knowledge import Strip, StripVerdict
from crag_core.base.types.passages import Origin, Passage
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.passage_location import Places
from crag_core.view.sentences import Piece, text_lines
from tests.retrieval.fakes import WordEmbedder, write_prose
from tests.retrieval.printed import SENTENCES, TEXT, print_pages
from tests.ui.drawn import parts, said

FARES = (
    "# Fares\n\nA single costs 9 euros. Children pay half.\n\n| who | price |\n| --- | --- |\n| dogs | 2 |\n\nAsk us."
)


@pytest.fixture
def store(tmp_path: Path) -> PassageStore:
    return PassageStore(tmp_path / "index", WordEmbedder())


def judged(passage: Passage, *kept: bool) -> list[StripVerdict]:
    """The passage's strips, every other one kept unless told otherwise; the n-th scores n tenths."""
    spans = split(passage.text)
    strips = [Strip(passage.id, at, a, z, passage.text[a:z], at % 10 / 10) for at, (a, z) in enumerate(spans)]
    how = kept or [at % 2 == 0 for at in range(len(spans))]
    return [
        StripVerdict(strip, keep, "kept" if keep else f"score {strip.score:.2f} ≤ cut-off 0.25")
        for strip, keep in zip(strips, how, strict=True)
    ]


def shown(store: PassageStore, passage: Passage, verdicts: Sequence[StripVerdict], opened: bool = False) -> AppTest:
    def script(page, arguments):  # type: ignore[no-untyped-def]  # its source is run, apart from this module
        import streamlit as st

        if page is None or st.button("Show"):
            from ui.run.page_view import draw_place, open_place

            (draw_place if page is None else open_place)(*arguments)

    workbench = SimpleNamespace(own_engine=None, store=store, places=Places(store))
    app = AppTest.from_function(
        script, default_timeout=30, kwargs={"page": opened or None, "arguments": (passage, verdicts, workbench)}
    ).run()
    assert not app.exception
    return app


def index(store: PassageStore, name: str, content: bytes) -> tuple[Passage, ...]:
    (done,) = store.ingest([(name, content)])
    return store.passages_of(done.document_id)


def pieces(lines: Sequence[dict[str, Any]], kind: str) -> list[str]:
    return [piece["text"] for line in lines for piece in line["pieces"] if piece["kind"] == kind]


# Pages


def test_a_page_shows_its_picture_with_what_is_marked_told_in_words(store: PassageStore) -> None:
    _, passage = index(store, "guide.pdf", print_pages("Something else.", TEXT))
    app = shown(store, passage, judged(passage))
    page, as_text = parts(app, "place")
    assert Image.open(io.BytesIO(base64.b64decode(page["png"]))).size == (page["width"], page["height"])
    assert page["alt"].startswith("Page 2 of guide.pdf with the chunk marked: 2 sentences kept, 1 struck out.")
    assert {box["hint"] for box in page["boxes"]} == {
        "Kept, score 0.00.",
        "Struck out, score 0.10 ≤ cut-off 0.25.",
        "Kept, score 0.20.",
    }
    assert all(0 <= box[side] <= 100 for box in page["boxes"] for side in ("left", "top", "width", "height"))
    assert "guide.pdf** · page 2 of 2" in said(app)
    assert "2 kept" in said(app) and "1 struck out" in said(app)
    assert pieces(as_text["lines"], "kept") == [SENTENCES[0], SENTENCES[2]] and as_text["still"]
    assert not app.warning and not app.info


def test_a_passage_that_no_one_judged_is_marked_as_a_whole(store: PassageStore) -> None:
    (passage,) = index(store, "guide.pdf", print_pages(TEXT))
    app = shown(store, passage, [])
    page, as_text = parts(app, "place")
    assert page["boxes"] and "marked as a whole" in page["alt"]
    assert pieces(as_text["lines"], "passage") == [TEXT]
    assert "were not judged one by one" in said(app)


def test_a_text_that_is_found_in_part_is_said_to_be(store: PassageStore) -> None:
    (passage,) = index(store, "guide.pdf", print_pages(TEXT))
    other = replace(passage, text=f"{SENTENCES[0]} Nobody has ever printed any such thing in here.")
    app = shown(store, other, judged(other))
    assert "Only 5" in app.warning[0].value and "of the chunk could be found" in app.warning[0].value
    other = replace(passage, text="Nobody has ever printed any such thing in here.")
    app = shown(store, other, judged(other))
    assert "could not be found" in app.warning[0].value
    assert "Nothing is marked on it." in parts(app, "place")[0]["alt"]


def test_hostile_names_are_shown_as_text(store: PassageStore) -> None:
    name = "<img src=x onerror=alert(1)> **[a](javascript:x)** :red[x] $a$.pdf"
    (passage,) = index(store, name, print_pages(TEXT))
    app = shown(store, passage, judged(passage))
    assert name in said(app) and name not in "\n".join(element.value for element in app.markdown), "escaped"


# Where the page cannot be shown


@pytest.mark.parametrize("name", ["guide.pdf", "guide.txt"])
def test_a_document_that_is_gone_leaves_the_passage_of_the_record(store: PassageStore, name: str) -> None:
    passage = Passage("0-1", TEXT, name, document_id="0" * 32, page=7 if name == "guide.pdf" else None)
    app = shown(store, passage, judged(passage))
    (told,) = (info.value for info in app.info)
    assert "does not hold this document" in told and "any more" not in told
    (text,) = parts(app, "place")
    assert pieces(text["lines"], "kept") == [SENTENCES[0], SENTENCES[2]] and not pieces(text["lines"], "around")


@pytest.mark.parametrize("name", ["guide.pdf", "guide.txt"])
def test_an_index_that_cannot_be_read_says_so(store: PassageStore, tmp_path: Path, name: str) -> None:
    (passage,) = index(store, name, print_pages(TEXT) if name == "guide.pdf" else TEXT.encode())
    for path in (tmp_path / "index").glob("crag.db*"):
        path.write_bytes(b"garbage" * 900)
    app = shown(store, passage, judged(passage))
    (told,) = (info.value.replace("\\", "") for info in app.info)
    assert "cannot be read" in told and pieces(parts(app, "place")[0]["lines"], "kept")


# Other formats


def test_other_formats_show_what_stands_around_the_passage(store: PassageStore) -> None:
    passages = index(store, "long.txt", write_prose("the harbour and everything that happens in it", 60))
    app = shown(store, passages[2], judged(passages[2]))
    (text,) = parts(app, "place")
    around = pieces(text["lines"], "around")
    assert around[0].startswith("Sentence 0") or around[0].startswith("… ")
    assert text["lines"][-1]["pieces"][-1]["text"].endswith("…")
    told = " ".join(pieces(text["lines"], "kept") + pieces(text["lines"], "struck")).split()
    assert sorted(told) == sorted(passages[2].text.split())
    assert not app.info and "**long.txt**" in said(app)


def test_a_web_passage_is_a_link_and_its_words(store: PassageStore) -> None:
    passage = Passage("w1", TEXT, "Ferries & <b>more</b>", Origin.WEB, url="https://example.org/a b?q=1")
    app = shown(store, passage, judged(passage))
    assert any("(https://example.org/a%20b?q=1)" in element.value for element in app.markdown)
    (text,) = parts(app, "place")
    assert pieces(text["lines"], "kept") == [SENTENCES[0], SENTENCES[2]]
    bad = replace(passage, url="javascript:alert(1)")
    assert not any("](" in element.value for element in shown(store, bad, judged(bad)).markdown)


# Lines and pieces


def verdicts_on(text: str, *kept: bool) -> list[StripVerdict]:
    return judged(Passage("p", text, "a.md"), *kept)


def test_every_word_stands_once_in_its_place() -> None:
    before, after = "# Title\n\nBefore it.\n\n", " After it.\nThe end."
    lines = text_lines(before, FARES, verdicts_on(FARES), after)
    whole = " ".join(piece.text for line in lines for piece in line.pieces).split()
    expected = f"{before}{FARES}{after}".replace("# ", "").replace("| --- | --- |", "").split()
    assert whole == expected
    assert [line.heading for line in lines[:4]] == [True, False, True, False]


def test_headings_lose_their_marks_and_keep_their_verdict() -> None:
    lines = text_lines("", FARES, verdicts_on(FARES), "")
    (heading,) = (line for line in lines if line.heading)
    assert heading.pieces == (Piece("kept", "Fares", "kept", "Kept, score 0.00.", "", 0),)
    assert lines[1].pieces[0].score == "0.00", "told once, at the end of the sentence"
    assert [line.apart for line in lines] == [False, True, True, False, True]


def test_a_passage_may_begin_in_the_middle_of_a_line() -> None:
    (line,) = text_lines("Before it. ", "One is kept. Two is not.", verdicts_on("One is kept. Two is not."), " After.")
    assert [(piece.kind, piece.text) for piece in line.pieces] == [
        ("around", "Before it. "),
        ("kept", "One is kept."),
        ("gap", " "),
        ("struck", "Two is not."),
        ("around", " After."),
    ]


def test_verdicts_that_do_not_fit_the_text_lose_no_word() -> None:
    text = "One is kept. Two is not. Three is."
    strips = [(30, 99), (0, 12), (5, 20), (13, 13)]
    odd = [StripVerdict(Strip("p", at, a, z, "", None), True, "kept") for at, (a, z) in enumerate(strips)]
    lines = text_lines("", text, odd, "")
    assert "".join(piece.text for line in lines for piece in line.pieces) == text
