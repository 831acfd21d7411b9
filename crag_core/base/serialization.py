"""Frozen dataclasses to JSON values and back; pydantic refuses what does not fit their annotations."""

import hashlib
import json
import re
import reprlib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from crag_core.base.errors import BadRecord

Record = TypeVar("Record")


def to_plain(value: Any) -> Any:
    return to_jsonable_python(value)


def from_plain(kind: type[Record], data: Any, path: str = "") -> Record:
    """Build the dataclass `kind` from JSON values; missing keys take the field's default.

    Unknown keys, wrong types and non-finite numbers raise `BadRecord` by path; half a surrogate pair is U+FFFD.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, default=str).encode("utf-16", "surrogatepass")
        return cast(Record, _adapter(cast(Any, kind)).validate_json(text.decode("utf-16", "replace"), strict=True))
    except RecursionError as error:
        raise BadRecord(f"{path or kind.__name__}: nested too deep.") from error
    except ValidationError as error:
        found = min(error.errors(include_url=False), key=lambda one: one["type"] != "unexpected_keyword_argument")
        raise _refusal(found, path or ("" if found["loc"] else kind.__name__), kind) from error


def from_texts(kind: type[Record], texts: Mapping[str, str]) -> Record:
    """The same from values as somebody has typed them: "0.8" for a number."""
    try:
        return cast(Record, _adapter(cast(Any, kind)).validate_strings(texts))
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False)[0], "", kind) from error


def _refusal(found: Any, path: str, kind: Any) -> BadRecord:
    parts = (f"[{n}]" if isinstance(n, int) else f".{n}" for n in found["loc"])
    place = "".join(filter(str.isprintable, path + "".join(parts))).removeprefix(".")
    if found["type"] == "unexpected_keyword_argument":
        names = set(re.findall(r"'dataclass-field', 'name': '(\w+)'", str(_adapter(kind).core_schema)))
        near = get_close_matches(str(found["loc"][-1]), sorted(names), n=1)
        return BadRecord(f"{place}: unknown key.", hint=f"Did you mean {near[0]!r}?" if near else "Leave it out.")
    wanted = found["msg"].replace("Input should be", "expected")
    value = f"{type(found['input']).__name__} {reprlib.repr(found['input'])[:60]}"
    known = {"missing": "missing, and it has no default.", "value_error": str(found.get("ctx", {}).get("error"))}
    return BadRecord(f"{place}: {known.get(found['type'], f'{wanted}, found {value}.')}")


def fingerprint(value: Any) -> str:
    """16 hex digits of the SHA-256 of the canonical JSON of `value`; equal records have equal fingerprints."""
    canonical = json.dumps(to_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def _adapter(kind: Any) -> Any:
    kind.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)  # records inside it inherit this
    return TypeAdapter(kind)
