"""The fields of a record: what each is read from, and a record from the values that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.labelled.read import LONGEST_QUESTION, expected_named, label_named, squeezed
from crag_core.experiments.logs.names import FIELDS, SAID
from crag_core.experiments.logs.record import Context, LogRecord
from crag_core.experiments.logs.values import LONGEST_TEXT, chunks_of, number_of, opened, text_of, texts_of, unnested

NEEDED = ("question", "contexts")
_WITHIN = ("question", "contexts", "answer", "ground_truth")
"""Fields that are looked for inside objects, too."""


@dataclass(frozen=True)
class Found:
    """The records of a file, the rows that are none, and remarks on what was guessed."""

    records: Sequence[LogRecord]
    problems: Sequence[Problem]
    remarks: tuple[str, ...]


def mapped(columns: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """What each field is read from: the column that was `chosen` ("": none), else that with the best known name.

    Where none has it, paths with dots by their last part.
    """
    found = {field: column for field, column in chosen.items() if column}
    taken = set(chosen.values())

    def take(fields: Sequence[str], named: Mapping[str, str]) -> None:
        for field in fields:
            left = {squeezed(name): column for column, name in named.items() if column not in taken}
            known = (left[name] for name in map(squeezed, FIELDS[field]) if name in left)
            if field not in found and field not in chosen and (column := next(known, "")):
                found[field] = column
                taken.add(column)

    take(tuple(FIELDS), {column: column for column in reversed(columns)})
    right = f"{found.get('ground_truth')}."  # not to be read as something else
    said = {f"{found.get(field)}.{key}" for field in ("question", "answer") for key in SAID[field]}  # read already
    inner = [column for column in reversed(columns) if "." in column]
    paths = [column for column in inner if column not in said and not column.startswith(right)]
    take(_WITHIN, {column: column.rpartition(".")[2] for column in paths})
    return {field: found[field] for field in FIELDS if field in found}


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """A field by its name, or by a path with dots into objects and lists; None where there is none."""
    if path in row:
        return row[path]
    here: Any = row
    for part in path.split("."):
        here = opened(here)
        if isinstance(here, Mapping):
            here = here.get(part)
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            return None
    return here


def record_from(row: int, values: Mapping[str, Any]) -> LogRecord:
    """`values` by field; raises `BadRecord` with what is wrong with them."""
    question = text_of(values.get("question"), "question")
    if not question:
        raise BadRecord("Expected a question, found none.", hint="Map the column that holds it.")
    if len(question) > LONGEST_QUESTION:
        raise BadRecord(f"Expected a question of at most {LONGEST_QUESTION:,} characters, found {len(question):,}.")
    truth, label = values.get("ground_truth"), _label(values.get("label"))
    if label is None and isinstance(truth, str) and (named := expected_named(truth)) is not None:
        truth, label = None, named  # a column "expected" of a labelled set
    return LogRecord(
        id=text_of(values.get("id"), "answer")[:200] or f"row {row}",
        row=row,
        question=question,
        contexts=_contexts(values),
        answer=_long("answer", text_of(values.get("answer"), "answer")),
        references=tuple(_long("right answer", text) for text in texts_of(truth)),
        reference_contexts=texts_of(values.get("reference_contexts")),
        reference_ids=texts_of(values.get("reference_ids")),
        expected=label,
    )


def _contexts(values: Mapping[str, Any]) -> tuple[Context, ...]:
    value = opened(values.get("contexts"))
    found = chunks_of(value)
    if found is None and isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values()):
        found = chunks_of([{"id": id_, "text": text} for id_, text in value.items()])
    if found is None:
        if value in (None, ""):
            raise BadRecord(
                "Expected the chunks that were retrieved, found none.",
                hint="Write [] where nothing was retrieved; else map the column that holds them.",
            )
        raise BadRecord("Expected a list of chunks, found another value.", hint="Map the column that holds them.")
    beside = {name: _each(f"{name}s", values, len(found)) for name in ("score", "id", "source")}
    said = ({name: _beside(name, each[at]) for name, each in beside.items() if each} for at in range(len(found)))
    return tuple(replace(one, **own) for one, own in zip(found, said, strict=True))


def _beside(name: str, value: Any) -> Any:
    return number_of(value) if name == "score" else text_of(value, "answer")[:200]


def _each(name: str, values: Mapping[str, Any], count: int) -> list[Any]:
    """A value a chunk, [] for none. One source may be that of all; a single score or id says nothing of several."""
    value = unnested(opened(values.get(name)))
    if value in (None, "", []):
        return []
    many = value if isinstance(value, list) else [value]
    if name == "sources" and len(many) == 1:
        return many * count
    if len(many) == count:
        return many
    if not isinstance(value, list):
        return []
    raise BadRecord(f"Expected {count} {name}, one a chunk, found {len(many)}.", hint="Map another column, or none.")


def _label(value: Any) -> Expected | None:
    """None for words that are no label."""
    return label_named(str(value) if isinstance(value, bool) else text_of(value, "answer"))


def _long(what: str, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise BadRecord(f"Expected at most {LONGEST_TEXT:,} characters in the {what}, found {len(text):,}.")
    return text
