"""What a search of the web came to."""

from dataclasses import dataclass
from enum import StrEnum

from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage


class WebOutcome(StrEnum):
    USED = "used"
    EMPTY = "empty"
    FAILED = "failed"
    RATE_LIMITED = "rate-limited"
    TIMED_OUT = "timed out"
    OFF = "off"
    COOLING = "cooling down"
    PENDING = "waiting for approval"
    APPROVED = "approved, not searched yet"
    REFUSED = "refused by you"


@dataclass(frozen=True)
class WebAttempt:
    provider: str
    outcome: WebOutcome
    message: str = ""


AS_ASKED = "the question as it is"


class PageOutcome(StrEnum):
    READ = "read"
    FAILED = "not read"
    PENDING = "waiting for approval"
    APPROVED = "approved, not read yet"
    REFUSED = "refused by you"


@dataclass(frozen=True)
class WebPage:
    """The page of a web result: `result` is the id of the result, whose snippet is used where the page was not read.

    `message` says why it was not. `cut` counts its chunks, `chunks` are the ids of those that were handed on.
    """

    result: str
    url: str
    outcome: PageOutcome
    message: str = ""
    seconds: float = 0.0
    characters: int = 0
    cut: int = 0
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True)
class WebSearch:
    """The web step: the exact query, who wrote it, and what came back.

    `passages` (origin `web`) are the results in the provider's order, each with the chunks of its page behind it;
    `grades` and `strips` are theirs, None where they were never made. `attempts` lists every provider that was asked,
    the one that answered last. `pages` are those of the first results, None where no page was asked for.
    """

    outcome: WebOutcome
    query: str
    query_by: str
    provider: str = ""
    message: str = ""
    passages: tuple[Passage, ...] = ()
    grades: tuple[Grade, ...] | None = None
    strips: tuple[Strip, ...] | None = None
    from_cache: bool = False
    attempts: tuple[WebAttempt, ...] = ()
    pages: tuple[WebPage, ...] | None = None

    @property
    def results(self) -> tuple[Passage, ...]:
        chunks = {id_ for page in self.pages or () for id_ in page.chunks}
        return tuple(passage for passage in self.passages if passage.id not in chunks)

    def evidence(self, pages: int) -> tuple[Passage, ...]:
        """What counts where the first `pages` pages are read: their chunks in place of their snippets."""
        read = [page for page in (self.pages or ())[:pages] if page.chunks]
        replaced = {page.result for page in read}
        replaced |= {id_ for page in (self.pages or ()) if page not in read for id_ in page.chunks}
        return tuple(passage for passage in self.passages if passage.id not in replaced)

    @property
    def pages_waiting(self) -> tuple[WebPage, ...]:
        return tuple(page for page in self.pages or () if page.outcome is PageOutcome.PENDING)

    @property
    def is_waiting(self) -> bool:
        return self.outcome is WebOutcome.PENDING or bool(self.pages_waiting)
