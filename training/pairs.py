"""Training pairs: a question, a passage, and what is known of the two, read from the shared training data."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

MIN_WORDS = 6
"""A shorter text is a heading or a scrap, and says nothing of what a passage looks like."""


UNTITLED = ("squadshifts_reddit", "squadshifts_amazon_reviews")
"""Sources in which all passages have one title, whatever they are about."""


@dataclass(frozen=True)
class Pair:
    """`answering` and `topical` in 0..1 are what to learn; None: not known, not learnt from. `title` may be empty.

    `evidence` is the part of `passage` that holds the answer, "" where none does or it is not known; `again` is the
    question in another wording, or "". A pair of `against` is learnt in the same batch, and to score below this one.
    """

    question: str
    passage: str
    answering: float | None
    topical: float | None
    kind: str
    title: str = ""
    evidence: str = ""
    again: str = ""
    against: tuple[Pair, ...] = ()


def with_near_misses(pairs: Sequence[Pair]) -> list[Pair]:
    """Every pair, and after it those that it stands against."""
    return [one for pair in pairs for one in (pair, *pair.against)]


@dataclass(frozen=True)
class Row:
    """One line of the shared training data."""

    question: str
    passage: str
    title: str
    label: int
    source: str
    kind: str
    lang: str
    qid: str = ""


def read_rows(path: Path) -> list[Row]:
    """Every line of `path`, without scraps of passages and without repeats."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = (json.loads(line) for line in lines)
        rows = {
            Row(
                *(d["query"].strip(), d["passage"].strip(), d["title"], d["label"], d["source"]),
                *(d["kind"], d["lang"], d["qid"]),
            ): None
            for d in found
        }
    return [row for row in rows if row.lang != "en" or len(row.passage.split()) >= MIN_WORDS]


def pack_rows(rows: Sequence[Row], path: Path) -> None:
    """Write `rows` with every passage stored once."""
    passages = {row.passage: None for row in rows}
    numbers = {passage: number for number, passage in enumerate(passages)}
    packed = [
        [row.question, numbers[row.passage], *(getattr(row, one.name) for one in fields(Row)[2:])] for row in rows
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", preset=9) as file:
        json.dump([list(passages), packed], file, ensure_ascii=False)


def unpack_rows(path: Path) -> list[Row]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        passages, packed = json.load(file)
    return [Row(question, passages[number], *rest) for question, number, *rest in packed]


def set_apart(rows: list[Row], measured: list[Row]) -> list[Row]:
    """Those of `rows` that share neither question, passage nor article with a row of `measured`."""
    questions, passages = {row.question for row in measured}, {row.passage for row in measured}
    articles = {article(row.title) for row in measured if row.source not in UNTITLED} - {""}
    return [
        row
        for row in rows
        if not (row.question in questions or row.passage in passages or article(row.title) in articles)
    ]


def article(title: str) -> str:
    """The article of a section's title: "Snowboarding - Films" belongs to "Snowboarding"."""
    return title.split(" - ")[0].strip().lower()


def known_pairs(rows: list[Row]) -> list[Pair]:
    """What the labels say. On topic is a passage of the article that answers; another article's counts as off topic."""
    homes: dict[str, set[str]] = {}
    for row in rows:
        if row.label:
            homes.setdefault(row.question, set()).add(article(row.title))
    return [
        Pair(row.question, row.passage, float(row.label), _topical(row, homes.get(row.question)), _kind(row), row.title)
        for row in rows
    ]


def _topical(row: Row, homes: set[str] | None) -> float | None:
    if row.label or row.kind in ("human_unanswerable", "human_sentence", "answer_removed"):
        return 1.0
    if row.kind == "random":
        return 0.0
    if row.source in UNTITLED:
        return None
    if homes and all(homes) and row.title:
        return 1.0 if article(row.title) in homes else 0.0
    return None


def _kind(row: Row) -> str:
    kind = {1: "answers"}.get(row.label, row.kind)
    return f"{row.source}/{kind}"
