"""Markdown as the text that it marks, for showing it. Pure; offsets of a record are those of the text with its marks.

What is no plain mark stays as it stands: HTML, links that lead elsewhere than to a page, a star that has no partner.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(?=\S)")
_LINE = re.compile(r"\s*(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}|={3,})")
RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*|\s*\|\s*:?-+:?\s*\|\s*")
ROW = re.compile(r"\s*\|.*\|\s*|.*\S \| \S.*")
_QUOTE = re.compile(r"^(?:\s{0,3}>\s?)+")
_BULLET = re.compile(r"^(\s*)[-*+]\s+(?:\[[ xX]\]\s+)?(?=\S)")
# What may stand between two marks is bounded, so that no text takes long.
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:https?://[^\s)]{1,999}|[^\s():]{1,300})(?: \"[^\"\n]{0,99}\")?\)"),
        r"\1",
    ),
    (re.compile(r"(?<![\w*\\])\*{2,3}(?=[^\s*])|(?<=[^\s*\\])\*{2,3}(?![\w*])"), ""),  # a sentence may have but one end
    (re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]{1,600})(?<=[^\s*\\])\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_\\])_(?=[^\s_])([^_\n]{1,600})(?<=[^\s_\\])_(?![\w_])"), r"\1"),
    (re.compile(r"(?<![\w_\\])__(?=[^\s_])([^_\n]{1,300}\s[^_\n]{1,300})(?<=[^\s_\\])__(?![\w_])"), r"\1"),
)
_CODE = re.compile(r"(?<!`)(`{1,3})([^`\n]{1,600})\1(?!`)")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")


class Line(NamedTuple):
    words: str
    is_heading: bool = False


def lines_of(text: str) -> tuple[Line, ...]:
    """The lines that say something, without marks; code as it is, but for its fences."""
    return tuple(_lines(text))


def without_marks(text: str) -> str:
    return "\n".join(line.words for line in lines_of(text))


def inline_text(text: str) -> str:
    """Without the marks of emphasis, code and links; what stands between backticks stays as it is."""
    parts, at = [], 0
    for found in _CODE.finditer(text):
        parts += [_unmarked(text[at : found.start()]), found.group(2)]
        at = found.end()
    return "".join([*parts, _unmarked(text[at:])])


def cells(row: str) -> list[str]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", inner)]


def paired(heads: Sequence[str], row: Sequence[str]) -> str:
    """ "head: cell; head: cell", without empty cells and those beyond the heads."""
    pairs = zip_longest(heads, row[: len(heads)], fillvalue="")
    return "; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)


def heads_above(text: str, start: int) -> list[str] | None:
    """The heads of the table that the line beginning at `start` is a row of; None where they are not in the text."""
    above = text[:start].splitlines()
    rule = next((at for at in range(len(above) - 1, 0, -1) if RULE.fullmatch(above[at])), None)
    if rule is None or not all(ROW.fullmatch(line) for line in above[rule + 1 :]):
        return None
    return cells(above[rule - 1])


def _lines(text: str) -> Iterator[Line]:
    in_code = False
    for line in text.splitlines():
        if FENCE.match(line):
            in_code = not in_code
        elif in_code or not line.strip():
            yield from [Line(line)] if line.strip() else []
        elif RULE.fullmatch(line) or _LINE.fullmatch(line):
            continue
        elif mark := _HEADING.match(line):
            yield Line(inline_text(_unclosed(line[mark.end() :].rstrip())), True)
        elif ROW.fullmatch(line) and line.strip().startswith("|"):
            yield Line(inline_text(" · ".join(filter(None, cells(line)))))
        else:
            yield Line(inline_text(_BULLET.sub(r"\1• ", _QUOTE.sub("", line, count=1), count=1)))


def _unclosed(heading: str) -> str:
    """Without the signs that may end a heading, "## So ##"; those of "C#" stay."""
    bare = heading.rstrip("#")
    return bare.rstrip() if bare.endswith((" ", "\t")) else heading


def _unmarked(text: str) -> str:
    for mark, kept in _INLINE:
        text = mark.sub(kept, text)
    return _ESCAPED.sub(r"\1", text)
