"""Formats numbers for people: counts, and scores with enough decimals to compare."""

from __future__ import annotations


def readable(*numbers: float) -> tuple[str, ...]:
    """The numbers with two decimals, or as many more as it takes to tell different ones apart (at most nine).

    A number that somebody has set to three decimals, such as a threshold of 0.955, keeps them.
    """
    digits = 3 if any(round(n, 3) == n != round(n, 2) for n in numbers) else 2
    while digits < 9 and len({f"{n:.{digits}f}" for n in numbers}) < len(set(numbers)):
        digits += 1
    return tuple(f"{number:.{digits}f}" for number in numbers)
