"""Printed lines into paragraphs, without a PDF: each letter is 5 points wide, lines stand 12 points apart."""

from __future__ import annotations

import pytest

from crag_core.retrieval.readers.page import Page
from crag_core.retrieval.readers.pdf.document import _mend, read_pdf
from crag_core.retrieval.readers.pdf.lines import Line, by_columns, find_spacing, flow_lines
from tests.retrieval.printed import assemble, draw

FULL = "This line of prose is as wide as the column of the page and so it goes on"


def place(text: str, y: float, left: float = 60.0, size: float = 10.0, bold: bool = False) -> Line:
    first = text.split()[0]
    return Line(text, left, left + 5 * len(text), y, 5 * len(first), size, bold, bold)


def flow(*lines: Line, spacing: float = 1.2) -> list[str]:
    return flow_lines(lines, spacing).split("\n")


def test_full_lines_flow_and_a_short_one_ends_the_paragraph() -> None:
    lines = [place(FULL, 700), place("until its end.", 688), place(FULL, 676), place("again.", 664)]
    assert flow(*lines) == [f"{FULL} until its end.", f"{FULL} again."]


def test_gaps_headings_and_larger_type_stand_apart() -> None:
    heading = place("1. Summary", 700, bold=True)
    title = place("Incident Report on the Contact of the Corsay Maid with the Pier", 730, size=20)
    gap = place(FULL, 650)
    assert flow(title, heading, place(FULL, 688), place(FULL, 676), gap) == [
        *[title.text, "", heading.text, "", f"{FULL} {FULL}", "", FULL]
    ]


FONT = b"<< /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"


def read_drawn(drawing: bytes, *marks: bytes, page: bytes = b"", catalogue: bytes = b"") -> tuple[Page, ...]:
    """`marks` are annotations, objects from 5 on."""
    places = b" ".join(b"%d 0 R" % at for at in range(5, 5 + len(marks)))
    return read_pdf(
        assemble(
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [%s] >> %s >>" % (places, catalogue),
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources %s /Annots [%s] %s >>"
            % (FONT, places, page),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
            *marks,
        ),
        "a.pdf",
    )


def write(text: str, x: float, y: float, size: float = 11, turn: str = "1 0 0 1") -> bytes:
    return f"BT /F {size} Tf {turn} {x} {y} Tm ({text}) Tj ET\n".encode()


def test_what_was_entered_stands_where_it_is_seen() -> None:
    box = b"<< /Subtype /Widget /FT /Btn /T (%s) /V /Y /AS /Y /Rect [%d %d %d %d] /AP << /N << /Y null >> >> %s >>"
    pages = read_drawn(
        write("Insured", 80, 700) + write("North", 80, 600) + write("South", 160, 600) + write("Engine:", 60, 500),
        box % (b"a", 60, 698, 72, 710, b""),
        box % (b"b", 140, 598, 152, 610, b"/Ff 32768"),
        b"<< /Subtype /Widget /FT /Ch /Ff 131072 /T (c) /V (d) /Opt [[(p) (petrol)] [(d) (diesel)]] "
        b"/Rect [110 498 200 512] >>",
        b"<< /Subtype /FreeText /Rect [60 400 300 420] /Contents (Approved) >>",
        b"<< /Subtype /Text /Rect [300 700 320 720] /Contents (Really?) >>",
    )
    assert pages[0].text.split() == ["[x]", "Insured", "North", "[x]", "South", "Engine:", "diesel", "Approved"]
    assert pages[0].left_out == "1 comment"


def test_figures_above_the_line_do_not_join_those_before() -> None:
    (page,) = read_drawn(write("It costs 12.50", 60, 700) + write("1", 125.5, 704, 6) + write("euros", 140, 700))
    assert page.text == "It costs 12.50¹ euros"


def test_type_that_is_scaled_flows_as_any_other() -> None:
    """As in files of Word: the font is set to size 1, and the text enlarges it."""
    lines = [write(text, 60, 700 - 13 * at, 1, "11 0 0 11") for at, text in enumerate((FULL, FULL, "until its end."))]
    (page,) = read_drawn(b"".join([*lines, write("Apart.", 60, 640, 1, "11 0 0 11")]))
    assert page.text.split("\n\n") == [f"{FULL} {FULL} until its end.", "Apart."]


def test_the_mark_of_a_note_does_not_set_the_size_of_its_line() -> None:
    note = write("1", 60, 703, 6) + write(FULL, 64, 700) + write(FULL, 60, 687) + write("and ends.", 60, 674)
    (page,) = read_drawn(note)
    assert page.text == f"1{FULL} {FULL} and ends."


def test_lines_of_a_page_that_lies_on_its_side_flow() -> None:
    lines = [FULL, FULL.replace("This", "this"), "until its end."]
    up = b"".join(write(line, 60 + 14 * at, 60, turn="0 1 -1 0") for at, line in enumerate(lines))
    down = b"".join(write(line, 500 - 14 * at, 700, turn="0 -1 1 0") for at, line in enumerate(lines))
    for drawing, turn in ((up, b"90"), (down, b"270")):
        assert read_drawn(drawing, page=b"/Rotate " + turn)[0].text == " ".join(lines)


