"""Writes CSV whose cells no spreadsheet runs as formulas. Pure.

A spreadsheet calculates a cell that begins with one of a few signs, and may look for that beginning behind characters
that are not seen. Many take a semicolon, a tab or a line end for the end of a cell, so these begin one as well.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

from crag_core.base.prompts.delimiters import UNSEEN

_SIGN = "=+\\-@＝＋－＠﹦﹢﹣﹫"
_UNSEEN = f"\\s\u2800{UNSEEN}"
_BEGUN = re.compile("'*[\t\r\n]")
_FORMULA = re.compile(f"(\\A(?:(?![\t\r\n])['{_UNSEEN}])*|[;\t\r\n]['\"{_UNSEEN}]*)([{_SIGN}]?)")
"""Takes a run of separators and unseen characters whole, with a sign or without, so that it is looked at once."""


def written(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([neutral(cell) for cell in row] for row in rows)
    return text.getvalue()


def neutral(cell: object) -> object:
    """A text that a spreadsheet would calculate gets an apostrophe, which makes it a text there; `as_it_was` undoes it.

    What is no text, such as the number -0.5, stays as it is.
    """
    if not isinstance(cell, str):
        return cell
    return ("'" if _BEGUN.match(cell) else "") + _marked(cell, lambda run: f"{run}'")


def as_it_was(cell: str) -> str:
    """The text that `neutral` made this cell of. What others wrote loses an apostrophe before such a sign, too."""
    bare = cell[1:] if cell.startswith("'") and _BEGUN.match(cell[1:]) else cell
    return _marked(bare, lambda run: run.removesuffix("'"))


def _marked(cell: str, changed: Callable[[str], str]) -> str:
    return _FORMULA.sub(lambda run: (changed(run[1]) if run[2] else run[1]) + run[2], cell)
