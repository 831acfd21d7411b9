"""Merges letter boxes into line boxes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

# In heights of a letter: a wider gap is the next cell of a table or the next column, not the next word.
_WIDEST_GAP = 1.3
_SAME_LINE = 0.5


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
        """The smallest box that holds both; otherwise like this one."""
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
