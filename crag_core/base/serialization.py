"""Frozen dataclasses to JSON values and back, checked by pydantic against their annotations.

Traces, policies and shared files all pass through here, so hostile or mistyped input is refused in one place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import reprlib
import typing
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from crag_core.base.errors import BadRecord

Record = TypeVar("Record")
_HALF = re.compile(r"(?<!\\)((?:\\\\)*)(\\ud[89ab]..(?!\\ud[c-f])|(?<!\\ud[89ab]..)\\ud[c-f]..)")  # of a surrogate pair


def to_plain(value: Any) -> Any:
    """Turn dataclasses into dicts and tuples into lists, recursively; the result is JSON-ready."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value


def from_plain(kind: type[Record], data: Any, path: str = "") -> Record:
    """Build `kind` from JSON values.

    Missing keys take the field's default; unknown keys, wrong types and non-finite numbers raise `BadRecord`
    naming the path. Half a surrogate pair becomes U+FFFD.
    """
    from pydantic import ValidationError

    try:
        text = _HALF.sub(r"\1\\ufffd", json.dumps(data, default=str))
        return typing.cast(Record, _adapter(typing.cast(Any, kind)).validate_json(text, strict=True))
    except RecursionError as error:
        raise BadRecord(f"{path or kind.__name__}: nested too deep.") from error
    except ValidationError as error:
        found = min(error.errors(include_url=False), key=lambda one: one["type"] != "unexpected_keyword_argument")
        raise _refusal(found, path or ("" if found["loc"] else kind.__name__), kind) from error


def _refusal(found: Any, path: str, kind: type) -> BadRecord:
    place = re.sub(
        r"^\.|(?<=\[)\.", "", path + "".join(f"[{n}]" if isinstance(n, int) else f".{n}" for n in found["loc"])
    )
    if found["type"] == "unexpected_keyword_argument":
        names = {field.name for one in _records_in(kind, set()) for field in dataclasses.fields(one)}
        near = get_close_matches(str(found["loc"][-1]), sorted(names), n=1)
        return BadRecord(f"{place}: unknown key.", hint=f"Did you mean {near[0]!r}?" if near else "Leave it out.")
    if found["type"] == "missing":
        return BadRecord(f"{place}: missing, and it has no default.")
    if found["type"] == "value_error":
        return BadRecord(f"{place}: {found['ctx']['error']}")
    value = reprlib.repr(found["input"])[:60]
    wanted = found["msg"].replace("Input should be", "expected")
    return BadRecord(f"{place}: {wanted}, found {type(found['input']).__name__} {value}.")


def fingerprint(value: Any) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON of `value`; equal records have equal fingerprints."""
    canonical = json.dumps(to_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    for one in _records_in(kind, set()):
        setattr(one, "__pydantic_config__", config)  # noqa: B010  no type has it by itself
    return TypeAdapter(kind)


def _records_in(hint: Any, known: set[type]) -> set[type]:
    if dataclasses.is_dataclass(hint) and hint not in known:
        known.add(typing.cast(type, hint))
        for inner in typing.get_type_hints(hint).values():
            _records_in(inner, known)
    for inner in typing.get_args(hint):
        _records_in(inner, known)
    return known
