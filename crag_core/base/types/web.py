"""What a search of the web came to."""

from dataclasses import dataclass
from enum import StrEnum

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

    @property
    def is_failure(self) -> bool:
        return self in (WebOutcome.FAILED, WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT)

    @property
    def is_reply(self) -> bool:
        return self in (WebOutcome.USED, WebOutcome.EMPTY)

    @property
    def was_asked(self) -> bool:
        return self.is_reply or self.is_failure


@dataclass(frozen=True)
class WebWords:
    """How an outcome is told: at a glance (`{}`: the provider), as a reason within a sentence, as advice ("": none),
    and as a sentence where its name does not say enough.
    """

    short: str
    reason: str
    advice: str = ""
    sentence: str = ""


_WAITS = "The web search was not made yet: it waits for approval, and nothing left this machine."
WEB_WORDS = {
    WebOutcome.USED: WebWords("", "no web result was kept"),
    WebOutcome.EMPTY: WebWords(
        "nothing found by {}", "the web search found nothing", "Ask in other words: the web search found nothing."
    ),
    WebOutcome.FAILED: WebWords("failed", "the web search failed", "Ask again: the web search may work then."),
    WebOutcome.RATE_LIMITED: WebWords(
        "rate-limited",
        "the web search was rate-limited",
        "Ask again later, or choose another web provider in the settings.",
    ),
    WebOutcome.TIMED_OUT: WebWords(
        "timed out", "the web search timed out", "Ask again, or choose another web provider in the settings."
    ),
    WebOutcome.OFF: WebWords(
        "web search is off",
        "web search is off",
        "Switch the web on in the sidebar, and ask again.",
        "This route asks for a web search, and web search is off.",
    ),
    WebOutcome.COOLING: WebWords(
        "too soon after the last",
        "the web was not searched, since the last search was just made",
        "Ask again in a moment: the web may be searched then.",
    ),
    WebOutcome.PENDING: WebWords(
        "waits for your approval", "the web search waits for your approval", "Approve the web search.", _WAITS
    ),
    WebOutcome.APPROVED: WebWords("", "the web was not searched yet", sentence=_WAITS),
    WebOutcome.REFUSED: WebWords(
        "refused by you",
        "you refused the web search",
        "Ask again, and approve the web search that you refused.",
        "You refused this search; nothing left this machine.",
    ),
}


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
    `strips` are theirs, None where they were never made. `attempts` lists every provider that was asked,
    the one that answered last. `pages` are those of the first results, None where no page was asked for.
    """

    outcome: WebOutcome
    query: str
    query_by: str
    provider: str = ""
    message: str = ""
    passages: tuple[Passage, ...] = ()
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
