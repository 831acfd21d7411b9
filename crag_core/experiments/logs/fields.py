"""The fields of a record: the names that a column may have for each, and a record from the values that were found."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.labelled.read import LONGEST_QUESTION, expected_named
from crag_core.experiments.logs.record import Context, LogRecord
from crag_core.experiments.logs.values import LONGEST_TEXT, chunks_of, number_of, opened, text_of, texts_of, unnested

FIELDS: dict[str, tuple[str, ...]] = {
    "question": ("question", "query", "user_input", "user_question", "user_query", "input", "prompt", "request", "q"),
    "contexts": (
        *("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "passages", "chunks"),
        *("retrieved_documents", "retrieved_docs", "retrieved_chunks", "source_documents", "source_nodes", "docs"),
        *("retrieved", "retrieved_context", "retrieved_passages", "retrieved_text", "retriever_resources", "chunk"),
        *("chunk_text", "passage", "document"),
        *("document_text", "content", "text"),
    ),
    "scores": (
        *("scores", "context_scores", "retrieval_scores", "document_scores", "similarities", "score"),
        *("similarity", "retrieval_score", "document_score", "chunk_score"),
    ),
    "ids": (
        *("context_ids", "retrieved_context_ids", "document_ids", "chunk_ids", "doc_ids", "ids"),
        *("context_id", "chunk_id", "doc_id", "document_id", "passage_id"),
    ),
    "sources": ("sources", "context_sources", "files", "source"),
    "answer": (
        *("answer", "response", "generated_answer", "model_answer", "actual_output", "output", "prediction"),
        *("generation", "completion", "result"),
    ),
    "ground_truth": (
        *("ground_truth", "reference", "ground_truths", "reference_answer", "expected_answer", "expected_output"),
        *("reference_outputs", "gold_answer", "gold_answers", "ideal", "answers", "expected_response", "expected"),
    ),
    "reference_contexts": ("reference_contexts", "gold_contexts", "ground_truth_contexts", "expected_contexts"),
    "reference_ids": ("reference_context_ids", "gold_context_ids", "gold_ids", "relevant_ids"),
    "label": ("label", "expected_route", "route", "answerable"),
    "id": ("id", "record_id", "trace_id", "run_id", "query_id", "question_id", "qid", "uuid"),
}
"""By what a field means, the names that a column may have for it, the best one first."""

MEANINGS = {
    "question": "question",
    "contexts": "chunks",
    "scores": "scores of the chunks",
    "ids": "ids of the chunks",
    "sources": "sources of the chunks",
    "answer": "answer in the log",
    "ground_truth": "right answer",
    "reference_contexts": "chunks that hold it",
    "reference_ids": "ids of chunks that hold it",
    "label": "label",
    "id": "id of the record",
}
"""A field, as people read it."""

NEEDED = ("question", "contexts")
_SEPARATORS = re.compile(r"[\W_]+")
_A_CHUNK = "(?:context|document|doc|passage|chunk)s?"
_NUMBERED = {
    "contexts": re.compile(f"{_A_CHUNK}(?:text|content)?"),
    "scores": re.compile(f"(?:{_A_CHUNK})?(?:score|similarity)"),
    "ids": re.compile(f"(?:{_A_CHUNK})?id"),
}
"""Columns with a number, such as context_1 or context_1_score, each of which holds one chunk or what belongs to it."""
_TEXTS = ("ids", "sources")
_WITHIN = ("question", "contexts", "answer", "ground_truth")
"""Fields that are looked for inside objects, too."""
_YES, _NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")

Mapped = Mapping[str, tuple[str, ...]]
"""By field, the columns, or paths with dots, that it is read from: several where each holds one chunk."""


def mapped(columns: Sequence[str], chosen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What each field is read from: the column that was `chosen` ("": none), else that with the best known name.

    Where none has it, columns with numbers, and paths with dots by their last part.
    """
    found: dict[str, tuple[str, ...]] = {field: (column,) for field, column in chosen.items() if column}
    open_fields = [field for field in FIELDS if field not in chosen]
    taken = set(chosen.values())
    for field in open_fields:
        if column := _named(FIELDS[field], {_squeezed(one): one for one in reversed(columns) if one not in taken}):
            found[field] = (column,)
            taken.add(column)
    for field in _NUMBERED:
        numbered = _numbered(columns, field) if field in open_fields and field not in found else ()
        if numbered and (field == "contexts" or len(numbered) == len(found.get("contexts", ()))):
            found[field] = numbered
    right = tuple(f"{column}." for column in found.get("ground_truth", ()))  # not to be read as something else
    paths = [one for one in reversed(columns) if "." in one and one not in taken and not one.startswith(right)]
    for field in _WITHIN:
        inner = {_squeezed(one.rpartition(".")[2]): one for one in paths if one not in taken}
        if field in open_fields and field not in found and (column := _named(FIELDS[field], inner)):
            found[field] = (column,)
            taken.add(column)
    return {field: found[field] for field in FIELDS if field in found}


