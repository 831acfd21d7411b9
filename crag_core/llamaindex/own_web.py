"""A web provider and a page reader of a user's own: what they raise ends the search, never the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crag_core.base.errors import CragError
from crag_core.base.protocols import Cancel, PageReader, PageText, WebReply, WebSearcher
from crag_core.base.types.web import WebOutcome


@dataclass(frozen=True)
class OwnSearcher:
    """A `WebSearcher` as it is given; an error that is none of this project's makes the search a failed one."""

    searcher: WebSearcher

    @property
    def name(self) -> str:
        return self.searcher.name

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        try:
            reply = self.searcher.search(query, limit, cancel)
            if not isinstance(reply, WebReply):
                raise TypeError(f"expected a WebReply, found {type(reply).__name__}")
        except CragError:
            raise
        except Exception as error:
            why = f"{self.name} failed: {type(error).__name__}: {error}"
            return WebReply(WebOutcome.FAILED, self.name, message=why)
        return reply


@dataclass(frozen=True)
class OwnPageReader:
    """A `PageReader` as it is given; where it raises, no page was read, and the step says why."""

    reader: PageReader

    def read(self, urls: Sequence[str], cancel: Cancel) -> tuple[PageText, ...]:
        try:
            return self.reader.read(urls, cancel)
        except CragError:
            raise
        except Exception as error:
            return tuple(PageText(why=f"was not read: {type(error).__name__}: {error}") for _ in urls)
