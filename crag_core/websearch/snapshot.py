"""An offline web: stored pages searched by BM25, reproducibly."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Self

from crag_core.base.errors import BadRecord, Stopped
from crag_core.base.network.addresses import is_server
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.text.sentences import Span, split
from crag_core.base.text.words import words
from crag_core.websearch.results import Hit, reply_of, well_formed

_FILE = "web.jsonl"
_LONGEST = 300  # words of a result
_CORRECT = "Correct the line, or remove it."
# Words reach the index with spaces between them; its tokeniser must part them there and nowhere else.
_SCHEMA = """
CREATE TABLE pages (id INTEGER PRIMARY KEY, url TEXT UNIQUE, title TEXT, text TEXT);
CREATE VIRTUAL TABLE indexed USING fts5(words, content='', tokenize="ascii tokenchars '''-.'");
"""
_BEST = """
SELECT url, title, text FROM pages JOIN
  (SELECT rowid AS id, bm25(indexed) AS score FROM indexed WHERE indexed MATCH ? ORDER BY score, id LIMIT ?) USING (id)
ORDER BY score, id
"""


class Snapshot:
    """`place` is a folder with web.jsonl, or such a file: a JSON object with `url`, `title` and `text` on every line.

    The file is read here, once. Raises `BadRecord` naming file and line.
    """

    name = "Offline web"
    needs = "CRAG_WEB_SNAPSHOT"

    def __init__(self, place: str) -> None:
        path = _file_at(place)
        try:
            with path.open("rb") as file:
                self.fingerprint = hashlib.file_digest(file, "sha256").hexdigest()[:16]
            """Tells one snapshot from another: 16 hexadecimal digits, made of the bytes of the file."""
            self._index = _index_of(path)
        except OSError as error:
            raise BadRecord(f"{path} cannot be read: {error.strerror}.") from error
        self._lock = Lock()

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> Self:
        return cls(settings["CRAG_WEB_SNAPSHOT"])

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        if cancel.is_set():
            raise Stopped()
        asked = tuple(dict.fromkeys(words(query)))
        if not asked:
            return reply_of(self.name, query, (), limit)
        with self._lock:
            found = self._index.execute(_BEST, (" OR ".join(f'"{word}"' for word in asked), limit)).fetchall()
        hits = [Hit(url, title, _snippet(text, frozenset(asked))) for url, title, text in found]
        return replace(reply_of(self.name, query, hits, limit), is_offline=True)


# --- the file -------------------------------------------------------------------------------------------------------


def _file_at(place: str) -> Path:
    path = Path(os.path.expanduser(place))
    file = path / _FILE if path.is_dir() else path
    if not file.is_file():
        raise BadRecord(
            f"Offline web: expected a folder with {_FILE}, or such a file, found none at {file}.",
            hint="Set CRAG_WEB_SNAPSHOT to where it is.",
        )
    return file


def _pages(path: Path) -> Iterator[Hit]:
    """Page by page, so that the file may be large."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _page(f"{path}, line {number}", line)


def _page(place: str, line: bytes) -> Hit:
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadRecord(f"{place}: expected UTF-8, found other bytes.", hint=_CORRECT) from None
    except (ValueError, RecursionError):
        raise BadRecord(f"{place}: expected a JSON object, found no valid JSON.", hint=_CORRECT) from None
    if not isinstance(row, dict):
        raise BadRecord(f"{place}: expected a JSON object, found {_kind(row)}.", hint=_CORRECT)
    url, title, text = (_text(place, row, key) for key in ("url", "title", "text"))
    if not is_server(url):
        raise BadRecord(f"{place}: expected an address with http or https as 'url', found {url[:80]!r}.", hint=_CORRECT)
    return Hit(url, title, text)


def _text(place: str, row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise BadRecord(f"{place}: expected a text as {key!r}, found {_kind(value)}.", hint=_CORRECT)
    return well_formed(value)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


# --- the index ------------------------------------------------------------------------------------------------------


def _index_of(path: Path) -> sqlite3.Connection:
    """In memory, for any thread that has the lock."""
    index = sqlite3.connect(":memory:", check_same_thread=False)
    index.executescript(_SCHEMA)
    for page in _pages(path):
        row = (page.url, page.title, page.text)
        added = index.execute("INSERT OR IGNORE INTO pages (url, title, text) VALUES (?, ?, ?)", row)
        if added.rowcount:
            indexed = " ".join([*words(page.title), *words(page.text)])
            index.execute("INSERT INTO indexed (rowid, words) VALUES (?, ?)", (added.lastrowid, indexed))
    if not index.execute("SELECT 1 FROM pages LIMIT 1").fetchone():
        raise BadRecord(f"{path}: expected one page a line, found none.", hint="Put pages into it.")
    return index


# --- what a result shows --------------------------------------------------------------------------------------------


def _snippet(text: str, asked: frozenset[str]) -> str:
    """A short text whole; of a long one the whole sentences in a row that hold most of the words `asked` for.

    A word counts more where few sentences of the page hold it, and several in one sentence more than scattered ones.
    """
    spans = split(text)
    indexed = [words(text[start:end]) for start, end in spans]
    if sum(map(len, indexed)) <= _LONGEST:
        return text
    held = [asked.intersection(sentence) for sentence in indexed]
    often = Counter(word for sentence in held for word in sentence)
    worth = [math.fsum(math.log1p(len(spans) / often[word]) for word in sentence) ** 2 for sentence in held]
    runs = list(_runs([len(sentence) for sentence in indexed]))
    values = [math.fsum(worth[first:end]) for first, end in runs]
    most = max(values)
    best = [run for run, value in zip(runs, values, strict=True) if value == most]
    first, end = best[len(best) // 2] if most else runs[0]  # the middle one leaves text on both sides of what was found
    return text[spans[first][0] : spans[end - 1][1]]


def _runs(lengths: Sequence[int]) -> Iterator[Span]:
    """(first, end) of every run of sentences that has no room for the next; one that is too long is a run by itself."""
    end = total = 0
    for first, length in enumerate(lengths):
        before = end
        while end < len(lengths) and (end == first or total + lengths[end] <= _LONGEST):
            total += lengths[end]
            end += 1
        if end > before:
            yield first, end
        total -= length
