"""What a value of a log says: a text, a list of texts, chunks. Values are JSON, or cells that hold JSON or a list."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.logs.names import CHUNK, SAID
from crag_core.experiments.logs.record import Context

MOST_CHUNKS = 100
LONGEST_TEXT = 100_000  # characters of a chunk, an answer, or what is known to be right
_LONGEST_ID = 200
_LONGEST_LITERAL = 2_000_000
_DEEPEST = 12
_PRINTED_ARRAY = re.compile(r"""['"\]})]\s+['"\[{(]""")
"""Values without a comma between them: Python would join texts."""
_PRINTED_DOCUMENT = re.compile(
    r"""(?s)(?:Document\()?page_content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:,? metadata=(\{.*\}))?\)?"""
)
"""A document of LangChain, as `str` and `repr` print it."""
_MISSING = ("nan", "NaN", "<NA>")
"""How a table writes that there is nothing."""

_ROLES = {"question": ("user", "human"), "answer": ("assistant", "ai", "model")}
_OTHER_ROLES = ("system", "tool")


def text_of(value: Any, meaning: str, depth: int = 0) -> str:
    """The question, or the answer, that a value is or holds; "" for none.

    Of an object the best known field, of a chat the last message of the user, or of the assistant.
    """
    value = opened(value)
    if isinstance(value, str):
        return cleaned(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return _said(value, meaning, depth + 1)
    if not isinstance(value, Mapping):
        return ""
    for key in (*SAID[meaning], *SAID["holders"]):
        if value.get(key) not in (None, "", [], {}) and (found := text_of(value[key], meaning, depth + 1)):
            return found
    (only,) = value.values() if len(value) == 1 else ("",)
    return cleaned(only) if isinstance(only, str) else ""


def _said(messages: list[Any], meaning: str, depth: int) -> str:
    """Of a chat, or of the parts of one message."""
    told = [one for one in map(_message, messages) if _role(one)]
    own = [one for one in told if _role(one) in _ROLES[meaning]]
    if told:
        return text_of(_content(own[-1]), meaning, depth) if own else ""
    parts = list(filter(None, (text_of(one, meaning, depth) for one in messages)))
    return "\n".join(parts) if meaning == "answer" else parts[-1] if parts else ""


def _message(value: Any) -> Mapping[str, Any]:
    """The object that has role and content."""
    while isinstance(value, Mapping) and isinstance(value.get("message"), Mapping):
        value = value["message"]
    return value if isinstance(value, Mapping) else {}


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role") or message.get("message.role") or message.get("type")
    known = (*_ROLES["question"], *_ROLES["answer"], *_OTHER_ROLES)
    return role if isinstance(role, str) and role in known else ""


def _content(message: Mapping[str, Any]) -> Any:
    return next((message[name] for name in ("content", "message.content", "data") if name in message), None)


def texts_of(value: Any) -> tuple[str, ...]:
    value = opened(value)
    found = (text_of(one, "answer") for one in (value if isinstance(value, list) else [value]))
    return tuple(dict.fromkeys(filter(None, found)))


def number_of(value: Any) -> float | None:
    """None for what is no finite number."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def opened(value: Any) -> Any:
    """A cell that holds a list or an object in JSON or in Python's notation, as that; anything else as it is."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if not isinstance(value, str):
        return value
    bare = value.strip()
    if bare in _MISSING:
        return None
    if not bare.startswith(("[", "{")) or len(bare) > _LONGEST_LITERAL:
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(bare)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            if _PRINTED_ARRAY.search(bare):
                return value
    return value


# --- chunks ---------------------------------------------------------------------------------------------------------


def chunks_of(value: Any) -> tuple[Context, ...] | None:
    """The chunks of a list, or of an object that holds one; None for what is neither.

    Raises `BadRecord` for one without text, for too many, and for one that is too long.
    """
    value = opened(value)
    if isinstance(value, Mapping):
        held = next((found for key in CHUNK["lists"] if isinstance(found := opened(value.get(key)), list)), None)
        value = held if held is not None else [value] if _text_in(_levels(value)) else None
    elif isinstance(value, str) and value.strip():
        value = [value]
    value = unnested(value)
    if not isinstance(value, list):
        return None
    if all(one is None or (isinstance(one, str) and not cleaned(one)) for one in value):
        return ()  # as ragas has it where nothing was retrieved
    if len(value) > MOST_CHUNKS:
        raise BadRecord(
            f"Expected at most {MOST_CHUNKS} chunks, found {len(value):,}.", hint="Leave out the last ones."
        )
    return tuple(_chunk(one, number) for number, one in enumerate(value, start=1))


def unnested(value: Any) -> Any:
    """The one list in a list, as a vector store answers one of many questions; any other value as it is."""
    is_nested = isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)
    return value[0] if is_nested and not _is_scored(value[0]) else value


def _is_scored(value: list[Any]) -> bool:
    """Whether it is a document beside its score."""
    return len(value) == 2 and number_of(value[1]) is not None and not isinstance(value[0], int | float)


def _document(value: Any) -> Any:
    """A printed document of LangChain as an object; any other value as it is."""
    printed = _PRINTED_DOCUMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if printed is None:
        return value
    try:
        return {"page_content": ast.literal_eval(printed[1]), "metadata": printed[2]}
    except (ValueError, SyntaxError, MemoryError):
        return value


def _chunk(value: Any, number: int) -> Context:
    value = _document(opened(value))
    score = None
    if isinstance(value, list) and _is_scored(value):
        value, score = opened(value[0]), number_of(value[1])
    if isinstance(value, Mapping):
        levels = list(_levels(value))
        id_, source = (_on_one_line(_first(levels, keys, str | int)) for keys in (CHUNK["id"], CHUNK["source"]))
        found = Context(
            _text_in(levels), id_, source, _number(levels, CHUNK["score"]) if score is None else score,
            _page(_number(levels, CHUNK["page"])),
        )  # fmt: skip
    else:  # a number is the id of a chunk
        found = Context("" if isinstance(value, int | float) else text_of(value, "answer"), score=score)
    if not found.text:
        raise BadRecord(f"Expected text in chunk {number}, found none.", hint="Export the chunks with their texts.")
    if len(found.text) > LONGEST_TEXT:
        raise BadRecord(f"Expected at most {LONGEST_TEXT:,} characters in chunk {number}, found {len(found.text):,}.")
    return found


def _levels(value: Mapping[str, Any], depth: int = 0) -> Iterable[Mapping[str, Any]]:
    """The object, then those in it that belong to the same chunk."""
    yield value
    for key in CHUNK["inside"] if depth < 3 else ():
        inner = opened(value.get(key))
        if isinstance(inner, Mapping):
            yield from _levels(inner, depth + 1)


def _text_in(levels: Iterable[Mapping[str, Any]]) -> str:
    """Of the outermost level that has one."""
    return next(filter(None, (_first([level], CHUNK["text"]) for level in levels)), "")


def _first(levels: Iterable[Mapping[str, Any]], keys: tuple[str, ...], kind: Any = str) -> str:
    """The value of the best key that any level has; of equal ones that of the outermost."""
    held = (level.get(key) for key in keys for level in levels)
    texts = (cleaned(str(one)) for one in held if isinstance(one, kind) and not isinstance(one, bool))
    return next(filter(None, texts), "")


def _number(levels: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> float | None:
    numbers = (number_of(level.get(key)) for key in keys for level in levels)
    return next((one for one in numbers if one is not None), None)


def _page(number: float | None) -> int | None:
    return int(number) if number and number >= 1 else None


def _on_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:_LONGEST_ID]
