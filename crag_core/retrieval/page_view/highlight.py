"""Highlights on a page image: letter boxes merged into lines, kept sentences marked, dropped ones crossed out."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

# In heights of a letter: a wider gap is the next cell of a table or the next column, not the next word.
_WIDEST_GAP = 1.3
_SAME_LINE = 0.5
# One set of colours for both themes, since paper is white. Fills are multiplied in: black letters stay black.
_FILLS = {True: "#c9efd8", False: "#f1f3f5", None: "#dbeafb"}
_LINES = {True: "#1b7f4b", False: "#6b7681", None: "#1d5b8f"}
# For pale letters on a dark ground, as in the head of a table: there the ground is tinted.
_DARK_FILLS = {True: "#2c9a63", False: "#8b959f", None: "#3580c2"}
_DARK_LINES = {True: "#9ff0c6", False: "#ffffff", None: "#b9dcfb"}
_DARK = 110  # of 255
_STRIPES = "#dde2e7"
_FADED = 0.4


@dataclass(frozen=True)
class Box:
    """A part of one line, in pixels from the upper left corner of the picture.

    `kept`: whether its sentence reaches the answer; None outside of all sentences. `span` is the index of the sentence
    among those that were asked for, None for the rest of the text.
    """

    left: float
    top: float
    right: float
    bottom: float
    kept: bool | None = None
    span: int | None = None

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def around(self, other: Box) -> Box:
        return replace(
            self,
            left=min(self.left, other.left),
            top=min(self.top, other.top),
            right=max(self.right, other.right),
            bottom=max(self.bottom, other.bottom),
        )


def join_letters(letters: Iterable[Box]) -> list[Box]:
    """One box per line, more where a line has wide gaps; lines may also run down the page."""
    joined: list[Box] = []
    run: list[Box] = []
    runs_down: bool | None = None
    for letter in letters:
        direction = _follows(run, letter)
        if direction is not None and runs_down in (None, direction) and letter.span == run[0].span:
            run.append(letter)
            runs_down = direction
            joined[-1] = joined[-1].around(letter)
        else:
            joined.append(letter)
            run, runs_down = [letter], None
    return joined


def _follows(run: Sequence[Box], letter: Box) -> bool | None:
    """Whether a letter continues the run down the page (True) or along the line (False); None: neither."""
    if not run:
        return None
    first, last = run[0], run[-1]
    reach = _WIDEST_GAP * max(last.width, last.height, letter.width, letter.height)
    beside = _gap(last.left, last.right, letter.left, letter.right)
    below = _gap(last.top, last.bottom, letter.top, letter.bottom)
    # Compared with the first one too, so that slanting text does not end in one box around all of it.
    if beside <= reach and all(_share(one.top, one.bottom, letter.top, letter.bottom) for one in (first, last)):
        return False
    if below <= reach and all(_share(one.left, one.right, letter.left, letter.right) for one in (first, last)):
        return True
    return None


def _gap(low: float, high: float, other_low: float, other_high: float) -> float:
    return max(other_low - high, low - other_high)


def _share(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Whether two stretches overlap by half of the shorter one."""
    common = min(high, other_high) - max(low, other_low)
    return common > 0 and common >= _SAME_LINE * min(high - low, other_high - other_low)


def mark_page(page: Image, boxes: Sequence[Box]) -> bytes:
    from PIL import Image, ImageChops, ImageDraw

    dark = {box for box in boxes if _is_dark(page, box)}
    light = [box for box in boxes if box not in dark]
    tint = Image.new("RGB", page.size, "white")
    # All fills before any line, and each once: boxes of neighbouring lines overlap.
    for kept in {box.kept for box in boxes}:
        covered = _cover(page.size, [box for box in light if box.kept is kept])
        if kept is False:
            page = Image.composite(Image.blend(page, Image.new("RGB", page.size, "white"), _FADED), page, covered)
        tint.paste(_stripes(page.size, boxes) if kept is False else _FILLS[kept], mask=covered)
        covered = _cover(page.size, [box for box in dark if box.kept is kept])
        page = Image.composite(Image.blend(page, Image.new("RGB", page.size, _DARK_FILLS[kept]), _FADED), page, covered)
    marked = ImageChops.multiply(page, tint)
    pen = ImageDraw.Draw(marked)
    for box in boxes:
        _draw_line(pen, box, _DARK_LINES[box.kept] if box in dark else _LINES[box.kept])
    stream = io.BytesIO()
    marked.save(stream, "PNG", compress_level=4)
    return stream.getvalue()


def _is_dark(page: Image, box: Box) -> bool:
    ground = page.crop((int(box.left), int(box.top), int(box.right) + 1, int(box.bottom) + 1)).convert("L")
    middle = ground.width * ground.height // 2
    return sum(ground.histogram()[:_DARK]) > middle


def _cover(size: tuple[int, int], boxes: Iterable[Box]) -> Image:
    from PIL import Image, ImageDraw

    covered = Image.new("L", size, 0)
    pen = ImageDraw.Draw(covered)
    for box in boxes:
        pen.rounded_rectangle(_padded(box), radius=_weight(box) * 2, fill=255)
    return covered


def _draw_line(pen: ImageDraw, box: Box, colour: str) -> None:
    """Through the middle of dropped text, below other text; vertical where text runs down the page."""
    left, top, right, bottom = _padded(box)
    runs_down = box.height > 2 * box.width
    if box.kept is False:
        across, down = (left + right) / 2, (top + bottom) / 2
    else:
        across, down = left, bottom
    line = [across, top, across, bottom] if runs_down else [left, down, right, down]
    pen.line(line, fill=colour, width=_weight(box))


def _stripes(size: tuple[int, int], boxes: Sequence[Box]) -> Image:
    from PIL import Image, ImageDraw

    pattern = Image.new("RGB", size, _FILLS[False])
    pen = ImageDraw.Draw(pattern)
    weight = median_low(_weight(box) for box in boxes)
    for start in range(-size[1], size[0], 5 * weight):
        pen.line([start, size[1], start + size[1], 0], fill=_STRIPES, width=weight)
    return pattern


def _padded(box: Box) -> tuple[float, float, float, float]:
    rim = _weight(box)
    return (box.left - rim, box.top, box.right + rim, box.bottom)


def _weight(box: Box) -> int:
    return max(1, round(min(box.width, box.height) / 12))
