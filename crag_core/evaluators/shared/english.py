"""What weakens a grade by a model that learned from English texts alone."""

from __future__ import annotations

from crag_core.base.text.words import foreign_language

MINILM = "all-MiniLM-L6-v2"
"""The embedding model that ships here; it learned from English."""


def less_sure(question: str, text: str) -> str:
    """The `Grade.caution` of such a model; "" where neither is seen to be in another language."""
    language = foreign_language(text) or foreign_language(question)  # a question is short, and less sure to be named
    return f"less sure in {language}, since the evaluator learned from English" if language else ""
