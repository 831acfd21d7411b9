"""Public evaluation sets (queries.jsonl, corpus.jsonl, qrels.tsv) as labelled questions and documents.

No such set carries routes: what its labels are taken for is said here, and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, Settled, settle
from crag_core.experiments.labelled.read import expected_named

_ANSWERS = 2  # the grade of a document that answers
_MODES = {"trustworthy": Expected.CORRECT, "abstain": Expected.UNANSWERABLE}
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_STEM = 100


@dataclass(frozen=True)
class EvaluationSet:
    """`documents` are pairs of file name and text, Markdown; a question's `document` is one of these names or "".

    `graded` has, by the key of a question, the judged files with their grades: 0 not relevant, 1 related, 2 answers;
    of a question that comes more than once, the highest ones.
    """

    questions: tuple[LabelledQuestion, ...]
    documents: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    graded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_set(queries: bytes, corpus: bytes = b"", qrels: bytes = b"") -> EvaluationSet:
    """The contents of the three files, empty where there is none. Raises `BadRecord` naming file and line."""
    names, documents, left = _documents(corpus)
    judged = _judged(qrels)
    unlabelled: Counter[str] = Counter()
    turns = 0
    found: list[tuple[int, LabelledQuestion]] = []
    graded: dict[str, dict[str, int]] = {}
    for line, row in _objects("queries.jsonl", queries):
        id_, question = _text("queries.jsonl", line, row, "query_id"), _text("queries.jsonl", line, row, "query")
        grades = judged.get(id_, {})
        expected = _expected(line, row, grades)
        if expected is None or not question:
            unlabelled[_why_left(row) if question else "no question"] += 1
            continue
        files = {names[doc]: grade for doc, grade in grades.items() if doc in names}
        document = next((name for name, grade in files.items() if grade == _ANSWERS), "")
        asked = LabelledQuestion(question, expected, _answers(line, row), document, note=id_)
        found.append((line, asked))
        merged = graded.setdefault(asked.key, {})
        merged |= {name: max(grade, merged.get(name, 0)) for name, grade in files.items()}
        turns += bool(row.get("history"))
    settled = settle(found)
    remarks = (*_describe(settled), *(f"{count:,} left out: {why}." for why, count in unlabelled.items()), *left)
    if turns:
        remarks += (f"{turns:,} are a later turn of a conversation and are asked without what was said before.",)
    return EvaluationSet(settled.questions, documents, remarks, {one.key: graded[one.key] for one in settled.questions})


# --- labels ---------------------------------------------------------------------------------------------------------


def _expected(line: int, row: Mapping[str, Any], grades: Mapping[str, int]) -> Expected | None:
    """None where the set does not say, or says that it is neither."""
    route, mode = (_text("queries.jsonl", line, row, key) for key in ("route", "expected_mode"))
    if route:
        expected = expected_named(route)
        if expected is None:
            raise _bad("queries.jsonl", line, f"expected a route, found {route[:60]!r}")
        return expected
    if mode:
        return _MODES.get(mode)
    answerable = row.get("answerable")
    if isinstance(answerable, bool):
        return Expected.CORRECT if answerable else Expected.UNANSWERABLE
    if _ANSWERS in grades.values():
        return Expected.CORRECT
    return Expected.UNANSWERABLE if grades and "answerable" not in row else None


def _why_left(row: Mapping[str, Any]) -> str:
    kinds = ("expected_mode", "answerability")
    return next((f"{kind} {str(row[kind])[:60]}" for kind in kinds if row.get(kind)), "not said whether answerable")


def _describe(settled: Settled) -> tuple[str, ...]:
    remarks = []
    if settled.repeated:
        remarks.append(f"{len(settled.repeated):,} repeat a question with the same label; each is kept once.")
    if settled.contradictions:
        rows = sum(map(len, settled.contradictions))
        remarks.append(f"{rows:,} left out: the same question has different labels.")
    return tuple(remarks)


def _judged(qrels: bytes) -> dict[str, dict[str, int]]:
    """By question, the grades of its documents."""
    judged: dict[str, dict[str, int]] = {}
    for line, text in _lines("qrels.tsv", qrels):
        cells = text.split("\t")
        if line == 1 and cells[0] == "query_id":
            continue
        if len(cells) != 3 or not cells[2].strip().isdecimal():
            raise _bad("qrels.tsv", line, f"expected query_id, doc_id and grade with tabs between, found {text[:60]!r}")
        judged.setdefault(cleaned(cells[0]), {})[cleaned(cells[1])] = int(cells[2])
    return judged


def _answers(line: int, row: Mapping[str, Any]) -> tuple[str, ...]:
    answers = row.get("answers") or []
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise _bad("queries.jsonl", line, "expected a list of texts as 'answers'")
    return tuple(filter(None, map(cleaned, answers)))


# --- documents ------------------------------------------------------------------------------------------------------


def _documents(corpus: bytes) -> tuple[dict[str, str], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """File names by id, pairs of file name and text, and remarks on documents that are left out."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    documents = []
    left: Counter[str] = Counter()
    for line, row in _objects("corpus.jsonl", corpus):
        id_, title, text = (_text("corpus.jsonl", line, row, key) for key in ("doc_id", "title", "text"))
        if not text or id_ in names:
            left["id of another one" if id_ in names else "no text"] += 1
            continue
        names[id_] = _file_name(id_, taken)
        heading = " ".join(title.split())
        documents.append((names[id_], f"# {heading}\n\n{text}\n" if heading else f"{text}\n"))
    return names, tuple(documents), tuple(f"{count:,} documents left out: {why}." for why, count in left.items())


def _file_name(id_: str, taken: set[str]) -> str:
    """A name that no other has, even where a file system takes no notice of case; adds itself to `taken`."""
    stem = _UNSAFE.sub("_", id_).strip(".")[:_LONGEST_STEM] or "document"
    name, number = stem, 1
    while name.casefold() in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name.casefold())
    return f"{name}.md"


# --- lines ----------------------------------------------------------------------------------------------------------


def _objects(file: str, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in _lines(file, content):
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _bad(file, line, "not valid JSON") from error
        if not isinstance(row, dict):
            raise _bad(file, line, "expected an object")
        yield line, row


def _lines(file: str, content: bytes) -> Iterator[tuple[int, str]]:
    """Those that are not blank, with their numbers from 1."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad(file, content.count(b"\n", 0, error.start) + 1, "not UTF-8 text") from error
    for line, found in enumerate(text.split("\n"), start=1):
        if found.strip():
            yield line, found


def _text(file: str, line: int, row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise _bad(file, line, f"expected text as {key!r}")
    return cleaned(value or "")


def _bad(file: str, line: int, message: str) -> BadRecord:
    return BadRecord(f"{file}, line {line}: {message}.", hint="Use the file as it was published.")
