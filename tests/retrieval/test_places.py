"""Real pages, real boxes: what is marked is what the passage says, and where PDFium itself says that it stands."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops

from crag_core.base.errors import DocumentMissing, DocumentRefused
from crag_core.base.text.sentences import split
from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.split import cut_pages
from crag_core.retrieval.index.store import PassageStore
from crag_core.retrieval.page_view.highlight import Box, join_letters
from crag_core.retrieval.page_view.page_image import PagePicture, align, page_picture
from crag_core.retrieval.passage_location import Places
from crag_core.retrieval.readers import read_document
from tests.retrieval.fakes import write_prose
from tests.retrieval.printed import SENTENCES, TEXT, draw, find_word, print_as, print_pages

WIDTH = 1000
Letters = list[tuple[float, float, float, float]]


def spans_of(text: str, *kept: bool) -> list[tuple[int, int, bool]]:
    """The strips of a text; every other one is kept unless told otherwise."""
    return [(start, end, kept[at] if kept else at % 2 == 0) for at, (start, end) in enumerate(split(text))]


def read_page(original: bytes, page: int = 1) -> str:
    return next(one.text for one in read_document(original, "made.pdf") if one.number == page)


def look(original: bytes, page: int = 1, text: str = "", kept: tuple[bool, ...] = ()) -> PagePicture:
    text = text or read_page(original, page)
    return page_picture(original, page, text, spans_of(text, *kept), WIDTH)


def holds(box: Box, letter: tuple[float, float, float, float]) -> bool:
    left, top, right, bottom = letter
    return box.left - 1 <= left <= right <= box.right + 1 and box.top - 1 <= top <= bottom <= box.bottom + 1


def spans_at(picture: PagePicture, letters: Letters) -> set[int | None]:
    """The spans of the boxes around these letters; every letter has exactly one."""
    found = set()
    for letter in letters:
        (box,) = {box.span: box for box in picture.boxes if holds(box, letter)}.values()
        found.add(box.span)
    return found


def pixels(picture: PagePicture) -> Image.Image:
    return Image.open(io.BytesIO(picture.png)).convert("RGB")


# --- the right words ------------------------------------------------------------------------------------------------


def test_every_word_is_in_a_box_of_its_own_sentence() -> None:
    original = print_pages(TEXT, width=70)
    picture = look(original)
    assert picture.found_share == 1.0 and (picture.page, picture.pages, picture.width) == (1, 1, WIDTH)
    for at, sentence in enumerate(SENTENCES):
        for word in sentence.split():
            if TEXT.count(word) == 1:
                assert spans_at(picture, find_word(original, 1, word, WIDTH)) == {at}
    assert {box.kept for box in picture.boxes if box.span == 1} == {False}
    assert {box.kept for box in picture.boxes if box.span != 1} == {True}


def test_broken_words_are_marked_with_their_hyphens() -> None:
    pdf_text = "an extra\u00adordinarily long and re\u00admarkable undertaking of considerable importance"
    original = print_pages(pdf_text, size=16, width=45)
    text = read_page(original)
    assert "extraordinarily" in text or "extra-ordinarily" in text
    picture = page_picture(original, 1, text, [], WIDTH)
    assert picture.found_share == 1.0 and {box.kept for box in picture.boxes} == {None}
    hyphens = find_word(original, 1, "extra", WIDTH)[-1]
    line = next(box for box in picture.boxes if holds(box, hyphens))
    assert line.right > hyphens[2] + 4, "the hyphen after it too"


@pytest.mark.parametrize(
    "letters",
    [
        "שלום עולם וברוכים",
        "مرحبا بالعالم",
        "港の料金は一泊十四",
        "ﬁne ﬂow of oﬃce",
        "Ⅷ½ ①②",
        "กรุงเทพมหานคร",
        "नमस्ते दुनिया",
        "x\u0301y\u0308z",
        "𝐀𝐁😀c",
    ],
)
def test_any_script(letters: str) -> None:
    distinct = "".join(dict.fromkeys(letters))
    original = print_as(distinct)
    picture = look(original)
    assert picture.found_share == 1.0
    assert sum(box.width for box in picture.boxes) > 80 and all(box.height > 5 for box in picture.boxes)


# --- what is not quite there ----------------------------------------------------------------------------------------


def test_a_text_that_reads_a_little_otherwise_is_found_where_it_is_the_same() -> None:
    other = TEXT.replace("nine in the morning", "eight in the evening").replace("two euros", "3 pounds")
    picture = look(print_pages(TEXT, width=70), text=other)
    assert 0.7 < picture.found_share < 1.0
    assert {box.span for box in picture.boxes} == {0, 1, 2}


@given(
    st.lists(
        st.tuples(st.text("abcd", min_size=11, max_size=40), st.booleans(), st.text("xyz", max_size=5)), max_size=8
    )
)
def test_aligned_letters_are_equal_and_in_order(pieces: list[tuple[str, bool, str]]) -> None:
    wanted = "".join(same + ("" if both else extra) for same, both, extra in pieces)
    there = "".join(same + extra for same, _, extra in pieces)
    found = align(wanted, there)
    assert len(found) == len(wanted)
    told = [(letter, at) for letter, at in zip(wanted, found, strict=True) if at is not None]
    assert all(there[at] == letter for letter, at in told)
    assert all(one < other for (_, one), (_, other) in pairwise(told))
    if wanted in there:
        assert None not in found


def test_letters_apart_are_not_joined() -> None:
    def at(left: float, top: float, span: int | None = None) -> Box:
        return Box(left, top, left + 8, top + 12, span=span)

    row = [at(0, 0), at(8, 0), at(22, 0)]
    assert len(join_letters(row)) == 1
    assert len(join_letters([*row, at(60, 0)])) == 2, "the next cell of a table"
    assert len(join_letters([*row, at(0, 14)])) == 2, "the next line"
    assert len(join_letters([at(0, 0, 1), at(8, 0, 2)])) == 2, "the next sentence"
    assert len(join_letters([at(30, 0), at(22, 0), at(14, 0)])) == 1, "from right to left"
    assert len(join_letters([at(0, 0), at(0, 12), at(0, 24), at(8, 24)])) == 2, "down the page, then along"
    assert join_letters([]) == []


# --- the picture ----------------------------------------------------------------------------------------------------


def test_marks_are_drawn_around_the_letters_and_nowhere_else() -> None:
    original = print_pages(TEXT, width=70)
    bare, picture = page_picture(original, 1, "", [], WIDTH), look(original)
    changed = ImageChops.difference(pixels(bare), pixels(picture)).convert("L").point(lambda level: 255 * (level > 0))
    for box in picture.boxes:
        changed.paste(0, (int(box.left) - 5, int(box.top) - 1, int(box.right) + 6, int(box.bottom) + 4))
    assert changed.getbbox() is None
    for box in picture.boxes:
        corner = (int(box.left) + 1, int((box.top * 3 + box.bottom) / 4))
        assert pixels(bare).getpixel(corner) != pixels(picture).getpixel(corner)


def dark_share(picture: PagePicture, box: Box, height: float) -> float:
    """How much of a row of a box, so far down, is darker than any fill."""
    row = pixels(picture).convert("L")
    at = round(box.top + height * box.height)
    columns = range(int(box.left) + 1, int(box.right))
    return sum(row.getpixel((x, at)) < 180 for x in columns) / len(columns)


def test_kept_and_struck_differ_without_colour() -> None:
    picture = look(print_pages("Nnnn nnnn nnnn. Nnnn nnnn nnnn.", size=20), kept=(True, False))
    kept, struck = (next(box for box in picture.boxes if box.kept is how) for how in (True, False))
    assert dark_share(picture, kept, 1.0) > 0.9 > 0.1 > dark_share(picture, struck, 1.0), "a line below what is kept"
    assert dark_share(picture, struck, 0.5) > 0.9 > dark_share(picture, kept, 0.5), "a line through what is struck"


def test_white_letters_on_a_dark_ground_are_marked_too() -> None:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=20)
    pdf.set_fill_color(60, 40, 20)
    pdf.set_text_color(255)
    pdf.cell(100, 20, "Item and value", fill=True)
    original = bytes(pdf.output())
    bare, picture = page_picture(original, 1, "", [], WIDTH), look(original)
    (box,) = picture.boxes
    spot = (int(box.left) + 2, int(box.top) + 2)
    before, after = pixels(bare).getpixel(spot), pixels(picture).getpixel(spot)
    assert after[1] - before[1] > 20, "greener"
    assert pixels(picture).convert("L").getextrema()[1] == 255


@pytest.mark.parametrize(
    ("size", "wide"), [((1, 14_400), False), ((14_400, 1), True), ((14_400, 14_400), True), ((0.001, 0.001), True)]
)
def test_pages_of_any_shape_give_pictures_of_bounded_size(size: tuple[float, float], wide: bool) -> None:
    picture = page_picture(draw(b"0 0 1 1 re f", *size), 1, "words", [], 1400)
    assert 1 <= picture.width <= 1400 and 1 <= picture.height <= 8_000
    assert picture.width * picture.height <= 6_100_000 and (picture.width == 1400) == wide


# --- what cannot be shown -------------------------------------------------------------------------------------------


def test_a_page_that_takes_too_long_to_draw_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    curves = b"".join(b"%d %d m 0 700 600 0 %d 700 c S\n" % (n % 600, n % 700, n % 500) for n in range(5_000))
    monkeypatch.setattr("crag_core.retrieval.page_view.pdf_page._DRAWING_SECONDS", 0.0)
    with pytest.raises(DocumentRefused, match="takes longer") as refusal:
        page_picture(draw(b"9 w\n" + curves), 1, "", [], WIDTH)
    assert refusal.value.hint
    monkeypatch.undo()
    assert look(print_pages(TEXT)).found_share == 1.0, "and the next one is drawn"


def test_passages_of_the_shared_documents_are_found(shared_documents: Path) -> None:
    paths = sorted((shared_documents / "ok").glob("*.pdf"))
    assert paths
    for path in paths:
        original = path.read_bytes()
        chunks = [*cut_pages(read_document(original, path.name), path.name)]
        # Of a long document three from all over it: all of them would take a minute.
        for chunk in chunks[:: len(chunks) // 3 + 1]:
            picture = page_picture(original, chunk.page or 0, chunk.text, spans_of(chunk.text), 400)
            assert picture.found_share > 0.99, (path.name, chunk.text[:80])


# --- documents of the index -----------------------------------------------------------------------------------------


@pytest.fixture
def places(store: PassageStore) -> Places:
    return Places(store)


def index(store: PassageStore, name: str, content: bytes) -> tuple[Passage, ...]:
    (done,) = store.ingest([(name, content)])
    return store.passages_of(done.document_id)


def test_a_passage_is_shown_on_its_page_and_nowhere_else(store: PassageStore, places: Places) -> None:
    _, passage = index(store, "two.pdf", print_pages("Something else.", TEXT))
    assert places.has_pages(passage)
    spans = spans_of(passage.text)
    own, other = places.picture(passage, spans), places.picture(passage, spans, page=1)
    assert (own.page, own.pages, own.found_share) == (2, 2, 1.0) and {box.span for box in own.boxes} == {0, 1, 2}
    assert (other.page, other.boxes) == (1, ())


def test_a_file_read_whole_is_marked_on_all_of_its_pages(store: PassageStore, places: Places) -> None:
    from crag_core.retrieval.hybrid import HybridRetriever

    first, _ = index(store, "two.pdf", print_pages(TEXT, "The tides turn twice a day. Mind the gap between them."))
    (whole,) = HybridRetriever(store).read_files([first.document_id])
    pictures = [places.picture(whole, spans_of(whole.text), page) for page in (1, 2)]
    assert [{box.span for box in picture.boxes} for picture in pictures] == [{0, 1, 2}, {3, 4}]
    assert places.picture(whole, ()).page == 1
    around = store.surround(whole)
    assert around is not None and (around.before, around.after, around.starts, around.ends) == ("", "", True, True)


def test_a_page_is_drawn_once_for_the_same_marks(store: PassageStore) -> None:
    drawn: list[int] = []

    def draw_and_note(*arguments: object) -> PagePicture:
        drawn.append(1)
        return page_picture(*arguments)  # type: ignore[arg-type]

    places = Places(store, draw_and_note)
    passage, _ = index(store, "two.pdf", print_pages(TEXT, "Something else."))
    spans = spans_of(passage.text)
    assert places.picture(passage, spans) is places.picture(passage, spans)
    assert len(drawn) == 1
    places.picture(passage, spans_of(passage.text, False, False, False))
    places.picture(passage, spans, page=2)
    places.picture(passage, (), page=2)
    assert len(drawn) == 3, "other marks are another picture; a page without any is the same one"


def test_a_deleted_document_is_not_shown_from_memory(store: PassageStore, places: Places) -> None:
    (passage,) = index(store, "one.pdf", print_pages(TEXT))
    places.picture(passage, ())
    store.delete_all([passage.document_id])
    with pytest.raises(DocumentMissing, match="not in the index"):
        places.picture(passage, ())
    assert store.surround(passage) is None


def test_surroundings_are_the_document_around_the_passage(store: PassageStore) -> None:
    content = write_prose("the harbour and everything that happens in it", 90)
    document = " ".join(content.decode().split())
    passages = index(store, "long.txt", content)
    assert len(passages) > 5
    for passage in passages:
        around = store.surround(passage)
        assert around is not None
        whole = " ".join(f"{around.before}{passage.text}{around.after}".split())
        assert whole in document, "what neighbours repeat is shown once, and nothing is left out"
        assert (around.starts, around.ends) == (document.startswith(whole), document.endswith(whole))
        assert around.starts or 1_400 < len(around.before) <= 1_500
        assert around.ends or 1_400 < len(around.after) <= 1_500
        assert around.starts or around.before[:1].isspace(), "no word is cut"
        assert around.ends or document[document.index(whole) + len(whole)].isspace()


def test_a_passage_that_reads_otherwise_now_has_no_surroundings(store: PassageStore) -> None:
    passage, *_ = index(store, "a.txt", write_prose("ropes"))
    assert store.surround(passage) is not None
    assert store.surround(replace(passage, text="Other words.")) is None
    assert store.surround(replace(passage, document_id="not an id")) is None
