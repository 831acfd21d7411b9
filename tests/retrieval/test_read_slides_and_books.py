"""Presentations, rich text, OpenDocument texts, books: the text whole, in its order, with its headings and tables."""

from __future__ import annotations

import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls
from pptx.util import Inches

from crag_core.base.errors import DocumentRefused
from crag_core.retrieval.readers import read_document
from crag_core.retrieval.readers.page import Page
from tests.retrieval.made_files import NAMESPACES, make_book, make_chapter, make_open, make_slides, rezip, save


def read(content: bytes, name: str) -> str:
    return "\n\n".join(page.text for page in read_document(content, name) if page.text)


# --- slides ---------------------------------------------------------------------------------------------------------


def test_slides_are_pages_with_title_items_and_notes() -> None:
    pages = read_document(make_slides(("Fares", "Adults pay\nChildren ride free", "Smile.\nWave."), ("", "", ""),
                                      ("Two\vlines", "Nine", "")), "a.pptx")  # fmt: skip
    assert pages == (
        Page("# Fares\n\nAdults pay\n\nChildren ride free\n\nNotes:\nSmile. Wave.", 1),
        Page("# Two lines\n\nNine", 3),
    )


def test_tables_groups_charts_and_boxes_of_a_slide() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    box = [Inches(1)] * 4
    table = slide.shapes.add_table(3, 3, *box).table
    for at, text in enumerate(["Route", "Price", "", "R1", "8.40", "x", "", "5.10", "y"]):
        table.cell(at // 3, at % 3).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(1, 0).merge(table.cell(2, 0))
    outer = slide.shapes.add_group_shape()
    outer.shapes.add_group_shape().shapes.add_textbox(*box).text_frame.text = "Inside a group"
    data = CategoryChartData()
    data.categories = ["2019", "2020"]
    data.add_series("Guests", (1200, 300))
    data.add_series("Crew", (12.5, 3))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *box, data).chart
    chart.chart_title.text_frame.text = "People on board"
    assert read(save(presentation), "a.pptx").split("\n\n") == [
        "# Inside a group",  # what stands first is taken for the title of a slide without one
        "Route: R1; Price: 8.40; Price: x\nRoute: R1; Price: 5.10; Price: y",
        "People on board: 2019; Guests: 1200; Crew: 12.5\nPeople on board: 2020; Guests: 300; Crew: 3",
    ]


def test_hidden_slides_are_left_out_and_notes_stay_with_their_slide() -> None:
    made = pptx.Presentation()
    for title, notes in (("One", ""), ("Secret", "not said"), ("Three", "Say three.")):
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = title
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
        if title == "Secret":
            slide._element.set("show", "0")
    assert read_document(save(made), "a.pptx") == (
        Page("# One", 1), Page("# Three\n\nNotes:\nSay three.", 3), Page("", None, "1 hidden slide")
    )  # fmt: skip


def test_text_of_footers_once_runs_joined_and_what_is_crossed_out() -> None:
    made = pptx.Presentation()
    for title in ("One", "Two"):
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = title
        frame = slide.shapes.add_textbox(*[Inches(1)] * 4).text_frame
        for text, looks in (
            ("Con", {"b": "1"}),
            ("tract 10", {}),
            ("6", {"baseline": "30000"}),
            (" old", {"strike": "sngStrike"}),
        ):
            run = frame.paragraphs[0].add_run()
            run.text = text
            for name, value in looks.items():
                run._r.get_or_add_rPr().set(name, value)
        box = slide.shapes.add_textbox(*[Inches(1)] * 4)
        box.text_frame.text = "Valid until May"
        box._element.nvSpPr.nvPr.append(parse_xml(f'<p:ph {nsdecls("p")} type="ftr"/>'))
    assert [page.text for page in read_document(save(made), "a.pptx")] == [
        "# One\n\nContract 10⁶\n\nValid until May", "# Two\n\nContract 10⁶", ""
    ]  # fmt: skip


def test_charts_show_their_numbers_as_they_are_drawn() -> None:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    data = CategoryChartData()
    for year in ("2023", "2024"):
        group = data.add_category(year)
        for quarter in ("Q1", "Q2"):
            group.add_sub_category(quarter)
    data.add_series("Share", (0.25, 0.5, 0.755, 1), number_format="0%")
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *[Inches(1)] * 4, data)
    assert read(save(made), "a.pptx").split("\n")[1:3] == [
        "category: 2023 Q2; Share: 50%", "category: 2024 Q1; Share: 76%"
    ]  # fmt: skip


