"""Who checks the sentences of an answer, by the setting CRAG_SUPPORT as a run records it. Pure."""

from enum import StrEnum


class Checker(StrEnum):
    WORDS = "words"
    LANGUAGE_MODEL = "a language model"
    NAMED_MODEL = "a model by name"


def checker_of(setting: str) -> Checker:
    """Of "words", "ollama/NAME", "openai/NAME" or "hf:NAME"; anything else that a record holds was a language model."""
    if setting == Checker.WORDS:
        return Checker.WORDS
    if setting.startswith("hf:"):
        return Checker.NAMED_MODEL
    return Checker.LANGUAGE_MODEL


def asks_language_model(setting: str) -> bool:
    return checker_of(setting) is Checker.LANGUAGE_MODEL
