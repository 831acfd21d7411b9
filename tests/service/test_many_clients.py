"""A hundred clients at the same time get what one client gets, and the process does not grow with them."""

from __future__ import annotations

import asyncio
from typing import Any

import psutil

from tests.service.parts import DOCUMENTS, QUESTION, Served

CLIENTS = 100
QUESTIONS = (
    QUESTION,
    "How much does the crane lift?",
    "What does a yacht of nine metres pay for a night?",
    "Who wrote Hamlet?",
)
CONTEXTS = [{"id": name, "text": text, "source": name} for name, text in DOCUMENTS.items()]
ASKED = [("/route", {"question": one, "contexts": CONTEXTS}) for one in QUESTIONS]
ASKED += [("/query", {"query": one}) for one in QUESTIONS]
GROWTH_MB = 150
"""A run's own memory, its threads' stacks and what Python keeps of both; a record of each run would be more."""


def decided(told: dict[str, Any]) -> tuple[Any, ...]:
    grades = [(one["id"], one["score"]) for one in told["chunks"]]
    return told["decision"], told["flips"], grades, told.get("answer")


async def crowd(served: Served) -> list[tuple[int, tuple[int, tuple[Any, ...]]]]:
    """(what was asked, the status, what was decided) of each."""
    async with served.clients() as client:

        async def one(number: int) -> tuple[int, tuple[int, tuple[Any, ...]]]:
            which = number % len(ASKED)
            path, body = ASKED[which]
            reply = await client.post(path, json=body)
            return which, (reply.status_code, decided(reply.json()) if reply.status_code == 200 else (reply.text,))

        return await asyncio.gather(*(one(number) for number in range(CLIENTS)))


def test_a_hundred_clients_get_what_one_gets(served: Served) -> None:
    process = psutil.Process(served.process.pid)
    with served.client() as client:
        alone = [(200, decided(client.post(path, json=body).json())) for path, body in ASKED]
    assert len({told[0]["action"] for _, told in alone}) == 3, "every action is among them"
    before = process.memory_info().rss
    for _ in range(2):
        assert all(told == alone[which] for which, told in asyncio.run(crowd(served)))
    assert (process.memory_info().rss - before) / 2**20 < GROWTH_MB
    with served.client() as client:
        told = client.get("/health").json()
    assert (told["runs_under_way"], told["runs_waiting"]) == (0, 0)
