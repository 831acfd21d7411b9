"""The supply chain: the audit of known vulnerabilities works, and no licence that binds a server's users."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests import audit_dependencies as audit
from tests.brought_packages import brought_by, read_requirements

ROOT = Path(__file__).parents[2]


class Osv(BaseHTTPRequestHandler):
    """Speaks as much of OSV's protocol as pip-audit asks for; `vulnerable` is the package that has a vulnerability."""

    vulnerable = ""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found: dict[str, Any] = {}
        if asked["package"]["name"] == self.vulnerable:
            affected = {
                "package": {"name": self.vulnerable, "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99.0"}]}],
            }
            one = {"id": "TEST-2025-1", "summary": "Made up.", "aliases": [], "affected": [affected]}
            found = {"vulns": [one | {"published": "2025-01-01T00:00:00Z", "modified": "2025-01-01T00:00:00Z"}]}
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Osv, "vulnerable", "")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Osv)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1/query"
    server.shutdown()
    server.server_close()


@pytest.mark.timeout(300)
def test_a_vulnerable_package_fails_the_audit(
    service: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Osv, "vulnerable", "jinja2")
    assert audit.main(service) == 1
    told = capsys.readouterr().out
    assert re.search(r"VULNERABLE: jinja2 \S+: TEST-2025-1, mended in 99\.0", told)


def test_a_service_that_cannot_be_reached_is_told_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main("http://127.0.0.1:9/v1/query") == 0
    assert "NOTHING WAS CHECKED" in capsys.readouterr().out


def test_ci_runs_the_audit() -> None:
    assert "make -j2 lint audit\n" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "tests/audit_dependencies.py" in (ROOT / "Makefile").read_text("utf-8")


# --- licences -------------------------------------------------------------------------------------------------------

BINDS_A_SERVER = re.compile(
    r"\bAGPL|Affero|\bSSPL|Server Side Public|Business Source|\bBUSL|Commons Clause", re.IGNORECASE
)


def licence_of(name: str) -> str:
    told = distribution(name).metadata
    classified = [line for line in told.get_all("Classifier") or () if line.startswith("License")]
    return " ".join([told.get("License-Expression") or "", (told.get("License") or "")[:300], *classified])


def test_no_package_that_the_application_needs_binds_users_of_a_server() -> None:
    lists = ("requirements.txt", "requirements-servers.txt")
    names = brought_by(one for file in lists for one in read_requirements(ROOT / file))
    assert {"streamlit", "torch", "httpx", "jinja2", "psycopg"} <= names and len(names) > 60
    assert {name: told for name in names if BINDS_A_SERVER.search(told := licence_of(name))} == {}
