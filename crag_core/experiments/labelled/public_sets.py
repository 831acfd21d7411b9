"""Public evaluation sets (queries.jsonl, corpus.jsonl, qrels.tsv) as labelled questions and documents.

No such set carries routes: what its labels are taken for is said here, and nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.experiments.labelled.file_rows import Problem, Row, cleaned, decoded, table_of
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, settle
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
    found: list[tuple[int, LabelledQuestion]] = []
    graded: dict[str, dict[str, int]] = {}
    turns = 0
    for row in _objects("queries.jsonl", queries):
        question, id_ = (_text("queries.jsonl", row, key) for key in ("query", "query_id"))
        grades = judged.get(id_, {})
        expected = _expected(row, grades)
        if expected is None or not question:
            unlabelled[_why_left(row.values) if question else "no question"] += 1
            continue
        files = {names[doc]: grade for doc, grade in grades.items() if doc in names}
        document = next((name for name, grade in files.items() if grade == _ANSWERS), "")
        asked = LabelledQuestion(question, expected, _answers(row), document, note=id_)
        found.append((row.number, asked))
        merged = graded.setdefault(asked.key, {})
        merged |= {name: max(grade, merged.get(name, 0)) for name, grade in files.items()}
        turns += bool(row.values.get("history"))
    settled = settle(found)
    contradicting = sum(map(len, settled.contradictions))
    remarks = {
        "repeat a question with the same label; each is kept once": len(settled.repeated),
        "left out: the same question has different labels": contradicting,
        **{f"left out: {why}": count for why, count in unlabelled.items()},
        **{f"documents left out: {why}": count for why, count in left.items()},
        "are a later turn of a conversation and are asked without what was said before": turns,
    }
    return EvaluationSet(
        settled.questions,
        documents,
        tuple(f"{count:,} {what}." for what, count in remarks.items() if count),
        {one.key: graded[one.key] for one in settled.questions},
    )


def _text(file: str, row: Row, key: str) -> str:
    value = row.values.get(key)
    if value is not None and not isinstance(value, str):
        raise _bad(file, row.number, f"expected text as {key!r}")
    return cleaned(value or "")


def _expected(row: Row, grades: Mapping[str, int]) -> Expected | None:
    """None where the set does not say, or says that it is neither."""
    if route := _text("queries.jsonl", row, "route"):
        if (expected := expected_named(route)) is None:
            raise _bad("queries.jsonl", row.number, f"expected a route, found {route[:60]!r}")
        return expected
    if mode := _text("queries.jsonl", row, "expected_mode"):
        return _MODES.get(mode)
    answerable = row.values.get("answerable")
    if isinstance(answerable, bool):
        return Expected.CORRECT if answerable else Expected.UNANSWERABLE
    if _ANSWERS in grades.values():
        return Expected.CORRECT
    return Expected.UNANSWERABLE if grades and "answerable" not in row.values else None


def _why_left(values: Mapping[str, Any]) -> str:
    kinds = ("expected_mode", "answerability")
    return next(
        (f"{kind} {str(values[kind])[:60]}" for kind in kinds if values.get(kind)), "not said whether answerable"
    )


def _answers(row: Row) -> tuple[str, ...]:
    answers = row.values.get("answers") or []
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise _bad("queries.jsonl", row.number, "expected a list of texts as 'answers'")
    return tuple(filter(None, map(cleaned, answers)))


def _judged(qrels: bytes) -> dict[str, dict[str, int]]:
    """By question, the grades of its documents."""
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for line, text in enumerate(qrels.decode("utf-8-sig", "replace").split("\n"), start=1):
        cells = text.split("\t")
        if not text.strip() or (line == 1 and cells[0] == "query_id"):
            continue
        if len(cells) != 3 or not cells[2].strip().isdecimal():
            raise _bad("qrels.tsv", line, f"expected query_id, doc_id and grade with tabs between, found {text[:60]!r}")
        judged[cleaned(cells[0])][cleaned(cells[1])] = int(cells[2])
    return judged


def _documents(corpus: bytes) -> tuple[dict[str, str], tuple[tuple[str, str], ...], Counter[str]]:
    """File names by id, pairs of file name and text, and why how many documents are left out."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    documents = []
    left: Counter[str] = Counter()
    for row in _objects("corpus.jsonl", corpus):
        id_, title, text = (_text("corpus.jsonl", row, key) for key in ("doc_id", "title", "text"))
        heading = " ".join(title.split())
        if not text or id_ in names:
            left["id of another one" if id_ in names else "no text"] += 1
            continue
        names[id_] = _file_name(id_, taken)
        documents.append((names[id_], f"# {heading}\n\n{text}\n" if heading else f"{text}\n"))
    return names, tuple(documents), left


def _file_name(id_: str, taken: set[str]) -> str:
    """A name that no other has, even where a file system takes no notice of case; adds itself to `taken`."""
    stem = _UNSAFE.sub("_", id_).strip(".")[:_LONGEST_STEM] or "document"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    name = next(one for one in names if one.casefold() not in taken)
    taken.add(name.casefold())
    return f"{name}.md"


def _objects(file: str, content: bytes) -> Iterator[Row]:
    for row in table_of(decoded(content)[0]).rows if content.strip() else ():
        if isinstance(row, Problem):
            raise _bad(file, row.row, row.message.rstrip("."))
        yield row


def _bad(file: str, line: int, message: str) -> BadRecord:
    return BadRecord(f"{file}, line {line}: {message}.", hint="Use the file as it was published.")
