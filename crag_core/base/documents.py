"""Records of indexed documents, and of the progress of indexing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crag_core.base.errors import BadRecord

MAIN = "main"  # the collection of documents that nobody put into another
LARGEST_FILE_MB = 50  # of a document, wherever it comes from, and of anything that a browser sends, a ZIP too


class State(StrEnum):
    WAITING = "waiting"
    INDEXING = "indexing"
    INDEXED = "indexed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Document:
    """`id` is the beginning of the SHA-256 of the file's bytes, of which there are `size`.

    `pages` is 0 in formats without pages. Of one under way `passages` counts the first ones, which are searched
    already; one that has any is `is_partial`. `version` counts the contents that this name has had, from 1.
    `changed_at` is an ISO time in UTC; of an indexed document, when it was indexed. `owner` is the process at work on
    it, while it is under way. A refused one has the reason in `message` and what to do in `hint`; of an indexed one
    `message` says what of the file is not in its text.
    """

    id: str
    name: str
    collection: str = MAIN
    state: str = State.WAITING
    pages: int = 0
    passages: int = 0
    characters: int = 0
    size: int = 0
    version: int = 1
    changed_at: str = ""
    owner: str = ""
    message: str = ""
    hint: str = ""

    @property
    def is_whole(self) -> bool:
        return self.state == State.INDEXED

    @property
    def is_under_way(self) -> bool:
        return self.state in (State.WAITING, State.INDEXING)

    @property
    def is_partial(self) -> bool:
        return self.is_under_way and self.passages > 0

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.changed_at)


@dataclass(frozen=True)
class Recipe:
    """How passages are made: by which embedding model, and of how many of its tokens.

    `tokens` at most in a passage, of which up to `overlap` repeat the end of the one before. MiniLM reads 256 word
    pieces, two of which frame the text, and silently ignores the rest.
    """

    embedding: str
    tokens: int = 220
    overlap: int = 30


TOKENS = (50, 8000)
"""The fewest and the most tokens that a passage may be asked to have; it repeats half of them at most."""


def check_lengths(recipe: Recipe) -> None:
    """Raises `BadRecord` for lengths that nothing can be cut to."""
    if not TOKENS[0] <= recipe.tokens <= TOKENS[1]:
        raise BadRecord(f"Tokens in a chunk: expected {TOKENS[0]} to {TOKENS[1]}, found {recipe.tokens}.")
    if not 0 <= recipe.overlap <= recipe.tokens // 2:
        raise BadRecord(f"Tokens repeated: expected 0 to half of {recipe.tokens}, found {recipe.overlap}.")


class Stage(StrEnum):
    BUILDING = "being built"
    CURRENT = "current"


@dataclass(frozen=True)
class IndexVersion:
    """All passages made by one recipe; one version is searched, another may be built beside it by `owner`.

    `id` 0: nothing was put in yet.
    """

    id: int = 0
    embedding: str = ""
    tokens: int = 220
    overlap: int = 30
    stage: str = Stage.CURRENT
    owner: str = ""

    @property
    def recipe(self) -> Recipe:
        return Recipe(self.embedding, self.tokens, self.overlap)


@dataclass(frozen=True)
class Rebuilt:
    """The result of re-indexing. `kept_text`: of so many documents the text was taken from the old chunks, since their
    files cannot be read any more."""

    recipe: Recipe
    documents: int
    passages: int
    kept_text: int = 0


class IngestOutcome(StrEnum):
    INDEXED = "indexed"
    ALREADY = "already indexed"
    REPLACED = "replaced the older version"
    REFUSED = "refused"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Ingested:
    """What became of one file. `message` and `hint` are for people; `document_id` is "" for one that did not get in.

    `left_out` says what of the file is not in its text.
    """

    name: str
    outcome: IngestOutcome
    document_id: str = ""
    passages: int = 0
    message: str = ""
    hint: str = ""
    left_out: str = ""


@dataclass(frozen=True)
class Progress:
    """File `position` (from 1) of `total`; so many of its `passages` are `embedded`, both 0 while it is read.

    `page` of `pages`: while it is read, the last that was; then, the last that is searched already. 0 in formats
    without pages.
    """

    name: str
    position: int
    total: int
    embedded: int = 0
    passages: int = 0
    page: int = 0
    pages: int = 0


OnProgress = Callable[[Progress], None]
