"""Text, counts and scores as people read them, safe to show on one line."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import combinations

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_NO_CHARACTER = re.compile("[\ud800-\udfff\ufffe\uffff]")
JOINERS = "\u200c\u200d"  # between the letters of some scripts, and of some emoji


def clean(text: str) -> str:
    """On one line, without characters that are not seen or turn the reading direction: no text can disguise itself."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable() or sign in JOINERS)


def literal(text: str) -> str:
    """With its lines, and without control and direction-changing characters; what is no character at all shows as �.

    Half a surrogate pair, as JSON can hold it, would make what it stands in unwritable.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NO_CHARACTER.sub("\ufffd", _CONTROL.sub("", lines))


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def limit_text(most: int | None) -> str:
    return "no sentence limit" if most is None else f"at most {counted(most, 'sentence')}"


def sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def duration(seconds: float) -> str:
    if seconds < 0.0005:
        return "<1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def model_calls(number: int) -> str:
    return counted(number, "LLM call")


def moment(created: str) -> str:
    """A time of day in UTC; what is no time shows as it is."""
    try:
        found = datetime.fromisoformat(created)
        zone = " UTC" if found.tzinfo else ""
        found = found.astimezone(UTC) if found.tzinfo else found
    except (ValueError, OverflowError):  # no time, or one before the first year
        return created
    return f"{found.day} {found:%B %Y, %H:%M}{zone}"


def readable(*numbers: float) -> tuple[str, ...]:
    """Thresholds, and what else somebody has set, with two decimals, or three where they were set so, such as 0.955.

    Where two different ones would read as equal, they have as many as it takes (at most nine).
    """
    return _told_apart(numbers, [3 if round(n, 3) == n != round(n, 2) else 2 for n in numbers])


@lru_cache(maxsize=10_000)  # a moved threshold words each sentence again, most of them alike
def against(score: float, *limits: float) -> tuple[str, ...]:
    """A score with two decimals, and the thresholds that it is shown beside; more only where two would mislead.

    So they would where it read as equal to a threshold that it is not equal to, or as above one that it is below.
    """
    return _told_apart((score, *limits), [2, *(len(one) - 2 for one in readable(*limits))])


def _told_apart(numbers: Sequence[float], digits: Sequence[int]) -> tuple[str, ...]:
    while True:
        said = [f"{number:.{count}f}" for number, count in zip(numbers, digits, strict=True)]
        pairs = (pair for pair in combinations(range(len(numbers)), 2) if _misleads(numbers, said, *pair))
        false = {at for pair in pairs for at in pair if digits[at] < _MOST_DIGITS}
        if not false:
            return tuple(said)
        digits = [count + (at in false) for at, count in enumerate(digits)]


def _misleads(numbers: Sequence[float], said: Sequence[str], one: int, other: int) -> bool:
    first, second = float(said[one]), float(said[other])
    return (numbers[one] < numbers[other]) != (first < second) or (numbers[one] > numbers[other]) != (first > second)


_MOST_DIGITS = 9
