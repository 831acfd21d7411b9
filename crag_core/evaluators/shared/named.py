"""What a chunk that holds a code is read by: not by its rows that are about other codes."""

from __future__ import annotations

from collections.abc import Sequence

from crag_core.base.text.codes import codes_of, has_code, other_code


def named_in(question: str, text: str) -> list[str]:
    return [code for code in codes_of(question) if has_code(text, code)]


def is_of_another(line: str, codes: Sequence[str]) -> bool:
    """Whether the line names a code made as one of `codes`, which it does not name."""
    return any(not has_code(line, code) and other_code(line, code) for code in codes)


def without_other_codes(question: str, text: str) -> str:
    """The text without the lines that are of another code than the one of the question that it holds."""
    codes = named_in(question, text)
    return "\n".join(line for line in text.split("\n") if not is_of_another(line, codes)) if codes else text