def test_open_presentations() -> None:
    body = (
        '<draw:page><draw:frame presentation:class="outline"><draw:text-box><text:list><text:list-item>'
        "<text:p>Nine</text:p></text:list-item><text:list-item><text:p>Noon</text:p></text:list-item></text:list>"
        '</draw:text-box></draw:frame><draw:frame presentation:class="title"><draw:text-box><text:p>Times</text:p>'
        '</draw:text-box></draw:frame><presentation:notes><draw:page-thumbnail/><draw:frame presentation:class="notes">'
        "<draw:text-box><text:p>Smile.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    )
    (page,) = read_document(make_open("presentation", body), "a.odp")
    assert page == Page("# Times\n\n- Nine\n- Noon\n\nNotes:\nSmile.", 1)


def test_open_files_without_what_is_hidden_and_that_is_said() -> None:
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>'
    pages = f"<draw:page>{title.format('One')}<draw:frame><draw:object/></draw:frame></draw:page>"
    pages += f'<draw:page draw:style-name="h">{title.format("Secret")}</draw:page>'
    styles = (
        '<style:style style:name="h"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    assert read_document(make_open("presentation", pages, styles), "a.odp") == (
        Page("# One", 1), Page("", None, "1 hidden slide, 1 chart or object")
    )  # fmt: skip
    cells = "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell></table:table-row>".format
    row = cells("</text:p></table:table-cell><table:table-cell><text:p>".join(["{}", "{}", "{}"]))
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/><table:table-column/>'
    sheet = "".join([columns, row.format("Berth", "Margin", "Fee"), row.format("B1", "4", "20")])
    shown, remark = read_document(
        make_open("spreadsheet", f'<table:table table:name="S">{sheet}</table:table>'), "a.ods"
    )
    assert (shown.text, remark.left_out) == ("# S\n\nBerth: B1; Fee: 20", "1 hidden column")


def test_open_text_of_margins_above_the_line_and_crossed_out() -> None:
    looks = "<style:style style:name='{}'><style:text-properties style:text-{}/></style:style>".format
    styles = looks("up", "position='super 58%'") + looks("out", "line-through-style='solid'")
    body = (
        '<text:p>10<text:span text:style-name="up">6</text:span> or <text:span text:style-name="out">5</text:span>'
        '<text:hidden-text text:is-hidden="true">x</text:hidden-text> N</text:p>'
    )
    margin = "<style:master-page><style:header><text:p>Contract K-7</text:p></style:header></style:master-page>"
    margins = f"<office:document-styles {NAMESPACES}>{margin}</office:document-styles>"
    shown, remark = read_document(rezip(make_open("text", body, styles), {"styles.xml": margins}), "a.odt")
    assert (shown.text, remark.left_out) == ("10⁶ or N\n\nContract K-7", "1 crossed-out text")


# --- rich text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (rb"\uc1 \u8364? and \uc0\u8364  \uc2\u233ab!", "€ and € é!"),
        (rb"\u-10179?\u-8704? smiles", "😀 smiles"),
        (rb"\ansicpg1251 \'cf\'e0\'f0\'ee\'ec", "Паром"),
        (rb"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f0 \'e9 {\f1 \'cf}\'e9", "é П é"),
        ("Fähre".encode(), "Fähre"),
        ("Fähre".encode("cp1252"), "Fähre"),
        (rb"one{\b two}{\i{\b three}} \{four\} \\ f\~g\_h\-i", "onetwothree {four} \\ f g-hi"),
        (rb"seen{\v hidden} and \v not\v0 again", "seen and again"),
        (rb"see{\footnote{\super\chftn} A note.\par More.} end", "see end\n\n[1] A note. More."),
        (rb'{\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt the link}}', "the link"),
        (rb"one\par two\line three\page four", "one\n\ntwo\n\nthree\n\nfour"),
        (rb"{\listtext\'b7\tab}first\par{\pntext\'b7\tab}second\par{\listtext 3.\tab}third",
         "- first\n\n- second\n\n3. third"),
        (rb"{\stylesheet{\s0 Normal;}{\s2\outlinelevel1 \'dcberschrift 2;}{\s1 heading 1;}}\s1\outlinelevel0"
         rb" Top\par\pard\s2\outlinelevel1 Below\par\pard Text", "# Top\n\n## Below\n\nText"),
        (rb"10{\super 6} N, 12.50\super 1\nosupersub  m{\super 2}", "10⁶ N, 12.50¹ m2"),
        (rb"It is {\strike 3}{\deleted 5} 4", "It is 4"),
        (rb"{\info{\author Me}{\title T}}{\*\annotation hm}text", "text"),
        (rb"before\par\trowd\cellx1\cellx2\intbl Route\cell Price\cell\row\trowd\cellx1\cellx2\intbl R1\par late\cell"
         rb" 8.40\cell\row\pard after", "before\n\nRoute: R1 late; Price: 8.40\n\nafter"),
    ],
)  # fmt: skip
def test_rich_text(written: bytes, shown: str) -> None:
    assert read(rb"{\rtf1\ansi " + written + b"}", "a.rtf") == shown


def test_rich_text_nested_out_of_reason() -> None:
    with pytest.raises(DocumentRefused, match="no readable text"):
        read(rb"{\rtf1 " + b"{" * 100_000, "a.rtf")


