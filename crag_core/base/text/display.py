"""Text, counts and scores as people read them, safe to show on one line."""

from __future__ import annotations

from datetime import UTC, datetime

JOINERS = "\u200c\u200d"  # between the letters of some scripts, and of some emoji


def clean(text: str) -> str:
    """On one line, without characters that are not seen or turn the reading direction: no text can disguise itself."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable() or sign in JOINERS)


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """ "1 passage", "2 passages"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def limit_text(most: int | None) -> str:
    """ "at most 5 sentences", "no sentence limit"."""
    return "no sentence limit" if most is None else f"at most {counted(most, 'sentence')}"


def sentence(reason: str) -> str:
    """A reason with a capital and a full stop."""
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""


def duration(seconds: float) -> str:
    if seconds < 0.0005:
        return "<1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def model_calls(number: int) -> str:
    """ "0 LLM calls", "1 LLM call"."""
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
    """The numbers with two decimals, or as many more as it takes to tell different ones apart (at most nine).

    A number that somebody has set to three decimals, such as a threshold of 0.955, keeps them.
    """
    digits = 3 if any(round(n, 3) == n != round(n, 2) for n in numbers) else 2
    while digits < 9 and len({f"{n:.{digits}f}" for n in numbers}) < len(set(numbers)):
        digits += 1
    return tuple(f"{number:.{digits}f}" for number in numbers)
