"""What a value of a log says: a text, a list of texts, chunks. Values are JSON, or cells that hold JSON or a list."""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.logs.record import Context

MOST_CHUNKS = 100
LONGEST_TEXT = 100_000  # characters of a chunk, an answer, or what is known to be right
_NAMES = {"nan": None, "inf": None, "null": None, "true": True, "false": False}
"""Words that stand in printed values, and in JSON, and are none of Python's."""
_LONGEST_ID = 200
_LONGEST_LITERAL = 2_000_000
_DEEPEST = 12
_BEGINS = ("[", "{", "(", "array(", "Document(")
"""Of a cell that may hold more than a text."""
_BESIDE = re.compile(r"['\"}\])]\s+[a-zA-Z]?['\"{\[(]")
_MISSING = ("nan", "NaN", "<NA>")
"""How a table writes that there is nothing."""

QUESTION_KEYS = ("question", "query", "user_input", "input", "prompt", "query_str", "text", "content", "value")
ANSWER_KEYS = ("answer", "response", "output", "result", "completion", "generation", "text", "content", "value")
_TEXT_KEYS = (
    *("document.content", "page_content", "pageContent", "text", "content", "chunk", "passage", "chunk_text"),
    *("context", "body", "document", "snippet"),
)
_ID_KEYS = (
    *("document.id", "chunk_id", "context_id", "id", "id_", "node_id", "doc_id", "document_id", "segment_id", "uuid"),
    "doc_uri",
)
_SCORE_KEYS = ("document.score", "score", "similarity", "relevance_score", "_score", "distance", "rank_score")
_SOURCE_KEYS = ("source", "file_name", "filename", "file", "title", "name", "url", "path", "document_name", "file_path")
_PAGE_KEYS = ("page", "page_number", "page_label")
_INSIDE = ("node", "document", "payload", "metadata", "document.metadata", "kwargs", "extra_info")
_LISTS = (
    *("documents", "contexts", "retrieved_contexts", "source_documents", "source_nodes", "nodes", "results"),
    *("chunks", "passages", "matches", "hits", "output", "context"),
)
_ROLES = {"question": ("user", "human"), "answer": ("assistant", "ai", "model")}


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
        return _said(value, meaning, depth)
    if isinstance(value, Mapping):
        return _field_of(value, meaning, depth)
    return ""


def _said(messages: list[Any], meaning: str, depth: int) -> str:
    """Of a chat, or of the parts of one message."""
    told = [one for one in messages if isinstance(one, Mapping) and _role(one)]
    own = [one for one in told if _role(one) in _ROLES[meaning]]
    if told:
        return text_of(_content(own[-1]), meaning, depth + 1) if own else ""
    parts = [text_of(one, meaning, depth + 1) for one in messages]
    return "\n".join(filter(None, parts)) if meaning == "answer" else next(filter(None, reversed(parts)), "")


def _role(message: Mapping[str, Any]) -> str:
    inner = message.get("message")
    if isinstance(inner, Mapping):
        return _role(inner)
    role = message.get("role") or message.get("message.role") or message.get("type")
    return str(role).lower() if role in ("user", "human", "assistant", "ai", "model", "system", "tool") else ""


def _content(message: Mapping[str, Any]) -> Any:
    inner = message.get("message")
    if isinstance(inner, Mapping):
        return _content(inner)
    return message.get("content", message.get("message.content", message.get("data")))


def _field_of(value: Mapping[str, Any], meaning: str, depth: int) -> str:
    keys = QUESTION_KEYS if meaning == "question" else ANSWER_KEYS
    for key in (*keys, "messages", "message", "choices", "generations", "kwargs", "inputs", "outputs"):
        if value.get(key) not in (None, "", [], {}) and (found := text_of(value[key], meaning, depth + 1)):
            return found
    left = [one for one in value.values() if isinstance(one, str) and one.strip()]
    return cleaned(left[0]) if len(value) == len(left) == 1 else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """A list of texts, or one."""
    value = opened(value)
    many = value if isinstance(value, list) else [value]
    found = (text_of(one, "answer") for one in many)
    return tuple(dict.fromkeys(text for text in found if text))


