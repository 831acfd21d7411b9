"""Values of cells as a spreadsheet program displays them: 2021-03-04 and not a serial number, 12% and not 0.12."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

_PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^-\]]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|'
    r"(?P<digits>[0#?][0#?,.]*|\.[0#?]+)|(?P<other>.)"
)
# Beyond this a float has no exact places, and spreadsheets show exponents.
_LARGEST = 1e15


def format_value(value: object, number_format: str = "General") -> str:
    """`number_format` is a format code of Excel; rare ones show a plain number.

    Dates are written the ISO way in any format, since 03/04/21 means two days.
    """
    match value:
        case None:
            return ""
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return _show_date(value, number_format) if value.time() == time() else _show_moment(value)
        case date():
            return value.isoformat()
        case time():
            return value.isoformat("auto" if value.second else "minutes")
        case timedelta():
            return _show_duration(value)
        case int() | float():
            return format_number(value, number_format)
    return str(value)


def format_number(value: int | float, number_format: str) -> str:
    code, value = _choose_section(number_format, value)
    general = _show_general(value)
    if not abs(value) < _LARGEST or code.strip().lower() in ("general", "@", "") or re.search(r"[eE][+-]|\?/", code):
        return general
    before, after, digits = "", "", ""
    for piece in _PIECE.finditer(code):
        literal = piece["quoted"] or piece["escaped"] or piece["currency"] or piece["other"] or ""
        if piece["digits"] and digits:
            return general  # digits in groups, as of a telephone number
        digits = digits or piece["digits"] or ""
        before, after = (before, after + literal) if digits else (before + literal, after)
    if not digits:
        return (before + after).strip()
    shown = _show_digits(value * (100 if "%" in before + after else 1), digits)
    return f"{'-' if value < 0 else ''}{before}{shown}{after}".strip()


def _choose_section(number_format: str, value: int | float) -> tuple[str, int | float]:
    """Formats have sections for positive numbers, negative ones (without their sign) and zero."""
    sections = re.split(r';(?=(?:[^"]*"[^"]*")*[^"]*$)', number_format)
    if value < 0 and len(sections) > 1:
        return sections[1], -value
    return (sections[2] if value == 0 and len(sections) > 2 else sections[0]), value


def _show_digits(value: int | float, digits: str) -> str:
    whole, _, places = digits.rstrip(",").partition(".")
    scaled = Decimal(str(value)).copy_abs() / 1000 ** (len(digits) - len(digits.rstrip(",")))
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), ROUND_HALF_UP)
    shown = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    left, _, right = shown.partition(".")
    # "#" is a digit that is shown only when needed, "0" one that always is.
    needed = len(places.rstrip("#?"))
    right = right[:needed] + right[needed:].rstrip("0")
    left = left.zfill(whole.count("0"))
    return f"{left}.{right}" if right else left


def _show_general(value: int | float) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        value = int(value)
    # 15 digits, as in spreadsheets: 0.1 + 0.2 is 0.3.
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def _show_date(value: datetime, number_format: str) -> str:
    code = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", number_format.lower())
    if "d" in code or "y" not in code:
        return value.date().isoformat()
    return f"{value:%b %Y}" if "m" in code else f"{value:%Y}"


def _show_moment(value: datetime) -> str:
    if value.microsecond:
        # Times are fractions of a day, and come out a few microseconds off.
        value = (value + timedelta(microseconds=500_000)).replace(microsecond=0)
    return value.isoformat(" ", "seconds" if value.second else "minutes")


def _show_duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    tail = f":{seconds % 60:02}" if seconds % 60 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}{tail}"
