"""No cell of a CSV file is a formula, by whatever separator it is read, and what was written can be read again."""

import csv
import io
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crag_core.base.text.csv_cells import as_it_was, neutral, written

UNSEEN = (" ", "\t", "\r", "\n", "\u00a0", "\u200b", "\u3000", "\ufeff", "\u00ad", "\u2028", "\u202e", "\u2060",
          "\u3164", "\ufe0f", "\U000e0041", "\x1b", "\u180e", "\u2800")  # fmt: skip
SIGNS = "=+-@＝＋－＠﹢﹣"


def is_formula(cell: str) -> bool:
    """Told by other means than the module has: the first character that leaves a mark on paper."""
    blank = {"\u3164", "\u2800", "\uffa0", "\u115f", "\u1160", "\u034f", "\u17b4", "\u17b5"}
    seen = [
        sign
        for sign in cell
        if not (
            sign.isspace() or sign in blank or unicodedata.category(sign)[0] in "CZ" or "\ufe00" <= sign <= "\ufe0f"
        )
    ]
    return bool(seen) and unicodedata.normalize("NFKC", seen[0]) in ("=", "+", "-", "@")


@pytest.mark.parametrize("sign", SIGNS)
def test_a_formula_is_marked_wherever_a_cell_may_begin(sign: str) -> None:
    for before in ("", *UNSEEN, "\u200b \ufeff"):
        begun = "'" if before in ("\t", "\r", "\n") else ""
        assert neutral(f"{before}{sign}1+1") == f"{begun}{before}'{sign}1+1"
        for separator in (";", "\t", "\n", '; "'):
            text = f"a{separator}{before}{sign}cmd"
            assert neutral(text) == f"a{separator}{before}'{sign}cmd"


@pytest.mark.parametrize("value", [-0.5, -1, 0, 1e-9, True, None])
def test_what_is_no_text_stays_as_it_is(value: object) -> None:
    assert neutral(value) is value
    assert written([[-0.5, "-0.5"]]) == "-0.5,'-0.5\r\n"


@pytest.mark.parametrize(
    "text", ["", "a-b = c", "1+1", "a, -b", "a; b", "it's", "'tis", "‘=’", "東京 = 1", "x\u200b=1"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text == as_it_was(text)


def test_a_tab_or_a_line_end_at_the_beginning_is_marked_whatever_follows() -> None:
    assert [neutral(text) for text in ("\tcmd", "\rcmd", "\ncmd")] == ["'\tcmd", "'\rcmd", "'\ncmd"]


texts = st.text(st.sampled_from([*UNSEEN, *SIGNS, *"';,\"ab"]), max_size=12)


@given(texts)
@example("'\t'=")
@example("a;'=1")
@example("a;\"'=")
def test_what_is_marked_can_be_read_as_it_was(text: str) -> None:
    assert as_it_was(str(neutral(text))) == text


@given(st.lists(texts, min_size=1, max_size=3))
@example(["x", "a;=1"])
@example(["x", 'a;"=1"'])
@example(["a\n=1"])
def test_no_cell_is_a_formula_by_whatever_separator_the_file_is_read(cells: list[str]) -> None:
    content = written([cells])
    for separator in (",", ";", "\t"):
        for row in csv.reader(io.StringIO(content, newline=""), delimiter=separator):
            assert not any(map(is_formula, row)), (separator, row)


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize("run", ["\t", ";", "; ", "'", "\n'", " "])
def test_a_long_run_of_separators_is_looked_at_once(run: str) -> None:
    text = f"a{run * 500_000}b"
    assert neutral(text) == text == as_it_was(text)