def test_words_that_are_broken_in_columns_drawn_row_by_row() -> None:
    rows = (
        ("The master decides on every", "another boat has booked it be-"),
        ("berth and may ask a boat to", "fore. Guests pay in advance at"),
        ("leave it within one day if", "the office, never in the bar."),
    )
    drawing = b"".join(
        write(left, 60, 700 - 14 * at) + write(right, 320, 700 - 14 * at) for at, (left, right) in enumerate(rows)
    )
    assert "within one day if another boat has booked it before. Guests pay" in " ".join(
        read_drawn(drawing)[0].text.split()
    )


def test_rows_of_words_apart_stay_rows() -> None:
    rows = [("Berth", "Winter", "Summer"), ("B1", "eleven", "twenty"), ("B2", "twelve", "thirty")]
    drawing = b"".join(write(c, 60 + 120 * n, 700 - 14 * at) for at, row in enumerate(rows) for n, c in enumerate(row))
    assert read_drawn(drawing)[0].text.split("\n") == [" ".join(row) for row in rows]


def test_a_scan_with_a_page_number_and_attached_files_are_said() -> None:
    picture = b"q 600 0 0 800 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q\n"
    attached = b"/Names << /EmbeddedFiles << /Names [(a) << /F (a) /EF << >> >>] >> >>"
    pages = read_drawn(picture + write("Page 2", 60, 20), catalogue=attached)
    assert [(page.number, page.left_out) for page in pages] == [
        (1, "little text, mostly a picture"), (None, "1 attached file")
    ]  # fmt: skip


def test_list_items_keep_their_hanging_lines() -> None:
    item = "• " + FULL
    lines = [place(item, 700), place("to here", 688, left=70), place("• next", 676), place("2. third", 664)]
    assert flow(*lines) == [f"{item} to here", "• next", "2. third"]


def test_rows_of_figures_stay_rows() -> None:
    rows = ["Marine gas oil 2,539 2,467 2,318 2,100 1,999", "Carbon dioxide 8,140 7,909 7,432 7,211 7,002"]
    assert flow(place(rows[0], 700), place(rows[1], 688)) == rows
    assert flow(place(f"{FULL} 37,499.96", 700), place(f"{FULL} 21,000.00", 688)) == [
        f"{FULL} 37,499.96",
        f"{FULL} 21,000.00",
    ]


def test_a_sentence_runs_on_into_the_next_column_only_when_it_plainly_does() -> None:
    left, right = place(FULL, 100), place("in the next column.", 700, left=300)
    assert flow(left, right) == [f"{FULL} in the next column."]
    assert flow(place(f"{FULL}.", 100), place("The next column.", 700, left=300)) == [
        f"{FULL}.",
        "",
        "The next column.",
    ]


def test_spacing_is_that_of_prose_even_when_table_rows_are_more() -> None:
    prose = [place(FULL, 700 - 12 * n) for n in range(5)]
    rows = [place("row", 600 - 25 * n) for n in range(8)]
    assert find_spacing([prose, rows]) == 1.2
    assert find_spacing([]) == find_spacing([[]]) == 1.2


def test_words_broken_at_a_line_end() -> None:
    known = {"without", "long", "term", "self-made"}
    assert _mend("with", "out", known) == "without"
    assert _mend("exception", "ally", known) == "exceptionally"
    assert _mend("long", "term", known) == "long-term"
    assert _mend("self", "made", known) == "self-made"
    assert _mend("COVID", "19", known) == "COVID-19"
    assert _mend("Dunlop", "Smith", known) == "Dunlop-Smith"


PROSE = (
    ["The committee reviewed the", "budget of the harbour and", "asked for one more berth."],
    ["Members may object to", "it in writing until the", "last day of April."],
)
TABLE = (["Ferry", "Barge", "Canoe"], ["sails at nine", "waits for the tide", "goes when it is calm"])
INDEX = (["the north pier", "the south pier", "the slipway"], ["pages 3", "pages 14", "pages 15"])


def drawn(columns: tuple[list[str], list[str]]) -> str:
    """A page of two columns whose lines are drawn row by row."""
    rows = [
        f"1 0 0 1 {left} {700 - 12 * at} Tm ({text}) Tj"
        for at, row in enumerate(zip(*columns, strict=True))
        for left, text in zip((60, 330), row, strict=True)
    ]
    return read_pdf(draw(f"BT /F1 10 Tf {' '.join(rows)} ET".encode()), "page.pdf")[0].text


def test_columns_drawn_row_by_row_are_read_one_after_the_other() -> None:
    assert " ".join(drawn(PROSE).split()) == " ".join([*PROSE[0], *PROSE[1]])


@pytest.mark.parametrize(
    "columns", [TABLE, INDEX, tuple(column[:2] for column in PROSE)], ids=["table", "index", "two rows"]
)
def test_rows_of_a_table_stay_rows(columns: tuple[list[str], list[str]]) -> None:
    assert " ".join(drawn(columns).split()) == " ".join(" ".join(row) for row in zip(*columns, strict=True))


def test_a_heading_over_all_columns_and_a_gap_end_them() -> None:
    def row(y: float, *texts: str) -> tuple[Line, list[Line]]:
        parts = [place(text, y, left=60 + 270 * at) for at, text in enumerate(texts)]
        return place(" ".join(texts), y), parts

    above, apart = row(720, FULL), row(600, "far", "below")
    rows = [above, *(row(700 - 12 * at, *pair) for at, pair in enumerate(zip(*PROSE, strict=True))), apart]
    assert [line.text for line in by_columns(rows)] == [FULL, *PROSE[0], *PROSE[1], "far below"]