def number_of(value: Any) -> float | None:
    """None for what is no finite number."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def opened(value: Any) -> Any:
    """A cell that holds a list or an object in JSON or in Python's notation, as that; anything else as it is."""
    if hasattr(value, "tolist"):  # an array, as a table in Parquet has it
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if not isinstance(value, str):
        return value
    bare = value.strip()
    if bare in _MISSING:
        return None
    if not bare.startswith(_BEGINS) or len(bare) > _LONGEST_LITERAL:
        return value
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        pass
    try:
        found = _literal(ast.parse(_separated(bare), mode="eval").body, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return value
    return value if found is None else found


def _separated(text: str) -> str:
    """With a comma between values beside each other: an array is printed without, and Python would join texts."""
    if not _BESIDE.search(text):
        return text
    lines, ends = io.StringIO(text).readlines(), False
    starts = [0, *accumulate(map(len, lines))]
    commas = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if ends and (token.type == tokenize.STRING or token.string in ("{", "[")):
            commas.append(starts[token.start[0] - 1] + token.start[1])
        if token.type not in (tokenize.NL, tokenize.NEWLINE):
            ends = token.type == tokenize.STRING or token.string in ("}", "]", ")")
    pieces = zip([0, *commas], [*commas, len(text)], strict=True)
    return ",".join(text[start:end] for start, end in pieces)


def _literal(node: ast.expr, depth: int) -> Any:
    """What a list, an object, or a record such as Document(page_content='…') says; nothing is run.

    Raises `ValueError` for anything else.
    """
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool | None) else str(node.value)
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -(_literal(node.operand, depth + 1) or 0)
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(one, depth + 1) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_literal(key, depth + 1)): _literal(one, depth + 1) for key, one in pairs if key is not None}
    if isinstance(node, ast.Call):
        if getattr(node.func, "id", getattr(node.func, "attr", "")) == "array" and node.args:
            return _literal(node.args[0], depth + 1)
        if named := {one.arg: _literal(one.value, depth + 1) for one in node.keywords if one.arg}:
            return named
        if depth and isinstance(getattr(node.func, "value", node.func), ast.Name):  # UUID('…'), among other values
            return ", ".join(str(_literal(one, depth + 1)) for one in node.args)
    raise ValueError("not a value")


# --- chunks ---------------------------------------------------------------------------------------------------------


def chunks_of(value: Any) -> tuple[Context, ...] | None:
    """The chunks of a list, or of an object that holds one; None for what is neither.

    Raises `BadRecord` for one without text, for too many, and for one that is too long.
    """
    value = opened(value)
    if isinstance(value, Mapping):
        inner = next((value[key] for key in _LISTS if isinstance(opened(value.get(key)), list)), None)
        if inner is None:
            return (_chunk(value, 1),) if _text_in(value) else None
        value = opened(inner)
    if isinstance(value, str) and value.strip():
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


def _chunk(value: Any, number: int) -> Context:
    value = opened(value)
    if isinstance(value, list) and _is_scored(value):
        found = _chunk(value[0], number)
        return Context(found.text, found.id, found.source, number_of(value[1]), found.page)
    if isinstance(value, Mapping):
        levels = list(_levels(value, 0))
        text = _text_in(value)
        id_, source = _first(levels, _ID_KEYS), _first(levels, _SOURCE_KEYS)
        score, page = _number(levels, _SCORE_KEYS), _number(levels, _PAGE_KEYS)
    else:
        text = "" if isinstance(value, int | float) else text_of(value, "answer")  # a number is the id of a chunk
        id_, source, score, page = "", "", None, None
    if not text:
        raise BadRecord(f"Expected text in chunk {number}, found none.", hint="Export the chunks with their texts.")
    if len(text) > LONGEST_TEXT:
        raise BadRecord(f"Expected at most {LONGEST_TEXT:,} characters in chunk {number}, found {len(text):,}.")
    return Context(text, id_, source, score, int(page) if page and page >= 1 else None)


def _number(levels: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> float | None:
    return next((got for key in keys for one in levels if (got := number_of(one.get(key))) is not None), None)


def _text_in(value: Mapping[str, Any]) -> str:
    for level in _levels(value, 0):
        for key in _TEXT_KEYS:
            got = level.get(key)
            if isinstance(got, str) and cleaned(got):
                return cleaned(got)
    return ""


def _levels(value: Mapping[str, Any], depth: int) -> Iterable[Mapping[str, Any]]:
    """The object, then those in it that belong to the same chunk."""
    yield value
    for key in _INSIDE if depth < 3 else ():
        inner = opened(value.get(key))
        if isinstance(inner, Mapping):
            yield from _levels(inner, depth + 1)


def _first(levels: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> str:
    for key in keys:
        for level in levels:
            got = level.get(key)
            if isinstance(got, str | int) and not isinstance(got, bool) and (text := cleaned(str(got))):
                return re.sub(r"\s+", " ", text)[:_LONGEST_ID]
    return ""
