"""Patterns of prompt injection: the phrases of injection_phrases.txt, and marks of chat templates and prompts."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Sign(StrEnum):
    """What a suspicious text does."""

    OVERRIDE = "override"
    ROLE = "role"
    GRADE = "grade"
    ADDRESS = "address"
    SECRET = "secret"
    MARKER = "marker"
    DELIMITER = "delimiter"
    HIDDEN = "hidden"
    DIRECTION = "direction"
    ENCODED = "encoded"


MEANINGS = {
    Sign.OVERRIDE: "it asks to set earlier instructions aside",
    Sign.ROLE: "it gives the model another role or task",
    Sign.GRADE: "it asks for a grade",
    Sign.ADDRESS: "it speaks to a model",
    Sign.SECRET: "it asks for instructions or for what was said, or to keep something from the reader",
    Sign.MARKER: "it holds marks that chat models read as a change of speaker",
    Sign.DELIMITER: "it imitates the marks that stand around evidence",
    Sign.HIDDEN: "it holds text in characters that are not seen",
    Sign.DIRECTION: "it turns the direction of writing around",
    Sign.ENCODED: "it holds an encoded text that gives instructions",
}

_MODEL = (
    r"(?:ai|a\.i\.|artificial intelligence|language models?|llms?|gpt|chatgpt|chat ?bots?|copilot|claude|gemini|"
    r"(?:ai|virtual|digital) assistants?|ai (?:models?|systems?|agents?|graders?|judges?)|"
    r"(?:automated|automatic|machine) (?:graders?|judges?|evaluators?|reviewers?|systems?|assistants?|summarizers?)|"
    r"retrieval (?:graders?|evaluators?|judges?))"
)
_PIECE = r"(?:passage|document|text|evidence|context|chunk|excerpt|article|page|result|snippet|source|paragraph|entry)"
_TOP = (
    r"(?:1|1\.0+|10|ten|one|100|5/5|10/10|1\.0/10|maximum|max|maximal|highest|full|perfect|top|best|excellent|"
    r"relevant|correct|fully relevant|highly relevant)"
)
_BEST = (
    r"(?:highest|maximum|top|full|perfect|best|maximal) (?:possible |available )?(?:relevance )?"
    r"(?:score|grade|rating|marks?|band|relevance|number|points)"
)
_NAMED = {"<model>": _MODEL, "<piece>": _PIECE, "<top>": _TOP, "<best>": _BEST}

MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_ ]{1,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<\|?(?:begin|"
    r"end)[ _▁]of[ _▁]sentence\|?>"
    r"|</?(?:context|instructions?|untrusted|user_input|retrieved_\w+|documents?)>"
    r"|^[ \t]*(?:human|user)[ \t]*:[^\n]{0,300}\n{1,2}[ \t]*(?:assistant|ai|model|bot)[ \t]*:"
    r"|</?(?:system|assistant)(?:[_ -]?(?:prompt|message|instructions?))?>"
    r"|^[ \t]*#{2,4}[ \t]*(?:system(?:[ \t]+(?:prompt|message))?|instructions?|assistant|human|response)[ \t]*:[ \t]*$"
    r"|^[ \t]*#{2,4}[ \t]*system[ \t]*\n+(?=.{0,40}\b(?:you|your|ignore|must)\b)"
    r"|^[ \t]*\[?(?:system|assistant|developer)\]?[ \t]*(?:message|prompt|note|override)?[ \t]*:[ \t]*(?=(?:you\b|"
    r"your\b|ignore|"
    r"from now|new instruction|the (?:user|passage|document)|disregard|override|stop\b))",
    re.MULTILINE,
)
DELIMITERS = re.compile(
    r"<\s*+/?\s*+(?:evidence|passage|sentence)\s*+>|\[\s*+/\s*+evidence\s*+\]"
    r"|(?<![-=#*\[<(])[-=#*\[<(]{2,}+\s*+(?:end|begin|start|beginning)(?: of)?(?: the)? (?:evidence|context|"
    r"passages?|documents?|data|untrusted "
    r"\w+|user input|retrieved \w+)\b\s*+[-=#*\])>]"
)
_GAP, _SPACELESS_GAP = r"[\W_]{1,5}(?:[^\W_]{1,30}[\W_]{1,5}){0,4}", r".{0,12}?"
SPACELESS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@cache
def phrases() -> tuple[tuple[Sign, re.Pattern[str]], ...]:
    """The phrases of injection_phrases.txt in its order, each with what it does."""
    found: list[tuple[Sign, re.Pattern[str]]] = []
    sign = Sign.OVERRIDE
    for line in files(__package__).joinpath("injection_phrases.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            sign = Sign(line.strip("[]"))
        elif line and not line.startswith("#"):
            found.append((sign, _compiled(line)))
    return tuple(found)


def _compiled(phrase: str) -> re.Pattern[str]:
    """The pattern that a phrase stands for; only whole words where a script has spaces."""
    for name, pattern in _NAMED.items():
        phrase = phrase.replace(name, pattern)
    if SPACELESS.search(phrase):
        return re.compile(phrase.replace("…", _SPACELESS_GAP).replace(" ", r"\s{0,3}"), re.DOTALL)
    pattern = phrase.replace(" … ", _GAP).replace("…", r"[\W_](?:[^\W_]{1,30}[\W_]{1,5}){0,4}")
    pattern = pattern.replace(" ", r"[\W_]{1,5}")
    return re.compile(rf"(?:{pattern})(?![^\W_])")
