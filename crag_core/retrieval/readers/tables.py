"""Tables and sheets as lines of text, each with the headers of its cells, so that a row makes sense in any chunk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise

Rows = list[list[str]]
Header = dict[int, tuple[str, list[int]]]
"""The name of each column, and the columns of its table."""

_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?: \d\d:\d\d.*)?|[A-Z][a-z]{2} \d{4}|\d\d?[./]\d\d?[./]\d{2,4}")
_FIGURE = re.compile(r"[-+(\u2212]?[$€£¥]?\s?\d[\d.,  ']*\)?\s?[$€£¥]?|TRUE|FALSE|=.*|\d+:\d\d(?::\d\d)?")
# A line with a "|", one of dashes, and more with a "|"; with or without one at their ends, or in a quotation.
_TABLE = re.compile(
    r"(?m)^(?=[^|\n]*\|).*\n(?=[^|\n]*\|)[ \t>]*+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t]*+$"
    r"(?:\n(?=[^|\n]*\|).*$)*"
)
_WIDEST = 600  # letters
_CELL_END = re.compile(r"(?<!\\)\|")


def pair_cells(header: list[str], row: list[str], section: str = "") -> str:
    """ "header: value; header: value". Empty cells are left out, cells beyond the header numbered; "": no header.

    A row that would not fit into a chunk becomes several lines, each with its first cell.
    """
    names = header + [f"column {number}" for number in range(len(header) + 1, len(row) + 1)]
    pairs = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell]
    lines = [[section] if section else []]
    for pair in pairs:
        if sum(map(len, lines[-1])) + len(pair) > _WIDEST and len(lines[-1]) > 1:
            lines.append([*lines[0][: 1 + bool(section)]])
        lines[-1].append(pair)
    return "\n".join(map("; ".join, lines))


def show_markdown_tables(text: str) -> str:
    """The text with each Markdown table outside fenced code replaced by its rows, see `show_rows`."""
    return outside_code(text, lambda part: _TABLE.sub(_show_match, part))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with all but fenced code changed."""
    parts = re.split(r"(?ms)^((?:```|~~~).*?^(?:```|~~~))", text)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


def _show_match(found: re.Match[str]) -> str:
    is_quoted = found[0].lstrip().startswith(">")
    header, rule, *below = (_cut_row(line.lstrip(" \t>") if is_quoted else line) for line in found[0].split("\n"))
    return show_rows([header, *below]) if len(header) == len(rule) else found[0]


