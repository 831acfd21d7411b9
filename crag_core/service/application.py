"""The endpoints over HTTP: typed, described at /openapi.json, every fault in the same JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import Response

from crag_core.app.background_jobs import Job
from crag_core.app.uploads import whole
from crag_core.base import errors
from crag_core.base.errors import CragError
from crag_core.pipeline.run import VERSION
from crag_core.service import schemas
from crag_core.service.guards import Refused, Rules, error_body, extra_headers
from crag_core.service.service import RunBroke, Service, UnderWay, UnknownRun
from crag_core.trace.summary import ending_of

R = TypeVar("R")
_LOG = logging.getLogger("crag.service")
_ADDRESSES = "The addresses stand in /openapi.json."
LEFT = 499
"""The status that nobody reads, since whoever asked has left."""
_STATUS: tuple[tuple[type[CragError], int], ...] = (
    (errors.Busy, 429),
    (UnderWay, 409),
    (UnknownRun, 404),
    (errors.DocumentMissing, 404),
    (errors.DocumentRefused, 422),
    (errors.BadRecord, 422),
    (errors.WrongUse, 422),
)
"""By type; any other is a part that does not work: 503."""
_TOLD: Mapping[int, str] = {
    400: "The request cannot be read.",
    401: "No token, or none that is known.",
    404: "There is no such run or address.",
    409: "The run goes on already.",
    413: "More than the service takes at once.",
    422: "A value that cannot be used; `error` names it.",
    429: "The line is full; come again after Retry-After seconds.",
    503: "A part is away that this needs, or the service is being stopped.",
}


_SAID = {
    "extra_forbidden": "unknown field",
    "string_pattern_mismatch": "expected some text, found none",
    "model_attributes_type": "expected an object, found something else",
}
"""Of pydantic's types of faults, where its own words speak of its insides."""


def _responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": schemas.ErrorResponse, "description": _TOLD[status]} for status in statuses}


