"""Sets of which a part of the documents is not indexed but stands in an offline web, as folders that `read_set` reads.

What only such a document answers becomes a question that the documents do not answer, and the web does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measures import SEED

HELD_OUT = 0.2
"""Of the titles of a set; all documents of one title go together, since they tell of the same things."""

WEB = "web.jsonl"
BESIDE = "2wiki_corpus"  # pages that answer none of the questions, so that the offline web has to be searched
_ANSWERS = "2"


@dataclass(frozen=True)
class HeldOut:
    """`folder` has the set with its documents, `web` the file of the offline web, None where nothing was held out."""

    folder: Path
    web: Path | None


def route_set(data: Path, into: Path) -> HeldOut:
    """route_dev; its questions that nothing answers keep their labels."""
    source = data / "sets" / "route_dev"
    documents = {row["doc_id"]: row for row in read_rows(source / "corpus.jsonl")}
    held = _held_out(documents.values(), "title")
    lines = (source / "qrels.tsv").read_text("utf-8").splitlines()
    away = {q for q, doc, grade in (line.split("\t") for line in lines[1:]) if documents[doc]["title"] in held}
    rows = [_relabelled(row, row["query_id"] in away) for row in read_rows(source / "queries.jsonl")]
    indexed = [row for row in documents.values() if row["title"] not in held]
    _write(into, rows, indexed, _judged(lines[1:], {row["doc_id"] for row in indexed}))
    pages = [row for row in documents.values() if row["title"] in held]
    return HeldOut(into, write_web(into / WEB, [*pages, *read_rows(data / "sets" / BESIDE / "corpus.jsonl")]))


def leaflet_set(data: Path, into: Path) -> HeldOut:
    """Health leaflets, each a long document, without known answers: what the web would say could not be told right."""
    rows = read_rows(data / "collections" / "health-leaflets.questions.jsonl")
    names = sorted({row["file"] for row in rows})
    documents = [
        {"doc_id": Path(name).stem, "text": (data / "collections" / name).read_text("utf-8")} for name in names
    ]
    held = _held_out(documents, "doc_id")
    asked = [
        {"query_id": row["query_id"], "query": row["query"], "route": "unanswerable" if away else "correct"}
        for row in rows
        for away in [Path(row["file"]).stem in held]
    ]
    judged = [f"{row['query_id']}\t{Path(row['file']).stem}\t{_ANSWERS}" for row in rows]
    indexed = [row for row in documents if row["doc_id"] not in held]
    _write(into, asked, indexed, _judged(judged, {row["doc_id"] for row in indexed}))
    return HeldOut(into, None)


def as_published(name: str, data: Path) -> HeldOut:
    return HeldOut(data / "sets" / name, None)


def _held_out(documents: Iterable[dict[str, Any]], key: str) -> frozenset[str]:
    """A fifth of what stands under `key`, drawn with a fixed seed."""
    names = sorted({row[key] for row in documents})
    return frozenset(random.Random(SEED).sample(names, round(HELD_OUT * len(names))))


def _relabelled(row: dict[str, Any], is_away: bool) -> dict[str, Any]:
    """Without its document all that is known is that nothing answers it: another document may be on the subject."""
    return row | {"route": "unanswerable", "answerable": False} if is_away else row


def _judged(lines: Iterable[str], indexed: set[str]) -> list[str]:
    return [line for line in lines if line.split("\t")[1] in indexed]


def _write(into: Path, rows: Iterable[object], documents: Iterable[object], judged: Sequence[str]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    (into / "queries.jsonl").write_text(_lines(rows), "utf-8")
    (into / "corpus.jsonl").write_text(_lines(documents), "utf-8")
    (into / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *judged]) + "\n", "utf-8")


def write_web(path: Path, pages: Iterable[dict[str, Any]]) -> Path:
    shown = [
        {"url": f"https://web.example/{row['doc_id']}", "title": row["title"], "text": row["text"]} for row in pages
    ]
    path.write_text(_lines(shown), "utf-8")
    return path


def _lines(rows: Iterable[object]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def read_rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
