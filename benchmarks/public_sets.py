"""Evaluation sets (queries.jsonl, corpus.jsonl, qrels.tsv) as labelled questions, and an index of their documents.

No such set carries routes: what its labels are taken for is said here, and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crag_core.app.calibration import apart
from crag_core.app.workbench import Workbench
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet, settle
from crag_core.experiments.labelled.read import expected_named

_ANSWERS = 2  # the grade of a document that answers
_MODES = {"trustworthy": Expected.CORRECT, "abstain": Expected.UNANSWERABLE}
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_STEM = 100


@dataclass(frozen=True)
class EvaluationSet:
    """`documents` are pairs of file name and text, Markdown; a question's `document` is one of these names or "".

    `judged` has, by the key of a question, the judged files with their grades: 0 not relevant, 1 related, 2 answers;
    of a question that comes more than once, the highest ones.
    """

    labelled: LabelledSet
    documents: tuple[tuple[str, str], ...]
    judged: Mapping[str, Mapping[str, int]]


def read_set(folder: Path) -> EvaluationSet:
    """Without questions that are labelled in two ways, and those of which is not said whether they are answerable."""
    documents, grades = _documents(_rows(folder / "corpus.jsonl")), _grades(folder / "qrels.tsv")
    found: list[tuple[int, LabelledQuestion]] = []
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for number, row in enumerate(_rows(folder / "queries.jsonl")):
        own = grades.get(row["query_id"], {})
        question, expected = cleaned(row["query"]), _expected(row, own)
        if expected is None or not question:
            continue
        files = {documents[doc][0]: grade for doc, grade in own.items() if doc in documents}
        document = next((name for name, grade in files.items() if grade == _ANSWERS), "")
        answers = tuple(filter(None, map(cleaned, row.get("answers") or [])))
        asked = LabelledQuestion(question, expected, answers, document, note=row["query_id"])
        found.append((number, asked))
        known = judged[asked.key]
        known |= {name: max(grade, known.get(name, 0)) for name, grade in files.items()}
    questions = settle(found).questions
    return EvaluationSet(
        LabelledSet(folder.name, questions), tuple(documents.values()), {one.key: judged[one.key] for one in questions}
    )


def index(found: EvaluationSet, workbench: Workbench) -> Workbench:
    """With the documents of the set alone, apart from those of `workbench`; what a kill interrupted is finished."""
    own = apart(workbench, found.labelled.name)
    there = {document.name for document in own.store.documents()}
    own.store.ingest([(name, text.encode()) for name, text in found.documents if name not in there])
    return own


def _expected(row: Mapping[str, Any], grades: Mapping[str, int]) -> Expected | None:
    """None where the set does not say, or says that it is neither."""
    if row.get("route"):
        return expected_named(row["route"])
    if row.get("expected_mode"):
        return _MODES.get(row["expected_mode"])
    answerable = row.get("answerable")
    if answerable is None and _ANSWERS in grades.values():
        return Expected.CORRECT
    if answerable is None:
        return Expected.UNANSWERABLE if grades and "answerable" not in row else None
    return Expected.CORRECT if answerable else Expected.UNANSWERABLE


def _grades(file: Path) -> dict[str, dict[str, int]]:
    """By question, the grades of its documents."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in file.read_text("utf-8").splitlines()[1:] if file.exists() else ():
        question, document, grade = line.split("\t")
        found[question][document] = int(grade)
    return found


def _documents(rows: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Pairs of file name and text by id, the first of each; without those that have no text."""
    found: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()
    for row in rows:
        id_, title, text = row["doc_id"], " ".join(row.get("title", "").split()), cleaned(row["text"])
        if not text or id_ in found:
            continue
        stem = name = _UNSAFE.sub("_", id_).strip(".")[:_LONGEST_STEM] or "document"
        while name.casefold() in taken:  # some file systems take no notice of case
            name = f"{stem}-{len(taken) + 1}"
        taken.add(name.casefold())
        found[id_] = f"{name}.md", f"# {title}\n\n{text}\n" if title else f"{text}\n"
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
