"""BM25 in PostgreSQL: the words of a text, their frequencies, and the score of each passage.

The server's parser alone takes a Chinese sentence for one word and knows "Fähre" only with its dots. So words are made
here: in lower case, without accents, and pairs of characters where a script puts no spaces; PostgreSQL then stems
English and leaves out its stop words. Weighed by BM25 this finds the passage among the first five within one or two
points of LanceDB on nine question sets; `ts_rank`, which does not ask how rare a word is, does not come near.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from psycopg.sql import Composed

    from crag_core.retrieval.backends.postgres.server import Connection

_ENOUGH = 2000
"""At most so many passages are scored at first: those with one of the rarest words."""
_MOST = 1000
"""Of a longer question so many of the rarest words: PostgreSQL's stack has no room for much more."""
_COUNTS = """
    SELECT passages, crag_statistics.words, lexeme, n FROM crag_statistics,
        unnest(to_tsvector('pg_catalog.english', %(words)s)) JOIN {words} USING (lexeme)
    WHERE generation = %(generation)s"""
# k1 = 1.2 and b = 0.75, as everywhere.
_BEST: LiteralString = """
    SELECT id, sum(asked.weight * tf / (tf + 1.2 * (0.25 + 0.75 * found.words / %(average)s))) AS score
    FROM (SELECT id, words, tsv FROM {passages} WHERE tsv @@ %(query)s::tsquery AND {filter}) AS found,
        unnest(found.tsv) AS held (lexeme, positions, weights)
        JOIN unnest(%(lexemes)s::text[], %(weights)s::float8[]) AS asked (lexeme, weight) USING (lexeme),
        LATERAL (SELECT cardinality(held.positions) AS tf) AS counted
    GROUP BY id ORDER BY score DESC, id LIMIT %(limit)s"""
# Kana, Han, Thai, Lao, Myanmar and Khmer.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_MOST_CHARACTERS = 250_000
"""What stands behind is found by meaning only: PostgreSQL refuses a text whose words and their places take over 1 MiB.

A character takes at most 4 bytes of it: a pair of rare ones 8, and 4 for its place, in three characters with a space.
"""


@dataclass(frozen=True)
class Statistics:
    """`counts`: how many of the `passages`, which are `average` words long, have each word of a question."""

    passages: int
    average: float
    counts: Mapping[str, int]

    @classmethod
    def read(cls, connection: Connection, sql: Callable[..., Composed], version: str, words: str) -> Statistics:
        asked = {"words": words, "generation": version}
        found = connection.execute(sql(_COUNTS), asked).fetchall()
        if not found:
            return cls(0, 0.0, {})
        passages, total = found[0][:2]
        return cls(passages, max(total / max(passages, 1), 1.0), {lexeme: n for _, _, lexeme, n in found})


def pick(counts: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """The rarest words, as many as give enough candidates, at least one; then all of them where that was fewer."""
    chosen: list[str] = []
    so_far = 0
    rarest_first = sorted(counts, key=lambda lexeme: (counts[lexeme], lexeme))[:_MOST]
    for lexeme in rarest_first:
        so_far += counts[lexeme]
        if chosen and so_far > _ENOUGH:
            break
        chosen.append(lexeme)
    if chosen:
        yield chosen
    if len(chosen) < len(rarest_first):
        yield rarest_first


def weigh(statistics: Statistics, candidates: Sequence[str]) -> tuple[LiteralString, dict[str, Any]]:
    """SQL and its parameters for the best passages with one of the `candidates`, scored by all words of the query."""
    passages, counts = statistics.passages, statistics.counts
    weights = [math.log(1 + max(passages - n + 0.5, 0.0) / (n + 0.5)) for n in counts.values()]
    query = " | ".join(map(_quote, candidates))
    return _BEST, {"query": query, "lexemes": [*counts], "weights": weights, "average": statistics.average}


def _quote(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


class _Signs(dict[int, int]):
    """For `str.translate`: all that belongs to no word becomes a space. Marks do: they are the vowels of Hindi."""

    def __missing__(self, code: int) -> int:
        sign = chr(code)
        is_of_word = sign.isalnum() or unicodedata.category(sign) in ("Mn", "Mc")
        self[code] = code if is_of_word else ord(" ")
        return self[code]


_SIGNS = _Signs()


def split_words(text: str) -> str:
    """The words of a text with spaces between them."""
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.lower()))
    words = unicodedata.normalize("NFC", plain).translate(_SIGNS)
    return " ".join(_UNSPACED.sub(_pair, words).split())[:_MOST_CHARACTERS]


def _pair(found: re.Match[str]) -> str:
    """A run without spaces as its overlapping pairs of characters; one alone stays itself."""
    run = found[0]
    return f" {' '.join(run[at : at + 2] for at in range(max(len(run) - 1, 1)))} "
