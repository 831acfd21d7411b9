"""The form of every reply: as a prompt words it, and as the JSON schema that a server holds the model to."""

from typing import Any


def closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    """All of these keys, and no other: some servers let a small model write keys until its tokens are used up."""
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


CANNOT_ANSWER = "CANNOT ANSWER"

FROM_MEMORY = "(from the model's memory)"

SCORE_FORM = '{"score": <number>, "reasoning": "<one short sentence>"}'
SCORE_SCHEMA = closed_object(
    {
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "reasoning": {"type": "string", "maxLength": 300},
    }
)

YES_NO_FORM = "yes or no"

EXTRACTION_FORM = '{"sentences": ["...", "..."]}'
EXTRACTION_SCHEMA = closed_object(
    {"sentences": {"type": "array", "items": {"type": "string", "maxLength": 600}, "maxItems": 12}}
)

VERDICTS = ("supported", "partly", "not supported")

SUPPORT_SAID = {one: one for one in VERDICTS} | {
    **dict.fromkeys(("fully supported", "entirely supported"), "supported"),
    **dict.fromkeys(("partly supported", "partially supported", "partially", "partial"), "partly"),
    **dict.fromkeys(("unsupported", "contradicted"), "not supported"),
}

SUFFICIENT, NOT_SUFFICIENT = "sufficient", "not sufficient"

SUFFICIENCY_SAID = {
    **dict.fromkeys((SUFFICIENT, "enough", "true", "yes", "1"), SUFFICIENT),
    **dict.fromkeys((NOT_SUFFICIENT, "insufficient", "not enough", "false", "no", "0"), NOT_SUFFICIENT),
}
"""The same as small models say it; so for every table of this kind."""

SUFFICIENT_FORM = '{"explanation": "<one or two sentences>", "verdict": "sufficient" or "not sufficient"}'
SUFFICIENT_SCHEMA = closed_object(
    {
        "explanation": {"type": "string", "maxLength": 600},
        "verdict": {"type": "string", "enum": [SUFFICIENT, NOT_SUFFICIENT]},
    }
)

CLASSES_SAID = {letter: letter for letter in ("a", "b", "c")}
CLASS_FORM = '{"verdict": "A" or "B" or "C"}'
CLASS_SCHEMA = closed_object({"verdict": {"type": "string", "enum": ["A", "B", "C"]}})

CHECK_FORM = (
    '{"verdict": "supported" or "partly" or "not supported", '
    '"sentences": [<the numbers of at most three pieces of evidence that it rests on>]}'
)
CHECK_SCHEMA = closed_object(
    {
        "verdict": {"type": "string", "enum": list(VERDICTS)},
        "sentences": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 999}, "maxItems": 3},
    }
)

CONDENSE_FORM = '{"question": "<one question>", "missing": "<a word, or nothing>"}'
CONDENSE_SCHEMA = closed_object(
    {
        "question": {"type": "string", "minLength": 1, "maxLength": 400},
        "missing": {"type": "string", "maxLength": 60},
    }
)

RECALL_FORM = '{"passages": ["...", ...]}'
CONSOLIDATION_FORM = (
    '{"passages": [{"text": "...", "sources": ["1", "M1"], "contradicts": [<places in this list>]}, ...]}'
)
CONSOLIDATION_SCHEMA = closed_object(
    {
        "passages": {
            "type": "array",
            "items": closed_object(
                {
                    "text": {"type": "string", "maxLength": 1200},
                    "sources": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 21},
                    "contradicts": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 10},
                }
            ),
            "maxItems": 10,
        }
    }
)

BATCH_FORM = '{"evaluations": [{"score": <number>, "reason": "<a few words>"}, ...]}'
LIST_FORM = '{"scores": [<number>, ...]}'
_REASON = 120  # characters; five reasons in any script must fit into one reply


def batch_schema(count: int) -> dict[str, Any]:
    """For so many passages; whole numbers, since a schema can hold a small model to their range."""
    entry = closed_object(
        {
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
            "reason": {"type": "string", "maxLength": _REASON},
        }
    )
    return _list_of("evaluations", entry, count)


def recall_schema(most: int) -> dict[str, Any]:
    passages = {"type": "array", "items": {"type": "string", "maxLength": 1200}, "maxItems": most}
    return closed_object({"passages": passages})


def list_schema(count: int) -> dict[str, Any]:
    return _list_of("scores", {"type": "number", "minimum": 0, "maximum": 1}, count)


def _list_of(name: str, entry: dict[str, Any], count: int) -> dict[str, Any]:
    entries = {"type": "array", "items": entry, "minItems": count, "maxItems": count}
    return closed_object({name: entries})
