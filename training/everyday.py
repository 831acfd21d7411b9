"""Pairs from everyday documents: questions in three wordings, answered or nearly answered.

Those of `training/everyday`, and of the shared data those with twins, questions of which one is answered and the other
is not though they are worded almost alike, and groups of siblings, documents of one kind about different things.
Documents are cut into chunks as the application cuts them, into another length each time.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from crag_core.base.text.words import words
from crag_core.retrieval.chunking.split import JOINED, headings_in, section_at, title_of
from crag_core.retrieval.chunking.text_splitter import Cut, split_text
from crag_core.retrieval.readers.text import read_text
from training.forms import reword
from training.pairs import Pair
from training.tables import as_read, draw_form, is_export
from training.wording import stems

Count = Callable[[str], int]
FOLDER = Path(__file__).parent / "everyday"
LENGTHS = (50, 80, 120, 160, 220)
"""Tokens of a chunk, one drawn for each document and epoch."""
NEIGHBOUR, ELSEWHERE, RULED = 0.3, 0.15, 0.2
"""Shares of the questions that come with another chunk of their document and with one of another document, and of the
wordings that are changed once more by rule."""
BARE = 0.5
"""Share of the questions whose chunk is read without title and headings."""
UNANSWERED = ("missing", "swapped", "wrong_line", "other_code", "why_how_who", "heading")
"""Kinds of questions that a document does not answer."""
OTHER_THING = ("swapped", "other_code")
"""Of these, those that name another thing than the document."""
KEPT_APART = 6
"""One document, or one group of them, in so many is for calibration and not learnt from."""
_PLAIN_HEADING = re.compile(
    r"(?m)^(?:\*\*[^*\n|]{3,70}\*\*:?|§ ?\d[^\n|.]{0,60}|\d+(?:\.\d+)*[.)]? +[A-Z][^\n|.;,]{2,60}|"
    r"[A-Z][A-Z0-9 &/’'–-]{3,60}):?$"
)
"""A line that is a heading in plain text: in bold, in capitals, or numbered."""
_MARKS = re.compile(r"^[#*\s]+|[*\s:]+$")


@dataclass(frozen=True)
class Asked:
    """`place` is the sentence that answers, or that seems to; `wordings` ask the same.

    `twin` is the number of the answered question of the document that is worded almost alike.
    """

    wordings: tuple[str, ...]
    place: str
    is_answered: bool
    kind: str
    twin: int | None = None


@dataclass(frozen=True)
class Everyday:
    """Documents of one `group` are siblings; `file` is the name of the file, without extension, "": not known."""

    title: str
    text: str
    questions: tuple[Asked, ...]
    group: str = ""
    file: str = ""


@dataclass(frozen=True)
class _Cut:
    """A document in chunks, each with the title and the headings above it, and where its questions look."""

    document: Everyday
    chunks: tuple[str, ...]
    titles: tuple[str, ...]
    places: tuple[str, ...]


def read_everyday(folder: Path) -> list[Everyday]:
    """Every document below `folder`, in the order of the names of the files."""
    return [_read(json.loads(path.read_text("utf-8"))) for path in sorted(folder.rglob("*.json"), key=lambda p: p.name)]


def read_near_misses(folder: Path) -> list[Everyday]:
    """Every document of the files *.jsonl.gz in `folder`, one in a line."""
    found = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found += [_read(json.loads(line)) for line in lines]
    return found


def _read(one: dict[str, Any]) -> Everyday:
    asked = tuple(map(_asked, one["questions"]))
    return Everyday(one["title"], one["text"], asked, one.get("group", ""), one.get("slug", ""))


def is_kept_apart(document: Everyday) -> bool:
    return zlib.crc32((document.group or document.file or document.title).encode()) % KEPT_APART == 0


def in_groups(documents: Sequence[Everyday]) -> list[list[Everyday]]:
    """Siblings together, every other document by itself."""
    found: dict[str, list[Everyday]] = {}
    for number, document in enumerate(documents):
        found.setdefault(document.group or f" {number}", []).append(document)
    return list(found.values())


def _asked(row: dict[str, Any]) -> Asked:
    is_answered = row["kind"] == "answered"
    wordings = (row["full"], row["casual"], row["keywords"])
    return Asked(wordings, row["evidence" if is_answered else "near"], is_answered, row["kind"], row.get("twin"))


def everyday_pairs(documents: Sequence[Everyday], count: Count, random: Random) -> list[Pair]:
    """Each question with the chunk that answers or nearly does, with its neighbours, and with other documents.

    An answered one stands against its twins, a neighbour and a sibling's chunk.
    """
    if not documents:
        return []
    cut = [cut_document(document, count, random) for document in documents]
    search = _Search(cut)
    siblings: dict[str, list[_Cut]] = {}
    for one in cut:
        siblings.setdefault(one.document.group, []).append(one)
    pairs: list[Pair] = []
    for one in cut:
        others = [other for other in siblings[one.document.group] if one.document.group and other is not one]
        pairs += _pairs_of(one, others, random)
        for asked in one.document.questions:
            if random.random() < ELSEWHERE:
                wording, again = _worded(asked, _two(random), random)
                found = search.elsewhere(wording, one.document, random)
                if found:
                    pairs.append(Pair(wording, found, 0.0, 0.0, "everyday/elsewhere", again=again))
    return pairs


def _pairs_of(cut: _Cut, siblings: Sequence[_Cut], random: Random) -> Iterator[Pair]:
    twins: dict[int, list[int]] = {}
    for number, asked in enumerate(cut.document.questions):
        if asked.twin is not None:
            twins.setdefault(asked.twin, []).append(number)
    with_twin: set[int] = set()
    for number, asked in enumerate(cut.document.questions):
        at = _holding(cut, number, random)
        if not asked.is_answered or at is None:
            continue
        two, is_bare = _two(random), random.random() < BARE
        near = [twin for twin in twins.get(number, ()) if _holding(cut, twin, random) is not None]
        with_twin.update(near)
        places = [(twin, _holding(cut, twin, random, at)) for twin in near]
        is_bare = is_bare and all(_tells_itself(cut, twin, place) for twin, place in places)
        against = [_own(cut, twin, place, two, is_bare, random) for twin, place in places]
        rest = _rest(cut, number)
        if rest and random.random() < NEIGHBOUR:
            against.append(_neighbour(cut, number, random.choice(rest), two, is_bare, random))
        if siblings:
            found = _of_sibling(cut, number, random.choice(siblings), two, is_bare, random)
            against += [found] if found else []
        yield replace(_own(cut, number, at, two, is_bare, random), against=tuple(against))
    for number, asked in enumerate(cut.document.questions):
        at, rest, two, is_bare = _holding(cut, number, random), _rest(cut, number), _two(random), random.random() < BARE
        if not asked.is_answered and number not in with_twin and at is not None:
            yield _own(cut, number, at, two, is_bare and _tells_itself(cut, number, at), random)
        if (not asked.is_answered or at is None) and rest and random.random() < NEIGHBOUR:
            yield _neighbour(cut, number, random.choice(rest), two, is_bare, random)


def _holding(cut: _Cut, number: int, random: Random, wanted: int | None = None) -> int | None:
    """A chunk that holds the place of the question, `wanted` where that does."""
    found = [at for at, chunk in enumerate(cut.chunks) if cut.places[number] and cut.places[number] in chunk]
    return wanted if wanted in found else random.choice(found) if found else None


def _rest(cut: _Cut, number: int) -> list[int]:
    place = cut.places[number]
    return [at for at, chunk in enumerate(cut.chunks) if place and not _overlaps(place, chunk)]


def _own(cut: _Cut, number: int, at: int | None, two: tuple[int, int], is_bare: bool, random: Random) -> Pair:
    """The question with the chunk that holds its place."""
    assert at is not None
    asked = cut.document.questions[number]
    wording, again = _worded(asked, two, random)
    evidence = cut.places[number] if asked.is_answered else ""
    shown = _shown(cut, at, is_bare)
    kind = f"everyday/{asked.kind}"
    return Pair(wording, shown, float(asked.is_answered), 1.0, kind, cut.document.title, evidence, again)


def _neighbour(cut: _Cut, number: int, at: int, two: tuple[int, int], is_bare: bool, random: Random) -> Pair:
    wording, again = _worded(cut.document.questions[number], two, random)
    shown = _shown(cut, at, is_bare)
    return Pair(wording, shown, 0.0, None, "everyday/neighbour", cut.document.title, again=again)


def _of_sibling(
    cut: _Cut, number: int, sibling: _Cut, two: tuple[int, int], is_bare: bool, random: Random
) -> Pair | None:
    """The question with the chunk of a sibling that is most like the one that answers, if what is shown of it tells
    that it is about something else."""
    asked = cut.document.questions[number]
    sought = stems(f"{asked.wordings[0]} {cut.places[number]}")
    at = max(range(len(sibling.chunks)), key=lambda one: len(sought & stems(sibling.chunks[one])), default=None)
    own = f"{cut.document.title} {asked.wordings[0]}"
    if at is None:
        return None
    shown = _shown(sibling, at, is_bare)
    if not _names(shown, sibling.document.title, own, 2 if is_bare else 1):
        return None
    wording, again = _worded(asked, two, random)
    return Pair(wording, shown, 0.0, None, "everyday/sibling", sibling.document.title, again=again)


def _tells_itself(cut: _Cut, number: int, at: int | None) -> bool:
    """Whether the chunk alone can tell that it does not answer: one of a sibling that names nothing might be that of
    the thing asked for."""
    asked = cut.document.questions[number]
    if not cut.document.group or asked.kind not in OTHER_THING:
        return True
    return at is not None and _names(cut.chunks[at], cut.document.title, asked.wordings[0], 2)


def _names(shown: str, title: str, other: str, shortest: int) -> bool:
    """Is a word of so many letters there that `title` has and `other` has not?"""
    return any(len(word) >= shortest for word in (stems(title) - stems(other)) & stems(shown))


def _shown(cut: _Cut, at: int, is_bare: bool) -> str:
    above = "" if is_bare else cut.titles[at]
    return f"{above}: {cut.chunks[at]}" if above else cut.chunks[at]


def _two(random: Random) -> tuple[int, int]:
    """The numbers of two of the three wordings."""
    one, other = random.sample(range(3), 2)
    return one, other


def _worded(asked: Asked, two: tuple[int, int], random: Random) -> tuple[str, str]:
    """Two of the wordings, now and then changed once more."""
    one, other = (asked.wordings[number] for number in two)
    return tuple(reword(text, random) if random.random() < RULED else text for text in (one, other))  # type: ignore[return-value]


def _overlaps(place: str, chunk: str) -> bool:
    """Does the chunk hold it, or an end of it?"""
    return (
        place in chunk
        or chunk.endswith(place[:25])
        or any(part and part in chunk for part in (place[-40:], place[:40]))
    )


def cut_document(document: Everyday, count: Count, random: Random) -> _Cut:
    """Into chunks of a length that is drawn, with tables in a form that is drawn."""
    (page,) = read_text(document.text.encode(), "")
    text, became = draw_form(page.text, random)
    length = random.choice(LENGTHS)
    chunks = list(split_text(text, Cut(length, min(30, length // 4)), count))
    title, way = _title(document, random), random.random()
    sections = _sections(text, chunks)
    headings = [(found.start(), _MARKS.sub("", found.group())) for found in _PLAIN_HEADING.finditer(text)]
    if not any(sections):
        sections = [next((name for start, name in reversed(headings) if start < at), "") for at, _ in chunks]
    # As far as both are known; now and then one alone.
    above = [
        _above(chunk, *([title, section] if way < 0.7 else [title] if way < 0.85 else [section]))
        for (_, chunk), section in zip(chunks, sections, strict=True)
    ]
    places = tuple(
        next((new for old, new in became.items() if asked.place in old), asked.place) for asked in document.questions
    )
    return _Cut(document, tuple(chunk for _, chunk in chunks), tuple(above), places)


def chunks_as_shown(document: Everyday, count: Count) -> list[tuple[str, str]]:
    """As the application cuts it by default, each chunk after the title and the headings above it."""
    (page,) = read_text(document.text.encode(), "")
    text = page.text
    if is_export(text) and (read := as_read(text)):
        text = read[0]
    chunks = list(split_text(text, Cut(), count))
    title = title_of(document.text)
    sections = _sections(text, chunks)
    return [(_above(chunk, section or title), chunk) for (_, chunk), section in zip(chunks, sections, strict=True)]


def _sections(text: str, chunks: Sequence[tuple[int, str]]) -> list[str]:
    places = list(headings_in(text))
    return [section_at(places, start, chunk) for start, chunk in chunks]


def _title(document: Everyday, random: Random) -> str:
    """The first heading or line, else the name, or that of the file."""
    way = random.random()
    if way < 0.6:
        return title_of(document.text)
    file = re.sub(r"^[wx]\d+-", "", document.file)
    return document.title if way < 0.8 or not file else file


def _above(chunk: str, *names: str) -> str:
    """The names, outermost first, that neither begin the chunk nor say what the one before says."""
    opening = _MARKS.sub("", chunk.split("\n")[0])
    kept: list[str] = []
    for name in names:
        if name and not opening.startswith(name):
            kept = [one for one in kept if not name.startswith(one)] + [name]
    return JOINED.join(kept)


def _are_related(one: Everyday, other: Everyday) -> bool:
    return one is other or bool(one.group and one.group == other.group)


class _Search:
    """Keyword search over the chunks of all documents."""

    def __init__(self, cut: Sequence[_Cut]) -> None:
        import bm25s

        self._chunks = [(one, at) for one in cut for at in range(len(one.chunks))]
        self._index = bm25s.BM25()
        self._index.index([words(one.chunks[at]) for one, at in self._chunks], show_progress=False)

    def elsewhere(self, question: str, own: Everyday, random: Random) -> str:
        """One of the best chunks of a document that is no sibling, "" where there is none."""
        asked = words(question)
        if not asked:
            return ""
        wanted = min(60, len(self._chunks))
        found, _ = self._index.retrieve([asked], k=wanted, show_progress=False)
        near = [self._chunks[int(place)] for place in found[0]]
        others = [(one, at) for one, at in near if not _are_related(one.document, own)]
        return _shown(*random.choice(others[:3]), random.random() < BARE) if others else ""
