"""What a chunk that holds a code is read by: not by its rows that are about other codes."""

from __future__ import annotations

from collections.abc import Sequence

from crag_core.base.text.codes import codes_of, has_code, other_code, with_code_as

VERSION = 2
"""Of these rules: other rules give other grades."""
_LONG = 4  # digits: a model of word pieces reads "7-0064-18" as seven numbers, "B12" as a word
_STAND_INS = ("A1", "B2", "C3", "D4")


def named_in(question: str, text: str) -> list[str]:
    return [code for code in codes_of(question) if has_code(text, code)]


def is_of_another(line: str, codes: Sequence[str]) -> bool:
    """Whether the line names a code made as one of `codes`, and none of them."""
    return not any(has_code(line, code) for code in codes) and any(other_code(line, code) for code in codes)


def without_other_codes(question: str, text: str) -> str:
    """The text without the lines that are of another code than the one of the question that it holds."""
    codes = named_in(question, text)
    return "\n".join(line for line in text.split("\n") if not is_of_another(line, codes)) if codes else text


def as_read(question: str, heading: str, text: str) -> tuple[str, str]:
    """Question, and heading and text without rows of other codes; a short word is in both for long codes they share.

    Whether a text holds a code is known exactly; what is left to read is what it says of it.
    """
    read = heading + without_other_codes(question, text)
    long = [code for code in named_in(question, read) if sum(map(str.isdigit, code)) >= _LONG]
    for code, word in zip(long, _STAND_INS, strict=False):
        question, read = with_code_as(word, code, question), with_code_as(word, code, read)
    return question, read
