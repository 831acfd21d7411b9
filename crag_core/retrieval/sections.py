"""Under which headings each passage of a page stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

JOINED = " › "
_LINE = re.compile(r"(?m)^(?P<fence>```|~~~)|^(?P<marks>#{1,6}) +(?P<title>\S.*?)[ #]*$")
_LONGEST = 200


def find_sections(text: str, pieces: Sequence[str]) -> list[str]:
    """The headings above the start of each piece, outermost first; "" above the first heading.

    `text` marks headings with "#" as Markdown does; what stands between fences is code. `pieces` are parts of it in
    reading order, which may overlap; one that is not found there shares the place of the piece before.
    """
    places = list(_headings(text))
    starts = [start for start, _ in places]
    found: list[str] = []
    at = 0
    for piece in pieces:
        at = max(text.find(piece, at), at)
        # A passage that begins with headings stands under them.
        begun = at + len(re.match(r"(?:#{1,6} .*\s*)*", piece)[0])  # type: ignore[index]
        index = bisect_right(starts, max(begun - 1, at))
        found.append(places[index - 1][1] if index else "")
        at += 1
    return found


def _headings(text: str) -> Iterator[tuple[int, str]]:
    """(offset, the path down to it) of every heading."""
    path: list[tuple[int, str]] = []
    in_code = False
    for match in _LINE.finditer(text):
        if match["fence"]:
            in_code = not in_code
        elif not in_code:
            level = len(match["marks"])
            path = [*((depth, title) for depth, title in path if depth < level), (level, match["title"])]
            yield match.start(), JOINED.join(title for _, title in path)[:_LONGEST]
