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
from crag_core.experiments.logs.values import LONGEST_TEXT, chunks_of, numbers_of, opened, text_of, texts_of

FIELDS: dict[str, tuple[str, ...]] = {
    "question": ("question", "query", "user_input", "user_question", "input", "prompt", "q"),
    "contexts": (
        *("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "passages", "chunks"),
        *("retrieved_documents", "retrieved_docs", "retrieved_chunks", "source_documents", "source_nodes", "docs"),
    ),
    "scores": ("scores", "context_scores", "retrieval_scores", "document_scores", "similarities", "score"),
    "ids": ("context_ids", "retrieved_context_ids", "document_ids", "chunk_ids", "doc_ids"),
    "sources": ("sources", "context_sources", "files", "source"),
    "answer": (
        *("answer", "response", "generated_answer", "model_answer", "actual_output", "output", "prediction"),
        *("generation", "completion", "result"),
    ),
    "ground_truth": (
        *("ground_truth", "reference", "ground_truths", "reference_answer", "expected_answer", "expected_output"),
        *("gold_answer", "gold_answers", "ideal", "answers", "expected"),
    ),
    "reference_contexts": ("reference_contexts", "gold_contexts", "ground_truth_contexts", "expected_contexts"),
    "reference_ids": ("reference_context_ids", "gold_context_ids", "gold_ids", "relevant_ids"),
    "label": ("label", "expected_route", "route", "answerable"),
    "id": ("id", "record_id", "trace_id", "run_id", "query_id", "uuid"),
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
_NUMBERED = re.compile(r"(?:context|document|passage|chunk)s?[\W_]*(\d{1,3})")
_YES, _NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")

Mapped = Mapping[str, tuple[str, ...]]
"""By field, the columns, or paths with dots, that it is read from: several where each holds one chunk."""


def mapped(columns: Sequence[str], chosen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What each field is read from: the column that was `chosen` ("": none), else that with the best known name."""
    known: dict[str, str] = {}
    for column in columns:
        known.setdefault(_squeezed(column), column)
    found: dict[str, tuple[str, ...]] = {}
    for field, names in FIELDS.items():
        if field in chosen:
            if chosen[field]:
                found[field] = (chosen[field],)
            continue
        taken = {column for own in found.values() for column in own} | set(chosen.values())
        fits = (known[_squeezed(name)] for name in names if _squeezed(name) in known)
        if (best := next((column for column in fits if column not in taken), None)) is not None:
            found[field] = (best,)
    numbered = sorted(
        (int(number[1]), column) for column in columns if (number := _NUMBERED.fullmatch(column.casefold().strip()))
    )
    if "contexts" not in found and "contexts" not in chosen and numbered:
        found["contexts"] = tuple(column for _, column in numbered)
    return found


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
    found = chunks_of(values.get("contexts"))
    if found is None:
        if values.get("contexts") in (None, ""):
            raise BadRecord(
                "Expected the chunks that were retrieved, found none.",
                hint="Write [] where nothing was retrieved; else map the column that holds them.",
            )
        raise BadRecord("Expected a list of chunks, found another value.", hint="Map the column that holds them.")
    scores = numbers_of(values["scores"]) if values.get("scores") not in (None, "", []) else ()
    ids, sources = _each(values.get("ids")), _each(values.get("sources"))
    for name, given in (("scores", scores), ("ids", ids), ("sources", sources)):
        if given and len(given) != len(found) and not (name == "sources" and len(given) == 1):
            raise BadRecord(
                f"Expected {len(found)} {name}, one a chunk, found {len(given)}.", hint="Map another column, or none."
            )

    def source_of(at: int) -> str:
        """One source for all chunks, or each its own."""
        return sources[at if len(sources) == len(found) else 0][:200] if sources else found[at].source

    return tuple(
        replace(
            one,
            score=scores[at] if scores else one.score,
            id=ids[at][:200] if ids else one.id,
            source=source_of(at),
        )
        for at, one in enumerate(found)
    )


def _each(value: Any) -> tuple[str, ...]:
    """As `texts_of`, one for one."""
    value = opened(value)
    if value in (None, "", []):
        return ()
    return tuple(text_of(one, "answer") for one in (value if isinstance(value, list) else [value]))


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
