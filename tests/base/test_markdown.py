"""Markdown is shown as the text that it marks; what is no mark stays."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.text.markdown import heads_above, inline_text, lines_of, without_marks

TABLE = "| Method | Path |\n|---|:-:|\n| GET | `/sailings?a=1` |\n| POST | /holds |"


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("## Endpoints ##", "Endpoints"),
        ("**Bold** and *slanted* and ***both***.", "Bold and slanted and both."),
        ("**Important. Read this.", "Important. Read this."),  # a sentence cut out of a bold paragraph
        ("Then stop.**", "Then stop."),
        ("_Slanted_ and __two words__, but `__init__` and snake_case_name and __all__.",
         "Slanted and two words, but __init__ and snake_case_name and __all__."),
        ("Run `pip install *` now.", "Run pip install * now."),
        ("See [the fares](https://example.org/fares) or [below](#fares).", "See the fares or below."),
        ("![A map](map.png)", "A map"),
        ("> quoted", "quoted"),
        ("- item\n* [x] done\n+ third", "• item\n• done\n• third"),
        ("1. first", "1. first"),
        ("| a | b \\| c |", "a · b | c"),
        ("a\n---\nb", "a\nb"),
        ("~~gone~~ \\*kept\\*", "~~gone~~ *kept*"),
        ("```python\n# no heading\nx = a**b\n```", "# no heading\nx = a**b"),
    ],
)  # fmt: skip
def test_marks_go_and_words_stay(marked: str, shown: str) -> None:
    assert without_marks(marked) == shown


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4 = 24, 2*3*4 and 2**3",
        "* see note, 8.40* and 9.00*",
        "C# and #1",
        "a_b_c, _, __",
        "<img src=x onerror=alert(1)> [x](javascript:alert(1))",
        "route: R1; from_to: Kelderport - Corsay",
        "5 < 6 | 7",
    ],
)
def test_what_is_no_mark_stays(text: str) -> None:
    assert inline_text(text) == text


def test_headings_are_told_from_other_lines_and_rules_of_tables_are_none() -> None:
    assert lines_of(f"# Head\n\n{TABLE}") == (
        ("Head", True), ("Method · Path", False), ("GET · /sailings?a=1", False), ("POST · /holds", False),
    )  # fmt: skip


def test_the_heads_of_a_row_are_those_above_it() -> None:
    assert heads_above(TABLE, TABLE.index("| POST")) == ["Method", "Path"]
    assert heads_above(f"{TABLE}\n\nThe end.", len(TABLE) + 2) is None
    assert heads_above("a | b\n---|---\n1 | 2", 14) == ["a", "b"]
    assert heads_above("| 1 | 2 |\n| 3 | 4 |", 10) is None, "cut off with the chunk before"


@given(st.text("ab*_`~#|>[]()-\\ \n.", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    shown = without_marks(text)
    assert sorted(c for c in shown if c in "ab") == sorted(c for c in text if c in "ab") or "](" in text or "`" in text


@pytest.mark.parametrize("piece", ["[", "*", "`", "_a ", "**a", "[a](", "~~a", "# ", "| ", "|-", "- ", "> ", "\\"])
def test_no_text_takes_long(piece: str) -> None:
    begun = time.process_time()
    without_marks(piece * 20_000)
    assert time.process_time() - begun < 5
