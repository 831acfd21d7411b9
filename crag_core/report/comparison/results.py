"""Measures of configurations as a page tells them: values, intervals, and gains over the first configuration."""

from __future__ import annotations

from dataclasses import dataclass

from crag_core.experiments.comparison.metrics import MEASURES, Measure, Unit
from crag_core.experiments.comparison.table import Cell
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.store.result_files import figure

BETTER, WORSE, DIFFERENT, UNCLEAR = "correct", "incorrect", "either", "open"
"""Tones, which name the colour and the shape; DIFFERENT is certain, and neither better nor worse."""
VERDICTS = {BETTER: "better", WORSE: "worse", DIFFERENT: "different", UNCLEAR: "no clear difference"}

_PART = "… "


@dataclass(frozen=True)
class Told:
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


def describe_found(found: Estimate | None, unit: Unit) -> Told:
    return Told(describe_value(found.value, unit), describe_range(found, unit)) if found else Told("–")


def describe_gain(gain: Estimate, unit: Unit, signed: bool = True) -> Told:
    """Of shares in percentage points, without the word."""
    if is_none(gain):
        return Told("no difference")
    ends = (_describe_end(end, unit, signed) for end in (gain.low, gain.high))
    return Told(_describe_size(gain.value, unit, signed), " to ".join(ends))


def is_none(gain: Estimate) -> bool:
    """Whether no draw of the questions showed any."""
    return gain.value == gain.low == gain.high == 0


def describe_value(value: float, unit: Unit) -> str:
    """What rounds to 0 has no sign."""
    return _zero_unsigned(figure(value, unit))


def describe_range(found: Estimate, unit: Unit) -> str:
    return f"{describe_value(found.low, unit)} to {describe_value(found.high, unit)}"


def _describe_size(size: float, unit: Unit, signed: bool) -> str:
    return _zero_unsigned(figure(size, unit, signed)).removesuffix("%")


def _describe_end(end: float, unit: Unit, signed: bool) -> str:
    """An end that would show as 0 and is not is told as such: it makes a gain certain or not."""
    message = _describe_size(end, unit, signed)
    if end == 0 or float(message):
        return message
    return "just above 0" if end > 0 else "just below 0"


def _zero_unsigned(message: str) -> str:
    return message if float(message.removesuffix("%")) else message.lstrip("+-")