class PlainJSON(JSONResponse):
    """In ASCII, so that no text of others can be read as anything but JSON text."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


router = APIRouter(dependencies=[Depends(HTTPBearer(auto_error=False, description="CRAG_SERVICE_TOKEN"))])
public = APIRouter()


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Served = Annotated[Service, Depends(_service)]


@router.post(
    "/query",
    summary="Answer a question from the indexed documents",
    responses=_responses(400, 401, 404, 409, 413, 422, 429, 503),
)
async def query(asked: schemas.QueryRequest, request: Request, service: Served) -> schemas.QueryResponse:
    """The whole run: retrieve, grade, decide, correct, answer. Kept in the history. Who leaves stops it."""
    who = request.client.host if request.client else ""
    started, resume = await run_in_threadpool(service.begin_query, asked, who)
    job, is_kept = service.run_job(started, resume)
    trace = await _result(job, request)
    return await run_in_threadpool(service.query_response, trace, is_kept=is_kept(), with_record=asked.record)


@router.post(
    "/route", summary="Decide on chunks that you have retrieved", responses=_responses(400, 401, 413, 422, 429, 503)
)
async def route(asked: schemas.RouteRequest, request: Request, service: Served) -> schemas.RouteResponse:
    """The evaluator grades the contexts, the policy decides. No index, no web, nothing generated."""
    return await _result(service.route_job(asked), request)


@router.post("/reroute", summary="Decide a recorded run again", responses=_responses(400, 401, 404, 413, 422, 503))
async def reroute(asked: schemas.RerouteRequest, service: Served) -> schemas.RerouteResponse:
    """Under another policy or other thresholds. Pure: no model is called, nothing is retrieved."""
    return await run_in_threadpool(service.reroute, asked)


@public.get(
    "/health",
    summary="Which parts work",
    responses={503: {"model": schemas.HealthResponse, "description": "Starting, or a part fails that answers need."}},
)
async def health(request: Request, response: Response, service: Served) -> schemas.HealthResponse:
    """Needs no token; without one it is not told what is wrong with a part."""
    found = await run_in_threadpool(service.health)
    rules: Rules = request.app.state.rules
    if not rules.lets_in(request.headers.get("authorization", "")):
        parts = {name: part.model_copy(update={"problem": ""}) for name, part in found.parts.items()}
        found = found.model_copy(update={"parts": parts})
    response.status_code = 200 if found.status in ("ok", "degraded") else 503
    return found


def make_application(service: Service, rules: Rules) -> FastAPI:
    application = FastAPI(
        title="CRAG Explorer",
        version=VERSION,
        description="Corrective RAG: grades retrieved chunks first, then uses them, refines them, or looks elsewhere.",
        docs_url=None,  # its page loads scripts of another host
        redoc_url=None,
        default_response_class=PlainJSON,
        exception_handlers=dict.fromkeys(
            (CragError, ModuleNotFoundError, RequestValidationError, HTTPException, Exception), _on_fault
        ),
    )
    application.state.service, application.state.rules = service, rules
    application.include_router(router)
    application.include_router(public)
    return application


async def _result(job: Job[Any, R], request: Request) -> R:
    """Starts it and waits for its end; stops it when the client leaves. Raises what ended it."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the program has ended meanwhile
            loop.call_soon_threadsafe(over.set)

    job.start(tell)
    waits = [asyncio.ensure_future(over.wait()), asyncio.ensure_future(_departure(request))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not over.is_set():
            job.stop()
            await over.wait()
            raise Refused(LEFT, "Whoever asked has left.", "")
    finally:
        for one in waits:
            one.cancel()
    if broken := job.bug or job.error:
        raise broken
    assert job.result is not None
    return job.result


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# --- faults -----------------------------------------------------------------------------------------------------------


async def _on_fault(request: Request, error: Exception) -> PlainJSON:
    """What is none of the expected errors Starlette raises again after this, and the guard logs it."""
    more: dict[str, Any] = {}
    status, kind = 500, "Bug"
    text, hint = "An error that is none of the expected ones.", "The log of the service shows it."
    match error:
        case RequestValidationError():
            told = [_fault(one) for one in error.errors()]
            status = 400 if any(one["type"] == "json_invalid" or _is_unread(one) for one in error.errors()) else 422
            text = "; ".join(told[:5]) + (f"; and {len(told) - 5} more" if len(told) > 5 else "")
            hint, kind = "What is expected stands in /openapi.json.", "BadRequest"
        case Refused():
            status, text, hint, kind = error.status_code, error.detail, error.hint, "Refused"
        case HTTPException():
            hints = {400: "Send JSON in UTF-8.", 404: _ADDRESSES, 405: _ADDRESSES}
            status, text, kind = error.status_code, f"{error.detail}.", "Refused"
            hint = hints.get(status, "")
        case ModuleNotFoundError():
            status, text, kind = 503, f"Expected the package {error.name}, found none.", "ModuleNotFoundError"
            hint = 'Run: pip install "crag-explorer[app,serve]"'
        case RunBroke():
            status, kind = _status(errors.kind_named(error.kind)), error.kind
            text, hint = error.message, error.hint
            more = {"id": whole(error.trace.id) if error.is_kept else None, "ending": ending_of(error.trace).value}
        case CragError():
            status, kind = _status(type(error)), type(error).__name__
            text, hint = error.message, error.hint
    body = error_body(whole(text), whole(hint), kind) | more
    return PlainJSON(body, status, headers=extra_headers(status))


def _status(kind: type[CragError]) -> int:
    return next((status for known, status in _STATUS if issubclass(kind, known)), 503)


def _fault(one: Mapping[str, Any]) -> str:
    """Where it stands and what was expected; what was sent is not repeated."""
    if one["type"] == "json_invalid":
        return f"Expected JSON, found something else at character {one['loc'][-1]}"
    if _is_unread(one):
        return "Expected JSON, with the header Content-Type: application/json"
    place = ".".join(str(part)[:80] for part in one["loc"] if part != "body")
    message = _SAID.get(one["type"]) or str(one["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _is_unread(one: Mapping[str, Any]) -> bool:
    """What was not sent as JSON stays bytes."""
    return isinstance(one.get("input"), bytes)
