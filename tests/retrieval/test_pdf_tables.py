"""Rows of tables on printed pages. A letter is 5 points wide, as in `test_page_layout`; the last file is real."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fpdf import FPDF

from crag_core.retrieval.page_view.page_image import page_picture
from crag_core.retrieval.readers.pdf.document import read_pdf
from crag_core.retrieval.readers.pdf.lines import Line
from crag_core.retrieval.readers.pdf.rows import Row, TableRows, join_rows

LEFT = (60, 160, 260, 360)
HEADER = ("Berth", "Depth", "Fee", "Water")
NORTH = ("North", "3 m", "12.50", "yes")
SOUTH = ("South", "2 m", "9.00", "no")
NAMED = ["Berth: North; Depth: 3 m; Fee: 12.50; Water: yes", "Berth: South; Depth: 2 m; Fee: 9.00; Water: no"]


def row(y: float, *cells: str, bold: bool = False, size: float = 10.0) -> Row:
    """A cell for each column; "" for none."""
    parts = [
        Line(text, left, left + 5 * len(text), y, 5 * len(text.split()[0]), size, bold, bold)
        for left, text in zip(LEFT, cells, strict=False)
        if text
    ]
    text, ends = " ".join(part.text for part in parts), parts[-1]
    return Line(text, parts[0].left, ends.right, y, parts[0].word, size, bold, bold), parts


def table(*rows: tuple[str, ...], top: float = 700.0, bold: bool = True) -> list[Row]:
    """Rows 20 points apart; the first is bold."""
    return [row(top - 20 * at, *cells, bold=bold and not at) for at, cells in enumerate(rows)]


def read(*pages: list[Row]) -> list[list[str]]:
    tables = TableRows()
    return [[line.text for line, _ in tables.name_cells(join_rows(page))] for page in pages]


@pytest.mark.parametrize("bold", [True, False], ids=["bold header", "header above figures"])
def test_rows_carry_the_headers_of_their_cells(bold: bool) -> None:
    assert read(table(HEADER, NORTH, SOUTH, bold=bold)) == [NAMED]


def test_an_empty_cell_is_left_out_and_a_column_may_lack_a_header() -> None:
    assert read(table(HEADER, NORTH, SOUTH, ("East", "", "7.00"))) == [[*NAMED, "Berth: East; Fee: 7.00"]]
    named = ["North; Depth: 3 m; Fee: 12.50; Water: yes", "South; Depth: 2 m; Fee: 9.00; Water: no"]
    assert read(table(("", *HEADER[1:]), NORTH, SOUTH)) == [named]


def test_a_header_of_two_lines() -> None:
    rows = [row(715, "Berth", "Depth", "Fee", "Water"), row(703, "", "at ebb", "EUR"), *table(NORTH, SOUTH, top=685)]
    assert (
        read([(line, parts) for line, parts in rows])[0][0]
        == "Berth: North; Depth at ebb: 3 m; Fee EUR: 12.50; Water: yes"
    )


def test_a_header_that_spans_columns_names_each_of_them() -> None:
    wide = Line("Depth and fee", 165, 280, 720, 25, 10, True, True)
    above = (replace(wide, text="Berth Depth and fee Water"), [row(720, "Berth", bold=True)[1][0], wide])
    rows = [above, *table(("", "at ebb", "EUR", "Water"), NORTH, SOUTH)]
    named = "Berth: North; Depth and fee at ebb: 3 m; Depth and fee EUR: 12.50; Water: yes"
    assert read(rows)[0][0] == named


def test_a_first_cell_that_spans_rows_is_in_each_of_them() -> None:
    rows = table(HEADER, NORTH, ("", "2 m", "9.00", "no"), ("", "1 m"))
    assert read(rows) == [[NAMED[0], "Berth: North; Depth: 2 m; Fee: 9.00; Water: no", "1 m"]]


def test_cells_of_several_lines_are_one() -> None:
    """Drawn cell after cell, and centred, so that the first line of one is above the only line of another."""
    rows = [
        *table(HEADER),
        *(row(670, "North"), row(676, "", "three metres"), row(664, "", "at ebb"), row(670, "", "", "12.50", "yes")),
        *(row(640, "South"), row(646, "", "two, and"), row(634, "", "less"), row(640, "", "", "9.00")),
    ]
    assert read(rows) == [
        [
            "Berth: North; Depth: three metres at ebb; Fee: 12.50; Water: yes",
            "Berth: South; Depth: two, and less; Fee: 9.00",
        ]
    ]


def test_centred_headers_of_several_lines_stand_above_wider_cells() -> None:
    def word(text: str, left: float, y: float, bold: bool = False) -> Line:
        return Line(text, left, left + 5 * len(text), y, 20, 10, bold, bold)

    def line(*parts: Line) -> Row:
        return parts[0], parts

    header = [line(word("Room", 60, 700, True), word("Equipment", 200, 700, True)), line(word("Rate", 400, 707, True))]
    rows = [
        *header,
        line(word("a day", 398, 693, True)),
        *(
            line(word("Blue", 55, 670)),
            line(word("a screen, a board and", 130, 676)),
            line(word("two lamps", 130, 664)),
        ),
        line(word("90 EUR", 396, 670)),
    ]
    assert read(rows) == [["Room: Blue; Equipment: a screen, a board and two lamps; Rate a day: 90 EUR"]]


def test_letters_that_were_cut_apart_are_words_again() -> None:
    pieces = [("11/2", 60), ("8/26,", 80.5), ("page", 110), ("1", 250)]
    rows = [(cut := Line(text, left, left + 5 * len(text), 40, 5, 10, False, False), [cut]) for text, left in pieces]
    assert read(rows) == [["11/28/26, page", "1"]]


def test_letters_without_a_size_are_read() -> None:
    assert read([row(700, "a", "b", size=0), row(700, "c", size=0)]) == [["a b", "c"]]


def test_a_table_goes_on_overleaf_below_the_head_of_the_page() -> None:
    east, west = ("East", "4 m", "7.00", "no"), ("West", "5 m", "8.00", "no")
    foot, head = row(40, "Page 1 of 2"), row(780, "Harbour dues 2025")
    named = ["Berth: East; Depth: 4 m; Fee: 7.00; Water: no", "Berth: West; Depth: 5 m; Fee: 8.00; Water: no"]
    assert read([*table(HEADER, NORTH, SOUTH), foot], [head, *table(east, west, bold=False)]) == [
        [*NAMED, "Page 1 of 2"],
        ["Harbour dues 2025", *named],
    ]
    assert read(table(HEADER, NORTH, SOUTH), table(HEADER, east, west)) == [NAMED, named], "the header again"


def test_another_table_has_its_own_headers() -> None:
    crews = [("Boat", "Crew", "Berths", "Home"), ("Tern", "2", "4", "North"), ("Gull", "3", "6", "South")]
    named = ["Boat: Tern; Crew: 2; Berths: 4; Home: North", "Boat: Gull; Crew: 3; Berths: 6; Home: South"]
    assert read([*table(HEADER, NORTH, SOUTH), *table(*crews, top=620)]) == [[*NAMED, *named]]
    assert read([*table(HEADER, NORTH, SOUTH), *table(*crews, top=500, bold=False)]) == [[*NAMED, *named]]


@pytest.mark.parametrize(
    "rows",
    [
        table(("Anna", "Bert", "Carl"), ("Dora", "Emil", "Fritz"), ("Gina", "Hugo", "Ida"), bold=False),
        table(("7:00", "8:00", "9:00"), ("7:30", "8:30", "9:30"), bold=False),
        [*table(HEADER), *table(NORTH, SOUTH, top=600, bold=False)],
        table(("Name", "Value"), ("Length", "9 m"), ("Beam", "3 m")),
        table(
            ("The pier", "The school", "The crane"),
            *(
                ("to be put up by", "a new head of it", "it is out of use"),
                ("us at the south", "who is from the", "up to May and is"),
            ),
            ("end of the bay.", "far north of us.", "not to be lent."),
        ),
    ],
    ids=["names without a header", "figures only", "far below", "two columns", "prose"],
)
def test_what_is_no_table_stays_as_it_is(rows: list[Row]) -> None:
    assert read(rows) == [[line.text for line, _ in rows]]


def test_what_stands_below_a_table_stays_as_it_is() -> None:
    below = [row(640, "A note"), row(600, "Signed by", "the harbour", "master")]
    assert read([*table(HEADER, NORTH, SOUTH), *below]) == [[*NAMED, "A note", "Signed by the harbour master"]]


def test_a_row_that_was_cut_at_a_gap_is_joined_where_it_is_in_columns() -> None:
    cut = [row(680, "North", "3 m"), (row(680, "", "", "12.50")[0], row(680, "", "", "12.50", "yes")[1])]
    assert read([*table(HEADER), *cut, row(660, *SOUTH)]) == [NAMED]
    apart = [row(700, "one column"), row(700, "", "", "another")]
    assert read(apart) == [["one column", "another"]]


def print_table(*rows: tuple[str, ...]) -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    with pdf.table(repeat_headings=0, width=150) as drawn:
        for cells in rows:
            line = drawn.row()
            for cell in cells:
                line.cell(cell)
    return bytes(pdf.output())


def test_rows_of_a_real_file_are_read_and_marked_on_their_pages() -> None:
    notes = "a long remark that needs a second line in its cell"
    original = print_table(("Berth", "Fee EUR", "Remark"), *((f"N{at}", f"{at}.50", notes) for at in range(1, 40)))
    pages = read_pdf(original, "dues.pdf")
    assert len(pages) > 1
    assert [line for page in pages for line in page.text.split("\n") if line] == [
        f"Berth: N{at}; Fee EUR: {at}.50; Remark: {notes}" for at in range(1, 40)
    ]
    for page in pages:
        last = page.text.split("\n")[-1]
        assert page.number and page_picture(original, page.number, last, [], 800).found_share == 1.0
        assert page_picture(original, page.number, page.text, [], 800).found_share > 0.99
