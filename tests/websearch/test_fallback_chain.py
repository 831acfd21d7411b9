"""Several providers in the user's order: who is asked, who decides, and what is told of each."""

from __future__ import annotations

import threading

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.web import WebAttempt, WebOutcome
from crag_core.websearch.search_chain import SearchChain
from tests.fakes import web_passage

USED, EMPTY, FAILED = WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.FAILED
LIMITED, LATE = WebOutcome.RATE_LIMITED, WebOutcome.TIMED_OUT


class Provider:
    """Answers with one outcome; `asked` counts."""

    def __init__(self, name: str, outcome: WebOutcome, message: str | None = None) -> None:
        self.name = name
        self.asked: list[tuple[str, int, Cancel]] = []
        passages = (web_passage(1, name),) if outcome is USED else ()
        told = "" if outcome is USED else f"{name} says {outcome}."
        self.reply = WebReply(outcome, name, passages, told if message is None else message)

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        self.asked.append((query, limit, cancel))
        return self.reply


def ask(*outcomes: WebOutcome) -> tuple[WebReply, list[int]]:
    """The reply of a chain of providers A, B, … with these outcomes, and how often each was asked."""
    providers = [Provider(name, outcome) for name, outcome in zip("ABCD", outcomes, strict=False)]
    reply = SearchChain(providers).search("ferry", 5, threading.Event())
    return reply, [len(provider.asked) for provider in providers]


@pytest.mark.parametrize("first", [FAILED, LIMITED, LATE, EMPTY])
def test_next_is_asked_when_one_fails_or_finds_nothing(first: WebOutcome) -> None:
    reply, asked = ask(first, USED, USED)
    assert asked == [1, 1, 0]
    assert (reply.outcome, reply.provider, reply.message) == (USED, "B", "")
    assert [passage.text for passage in reply.passages] == ["B"]
    assert reply.attempts == (WebAttempt("A", first, f"A says {first}."), WebAttempt("B", USED))


@pytest.mark.parametrize(
    ("outcomes", "decides", "outcome"),
    [
        ((EMPTY, FAILED), "A", EMPTY),
        ((FAILED, EMPTY), "B", EMPTY),
        ((LIMITED, EMPTY, LATE), "B", EMPTY),
        ((EMPTY, EMPTY), "B", EMPTY),
        ((FAILED, LIMITED), "B", LIMITED),
        ((LIMITED, LATE, FAILED), "C", FAILED),
    ],
)
def test_nothing_found_outweighs_failures_else_the_last_decides(
    outcomes: tuple[WebOutcome, ...], decides: str, outcome: WebOutcome
) -> None:
    reply, asked = ask(*outcomes)
    assert asked == [1] * len(outcomes)
    assert (reply.provider, reply.outcome, reply.passages) == (decides, outcome, ())
    assert reply.message == " ".join(f"{name} says {one}." for name, one in zip("ABC", outcomes, strict=False))
    assert [(attempt.provider, attempt.outcome) for attempt in reply.attempts] == list(
        zip("ABC", outcomes, strict=False)
    )


def test_stop_between_two_providers_is_heeded() -> None:
    cancel = threading.Event()

    class Leaving(Provider):
        def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
            cancel.set()
            return self.reply

    after = Provider("B", USED)
    with pytest.raises(Stopped):
        SearchChain([Leaving("A", FAILED), after]).search("ferry", 5, cancel)
    assert after.asked == []


# --- with the cache -------------------------------------------------------------------------------------------------


def cached(*outcomes: WebOutcome) -> tuple[SearchChain, list[Provider]]:
    providers = [Provider(name, outcome) for name, outcome in zip("ABC", outcomes, strict=False)]
    return SearchChain(providers), providers


def test_nothing_found_while_one_failed_is_asked_again() -> None:
    searcher, providers = cached(LIMITED, EMPTY)
    assert searcher.search("ferry", 5, threading.Event()).outcome is EMPTY
    providers[0].reply = Provider("A", USED).reply
    assert searcher.search("ferry", 5, threading.Event()).outcome is USED
