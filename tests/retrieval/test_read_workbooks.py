"""Spreadsheets: what people see in their cells, and which cells belong together."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest
from openpyxl.comments import Comment
from openpyxl.styles import Font

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import page, read_document
from crag_core.retrieval.readers.office.workbook import format_number
from tests.retrieval.made_files import fill, make_open, make_workbook, rezip


def read(content: bytes, name: str = "a.xlsx") -> str:
    return "\n\n".join(page.text for page in read_document(content, name) if page.text)


@pytest.mark.parametrize(
    ("written", "code", "shown"),
    [
        ("1234.5", "#,##0.00", "1,234.50"),
        ("-1234.5", "#,##0.00;(#,##0.00)", "(1,234.50)"),
        ("-3", "0.0", "-3.0"),
        ("0.125", "0.0%", "12.5%"),
        ("2.5", "0", "3"),
        ("8.4", '"€" 0.00', "€ 8.40"),
        ("8.4", "[$£-809]0.00", "£8.40"),
        ("8.4", r"0.00\ [$€-407]", "8.40 €"),
        ("1500000", '0.0,,"m"', "1.5m"),
        ("1234", "00000", "01234"),
        ("8.5", "0.##", "8.5"),
        ("1234.5", '# ##0.00\\ "Kč"', "1,234.50 Kč"),
        ("12", 'General" km"', "12 km"),
        ("0", '"Yes";"Yes";"No"', "No"),
        ("42", ";;;", " "),
        ("5", '[<5]"few";"many"', ""),
        # As the number itself: groups of digits, exponents, dates, no format at all.
        ("5551234", "000-0000", ""),
        ("1e300", "0.00", ""),
        ("44259", "m/d/yy", ""),
        ("7", "General", ""),
        ("much", "0", ""),
    ],
)
def test_numbers_as_they_are_displayed(written: str, code: str, shown: str) -> None:
    assert format_number(written, code) == shown


def test_formats_of_cells_reach_the_text() -> None:
    def fill_sheet(sheet: Any) -> None:
        sheet.append(("Share", "Price", "Day", "Open"))
        sheet.append((0.125, 8.4, date(2021, 3, 4), True))
        sheet["A2"].number_format, sheet["B2"].number_format = "0.0%", '0.00 "€"'

    assert read(make_workbook(fill_sheet)).endswith("Share: 12.5%; Price: 8.40 €; Day: 2021-03-04; Open: true")


@pytest.mark.parametrize(
    ("serial", "code", "shown"),
    [
        (1, "yyyy-mm-dd", "1900-01-01"),
        (12.5, "yyyy-mm-dd", "1900-01-12 12:00:00"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (0.25, "yyyy-mm-dd", "06:00:00"),
        (1.25, "[h]:mm:ss", "30:00:00"),  # of the formats that have a number alone in the file
        (1.25, "[hh]:mm", "30:00:00"),
        (0.05, "[mm]:ss", "1:12:00"),
        (-0.5, "[h]:mm", "-12:00:00"),
    ],
)
def test_days_and_times_whatever_their_format(serial: float, code: str, shown: str) -> None:
    def fill_sheet(sheet: Any) -> None:
        sheet.append(("Name", "Day"))
        sheet.append(("Kelderport", serial))
        sheet["B2"].number_format = code

    assert read(make_workbook(fill_sheet)).endswith(f"Name: Kelderport; Day: {shown}")


def test_hidden_rows_and_columns_are_left_out_and_said() -> None:
    def hide(sheet: Any) -> None:
        for row in (("Berth", "Margin", "Price"), ("A1", 0.4, 48), ("A2", 0.3, 31), ("A3", 0.2, 52)):
            sheet.append(row)
        sheet.row_dimensions[3].hidden = True
        sheet.column_dimensions["B"].hidden = True

    shown, remark = read_document(make_workbook(hide), "a.xlsx")
    assert shown.text == "# Sheet 1\n\nBerth: A1; Price: 48\nBerth: A3; Price: 52"
    assert remark == page.Page("", None, "1 hidden row on sheet Sheet 1, 1 hidden column on sheet Sheet 1")
    assert page.say_left_out((shown, remark)) == f"Left out: {remark.left_out}."


def test_merged_cells_say_the_same_in_every_row_and_column() -> None:
    def fill_sheet(sheet: Any) -> None:
        for row in (
            ("Fares of the year",),
            ("Region", 2019, None, 2020, None),
            (None, "Sales", "Costs", "Sales", "Costs"),
            ("North", 1, 2, 3, 4),
            (None, 5, 6, 7, 8),
        ):
            sheet.append(row)
        for place in ("A1:E1", "A2:A3", "B2:C2", "D2:E2", "A4:A5"):
            sheet.merge_cells(place)

    assert read(make_workbook(fill_sheet)).split("\n") == [
        *["# Sheet 1", "", "Fares of the year"],
        "Region: North; 2019 Sales: 1; 2019 Costs: 2; 2020 Sales: 3; 2020 Costs: 4",
        "Region: North; 2019 Sales: 5; 2019 Costs: 6; 2020 Sales: 7; 2020 Costs: 8",
    ]


def test_formulas_show_their_value_or_else_themselves() -> None:
    content = make_workbook(fill(("Item", "Price"), ("Rope", 3), ("Total", '=SUM(B2:B2)&"<x>"')))
    assert read(content).endswith('Item: Rope; Price: 3\nItem: Total; Price: =SUM(B2:B2)&"<x>"')
    calculated = rezip(
        content,
        {"xl/worksheets/sheet1.xml": lambda xml: xml.replace(b"<v></v>", b"<v>3</v>").replace(b"<v />", b"<v>3</v>")},
    )
    assert read(calculated).endswith("Item: Rope; Price: 3\nItem: Total; Price: 3")


def test_comments_crossed_out_cells_and_missing_results_are_said() -> None:
    def fill_sheet(sheet: Any) -> None:
        for row in (("Item", "Price"), ("Rope", 3), ("Buoy", 9), ("Total", "=B2")):
            sheet.append(row)
        sheet["B2"].comment = Comment("until May", "Ada")
        sheet["A3"].font = sheet["B3"].font = Font(strike=True)

    shown, remark = read_document(make_workbook(fill_sheet), "a.xlsx")
    assert shown.text == "# Sheet 1\n\nItem: Rope; Price: 3\n\nItem: Total; Price: =B2"
    lost = ("1 formula result", "2 crossed-out cells", "1 comment")
    assert remark.left_out == ", ".join(f"{one} on sheet Sheet 1" for one in lost)


def test_a_result_that_is_an_empty_text_shows_nothing() -> None:
    content = make_workbook(fill(("Item", "Note"), ("Rope", '=IF(1,"")'), ("Buoy", "x")))
    name = "xl/worksheets/sheet1.xml"
    content = rezip(content, {name: lambda xml: xml.replace(b'<c r="B2">', b'<c r="B2" t="str">')})
    assert read(content) == "# Sheet 1\n\nItem: Rope\nItem: Buoy; Note: x"


def test_text_boxes_stand_below_their_sheet() -> None:
    spaces = (
        'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    )
    text = "<a:p><a:r><a:t>Until</a:t></a:r><a:r><a:t> May.</a:t></a:r></a:p>"
    beside = "http://schemas.openxmlformats.org/package/2006/relationships"
    content = rezip(make_workbook(fill(("Item", "Price"), ("Rope", 3))), {
        "xl/drawings/drawing1.xml": f"<xdr:wsDr {spaces}><xdr:sp><xdr:txBody>{text}</xdr:txBody></xdr:sp></xdr:wsDr>",
        "xl/worksheets/_rels/sheet1.xml.rels":
            f'<Relationships xmlns="{beside}"><Relationship Id="r" Target="../drawings/drawing1.xml"/></Relationships>',
    })  # fmt: skip
    assert read(content) == "# Sheet 1\n\nItem: Rope; Price: 3\n\nUntil May."


def test_empty_and_hidden_sheets_are_left_out() -> None:
    def hide(sheet: Any) -> None:
        sheet.append(("secret",))
        sheet.sheet_state = "hidden"

    assert read(make_workbook(fill(), hide, fill(("seen",)))) == "# Sheet 3\n\nseen"
    with pytest.raises(DocumentRefused, match="no readable text"):
        read(make_workbook(fill(), fill()))


def test_a_sheet_may_lie_about_its_size_and_end_far_away() -> None:
    content = make_workbook(fill(("Name", "Depth"), ("Kelderport", 11)))

    def stretch(xml: bytes) -> bytes:
        xml = xml.replace(b"A1:B2", b"A1:A1")
        far = b'<row r="1048576"><c r="XFD1048576" t="n"><v>7</v></c></row></sheetData>'
        return xml.replace(b"</sheetData>", far)

    started = time.process_time()
    text = read(rezip(content, {"xl/worksheets/sheet1.xml": stretch}))
    assert "Name: Kelderport; Depth: 11" in text and text.endswith("7")
    assert time.process_time() - started < 20


@pytest.mark.parametrize("tag", [b"<c ", b'<c r="A1"><f>', b"<mergeCell ", b'<c r="A1"><f '])
def test_tags_that_never_end_take_no_time(tag: bytes) -> None:
    content = make_workbook(fill(("a",)))
    started = time.process_time()
    with pytest.raises(DocumentRefused, match="damaged"):
        read(rezip(content, {"xl/worksheets/sheet1.xml": lambda xml: xml.replace(b"</sheetData>", tag * 50_000)}))
    assert time.process_time() - started < 20


def test_open_spreadsheets() -> None:
    cell = '<table:table-cell office:value-type="{}" {}><text:p>{}</text:p></table:table-cell>'
    body = (
        '<table:table table:name="Depths"><table:table-header-rows><table:table-row>'
        + cell.format("string", "", "Name") + cell.format("string", "", "Day") + cell.format("string", "", "Depth")
        + "</table:table-row></table:table-header-rows><table:table-row>"
        + cell.format("string", 'table:number-rows-spanned="2"', "Kelderport")
        + cell.format("date", 'office:date-value="2021-03-04"', "03/04/21")
        + cell.format("float", 'office:value="11.5"', "11.50")
        + "</table:table-row><table:table-row><table:covered-table-cell/>"
        + cell.format("date", 'office:date-value="2021-03-05T09:30:00"', "x")
        + '<table:table-cell office:value-type="float" office:value="12"><office:annotation><text:p>hm</text:p>'
        '</office:annotation></table:table-cell><table:table-cell table:number-columns-repeated="16381"/>'
        '</table:table-row><table:table-row table:number-rows-repeated="999999999"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row></table:table>'
        '<table:table table:name="Hidden" table:style-name="h"><table:table-row>'
        + cell.format("string", "", "secret") + "</table:table-row></table:table>"
    )  # fmt: skip
    styles = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    assert read(make_open("spreadsheet", body, styles), "a.ods").split("\n") == [
        *["# Depths", "", "Name: Kelderport; Day: 2021-03-04; Depth: 11.50"],
        "Name: Kelderport; Day: 2021-03-05 09:30; Depth: 12",
    ]
