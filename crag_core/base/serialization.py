"""Frozen dataclasses to JSON values and back, checked against their annotations.

Traces, policies and shared files all pass through here, so hostile or mistyped input is refused in one place.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import reprlib
import sys
import types
import typing
from collections.abc import Hashable
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from crag_core.base.errors import BadRecord

Record = TypeVar("Record")

_SHORT = reprlib.Repr()  # stops at six levels, where repr() fails on what nests too deep
_SHORT.maxstring = _SHORT.maxother = 60


def to_plain(value: Any) -> Any:
    """Turn dataclasses into dicts and tuples into lists, recursively; the result is JSON-ready."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    return value


def from_plain(kind: type[Record], data: Any, path: str = "") -> Record:
    """Build `kind` from plain values.

    Missing keys take the field's default; unknown keys, wrong types and non-finite numbers raise `BadRecord`
    naming the path.
    """
    if not isinstance(data, dict):
        raise BadRecord(f"{path or kind.__name__}: expected a table of fields, found {_describe(data)}.")
    hints = _hints(typing.cast(Hashable, kind))
    for key in data:
        if key not in hints:
            near = get_close_matches(str(key), hints, n=1)
            guess = f"Did you mean {near[0]!r}? " if near else ""
            raise BadRecord(f"{_join(path, str(key))}: unknown key.", hint=f"{guess}Known keys: {', '.join(hints)}.")
    values = {key: _convert(hints[key], value, _join(path, key)) for key, value in data.items()}
    for field in dataclasses.fields(typing.cast(Any, kind)):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in values:
            raise BadRecord(f"{_join(path, field.name)}: missing, and it has no default.")
    try:
        return kind(**values)
    except ValueError as error:
        raise BadRecord(f"{path or kind.__name__}: {error}") from error


def fingerprint(value: Any) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON of `value`; equal records have equal fingerprints."""
    canonical = json.dumps(to_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _convert(hint: Any, value: Any, path: str) -> Any:
    if hint is Any:  # of a step, whose argument `decision.steps` checks
        return tuple(value) if isinstance(value, list) else value
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return None if value is None else _convert(options[0], value, path)
    if origin is tuple:
        return _convert_tuple(typing.get_args(hint), value, path)
    if dataclasses.is_dataclass(hint):
        return from_plain(typing.cast(type, hint), value, path)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if value not in list(hint):
            raise BadRecord(f"{path}: expected one of {', '.join(hint)}, found {_describe(value)}.")
        return hint(value)
    return _convert_scalar(hint, value, path)


def _convert_tuple(items: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if isinstance(value, dict):  # a TOML table of name = number reads better than a list of pairs
        value = list(value.items())
    if not isinstance(value, list | tuple):
        raise BadRecord(f"{path}: expected a list, found {_describe(value)}.")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_convert(items[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    if len(items) != len(value):
        raise BadRecord(f"{path}: expected {len(items)} values, found {len(value)}.")
    return tuple(_convert(kind, item, f"{path}[{i}]") for i, (kind, item) in enumerate(zip(items, value, strict=True)))


def _convert_scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) <= sys.float_info.max else math.inf
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise BadRecord(f"{path}: expected {hint.__name__}, found {_describe(value)}.")
    if hint is float and not math.isfinite(value):
        raise BadRecord(f"{path}: expected a finite number, found {value}.")
    return value


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _describe(value: Any) -> str:
    text = _SHORT.repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
