"""Who is let in, from where, with how much; a real server whose service is that of a workbench in this process."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from crag_core.app import workbench as build
from crag_core.service import guards
from crag_core.service.guards import LOCAL_NAMES, Rules
from crag_core.service.service import Service
from tests.service.parts import PLAIN, headers, serving
from tests.stand_ins.local_server import wait_until
from tests.word_embedder import WordEmbedder

TOKEN, OTHER = "one-token-of-two-here", "the-other-token-of-two"
ROUTE = {"question": "Why?", "contexts": []}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    return tmp_path


@pytest.fixture
def guarded(home: Path) -> Iterator[httpx.Client]:
    with serving(home, Rules((TOKEN, OTHER), hosts=None)) as url, httpx.Client(base_url=url, **PLAIN) as client:
        yield client


@pytest.fixture
def local(home: Path) -> Iterator[httpx.Client]:
    """Without a token."""
    with serving(home, Rules()) as url, httpx.Client(base_url=url, **PLAIN) as client:
        yield client


def test_a_token_is_asked_for_everywhere_but_for_health_and_the_description(guarded: httpx.Client) -> None:
    for path in ("/query", "/route", "/reroute", "/nowhere"):
        told = guarded.post(path, json=ROUTE)
        assert told.status_code == 401 and told.headers["www-authenticate"] == "Bearer", path
        assert told.json()["error"] == "Expected a token, found none that is known."
    assert guarded.get("/health").status_code in (200, 503) and guarded.get("/openapi.json").status_code == 200
    for token in (TOKEN, OTHER):
        assert guarded.post("/route", json=ROUTE, headers=headers(token)).status_code == 200


@pytest.mark.parametrize(
    "sent",
    ["", "Bearer", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"bearer {OTHER.upper()}"],
)
def test_what_is_no_token_of_ours_is_none(guarded: httpx.Client, sent: str) -> None:
    assert guarded.post("/route", json=ROUTE, headers={"authorization": sent}).status_code == 401
    assert Rules((TOKEN,)).lets_in(f"bearer {TOKEN}")


def test_it_is_called_by_its_own_names_alone(local: httpx.Client) -> None:
    """Else a page of another site could have its name lead here (DNS rebinding)."""
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""):
        assert local.post("/route", json=ROUTE, headers={"host": host}).status_code == 400, host
    for host in ("localhost", "LOCALHOST:8600", "[::1]:8600"):
        assert local.post("/route", json=ROUTE, headers={"host": host}).status_code == 200, host
    assert Rules().hosts == LOCAL_NAMES


def test_pages_of_other_sites_may_not_call_it(local: httpx.Client) -> None:
    page = "https://app.example.org"
    form = {"origin": page, "content-type": "text/plain"}  # which no preflight comes before
    assert local.post("/route", content=b"{}", headers=form).status_code == 403
    assert local.post("/route", json=ROUTE, headers={"origin": "null"}).status_code == 403
    told = local.post("/route", json=ROUTE, headers={"origin": str(local.base_url).rstrip("/")})
    assert told.status_code == 200 and "access-control-allow-origin" not in told.headers


def test_every_answer_has_the_headers_that_browsers_obey(local: httpx.Client) -> None:
    for told in (local.get("/health"), local.get("/nowhere"), local.get("/health", headers={"host": "evil.example"})):
        assert told.headers["x-content-type-options"] == "nosniff" and told.headers["cache-control"] == "no-store"
        assert told.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "server" not in told.headers and told.headers["content-type"] == "application/json"


def test_too_much_is_refused_before_it_is_read(guarded: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "LARGEST_BODY", 10_000)
    monkeypatch.setattr(guards, "LARGEST", {"/reroute": 20_000})
    long = ROUTE | {"contexts": [{"text": "x" * 11_000}]}
    told = guarded.post("/route", json=long, headers=headers(TOKEN))
    assert told.status_code == 413 and told.json()["error"].startswith("Expected a request of at most")

    def pieces() -> Iterator[bytes]:
        """Of which no header tells how many come."""
        yield b'{"question": "'
        for _ in range(200):
            yield b"x" * 1000

    told = guarded.post("/route", content=pieces(), headers=headers(TOKEN) | {"content-type": "application/json"})
    assert told.status_code == 413 and told.json()["hint"] == "Send it in parts."
    told = guarded.post("/reroute", content=b"x" * 30_000, headers=headers(TOKEN))
    assert told.status_code == 413
    assert guarded.post("/route", json=ROUTE, headers=headers(TOKEN)).status_code == 200


def test_a_body_of_two_lengths_is_refused(guarded: httpx.Client) -> None:
    with socket.create_connection((guarded.base_url.host, guarded.base_url.port)) as connection:  # type: ignore[arg-type]
        head = f"POST /route HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 4\r\n"
        connection.sendall(
            f"{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        connection.settimeout(10)
        told = b"".join(iter(lambda: connection.recv(4000), b""))  # until it is closed: what follows is no request
    assert told.startswith(b"HTTP/1.1 400") and b"connection: close" in told and told.count(b"HTTP/1.1") == 1


def test_what_all_clients_send_together_has_an_end_and_is_given_back(
    guarded: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "MOST_HELD", 50_000)
    address = (guarded.base_url.host, guarded.base_url.port)
    head = f"POST /route HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    slow = []
    for _ in range(3):  # each has sent all but the last byte of what it told
        connection = socket.create_connection(address)  # type: ignore[arg-type]
        connection.sendall(f"{head}Content-Length: 15001\r\n\r\n".encode() + b" " * 15_000)
        slow.append(connection)

    def send() -> httpx.Response:
        sent = json.dumps(ROUTE).encode() + b" " * 20_000
        return guarded.post("/route", content=sent, headers=headers(TOKEN) | {"content-type": "application/json"})

    assert wait_until(lambda: send().status_code == 429, 60)
    told = send()
    assert told.headers["retry-after"] == "5" and told.json()["error"] == "Too much is being sent at the same time."
    for connection in slow:
        connection.close()
    assert wait_until(lambda: send().status_code == 200, 60)


def test_a_bug_of_ours_is_told_without_a_trace(local: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Service, *given: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(Service, "route", broken)
    told = local.post("/route", json=ROUTE)
    assert told.status_code == 500 and told.json()["kind"] == "Bug" and "inside" not in told.text
    assert told.headers["x-content-type-options"] == "nosniff" and "Traceback" not in told.text
    monkeypatch.undo()
    assert local.post("/route", json=ROUTE).status_code == 200


def test_the_log_has_no_text_of_a_request_and_no_token(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from crag_core.observability.logs import show_logs

    show_logs("json")
    try:
        with serving(home, Rules((TOKEN,), None)) as url:
            httpx.post(f"{url}/route?key=hidden", json=ROUTE | {"question": "hidden?"}, headers=headers(TOKEN))
            httpx.get(f"{url}/hidden%0Aline", headers=headers(TOKEN))
    finally:
        show_logs("off")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    served = [line for line in lines if line.get("event") == "request"]
    assert [(one["path"], one["status"]) for one in served] == [("/route", 200), ("(unknown)", 404)]
    assert "hidden" not in json.dumps(lines) and TOKEN not in json.dumps(lines)
