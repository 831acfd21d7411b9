"""The list of models of a server, in either protocol: asked within limits, and what is wrong with it in words."""

from __future__ import annotations

import asyncio
from typing import Any

from crag_core.base.concurrency.cancellation import run
from crag_core.base.errors import ModelUnavailable
from crag_core.base.network.addresses import without_login
from crag_core.llms.servers import is_name, shown

LOOKING = 2.5
"""Seconds in which a server must list its models."""


async def ask_json(url: str, key: str, seconds: float = LOOKING, body: Any = None) -> Any:
    """The JSON at an address, that of a list or, with a `body`, what is answered to it; within so many seconds.

    Raises what `httpx` raises, `TimeoutError`, `ValueError` and `RecursionError`.
    """
    import httpx

    from crag_core.base.network import http_guard

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    bare, login = without_login(url)
    bounds = http_guard.hooks(http_guard.LARGEST_LIST, seconds)
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(headers=headers, timeout=None, auth=login, **bounds) as client,
    ):
        reply = await (client.get(bare) if body is None else client.post(bare, json=body))
    reply.raise_for_status()
    return reply.json()


def list_entries(
    url: str, key: str, *, where: tuple[str, str], check: str, start: str, refused: str = ""
) -> dict[str, dict[str, Any]]:
    """The sound entries of the list at `url` by the name of their model.

    `where` are the fields of the list and, in an entry, of the name. Raises `ModelUnavailable` with the hint `check`
    where something else answers, `start` where nothing does, `refused` where the key is not taken.
    """
    import httpx

    from crag_core.base.network.http_guard import NotAsked

    called, (field, name) = shown(url), where
    try:
        listed = run(ask_json(url, key))
    except NotAsked as error:
        raise ModelUnavailable(f"What answers at {called} {error}.", hint=check) from error
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        hint = refused if refused and status in (401, 403) else check
        raise ModelUnavailable(f"The model server at {called} answered with status {status}.", hint=hint) from error
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelUnavailable(f"No model server answers at {called}.", hint=start) from error
    except (ValueError, RecursionError):
        listed = None
    entries = listed.get(field) if isinstance(listed, dict) else None
    if isinstance(entries, list):
        named = [entry for entry in entries if isinstance(entry, dict) and is_name(entry.get(name))]
        if named or not entries:
            return {entry[name]: entry for entry in named}
    raise ModelUnavailable(f"What answers at {called} does not list models.", hint=check)