def _cut_row(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    cells = _CELL_END.split(inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner)
    return [re.sub(r"<br ?/?>", " ", cell.strip().replace("\\|", "|")) for cell in cells]


def show_rows(rows: Iterable[Sequence[str]]) -> str:
    """One line per row with its headers, a blank line between tables.

    Empty rows separate tables, and so do empty columns between two tables side by side. A part without a header of its
    own continues under the header of the part above. A line across the table is a section, which its rows begin with.
    Cells that a merge repeats stand in each of their places.
    """
    header: Header = {}
    shown = []
    clean = ([" ".join(cell.split()) for cell in row] for row in rows)
    for is_filled, run in groupby(clean, key=any):
        if is_filled:
            block = list(run)
            width = max(map(len, block))
            block = [row + [""] * (width - len(row)) for row in block]
            parts = _split_columns(block)
            # Two columns beside a form are one too.
            cut = [_cut(block, columns) for columns in parts if len(columns) == 2]
            are_forms = len(parts) > 1 and len(cut) == len(parts) and any(map(_is_form, cut))
            for columns in parts:
                text, header = _show_block(block, columns, header, are_forms)
                shown.append(text)
    return "\n\n".join(filter(None, shown))


def _split_columns(block: Rows) -> list[list[int]]:
    """The columns that are filled, split where an empty one separates two tables."""
    used = sorted({at for row in block for at, cell in enumerate(row) if cell})
    parts = [[at for _, at in run] for _, run in groupby(enumerate(used), key=lambda pair: pair[1] - pair[0])]
    joined = [parts[0]]
    for part in parts[1:]:
        # A column alone, or columns that begin with figures, belong to the names on their left.
        if len(part) > 1 and len(joined[-1]) > 1 and _names_rows(block, part[0]) and _names_rows(block, joined[-1][0]):
            joined.append(part)
        else:
            joined[-1] = joined[-1] + part
    return joined


def _names_rows(block: Rows, column: int) -> bool:
    below = [row[column] for row in block if row[column]][1:]
    return bool(below) and all(shape_of(cell) == "text" for cell in below)


def _cut(block: Rows, columns: list[int]) -> Rows:
    return [row for row in ([row[column] for column in columns] for row in block) if any(row)]


def _show_block(block: Rows, columns: list[int], above: Header, is_form: bool) -> tuple[str, Header]:
    rows = _cut(block, columns)
    lines = []
    # Titles: one cell, often merged over the table, above the real header.
    while rows and _is_line(rows[0]):
        lines.append(next(filter(None, rows.pop(0))))
    if not rows:
        return "\n".join(lines), above
    is_known = all(column in above and above[column][1] == columns for column in columns)
    if (is_form or _is_form(rows)) and not is_known:
        return "\n".join([*lines, *(_show_fact(row) for row in rows)]), above
    # Names below names, without a title between, look like a header and are the next rows of the same table.
    goes_on = not lines and is_known and all(shape_of(cell) == "text" for row in rows for cell in row)
    names, body = ([], rows) if goes_on else _take_header(rows)
    if not body:
        lines.append(_show_fact(names) if above and len(names) == 2 else _show_alone(names))
    is_below = len(columns) > 1 and all(column in above for column in columns)
    if not names and is_below and 2 * len(columns) >= len(above[columns[0]][1]):
        names = [above[column][0] for column in columns]
    lines += _show_body(names, body, len(columns) > 2) if names else map(_show_alone, body)
    own = {at: (name, columns) for at, name in zip(columns, names, strict=True)} if names else {}
    return "\n".join(lines), {**above, **own}


def _show_alone(row: list[str]) -> str:
    """Without headers, merged cells once."""
    return " | ".join(cell for cell, _ in groupby(row) if cell)


def _show_body(names: list[str], body: Rows, may_have_sections: bool) -> Iterator[str]:
    section = ""
    for at, row in enumerate(body):
        is_last = at + 1 == len(body)
        if _is_line(row) and may_have_sections and row[0] and (not is_last or len(row[0].split()) > 2):
            # A note below the table is no section.
            section = "" if is_last or _is_line(body[at + 1]) else row[0]
            yield row[0]
        else:
            yield pair_cells(names, row, section)


def _is_form(rows: Rows) -> bool:
    if not all(sum(map(bool, row)) <= 2 and row[0] for row in rows) or len(rows[0]) < 2:
        return False
    name, value = rows[0][0], next((cell for cell in rows[0][1:] if cell), "")
    if name.endswith(":"):
        return True
    if len(rows[0]) > 2 and len(rows) > 1:
        return False
    below = [row[1] for row in rows[1:]]
    if below and shape_of(value) != "text" and _stands_out(value, below) and not any(map(_is_word, below)):
        return False
    words = [re.sub(r"\d+", "", cell).strip() for cell in (name, value)]
    is_numbered = words[0] == words[1] != ""
    is_value = len(value) > 40 or any(letter.isdigit() for letter in value)
    return is_value and not is_numbered and shape_of(name) == "text" and not re.fullmatch(r"\d+\w{2} .*", value)


def _is_word(cell: str) -> bool:
    return len(cell) > 2 and shape_of(cell) == "text"


def _show_fact(row: list[str]) -> str:
    return ": ".join(cell.rstrip(":") if at == 0 else cell for at, cell in enumerate(filter(None, row)))


def _take_header(rows: Rows) -> tuple[list[str], Rows]:
    """The names of the columns, none if there is no header, and the rows below.

    A header that groups others (a merged "2020" above "Sales" and "Costs") is put before each of them.
    """
    if not is_header(rows[0], rows[1:]):
        return [], rows
    names, rows = rows[0], rows[1:]
    if (
        len(rows) > 1
        and any(name and name == other for name, other in pairwise(names))
        and is_header(rows[0], rows[1:])
    ):
        names = [" ".join(dict.fromkeys(filter(None, pair))) for pair in zip(names, rows[0], strict=True)]
        rows = rows[1:]
    return [name or f"column {number}" for number, name in enumerate(names, 1)], rows


def is_header(row: list[str], below: Rows) -> bool:
    """Texts, or years, shares and dates above columns of something else."""
    filled = [(at, cell) for at, cell in enumerate(row) if cell]
    if len(filled) < 2 or row[0].endswith(":"):
        return False
    shapes = {shape_of(cell) for _, cell in filled}
    if shapes == {"figure"} or (shapes != {"text"} and not below):
        return False
    return all(
        shape_of(cell) == "text"
        or _stands_out(cell, [other[at] for other in below])
        or ("text" in shapes and _is_index(cell, below, at))
        for at, cell in filled
    )


def _is_index(cell: str, below: Rows, at: int) -> bool:
    """A bare number that names a column ("3" above crosses)."""
    return cell.isdigit() and all(shape_of(row[at]) == "text" for row in below if row[at])


def _stands_out(cell: str, below: list[str]) -> bool:
    kind = shape_of(cell)
    return kind != "figure" and all(shape_of(other) != kind for other in below if other)


def shape_of(cell: str) -> str:
    if _YEAR.fullmatch(cell):
        return "year"
    if _DATE.fullmatch(cell):
        return "date"
    if cell.endswith("%") and _FIGURE.fullmatch(cell[:-1]):
        return "share"
    return "figure" if _FIGURE.fullmatch(cell) else "text"


def _is_line(row: list[str]) -> bool:
    """One text in a row, once or over all of three or more merged cells, and no figure."""
    said = [cell for cell in row if cell]
    is_one = len(said) == 1 or (len(said) == len(row) > 2 and len({*said}) == 1)
    return is_one and shape_of(said[0]) == "text"
