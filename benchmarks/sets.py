"""Questions with labelled passages, what their labels allow to be measured, and the files that they are read from."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.measures import SEED
from benchmarks.nearest import RememberingEmbedder
from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.split import cut_pages
from crag_core.retrieval.readers import read_document
from training.everyday import Asked, Everyday, is_kept_apart, read_near_misses


@dataclass(frozen=True)
class Question:
    """`label` is the question's own, `labels` those of its passages; "" where nothing is known."""

    text: str
    passages: tuple[Passage, ...]
    labels: tuple[str, ...]
    label: str = ""


@dataclass(frozen=True)
class Comparison:
    """Two groups to be told apart by their labels: passages, or with `by_best` questions by their best passage."""

    title: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    by_best: bool = False


@dataclass(frozen=True)
class Task:
    """Questions graded together; `is_strips`: a question's passages are strips of one text, some labelled "answer"."""

    questions: tuple[Question, ...]
    comparisons: tuple[Comparison, ...] = ()
    is_routing: bool = False
    is_strips: bool = False

    def trimmed(self) -> Task:
        """Without the questions that no measure looks at: to grade them takes time."""
        if self.is_routing or self.is_strips:
            return self
        return replace(self, questions=tuple(question for question in self.questions if self._is_used(question)))

    def _is_used(self, question: Question) -> bool:
        return any(
            {question.label} & labels if told.by_best else labels.intersection(question.labels)
            for told in self.comparisons
            for labels in [{*told.positive, *told.negative}]
        )


class Source:
    """The files of one set, with at most `limit` of its questions, drawn with a fixed seed."""

    def __init__(self, folder: Path, limit: int, embedder: RememberingEmbedder) -> None:
        self.embedder = embedder
        self._folder = folder
        everything = self._read("queries")
        places = range(len(everything))
        drawn = sorted(random.Random(SEED).sample(places, limit)) if limit < len(everything) else places
        self.total = len(everything)
        self.rows = [everything[place] for place in drawn]

    @cached_property
    def corpus(self) -> dict[str, dict[str, Any]]:
        return {row["doc_id"]: row for row in self._read("corpus")}

    @cached_property
    def judged(self) -> dict[str, dict[str, int]]:
        """Grade by document by question."""
        found: dict[str, dict[str, int]] = {}
        for line in (self._folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
            question, document, grade = line.split("\t")
            found.setdefault(question, {})[document] = int(grade)
        return found

    @cached_property
    def candidates(self) -> dict[str, list[dict[str, Any]]]:
        return {row["query_id"]: row["passages"] for row in self._read("candidates")}

    def text(self, document: str) -> str:
        return str(self.corpus[document]["text"])

    def passage(self, document: str, **more: Any) -> Passage:
        """The document with its title as the heading above it, where it has one."""
        return Passage(
            document, self.text(document), document, section=self.corpus[document].get("title") or "", **more
        )

    def _read(self, name: str) -> list[dict[str, Any]]:
        with (self._folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


class EverydaySource(Source):
    """Everyday documents, read and cut as the application does, and questions with the route that they should take."""

    def _read(self, name: str) -> list[dict[str, Any]]:
        if name == "queries":
            with (self._folder / "questions.jsonl").open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            return [row | {"query": row["question"], "route": _EXPECTED[row["expected"]]} for row in rows]
        documents = sorted((self._folder / "documents").iterdir())
        return [
            {"doc_id": f"{path.name}#{number}", "text": chunk.text, "title": chunk.section}
            for path in documents
            for number, chunk in enumerate(cut_pages(read_document(path), path.name))
        ]


class UploadsSource(Source):
    """The documents with near misses that are kept apart from training, as people would upload them, siblings too.

    Of each some questions that it answers and some that it nearly does, every other one in casual wording; and the
    everyday questions that are about something else.
    """

    def documents(self) -> list[Everyday]:
        return [one for one in read_near_misses(self._folder) if is_kept_apart(one)]

    def _read(self, name: str) -> list[dict[str, Any]]:
        rows = [
            {"query": asked.wordings[place % 2], "kind": asked.kind, "route": route}
            for document in self.documents()
            for route, is_answered in (("correct", True), ("ambiguous_or_incorrect", False))
            for place, asked in enumerate(_few(document, is_answered))
        ]
        with (self._folder.parents[1] / "dev" / "everyday" / "questions.jsonl").open(encoding="utf-8") as lines:
            others = [row for row in map(json.loads, lines) if row["expected"] == "INCORRECT"]
        rows += [{"query": row["question"], "kind": "elsewhere", "route": "incorrect"} for row in others]
        return list({row["query"]: row for row in reversed(rows)}.values())[::-1]


def _few(document: Everyday, is_answered: bool) -> list[Asked]:
    asked = [one for one in document.questions if one.is_answered is is_answered]
    return random.Random(document.file).sample(asked, min(EACH, len(asked)))


class PairsSource(Source):
    """Pairs of a question and a passage from many sources, at most `PAIRS` of each that answer and that do not."""

    def _read(self, name: str) -> list[dict[str, Any]]:
        draw = random.Random(SEED)
        found = []
        for path in sorted(self._folder.glob("*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows = [json.loads(line) | {"from": path.name.split(".")[0]} for line in lines]
            for label in (1, 0):
                own = [row for row in rows if row["label"] == label]
                found += draw.sample(own, min(PAIRS, len(own)))
        return found


EACH = 4
"""Questions of a document that it answers, and as many that it does not."""
PAIRS = 80
_EXPECTED = {"CORRECT": "correct", "AMBIGUOUS": "ambiguous_or_incorrect", "INCORRECT": "incorrect"}


def open_source(data: Path, name: str, limit: int, embedder: RememberingEmbedder) -> Source | None:
    """None where the shared data have no such set."""
    make = {"everyday": EverydaySource, "pairs": PairsSource, "uploads": UploadsSource}.get(name, Source)
    folder = {Source: data / "sets" / name, UploadsSource: data.parent / "train" / "everyday2"}.get(make, data / name)
    return make(folder, limit, embedder) if folder.is_dir() else None


def make_question(row: dict[str, Any], labelled: Iterable[tuple[str, str]], label: str = "") -> Question:
    """From pairs of text and label."""
    pairs = list(labelled)
    passages = tuple(Passage(f"p{place}", text, f"source-{place}") for place, (text, _) in enumerate(pairs, start=1))
    return Question(row["query"], passages, tuple(label for _, label in pairs), label)
