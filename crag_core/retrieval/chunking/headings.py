"""The headings that each chunk of a page stands under."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

JOINED = " › "
LONGEST_SECTION = 200
_LINE = re.compile(r"(?m)^(?P<fence>```|~~~)|^(?P<marks>#{1,6}) +(?P<title>\S.*)$")
_HEADINGS = re.compile(r"(?:#{1,6} .*\s*)*")


def find_sections(text: str, pieces: Iterable[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    """Each piece with the headings above its start, outermost first; "" above the first heading.

    `text` is Markdown; `pieces` are parts of it with their offsets.
    """
    places = list(_headings(text))
    starts = [start for start, _ in places]
    for at, piece in pieces:
        # A chunk that begins with headings belongs to them.
        opening = _HEADINGS.match(piece)
        begun = at + (opening.end() if opening else 0)
        index = bisect_right(starts, max(begun - 1, at))
        yield piece, places[index - 1][1] if index else ""


def _headings(text: str) -> Iterator[tuple[int, str]]:
    """(offset, the path down to it) of every heading."""
    path: list[tuple[int, str]] = []
    in_code = False
    for match in _LINE.finditer(text):
        if match["fence"]:
            in_code = not in_code
        elif not in_code:
            level = len(match["marks"])
            # A line may also end with "#". Titles are cut, since whole ones in every path would take quadratic time.
            title = (match["title"][0] + match["title"][1:].rstrip(" #"))[:LONGEST_SECTION]
            path = [*((depth, above) for depth, above in path if depth < level), (level, title)]
            yield match.start(), JOINED.join(above for _, above in path)[:LONGEST_SECTION]