def _named(names: Sequence[str], columns: Mapping[str, str]) -> str:
    """The column with the best of `names`, "" for none; `columns` by their squeezed names."""
    return next((columns[_squeezed(name)] for name in names if _squeezed(name) in columns), "")


def _numbered(columns: Sequence[str], field: str) -> tuple[str, ...]:
    found = []
    for column in columns:
        name, digits = _squeezed(column), re.findall(r"\d+", column)
        if len(digits) == 1 and _NUMBERED[field].fullmatch(name.replace(digits[0], "")):
            found.append((int(digits[0]), column))
    return tuple(column for _, column in sorted(found))


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


def record_from(row: int, values: Mapping[str, Any], own_id: str = "") -> LogRecord:
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
        id=text_of(values.get("id"), "answer")[:200] or own_id or f"row {row}",
        row=row,
        question=question,
        contexts=_contexts(values),
        answer=_long("answer", text_of(values.get("answer"), "answer")),
        references=tuple(_long("right answer", text) for text in texts_of(truth)),
        reference_contexts=texts_of(values.get("reference_contexts")),
        reference_ids=texts_of(values.get("reference_ids")),
        expected=label,
    )


def with_own_ids(records: Sequence[LogRecord]) -> tuple[LogRecord, ...]:
    """Each under an id of its own: two of one id, as two records of one question may be, get their rows behind it."""
    taken: set[str] = set()
    found = []
    for one in records:
        id_ = one.id if one.id not in taken else f"{one.id} (row {one.row})"
        number = 2
        while id_ in taken:
            id_, number = f"{one.id} (row {one.row}, {number})", number + 1
        taken.add(id_)
        found.append(replace(one, id=id_))
    return tuple(found)


def _contexts(values: Mapping[str, Any]) -> tuple[Context, ...]:
    found = chunks_of(_by_ids(values.get("contexts")))
    if found is None:
        if opened(values.get("contexts")) in (None, ""):
            raise BadRecord(
                "Expected the chunks that were retrieved, found none.",
                hint="Write [] where nothing was retrieved; else map the column that holds them.",
            )
        raise BadRecord("Expected a list of chunks, found another value.", hint="Map the column that holds them.")
    scores = tuple(map(number_of, _each("scores", values, len(found))))
    ids, sources = (tuple(text_of(one, "answer") for one in _each(name, values, len(found))) for name in _TEXTS)
    return tuple(
        replace(
            one,
            score=scores[at] if scores else one.score,
            id=ids[at][:200] if ids else one.id,
            source=sources[at][:200] if sources else one.source,
        )
        for at, one in enumerate(found)
    )


def _each(name: str, values: Mapping[str, Any], count: int) -> list[Any]:
    """A value a chunk, [] for none. One source may be that of all; a single score or id says nothing of several."""
    value = unnested(opened(values.get(name)))
    if value in (None, "", []):
        return []
    if name == "sources" and (not isinstance(value, list) or len(value) == 1):
        return (value if isinstance(value, list) else [value]) * count
    if not isinstance(value, list):
        return [value] if count == 1 else []
    if len(value) != count:
        raise BadRecord(
            f"Expected {count} {name}, one a chunk, found {len(value)}.", hint="Map another column, or none."
        )
    return value


def _by_ids(value: Any) -> Any:
    """The chunks of an object that has texts by their ids; any other value as it is."""
    value = opened(value)
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        return value
    return value if chunks_of(value) is not None else [{"id": id_, "text": text} for id_, text in value.items()]


def _label(value: Any) -> Expected | None:
    """None for words that are no label."""
    text = json.dumps(value) if isinstance(value, bool) else text_of(value, "answer").lower()
    if text in _YES or text in _NO:
        return Expected.CORRECT if text in _YES else Expected.UNANSWERABLE
    return expected_named(text) if text else None


def _long(what: str, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise BadRecord(f"Expected at most {LONGEST_TEXT:,} characters in the {what}, found {len(text):,}.")
    return text


def _squeezed(name: str) -> str:
    return _SEPARATORS.sub("", name.casefold())
