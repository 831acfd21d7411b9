"""Files that are as they should be, in every format."""

from __future__ import annotations

import io
from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml
from fpdf import FPDF

from crag_core.retrieval.readers import READERS, read_document, say_left_out
from tests.retrieval.made_files import rezip


def read(content: bytes, name: str) -> str:
    (page,) = read_document(content, name)
    assert page.number is None
    return page.text


def save(document: docx.document.Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def test_docx_keeps_the_order_and_table_rows_keep_their_header() -> None:
    document = docx.Document()
    document.add_heading("Menu", 1)
    document.add_paragraph("Prices of the day.")
    table = document.add_table(rows=0, cols=3)
    for cells in (("Dish", "Price", "Allergens"), ("Chowder", "£7.80", "fish, milk"), ("Tea", "£2.20", "")):
        for cell, text in zip(table.add_row().cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("ask the cook", style="List Bullet")
    document.add_paragraph("or the mate", style="List Bullet")
    assert read(save(document), "menu.docx").split("\n") == [
        *["# Menu", "", "Prices of the day.", ""],
        *["Dish: Chowder; Price: £7.80; Allergens: fish, milk", "Dish: Tea; Price: £2.20", ""],
        *["- ask the cook", "- or the mate"],
    ]


def test_docx_content_controls_are_read() -> None:
    document = docx.Document()
    document.add_paragraph("outside")
    paragraph = document.add_paragraph("inside the control")._p
    control = parse_xml(
        '<w:sdt xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:sdtContent/></w:sdt>'
    )
    paragraph.addprevious(control)
    control[0].append(paragraph)
    assert read(save(document), "template.docx") == "outside\n\ninside the control"


def test_html_keeps_what_people_read() -> None:
    page = b"""<!doctype html><html><head><title>T</title><style>p{}</style><script>alert("leak")</script></head><body>
      <nav><a href="/">Home</a></nav><h1>Fares &amp; rules</h1><p>One   sentence
      over two lines with <b>bold</b>text.</p><!-- secret --><ul><li>first</li><li>second</li></ul>
      <ol><li>step</li><li>next</li></ol><p hidden>ghost</p><p style="display: none">ghost</p>
      <table><tr><th>Route</th><th>Price</th></tr><tr><td>R1</td><td>8.40</td></tr><tr><td>R2</td><td>5.10</td></tr>
      </table><noscript>ghost</noscript><footer>imprint</footer></body></html>"""
    assert read(page, "fares.html").split("\n") == [
        *["# Fares & rules", "", "One sentence over two lines with boldtext.", ""],
        *["- first", "- second", "", "1. step", "2. next", ""],
        *["Route: R1; Price: 8.40", "Route: R2; Price: 5.10"],
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-16", "shift_jis"])
def test_html_takes_the_declared_charset(encoding: str) -> None:
    word = "港の船" if encoding == "shift_jis" else "Fähre für Gäste"
    page = f'<html><head><meta charset="{encoding}"></head><body><p>{word}</p></body></html>'.encode(encoding)
    assert read(page, "page.html") == word


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_text_in_any_encoding(encoding: str) -> None:
    assert read("Die Fähre fährt über den Sund – täglich.".encode(encoding), "a.txt") == (
        "Die Fähre fährt über den Sund – täglich."
    )


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("shift_jis", "東京タワーは東京都港区にある電波塔です。毎日多くの人が訪れます。"),
        ("cp1251", "Паром отходит от причала каждое утро и возвращается вечером."),
        ("gb18030", "渡轮每天早上九点离开港口,晚上返回码头。天气不好的时候不开船。"),
    ],
)
def test_legacy_encodings_are_recognised(encoding: str, text: str) -> None:
    assert read((text * 4).encode(encoding), "old.txt") == text * 4


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Łódź odpływa o dziewiątej, wraca.\n", "The ferry 🛳️ leaves at nine.\n"])
def test_utf16_without_a_mark_is_read(text: str, encoding: str) -> None:
    assert "".join(read((text * 3).encode(encoding), "old.txt").split()) == "".join((text * 3).split())


def test_hard_wrapped_text_is_joined_but_lists_verse_and_code_are_not() -> None:
    wrapped = (
        "The note a mate gives to a driver whose vehicle has been measured\n"
        "at the pier and found longer than booked. The driver pays before\nboarding.\n\n"
        "Roses are red,\nviolets are blue.\n\n1. first step of the procedure, which is described in words\n"
        "2. second step\n\n```\nfor ship in all_the_ships_of_the_whole_wide_fleet_of_northmoor:\n"
        "    sail(ship, towards=the_harbour_of_the_capital_of_the_islands)\n```"
    )
    assert read(wrapped.encode(), "notes.md").split("\n\n") == [
        "The note a mate gives to a driver whose vehicle has been measured at the pier and found longer than booked. "
        "The driver pays before boarding.",
        "Roses are red,\nviolets are blue.",
        "1. first step of the procedure, which is described in words\n2. second step",
        wrapped.split("\n\n")[-1],
    ]


def test_rows_of_a_markdown_table_stay_lines_among_wrapped_text() -> None:
    rows = [f"| B{at} | {at} m | {20 + at} euros | {10 + at} euros |" for at in range(10, 30)]
    table = "\n".join(["| Berth | Length | Summer price | Winter price |", "|---|---|---|---|", *rows])
    shown = [
        f"Berth: B{at}; Length: {at} m; Summer price: {20 + at} euros; Winter price: {10 + at} euros" for at in (10, 11)
    ]
    assert read(f"# Berths\n\n{table}".encode(), "berths.md").split("\n")[2:4] == shown


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_keep_their_header(delimiter: str) -> None:
    rows = (("route", "price", "note"), ("R1", "8.40", '"two\nlines"'), ("R2", "5.10", ""))
    content = "\n".join(delimiter.join(row) for row in rows).encode()
    assert read(content, "fares.csv") == "route: R1; price: 8.40; note: two lines\nroute: R2; price: 5.10"


def test_csv_without_header_with_title_and_with_ragged_rows() -> None:
    assert read(b"1,2\n3,4", "n.csv") == "1 | 2\n3 | 4"
    assert read(b"Fares,,\nroute,price,\nR1,8.40,", "t.csv") == "Fares\nroute: R1; price: 8.40"
    assert read(b"a,b\nx,y,z\nw", "r.csv") == "a: x; b: y; column 3: z\na: w"
    assert read(b"route,price", "h.csv") == "route | price"


TABLE = "Route: R1; Price: 8.40"
MARKED = {
    "a.rst": ("Fares\n=====\n\nFive *euros*.\n\n=====  =====\nRoute  Price\n=====  =====\nR1     8.40\n=====  =====\n",
              f"# Fares\n\nFive euros.\n\n{TABLE}"),
    "a.org": ("* Fares\nFive euros.\n| Route | Price |\n|-------+-------|\n| R1 | 8.40 |\n",
              f"# Fares\n\nFive euros.\n\n{TABLE}"),
    "a.adoc": ("= Fares\n\n|===\n|Route |Price\n\n|R1 |8.40\n|===\n", f"# Fares\n\n{TABLE}"),
    "a.mdx": ("# Fares\n\n| Route | Price |\n|---|---|\n| R1 | 8.40 |\n", f"# Fares\n\n{TABLE}"),
    "a.tsv": ("Route\tPrice\nR1\t8.40\n", TABLE),
    "a.typ": ("= Fares\nFive euros.\n", "# Fares\n\nFive euros."),
    "a.tex": ("\\documentclass{article}\n\\begin{document}\n\\section{Fares}\nFive euros.\n\\end{document}\n",
              "# Fares\n\nFive euros."),
    "a.ipynb": ('{"cells":[{"cell_type":"markdown","metadata":{},"source":["# Fares\\n","Five euros."]},{"cell_type":'
                '"code","metadata":{},"source":["x = 5"],"outputs":[],"execution_count":1}],"metadata":{},"nbformat":4,'
                '"nbformat_minor":5}', "# Fares\n\nFive euros.\n\n```\nx = 5\n```"),
    "a.json": ('{"fares": {"adult": "five euros"}}', "# fares\n\nadult: five euros"),
    "a.yaml": ("fares:\n  adult: five euros\n", "# fares\n\nadult: five euros"),
    "a.xml": ("<fares><adult>five euros</adult></fares>", "# fares\n\n## adult\n\nfive euros"),
    "a.fb2": ('<FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><body><section><title><p>Fares</p></title>'
              "<p>Five euros.</p></section></body></FictionBook>", "## Fares\n\nFive euros."),
    "a.docbook": ("<article><title>Fares</title><para>Five euros.</para></article>", "# Fares\n\nFive euros."),
    "a.vtt": ("WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nFive euros.\n", "Five euros."),
    "a.ris": ("TY  - JOUR\nTI  - Five euros\nAU  - Berg, Ada\nER  - \n",
              "[Five euros] Title: Five euros Authors: Ada Berg"),
}  # fmt: skip


@pytest.mark.parametrize("name", MARKED)
def test_marked_up_text_and_data(name: str) -> None:
    written, shown = MARKED[name]
    assert read(written.encode(), name) == shown


def test_html_of_which_other_readers_lose_parts() -> None:
    page = (
        b"<form><h1>Rules</h1><h2><button>Who may borrow?</button></h2><div role=tabpanel hidden>Members.</div>"
        b"<dialog>Ask Ada.</dialog><img src=a alt='The pier from above'><select><option>noise</select></form>"
    )
    assert read(page, "a.html").split("\n\n") == [
        "# Rules", "## Who may borrow?", "Members.", "Ask Ada.", "The pier from above"
    ]  # fmt: skip


def test_html_cells_that_span_others_stand_in_each_place() -> None:
    page = (
        b"<table><tr><th rowspan=2>Pier<th colspan=2>Summer<tr><th>Day<th>Week<tr><td rowspan=2>North<td>20<td>120"
        b"<tr><td colspan=2>closed</table>"
    )
    assert read(page, "a.html") == (
        "Pier: North; Summer Day: 20; Summer Week: 120\nPier: North; Summer Day: closed; Summer Week: closed"
    )


def test_html_what_a_page_shows_in_pictures_fields_quotations_and_formulas() -> None:
    page = (
        b"<table><tr><th>Room<th>Dogs<tr><td>A<td><img alt=yes></table><p>Boat <input value=Thrift> <input type=hidden "
        b"value=tok><input type=checkbox checked> insured <select><option>N<option selected>S</select></p><p>It is "
        b"<math><mfrac><mn>3</mn><mn>4</mn></mfrac><annotation>x</annotation></math>, 10<sup>6</sup> m<sup>2</sup> on "
        b"the 1<sup>st</sup>.</p><blockquote>Seen.<footer>Ada</footer></blockquote>"
    )
    assert read(page, "a.html").split("\n\n") == [
        "Room: A; Dogs: yes", "Boat Thrift [x] insured S", "It is 3/4 , 10⁶ m2 on the 1st.\n> Seen.\n>\n> Ada"
    ]  # fmt: skip


def test_html_text_that_is_crossed_out_is_not_read_and_that_is_said() -> None:
    shown, remark = read_document(
        b"<p>It costs <del>30</del> <s>28</s> <b style='text-decoration: line-through'>27</b> 25 euros.</p>", "a.html"
    )
    assert (shown.text, remark.left_out) == ("It costs 25 euros.", "crossed-out text")


def test_html_totals_below_that_are_written_above() -> None:
    page = b"<table><thead><tr><th>A<th>B<tfoot><tr><td>all<td>3<tbody><tr><td>one<td>3</table>"
    assert read(page, "a.html") == "A: one; B: 3\nA: all; B: 3"


def test_html_tables_in_others_and_tables_of_facts() -> None:
    inner = b"<table><tr><th>Route<th>Price<tr><td>R1<td>8.40</table>"
    assert read(b"<table><tr><td>%s<td>beside</table>" % inner, "a.html") == "Route: R1; Price: 8.40\n\nbeside"
    assert read(b"<table><tr><th>Pier<th>Fares<tr><td>N<td>%s</table>" % inner, "a.html") == (
        "Pier: N; Fares: Route: R1; Price: 8.40"
    )
    facts = b"<table><tr><th>Name<td>Ada<tr><th>Phone<td>0471 220</table>"
    assert read(facts, "a.html") == "Name: Ada\n\nPhone: 0471 220"


def test_tables_of_html_in_markdown_and_notebooks() -> None:
    table = '<table border=\\"1\\"><tr><th>Pier</th><th>Depth</th></tr><tr><td>N</td><td>4</td></tr></table>'
    assert read(f"# A\n\n{table}\n\nB".encode(), "a.md").split() == ["#", "A", "Pier:", "N;", "Depth:", "4", "B"]
    output = f'{{"output_type":"execute_result","data":{{"text/html":["<div>{table}</div>"]}}}}'
    error = '{"output_type":"error","ename":"E","evalue":"bad","traceback":["\\u001b[31mE\\u001b[0m"]}'
    cell = f'{{"cell_type":"code","metadata":{{}},"source":["x"],"outputs":[{output},{error}]}}'
    shown = read(f'{{"nbformat":4,"nbformat_minor":5,"metadata":{{}},"cells":[{cell}]}}'.encode(), "a.ipynb")
    assert "\n\nPier: N; Depth: 4\n\n" in shown and "[31m" not in shown


def test_xml_is_read_in_its_encoding_and_its_attributes_are_said_to_be_left_out() -> None:
    written = '<?xml version="1.0" encoding="iso-8859-1"?><berths><berth no="B1">Fähre</berth></berths>'
    page, remark = read_document(written.encode("latin-1"), "a.xml")
    assert (page.text, remark.left_out) == ("# berths\n\n## berth\n\nFähre", "attributes of elements")


def test_notes_above_a_csv() -> None:
    assert read(b"# made 2024, by us\n# in euros\nroute,price\nR1,8", "a.csv") == (
        "# made 2024, by us\n# in euros\nroute: R1; price: 8"
    )
    assert read(b"#,price\nR1,8", "a.csv") == "#: R1; price: 8"


def test_a_word_that_is_broken_at_its_hyphen_stays_whole() -> None:
    line = "The office opens on every day of the week and is closed in winter for twenty-"
    assert read(f"{line}\nfour {line[4:-7]}.\n".encode(), "a.txt") == f"{line}four {line[4:-7]}."


def test_markdown_of_other_styles() -> None:
    written = (
        "---\ntitle: T\n---\n\nRules\n=====\n\nFees\n----\n\nBerth | Winter\n:--|--:\nB1 | 11\n\n"
        "> | Dock | Fee |\n> |---|---|\n> | D1 | 5<br>6 |\n\n<!-- secret -->Seen.\n\n"
        "```\n<!-- code -->\na | b\n--|--\n```"
    )
    assert read(written.encode(), "a.md") == (
        "---\ntitle: T\n---\n\n# Rules\n\n## Fees\n\nBerth: B1; Winter: 11\n\nDock: D1; Fee: 5 6\n\nSeen.\n\n"
        "```\n<!-- code -->\na | b\n--|--\n```"
    )


def test_letters_that_people_cannot_tell_apart_are_written_one_way() -> None:
    assert read("HK\u20112207 of\u00adfice \ufb01re".encode(), "a.txt") == "HK-2207 office fire"


def test_csv_may_name_its_delimiter() -> None:
    assert read(b"sep=;\r\nRoute;Price\r\nR1;8,40\r\n", "a.csv") == "Route: R1; Price: 8,40"


def test_docx_text_of_headers_boxes_notes_and_changes() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("The rent is ")
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    for xml in (
        f"<w:ins {space}><w:r><w:t>1,150 euros</w:t></w:r></w:ins>",
        f"<w:del {space}><w:r><w:delText>900 euros</w:delText></w:r></w:del>",
        f"<w:r {space}><w:rPr><w:vanish/></w:rPr><w:t>unseen</w:t></w:r>",
        f"<w:r {space}><w:t>.</w:t></w:r>",
    ):
        paragraph._p.append(parse_xml(xml))
    document.sections[0].header.paragraphs[0].text = "Contract HK-2207-B"
    document.sections[0].footer.paragraphs[0].text = "Page 1 of 3"
    table = document.add_table(rows=3, cols=3)
    for at, text in enumerate(["Berth", "Price", "", "N1", "20", "x", "", "25", "y"]):
        table.cell(at // 3, at % 3).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(1, 0).merge(table.cell(2, 0))
    assert read(save(document), "lease.docx").split("\n\n") == [
        "The rent is 1,150 euros.",
        "Berth: N1; Price: 20; Price: x\nBerth: N1; Price: 25; Price: y",
        "Contract HK-2207-B",
    ]


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word(*paragraphs: str, **parts: str) -> bytes:
    """A Word file of these paragraphs as XML; `parts` as numbering="<w:abstractNum>…"."""
    document, made = docx.Document(), {}
    for xml in reversed(paragraphs):
        document.element.body.insert(0, parse_xml(f"<w:p {WORD}>{xml}</w:p>"))
    for part, xml in parts.items():
        made[f"word/{part}.xml"] = f"<w:{part} {WORD}>{xml}</w:{part}>"
    return rezip(save(document), made)


def run(text: str, looks: str = "") -> str:
    return f"<w:r><w:rPr>{looks}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def test_docx_numbers_of_clauses_and_lists_as_they_are_shown() -> None:
    def clause(text: str, level: int, of: int = 1) -> str:
        number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{of}"/></w:numPr>'
        return f"<w:pPr>{number}</w:pPr>{run(text)}"

    levels = (("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"), ("upperRoman", "Part %4:"))
    kinds = "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{how}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for at, (how, text) in enumerate(levels)
    )
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    numbering = f'<w:abstractNum w:abstractNumId="7">{kinds}</w:abstractNum>' + "".join(
        f'<w:num w:numId="{name}"><w:abstractNumId w:val="7"/>{more}</w:num>' for name, more in ((1, ""), (2, again))
    )
    written = [clause("Rent", 0), clause("It is due monthly.", 1), clause("By transfer.", 2), clause("In coins.", 2)]
    written += [clause("Late.", 1), clause("Fourth level.", 3), run("Between."), clause("End", 0), clause("Anew", 0, 2)]
    assert read(word(*written, numbering=numbering), "a.docx").split("\n") == [
        *["1. Rent", "1.1 It is due monthly.", "(a) By transfer.", "(b) In coins.", "1.2 Late."],
        *["", "Part I: Fourth level.", "", "Between.", "", "2. End", "1. Anew"],
    ]


def test_docx_numbers_that_a_style_gives() -> None:
    document = docx.Document()
    for text in ("Ropes", "Oars"):
        document.add_paragraph(text, style="List Number")
    document.add_paragraph("tea", style="List Bullet")
    assert read(save(document), "a.docx").split("\n") == ["1. Ropes", "2. Oars", "- tea"]


def test_docx_signs_that_are_no_letters() -> None:
    shown, remark = read_document(
        word(
            '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>' + run(" Insured"),
            run("5 ") + '<w:r><w:sym w:font="Symbol" w:char="F0B1"/></w:r>' + run(" 2"),
            "<w:r><w:t>Co</w:t><w:softHyphen/><w:t>de K</w:t><w:noBreakHyphen/><w:t>7</w:t><w:cr/><w:t>x</w:t></w:r>",
            '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox/></w:ffData></w:fldChar>'
            '<w:fldChar w:fldCharType="end"/></w:r>' + run("Trailer"),
            run("10") + run("6", '<w:vertAlign w:val="superscript"/>') + run(" N on 5 m") + run("2"),
            '<w:pPr><w:framePr w:dropCap="drop"/></w:pPr>' + run("T"),
            run("he pier."),
        ),
        "a.docx",
    )
    assert remark.left_out == "1 form choice"
    assert shown.text.split("\n\n") == [
        "[x] Insured", "5 ± 2", "Code K-7 x", "Trailer", "10⁶ N on 5 m2", "The pier."
    ]  # fmt: skip


def test_docx_what_is_crossed_out_moved_or_remarked_is_not_read_and_what_is_said() -> None:
    moved = "<w:moveFrom w:id='1' w:author='a'>{}</w:moveFrom>".format(run("Elsewhere."))
    note = "<w:r><w:{}Reference w:id='5'/></w:r>"
    content = word(
        run("It opens at ") + run("6", "<w:strike/>") + run("7.") + note.format("comment") + note.format("footnote"),
        moved + run("Here.") + note.format("endnote"),
        comments=f"<w:comment w:id='5'><w:p>{run('Ask Ada.')}</w:p></w:comment>",
        footnotes=f"<w:footnote w:id='5'><w:p>{run('Not in May.')}</w:p></w:footnote>",
        endnotes=f"<w:endnote w:id='5'><w:p>{run('Since 2020.')}</w:p></w:endnote>",
    )
    page, remark = read_document(content, "a.docx")
    assert page.text.split("\n\n") == ["It opens at 7.[1]", "Here.[i]", "[1] Not in May.", "[i] Since 2020."]
    assert remark.left_out == "1 crossed-out text, 1 comment"


def test_docx_headings_by_their_level_alone_and_strict_files() -> None:
    content = word('<w:pPr><w:outlineLvl w:val="1"/></w:pPr>' + run("Fares"), run("Five euros."))
    assert read(content, "a.docx") == "## Fares\n\nFive euros."
    strict = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    usual = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    content = rezip(content, {"word/document.xml": lambda xml: xml.replace(usual, strict)})
    assert read(content, "a.docx") == "## Fares\n\nFive euros."


def test_docx_tables_in_cells_rows_that_begin_later_and_rows_in_content_controls() -> None:
    document = docx.Document()
    table = document.add_table(rows=3, cols=3)
    for at, text in enumerate(["Pier", "Day", "Week", "North", "20", "120", "", "24", "140"]):
        table.cell(at // 3, at % 3).text = text
    late = table.rows[2]._tr
    late.remove(table.cell(2, 0)._tc)
    late.insert(0, parse_xml(f"<w:trPr {WORD}><w:gridBefore w:val='1'/></w:trPr>"))
    inner = table.cell(1, 1).add_table(rows=2, cols=2)
    for at, text in enumerate(["No", "Length", "N1", "7 m"]):
        inner.cell(at // 2, at % 2).text = text
    late.addprevious(control := parse_xml(f"<w:sdt {WORD}><w:sdtContent/></w:sdt>"))
    control[0].append(late)
    assert read(save(document), "a.docx") == "Pier: North; Day: 20 No: N1; Length: 7 m; Week: 120\nDay: 24; Week: 140"


def test_docx_formulas_of_letters_alone_stand_in_their_sentence() -> None:
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    formula = f"<m:oMath {math}><m:r><m:t>F=3.5</m:t></m:r><m:r><m:t> kN</m:t></m:r></m:oMath>"
    assert read(word(run("So ") + formula + run(" holds.")), "a.docx") == "So F=3.5 kN holds."


def test_pdf_pages_of_pictures_alone_are_named(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 40), "red").save(tmp_path / "red.png")
    pdf = FPDF()
    pdf.set_font("helvetica")
    pdf.add_page()
    pdf.cell(text="seen")
    pdf.add_page()
    pdf.image(str(tmp_path / "red.png"), w=100)
    pages = read_document(bytes(pdf.output()), "a.pdf")
    assert [(page.number, page.text, page.left_out) for page in pages] == [
        (1, "seen", ""), (2, "", "no text, only a picture")
    ]  # fmt: skip
    assert say_left_out(pages) == "Left out: page 2: no text, only a picture."


def test_shared_sound_documents_give_sane_text(shared_documents: Path) -> None:
    for path in sorted((shared_documents / "ok").iterdir()):
        if path.suffix in READERS:
            text = "\n".join(page.text for page in read_document(path))
            assert len(text.split()) >= 2, path.name
            assert "\ufffe" not in text and "\x00" not in text and "\r" not in text, path.name
    script = read_document(shared_documents / "ok" / "example-with-scripts.html")[0].text
    assert "function(" not in script and "Russian Offensive Campaign Assessment" in script


@pytest.mark.parametrize("inside", ["<!-- a remark -->", "<?mark of=it?>", "<!-- <w:t>no</w:t> -->"])
def test_text_behind_a_comment_in_a_run_of_word_is_read(inside: str) -> None:
    made = docx.Document()
    body, about = made.element.body, 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    run = f"<w:r>{inside}<w:t>Dues are {inside}fourteen</w:t>{inside}<w:t> pounds</w:t></w:r>"
    body.insert(0, parse_xml(f"<w:p {about}>{inside}{run}</w:p>"))
    made.save(file := io.BytesIO())
    assert [page.text for page in read_document(file.getvalue(), "dues.docx")] == ["Dues are fourteen pounds"]


def test_docx_text_that_is_written_in_two_ways_is_read_once() -> None:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    space += ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    run, paragraph = "<w:r><w:t>Dues are {}</w:t></w:r>", f"<w:p {space}>{{}}</w:p>"
    newer, older = (f"<mc:{tag}>{run}</mc:{tag}>" for tag in ("Choice", "Fallback"))
    both = f"<mc:AlternateContent>{newer}{older}</mc:AlternateContent>"
    only_older = f"<mc:AlternateContent><mc:Choice/>{older}</mc:AlternateContent>"
    made = docx.Document()
    for at, (ways, what) in enumerate([(both, "14 pounds"), (only_older, "21 pounds")]):
        made.element.body.insert(at, parse_xml(paragraph.format(ways.replace("{}", what))))
    made.sections[0].header._element.insert(0, parse_xml(paragraph.format(both.replace("{}", "payable"))))
    assert read(save(made), "dues.docx").split("\n\n") == [
        "Dues are 14 pounds",
        "Dues are 21 pounds",
        "Dues are payable",
    ]
