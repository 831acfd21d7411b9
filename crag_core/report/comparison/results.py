"""Measures of configurations as a page shows them: values, intervals, and gains over the first configuration."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.experiments.comparison.metrics import MEASURES, Measure, Unit
from crag_core.experiments.comparison.table import Cell
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.store.result_files import figure

BETTER, WORSE, DIFFERENT, UNCLEAR = "correct", "incorrect", "either", "open"
"""Tones, which name the colour and the shape; DIFFERENT is certain, and neither better nor worse."""
VERDICTS = {BETTER: "better", WORSE: "worse", DIFFERENT: "different", UNCLEAR: "no clear difference"}

DIRECTIONS = {1: "more is better", -1: "less is better", 0: "neither is better"}
_PART = "… "


@dataclass(frozen=True)
class Shown:
    value: str
    interval: str = ""


def tone_of(measure: Measure, cell: Cell) -> str:
    """Only a gain whose interval leaves 0 out is better or worse."""
    if cell.gain is None or not cell.is_certain:
        return UNCLEAR
    if not measure.better:
        return DIFFERENT
    return BETTER if (cell.gain.low > 0) is (measure.better > 0) else WORSE


def title_of(measure: Measure) -> str:
    """In full: "… of answerable questions" says of what only below the title before it."""
    if not measure.title.startswith(_PART):
        return measure.title
    earlier = [one.title for one in MEASURES[: MEASURES.index(measure)] if not one.title.startswith(_PART)]
    return f"{earlier[-1]} {measure.title.removeprefix(_PART)}"


def describe_found(found: Estimate | None, unit: Unit) -> Shown:
    if found is None:
        return Shown("–")
    return Shown(figure(found.value, unit), f"{figure(found.low, unit)} to {figure(found.high, unit)}")


def describe_gain(gain: Estimate | None, unit: Unit, signed: bool = True) -> Shown:
    """Of shares in percentage points, without the word."""
    if gain is None:
        return Shown("–")
    if is_none(gain):
        return Shown("no difference")
    ends = (_describe_end(end, unit, signed) for end in (gain.low, gain.high))
    return Shown(_describe_size(gain.value, unit, signed), " to ".join(ends))


def is_none(gain: Estimate) -> bool:
    """Whether no draw of the questions showed any."""
    return gain.value == gain.low == gain.high == 0


def _describe_size(size: float, unit: Unit, signed: bool) -> str:
    """What rounds to 0 has no sign."""
    text = figure(size, unit, signed).removesuffix("%")
    return text if float(text) else text.lstrip("+")


def _describe_end(end: float, unit: Unit, signed: bool) -> str:
    """An end that would round to 0 and is not 0 says so: it makes a gain certain or not."""
    text = _describe_size(end, unit, signed)
    if end == 0 or float(text):
        return text
    return "just above 0" if end > 0 else "just below 0"
