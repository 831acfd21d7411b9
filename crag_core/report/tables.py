"""A page of sections with tables, for whoever has no application: compared configurations, chosen thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.text.display import moment
from crag_core.report import page, style_sheet

NO_NAME, NO_DAY = "(no name)", "on a day that was not recorded"


@dataclass(frozen=True)
class Cell:
    """`fine` stands small behind `value`, and `gain` below them in the colour of `tone`.

    `is_wanted`: what the label of a question asks for, which is marked.
    """

    value: str
    fine: str = ""
    gain: str = ""
    tone: str = ""
    is_wanted: bool = False


Row = tuple[Cell, ...]
"""The first cell heads the row; one that is alone heads the rows below it."""


@dataclass(frozen=True)
class Grid:
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Section:
    """Paragraphs, then `facts` by name, tables, points, and a command."""

    title: str
    lines: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    grids: Sequence[Grid] = ()
    points: Sequence[str] = ()
    command: str = ""


def render_tables(
    kind: str,
    name: str,
    created: str,
    lead: str,
    sections: Sequence[Section],
    source: str,
    holds: str = "It holds no question, label or document.",
) -> str:
    """The page as HTML; `source` is what it was made from, `holds` says what of it stands there.

    It needs no network and no script. All that it is given shows as text. The same arguments always give the same.
    """
    style, key = style_sheet()
    return (
        page()
        .environment.get_template("tables.html")
        .render(
            style=style,
            style_key=key,
            kind=kind,
            name=name.strip() or NO_NAME,
            created=moment(created).strip() or NO_DAY,
            lead=lead,
            sections=sections,
            source=source,
            holds=holds,
        )
    )


def share_of(count: int, total: int, is_wanted: bool = False) -> Cell:
    return Cell(str(count), f"{count / total:.0%}" if total else "", is_wanted=is_wanted)
