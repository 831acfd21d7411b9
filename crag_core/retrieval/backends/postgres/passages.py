"""Passages in a table of a PostgreSQL: its columns, what is searched for in it, and how rows come and go.

Beside it stands a table of words, with the number of passages that have each; both change in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from crag_core.base.documents import Document, IndexVersion, State
from crag_core.base.text.words import storable
from crag_core.base.types.passages import Passage
from crag_core.retrieval.backends.backend import Hit, to_passage
from crag_core.retrieval.backends.postgres.keyword_search import Statistics, pick, split_words, weigh
from crag_core.retrieval.backends.postgres.server import Server
from crag_core.retrieval.backends.postgres.vector_search import LONGEST, make_index

if TYPE_CHECKING:
    from llama_index.core.schema import TextNode

    from crag_core.retrieval.backends.postgres.server import Connection

_AT_ONCE = 512
_MOST_EFFORT = 1000
"""More pgvector does not take."""
_COLUMNS = {
    **dict.fromkeys(("id", "doc_id", "collection", "file_name", "page_label", "section", "indexed_at"), "text"),
    **dict.fromkeys(("ordinal", "pages", "characters"), "bigint"),
    **dict.fromkeys(("text", "vector", "tokens"), "text"),
}
"""What is given of a passage, and as what."""
# Vectors stand in the rows themselves: to look at all of 20,000 takes 20 ms so, and 70 where each lies beside.
_CREATE = """
    CREATE TABLE {passages} (
        id text COLLATE "C" PRIMARY KEY, doc_id text COLLATE "C" NOT NULL, collection text COLLATE "C" NOT NULL,
        file_name text COLLATE "C" NOT NULL, page_label text NOT NULL, section text NOT NULL,
        indexed_at text COLLATE "C" NOT NULL, ordinal bigint NOT NULL, pages bigint NOT NULL,
        characters bigint NOT NULL, text text NOT NULL, vector vector NOT NULL, tsv tsvector NOT NULL,
        words integer NOT NULL
    );
    CREATE INDEX ON {passages} (doc_id);
    CREATE INDEX ON {passages} (collection);
    CREATE INDEX ON {passages} USING gin (tsv);
    CREATE TABLE {words} (lexeme text COLLATE "C" PRIMARY KEY, n bigint NOT NULL);
    ALTER TABLE {passages} ALTER COLUMN vector SET STORAGE MAIN"""
_ADD = """
    WITH given AS MATERIALIZED (
        SELECT *, to_tsvector('pg_catalog.english', tokens) AS tsv FROM unnest({given}) AS given ({names})
    ), added AS (
        INSERT INTO {passages} ({kept}, vector, tsv, words)
        SELECT {kept}, vector::vector, tsv, (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(tsv))
        FROM given ON CONFLICT (id) DO NOTHING RETURNING tsv, words
    ), counted AS (
        INSERT INTO {words} SELECT lexeme, count(*) FROM added, unnest(added.tsv) GROUP BY lexeme ORDER BY lexeme
        ON CONFLICT (lexeme) DO UPDATE SET n = {words}.n + excluded.n
    )
    UPDATE crag_statistics SET passages = passages + (SELECT count(*) FROM added),
        words = crag_statistics.words + (SELECT coalesce(sum(added.words), 0) FROM added)
    WHERE generation = %s"""
_DELETE = """
    WITH gone AS (
        DELETE FROM {passages} WHERE doc_id = ANY(%s) RETURNING tsv, words
    ), counted AS (
        SELECT lexeme, count(*) AS n FROM gone, unnest(gone.tsv) GROUP BY lexeme
    ), noted AS (
        UPDATE crag_statistics SET passages = passages - (SELECT count(*) FROM gone),
            words = crag_statistics.words - (SELECT coalesce(sum(gone.words), 0) FROM gone)
        WHERE generation = %s
    ), lowered AS (
        UPDATE {words} SET n = {words}.n - counted.n FROM counted WHERE {words}.lexeme = counted.lexeme
        RETURNING {words}.lexeme, {words}.n
    )
    SELECT coalesce(array_agg(lexeme), '{{}}') FROM lowered WHERE n <= 0"""
_DOCUMENTS = """
    SELECT doc_id, min(file_name), min(collection), min(pages), min(characters), min(indexed_at), count(*)
    FROM {passages} WHERE %(all)s OR doc_id = ANY(%(ids)s) GROUP BY doc_id"""
_DOCUMENT = ("id", "name", "collection", "pages", "characters", "changed_at", "passages")
_OF = """
    SELECT id, text, doc_id, file_name, page_label, ordinal, section
    FROM {passages} WHERE doc_id = %s ORDER BY ordinal"""
_HITS = """
    WITH best AS MATERIALIZED ({best})
    SELECT id, text, doc_id, file_name, page_label, ordinal, section, vector_send(vector), score
    FROM best JOIN {passages} USING (id) ORDER BY score DESC, id"""
# An index of vectors that is made over this very expression is used, and none where the column is compared as it is.
_NEAR = """
    SELECT id, coalesce(nullif(1 - ({compared} <=> {asked}), 'NaN'), 0) AS score FROM {passages} WHERE {filter}
    ORDER BY {compared} <=> {asked} LIMIT %(limit)s"""
_SAMPLE = """
    SELECT min(id) AS id, 0.0::float8 AS score FROM (
        SELECT id, ntile(%(limit)s) OVER (ORDER BY id) AS part FROM {passages} WHERE {filter}
    ) AS parts GROUP BY part"""
_COVERAGE = """
    SELECT passages, CASE WHEN EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)
    THEN passages ELSE 0 END FROM crag_statistics WHERE generation = %s"""
_STOP_MAKING_INDEX = "SELECT pg_cancel_backend(pid) FROM pg_stat_progress_create_index WHERE relid = to_regclass(%s)"


class PostgresPassages:
    """`Passages` of one index version; the effort is how many candidates pgvector keeps while it walks its graph."""

    efforts = (100, 200, 400, 800)

    def __init__(self, server: Server, version: IndexVersion) -> None:
        if not re.fullmatch(r"\d{1,9}", version.id):
            raise ValueError(f"expected the number of a version, found {version.id!r}")
        self._server = server
        self._id = version.id
        self._embedding = storable(version.embedding)
        self._effort = version.effort
        self._table = f"crag_passages_{self._id}"
        self._index = f"{self._table}_vectors"
        self._parts: dict[str, Composable] = {
            "passages": Identifier(self._table),
            "words": Identifier(f"crag_words_{self._id}"),
        }

    def built_with(self) -> str | None:
        return self._server.read(self._built_with, None)

    def add(self, nodes: Sequence[TextNode], collections: Mapping[str, str]) -> None:
        """Those whose ids are there are there already."""
        rows = [_row(node, collections[node.ref_doc_id or ""]) for node in nodes]
        kept = [name for name in _COLUMNS if name not in ("vector", "tokens")]
        statement = self._sql(
            _ADD,
            given=SQL(", ").join(SQL(f"%s::{kind}[]") for kind in _COLUMNS.values()),
            names=SQL(", ").join(map(Identifier, _COLUMNS)),
            kept=SQL(", ").join(map(Identifier, kept)),
        )

        def add(connection: Connection) -> None:
            if self._built_with(connection) is None:
                connection.execute(self._sql(_CREATE))
                connection.execute("INSERT INTO crag_statistics VALUES (%s, %s, 0, 0)", (self._id, self._embedding))
            for start in range(0, len(rows), _AT_ONCE):
                some = rows[start : start + _AT_ONCE]
                connection.execute(statement, [*([row[name] for row in some] for name in _COLUMNS), self._id])

        if rows:
            self._server.write(add)

    def delete(self, document_ids: Collection[str]) -> None:
        def delete(connection: Connection) -> None:
            found = connection.execute(self._sql(_DELETE), (list(document_ids), self._id)).fetchone()
            if found and found[0]:
                connection.execute(self._sql("DELETE FROM {words} WHERE lexeme = ANY(%s) AND n <= 0"), found)

        self._write(delete)

    def move(self, document_ids: Collection[str], collection: str) -> None:
        statement = self._sql("UPDATE {passages} SET collection = %s WHERE doc_id = ANY(%s)")
        moved = (storable(collection), list(document_ids))
        self._write(lambda connection: connection.execute(statement, moved))

    def documents(self, ids: Collection[str] | None = None) -> list[Document]:
        asked = {"all": ids is None, "ids": list(ids or ())}
        found = self._read(lambda connection: connection.execute(self._sql(_DOCUMENTS), asked).fetchall())
        return [Document(**dict(zip(_DOCUMENT, row, strict=True)), state=State.INDEXED) for row in found]

    def of(self, document_id: str) -> list[Passage]:
        found = self._read(lambda connection: connection.execute(self._sql(_OF), (document_id,)).fetchall())
        return [to_passage(*row) for row in found]

    def search_dense(self, vector: Sequence[float], limit: int, collection: str = "", exact: bool = False) -> list[Hit]:
        is_exact = exact or not self._effort or len(vector) > LONGEST
        kind = SQL("vector({})").format(Literal(len(vector)))
        asked = SQL("%(vector)s::{}").format(kind)
        compared = SQL("vector") if is_exact else SQL("(vector::{})").format(kind)
        near = self._sql(_NEAR, compared=compared, asked=asked, filter=_filter(collection))
        values = {"vector": _vector_text(vector), "limit": limit, "collection": storable(collection)}

        def search(connection: Connection) -> list[Hit]:
            if is_exact:
                return self._hits(connection, near, values)
            with connection.transaction():
                effort = str(min(max(self._effort, limit), _MOST_EFFORT))
                # Without more rounds a collection that few of the nearest belong to would come short.
                settings = """SELECT set_config('hnsw.ef_search', %s, true),
                    set_config('hnsw.iterative_scan', 'relaxed_order', true)"""
                connection.execute(settings, (effort,))
                return self._hits(connection, near, values)

        return self._read(search)

    def search_keyword(self, text: str, limit: int, collection: str = "") -> list[Hit]:
        """By BM25. Of a question with many words first by the rare ones, for the common ones are nearly everywhere."""
        words = split_words(storable(text))

        def search(connection: Connection) -> list[Hit]:
            statistics = Statistics.read(connection, self._sql, self._id, words)
            hits: list[Hit] = []
            for lexemes in pick(statistics.counts):
                best, values = weigh(statistics, lexemes)
                values |= {"limit": limit, "collection": storable(collection)}
                hits = self._hits(connection, self._sql(best, filter=_filter(collection)), values)
                if len(hits) >= limit:
                    break
            return hits

        return self._read(search) if words else []

    def sample(self, limit: int, collection: str = "") -> list[Hit]:
        chosen = self._sql(_SAMPLE, filter=_filter(collection))
        values = {"limit": limit, "collection": storable(collection)}
        return self._read(lambda connection: self._hits(connection, chosen, values)) if limit > 0 else []

    def coverage(self) -> tuple[int, int]:
        def read(connection: Connection) -> Any:
            return connection.execute(_COVERAGE, (self._index, self._id)).fetchone()

        return self._server.read(read, None) or (0, 0)

    def is_worn(self) -> bool:
        return False

    def index_vectors(self) -> None:
        """Nothing where it is there: it holds whatever came since. Nothing either while somebody else is at it."""
        make_index(self._server, self._table, self._index)

    def tidy(self) -> None:
        """The server does so by itself; but of a table that it has not looked at yet it knows no figures to plan by."""
        unknown = "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass(%s) AND reltuples < 0)"

        def tidy(connection: Connection) -> None:
            if connection.execute(unknown, (self._table,)).fetchone() == (True,):
                connection.execute(self._sql("ANALYZE (SKIP_LOCKED) {passages}, {words}"))

        self._server.read(tidy, None)

    def rebuild_keywords(self) -> bool:
        return False

    def rehearse(self, document_ids: Collection[str]) -> None:
        pass

    def drop(self) -> None:
        def drop(connection: Connection) -> None:
            connection.execute(_STOP_MAKING_INDEX, (self._table,))
            connection.execute(self._sql("DROP TABLE IF EXISTS {passages}, {words}"))
            connection.execute("DELETE FROM crag_statistics WHERE generation = %s", (self._id,))

        self._server.write(drop)

    def _sql(self, text: LiteralString, **parts: Composable) -> Composed:
        return SQL(text).format(**self._parts, **parts)

    def _read(self, work: Callable[[Connection], list[Any]]) -> list[Any]:
        return self._server.read(work, [])

    def _write(self, work: Callable[[Connection], object]) -> None:
        """Nothing where nothing was ever written."""
        self._server.write(lambda connection: self._built_with(connection) is not None and work(connection))

    def _built_with(self, connection: Connection) -> str | None:
        query = "SELECT embedding FROM crag_statistics WHERE generation = %s"
        found = connection.execute(query, (self._id,)).fetchone()
        return found[0] if found else None

    def _hits(self, connection: Connection, best: Composed, values: Mapping[str, Any]) -> list[Hit]:
        """The passages that `best` gives the ids and scores of."""
        cursor = connection.cursor(binary=True)
        return [_to_hit(row) for row in cursor.execute(self._sql(_HITS, best=best), values).fetchall()]


def _filter(collection: str) -> SQL:
    return SQL("collection = %(collection)s") if collection else SQL("true")


def _vector_text(vector: Sequence[float]) -> str:
    return str([*map(float, vector)])


def _row(node: TextNode, collection: str) -> dict[str, Any]:
    metadata = node.metadata
    texts = ("file_name", "page_label", "section", "indexed_at")
    text = storable(node.text)
    return {
        "id": node.node_id,
        "doc_id": node.ref_doc_id,
        "collection": storable(collection),
        **{name: storable(str(metadata.get(name, ""))) for name in texts},
        **{name: metadata[name] for name in ("ordinal", "pages", "characters")},
        "text": text,
        "vector": _vector_text(node.get_embedding()),
        "tokens": split_words(text),
    }


def _to_hit(row: Sequence[Any]) -> Hit:
    import numpy as np

    *passage, vector, score = row
    # Four bytes of its length come first.
    return Hit(to_passage(*passage), np.frombuffer(vector, ">f4", offset=4).astype(np.float32), float(score))
