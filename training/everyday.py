"""Pairs from the everyday documents of `training/everyday`: questions in three wordings, answered or nearly answered.

Documents are cut into chunks as the application cuts them, into another length each time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from crag_core.base.text.words import words
from crag_core.retrieval.chunking.text_splitter import Size, split_text
from training.forms import reword
from training.pairs import Pair

Count = Callable[[str], int]
FOLDER = Path(__file__).parent / "everyday"
LENGTHS = (50, 80, 120, 160, 220)
"""Tokens of a chunk, one drawn for each document and epoch."""
NEIGHBOUR, ELSEWHERE, RULED = 0.4, 0.15, 0.2
"""Shares of the questions that come with another chunk of their document and with one of another document, and of the
wordings that are changed once more by rule."""
UNANSWERED = ("missing", "swapped", "why_how_who", "heading")
"""Kinds of questions that a document does not answer."""
KEPT_APART = 6
"""One document in so many is for calibration and not learnt from."""


@dataclass(frozen=True)
class Asked:
    """`place` is the sentence that answers, or that seems to; `wordings` ask the same."""

    wordings: tuple[str, ...]
    place: str
    is_answered: bool
    kind: str


@dataclass(frozen=True)
class Everyday:
    title: str
    text: str
    questions: tuple[Asked, ...]


def read_everyday(folder: Path) -> list[Everyday]:
    """Every document below `folder`, in the order of the names of the files."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"), key=lambda path: path.name)]
    return [Everyday(one["title"], one["text"], tuple(map(_asked, one["questions"]))) for one in found]


def is_kept_apart(document: Everyday) -> bool:
    return zlib.crc32(document.title.encode()) % KEPT_APART == 0


def _asked(row: dict[str, str]) -> Asked:
    is_answered = row["kind"] == "answered"
    wordings = (row["full"], row["casual"], row["keywords"])
    return Asked(wordings, row["evidence" if is_answered else "near"], is_answered, row["kind"])


def everyday_pairs(documents: Sequence[Everyday], count: Count, random: Random) -> list[Pair]:
    """Each question with the chunk that answers or nearly does, with its neighbours, and with other documents."""
    if not documents:
        return []
    cut = [_cut(document, count, random) for document in documents]
    search = _Search(cut)
    pairs: list[Pair] = []
    for number, (document, chunks) in enumerate(zip(documents, cut, strict=True)):
        for asked in document.questions:
            pairs += _pairs_of(asked, chunks, document.title, random)
            if random.random() < ELSEWHERE:
                wording, again = _two(asked, random)
                found = search.elsewhere(wording, number, random)
                if found:
                    pairs.append(Pair(wording, found, 0.0, 0.0, "everyday/elsewhere", again=again))
    return pairs


def _pairs_of(asked: Asked, chunks: Sequence[str], title: str, random: Random) -> Iterator[Pair]:
    holding = [chunk for chunk in chunks if asked.place in chunk]
    rest = [chunk for chunk in chunks if not _overlaps(asked.place, chunk)]
    if holding:
        wording, again = _two(asked, random)
        evidence = asked.place if asked.is_answered else ""
        label = float(asked.is_answered)
        yield Pair(wording, random.choice(holding), label, 1.0, f"everyday/{asked.kind}", title, evidence, again)
    if rest and random.random() < NEIGHBOUR:
        wording, again = _two(asked, random)
        yield Pair(wording, random.choice(rest), 0.0, None, "everyday/neighbour", title, again=again)


def _two(asked: Asked, random: Random) -> tuple[str, str]:
    """Two of the wordings, now and then changed once more."""
    one, other = random.sample(asked.wordings, 2)
    return tuple(reword(text, random) if random.random() < RULED else text for text in (one, other))  # type: ignore[return-value]


def _overlaps(place: str, chunk: str) -> bool:
    """Does the chunk hold it, or an end of it?"""
    return (
        place in chunk
        or chunk.endswith(place[:25])
        or any(part and part in chunk for part in (place[-40:], place[:40]))
    )


def _cut(document: Everyday, count: Count, random: Random) -> list[str]:
    length = random.choice(LENGTHS)
    size = Size(length, min(30, length // 4))
    return [chunk.text for chunk in split_text(document.text, size, count)]


class _Search:
    """Keyword search over the chunks of all documents."""

    def __init__(self, cut: Sequence[Sequence[str]]) -> None:
        import bm25s

        self._chunks = [(number, chunk) for number, chunks in enumerate(cut) for chunk in chunks]
        self._index = bm25s.BM25()
        self._index.index([words(chunk) for _, chunk in self._chunks], show_progress=False)

    def elsewhere(self, question: str, own: int, random: Random) -> str:
        """One of the best chunks of another document, "" where there is none."""
        asked = words(question)
        if not asked:
            return ""
        wanted = min(60, len(self._chunks))
        found, _ = self._index.retrieve([asked], k=wanted, show_progress=False)
        others = [self._chunks[int(place)] for place in found[0] if self._chunks[int(place)][0] != own]
        return random.choice(others[:3])[1] if others else ""