# --- open documents -------------------------------------------------------------------------------------------------


def test_open_text() -> None:
    cell = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
    body = f"""<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p></text:deletion>
      </text:changed-region></text:tracked-changes>
      <text:table-of-content><text:index-body><text:p>Fares....1</text:p></text:index-body></text:table-of-content>
      <text:p text:style-name="P1">Northmoor</text:p>
      <text:h text:outline-level="2">Fares <text:span>of 2021</text:span></text:h>
      <text:p>Adults<office:annotation><text:p>who?</text:p></office:annotation> pay<text:s text:c="2"/>five
         <text:a>euros</text:a><text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>In coins.
         </text:p></text:note-body></text:note>.<text:change-start/><text:tab/>Then<text:line-break/>more.</text:p>
      <text:list><text:list-item><text:p>ropes</text:p><text:list><text:list-item><text:p>thin</text:p>
      </text:list-item></text:list></text:list-item><text:list-item><text:p>buoys</text:p></text:list-item></text:list>
      <text:section text:display="none"><text:p>unseen</text:p></text:section>
      <text:section><text:p>In a section.<draw:frame><draw:text-box><text:p>Boxed.</text:p></draw:text-box></draw:frame>
      </text:p></text:section>
      <table:table><table:table-row>{cell.format("", "Route")}{cell.format("", "Price")}{cell.format("", "Note")}
      </table:table-row><table:table-row>{cell.format("", "R1")}
      {cell.format(' table:number-columns-spanned="2"', "free")}<table:covered-table-cell/></table:table-row>
      </table:table>"""
    styles = '<style:style style:name="P1" style:parent-style-name="Title"/>'
    assert read(make_open("text", body, styles), "a.odt").split("\n\n") == [
        "# Northmoor",
        "## Fares of 2021",
        "Adults pay five euros. Then more.[1]",
        "- ropes\n  - thin\n- buoys",
        "In a section.",
        "Boxed.",
        "Route: R1; Price: free; Note: free",
        "[1] In coins.",
    ]


# --- books ----------------------------------------------------------------------------------------------------------

ORDER = '<itemref idref="a"/>'


def item(name: str, href: str, more: str = "") -> str:
    return f'<item id="{name}" href="{href}" media-type="application/xhtml+xml" {more}/>'


def test_chapters_in_the_order_of_reading() -> None:
    chapters = {
        "text/chapter one.xhtml": make_chapter("<h1>One</h1><p>The <a id='x'/>ferry.</p>"),
        "text/two.xhtml": make_chapter("<h2>Two</h2><table><tr><th>Route</th><th>Price</th></tr><tr><td>R1</td>"
                                       "<td>8.40</td></tr></table><script>unseen</script>"),
        "unused.xhtml": make_chapter("<p>unused</p>"),
    }  # fmt: skip
    items = "".join(
        [
            item("b", "text/two.xhtml"),
            item("a", "./other/../text/chapter%20one.xhtml"),
            item("gone", "gone.xhtml"),
            item("u", "unused.xhtml"),
        ]
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in ("a", "missing", "gone", "b"))
    assert read(make_book(chapters, order, items), "a.epub").split("\n\n") == [
        *["# Northern Harbours", "Author: Ada Berg", "# One", "The ferry.", "## Two", "Route: R1; Price: 8.40"]
    ]


def test_chapters_are_read_as_pages_are() -> None:
    chapter = make_chapter(
        '<table><tr><th rowspan="2">Pier</th><th colspan="2">Summer</th></tr><tr><th>Day</th><th>Week</th></tr>'
        "<tr><td>North</td><td>20</td><td>120</td></tr></table><p>10<sup>6</sup> or <del>5</del><img "
        'alt="The pier from above"/></p>'
    )
    page, remark = read_document(make_book({"a.xhtml": chapter}, ORDER, item("a", "a.xhtml")), "a.epub")
    assert page.text.split("\n\n")[2:] == [
        "Pier: North; Summer Day: 20; Summer Week: 120",
        "10⁶ or The pier from above",
    ]
    assert remark.left_out == "crossed-out text"


@pytest.mark.parametrize("is_font", [True, False])
def test_copy_protection(is_font: bool) -> None:
    method = "http://www.idpf.org/2008/embedding" if is_font else "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    locks = (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><EncryptedData '
        f'xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{method}"/></EncryptedData>'
        "</encryption>"
    )
    book = make_book(
        {"a.html": make_chapter("<p>Ferry.</p>")}, ORDER, item("a", "a.html"), **{"META-INF/encryption.xml": locks}
    )
    if is_font:
        assert read(book, "a.epub").endswith("Ferry.")
    else:
        with pytest.raises(DocumentRefused, match="copy protection"):
            read(book, "a.epub")


def test_a_book_of_which_only_the_title_is_there() -> None:
    with pytest.raises(DocumentRefused, match="no readable text"):
        read(make_book({}, ORDER, item("a", "a.html")), "a.epub")
