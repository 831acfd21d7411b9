"""Pages that a search found, read from servers of this machine: what is asked, what is refused, and what it says."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.network import http_guard
from crag_core.base.network.addresses import why_refused
from crag_core.base.protocols import Cancel, PageText
from crag_core.retrieval.chunking.split import USUAL
from crag_core.retrieval.sandbox.documents import DocumentProcesses
from crag_core.retrieval.sandbox.messages import Limits
from crag_core.websearch.pages import WebPages
from tests.fakes import set_when
from tests.security.servers import Asked, Said, answering

HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = b"""<html><head><title>Harbour</title><script>alert(1)</script></head><body><nav>Home</nav>
<h1>Ferries</h1><p>The ferry to Vennick leaves at nine.</p><p hidden>Ignore this.</p></body></html>"""
NO_ROBOTS = Said(404)


@pytest.fixture(scope="module")
def processes() -> Iterator[DocumentProcesses]:
    made = DocumentProcesses(Limits(seconds=5.0))
    yield made
    made.close()


@pytest.fixture
def reader(processes: DocumentProcesses) -> WebPages:
    """Loopback is let through by the rule for configured servers; all else is as in the application."""

    def cut(content: bytes, name: str, cancel: Cancel) -> tuple[tuple[str, str], ...]:
        return tuple((one.text, one.section) for one in processes.cut(content, name, USUAL, cancel).chunks)

    return WebPages(cut, 3.0, why_refused)


def page(body: bytes = PAGE, status: int = 200, **headers: str) -> Said:
    return Said(status, {**HTML, **{name.replace("_", "-"): value for name, value in headers.items()}}, lambda: [body])


def site(pages: dict[str, Said], robots: Said = NO_ROBOTS) -> Callable[[str], Said]:
    return lambda path: robots if path == "/robots.txt" else pages.get(path, Said(404))


def read(reader: WebPages, *urls: str, cancel: Cancel | None = None) -> tuple[PageText, ...]:
    return reader.read(urls, cancel or threading.Event())


def test_a_page_comes_in_chunks_of_its_main_text(reader: WebPages) -> None:
    with answering(site({"/a": page()})) as server:
        (found,) = read(reader, f"{server.url}/a")
    ((text, section),) = found.chunks
    assert (found.why, section) == ("", "Ferries") and "leaves at nine" in text
    assert not any(word in text for word in ("alert", "Home", "Ignore"))
    assert found.characters == len(text) and found.seconds > 0
    assert server.headers[1]["user-agent"] == "CRAG-Explorer" and "cookie" not in server.headers[1]


def test_pages_are_read_side_by_side_each_robots_txt_once_and_a_fault_costs_only_its_page(reader: WebPages) -> None:
    all_three = threading.Barrier(3)

    def together(path: str) -> Said:
        if path != "/robots.txt":
            all_three.wait(2.5)  # fails if one is asked for after another
        return site({"/a": page(), "/b": page()})(path)

    with answering(together) as server:
        found = read(reader, *(f"{server.url}/{name}" for name in "axb"))
    assert [one.why for one in found] == ["", "answered with HTTP 404", ""]
    assert sorted(server.paths) == ["/a", "/b", "/robots.txt", "/x"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (page(content_type="application/pdf"), "is application/pdf, and only text is read"),
        (Said(pieces=lambda: [PAGE]), "is of a kind that it does not name, and only text is read"),
        (page(b"\x89PNG\r\n\x1a\n" + bytes(99)), "cannot be used (expected text, found a PNG image)"),
        (page(b"<html><script>only()</script></html>"), "cannot be used (holds no readable text)"),
        (page(b"<div>" * 2_000 + b"deep"), "cannot be used (its elements are nested too deeply"),
        (page(status=500), "answered with HTTP 500"),
        (page(content_encoding="gzip"), "answered in a packing that it was not asked for"),
        (Said(200, HTML, lambda: itertools.repeat(b"x" * 9999)), "answered with more than 2 MB"),
        (Said(200, HTML, lambda: (time.sleep(0.05) or b"x" for _ in itertools.count())), "was not read within 3 s"),
        (Said(302, {"location": "http://localhost:1/secret"}), "sends requests on to http://localhost:1/secret, which"),
        (Said(302, {"location": "file:///etc/passwd"}), "sends requests on to what is no web address"),
        (Said(302, {"location": "/page"}), "sends requests on again and again"),
    ],
)
def test_what_is_no_text_of_usual_size_says_why(reader: WebPages, said: Said, why: str) -> None:
    with answering(site({"/page": said})) as server:
        (found,) = read(reader, f"{server.url}/page")
    assert found.chunks == () and found.why.startswith(why)


def test_a_redirect_within_the_site_is_followed_and_asks_robots_again(reader: WebPages) -> None:
    robots = page(b"User-agent: *\nDisallow: /secret", content_type="text/plain")
    pages = {"/old": Said(301, {"location": "/new"}), "/new": page(), "/back": Said(301, {"location": "/secret"})}
    with answering(site(pages, robots)) as server:
        found = read(reader, f"{server.url}/old", f"{server.url}/back")
    assert [one.why for one in found] == ["", "asks programs not to read it (robots.txt)"]
    assert "/secret" not in server.paths


@pytest.mark.parametrize(
    ("robots", "why"),
    [
        (page(b"User-agent: crag-explorer\nDisallow: /"), "asks programs not to read it (robots.txt)"),
        (page(b"User-agent: *\nDisallow: /\nAllow: /a"), ""),
        (page(b"<html>our start page</html>"), ""),
        (Said(403), ""),
        (Said(503), "was not asked, since its site's robots.txt answered with HTTP 503"),
        (
            Said(302, {"location": "http://localhost:1/"}),
            "was not asked, since its site's robots.txt sends requests on",
        ),
    ],
)
def test_robots_txt_is_kept_to(reader: WebPages, robots: Said, why: str) -> None:
    with answering(site({"/a": page()}, robots)) as server:
        (found,) = read(reader, f"{server.url}/a")
    assert found.why.startswith(why) and bool(found.chunks) is (why == "")
    assert ("/a" in server.paths) is (why == "")


def test_a_charset_is_that_of_the_header_before_that_of_the_page(reader: WebPages) -> None:
    body = "<html><head><meta charset=latin-1></head><p>Паром отходит в девять часов утра.</p>".encode("cp1251")
    with answering(site({"/a": page(body, content_type="text/html; charset=windows-1251")})) as server:
        (found,) = read(reader, f"{server.url}/a")
    assert found.chunks == (("Паром отходит в девять часов утра.", ""),)


def test_a_stop_ends_reading_at_once(reader: WebPages) -> None:
    asked, let_go = Asked(""), threading.Event()

    def hang(path: str) -> Said:
        asked.paths.append(path)
        let_go.wait(30)
        return NO_ROBOTS

    with answering(hang) as server:
        stop = set_when(lambda: bool(asked.paths))
        with pytest.raises(Stopped):
            read(reader, f"{server.url}/a", cancel=stop)
        let_go.set()


# --- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "10.1.2.3", "192.168.0.1", "100.64.0.1",
            "0.0.0.0",
        ),
        *("[fec0::1]", "192.0.0.8", "192.0.0.9", "[::ffff:0:a00:1]"),
        *("[fd00::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "169.254.169.254", "224.0.0.1", "printer", "nas.local"),
    ],
)  # fmt: skip
def test_no_page_of_a_private_network_is_asked_for(reader: WebPages, host: str) -> None:
    strict = WebPages(reader._cut, 3.0)
    (found,) = read(strict, f"http://{host}:9/page")
    assert found.why.startswith("was not asked, since") and found.chunks == ()


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_a_name_that_leads_into_the_private_network_is_not_asked(
    reader: WebPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "_look_up", lambda host: ["93.184.216.34", "127.0.0.1"])
    (found,) = read(WebPages(reader._cut, 3.0), "http://innocent.example/page")
    assert found.why == "was not asked, since 127.0.0.1 is no public address"


@pytest.mark.usefixtures("no_proxy")
def test_the_connection_goes_to_the_address_that_was_looked_up(
    reader: WebPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second look-up, which may give another address, is not made: the guard of the tests would refuse it."""
    monkeypatch.setattr(http_guard, "_look_up", lambda host: ["127.0.0.1"])
    with answering(site({"/a": page()})) as server:
        port = server.url.rpartition(":")[2]
        (found,) = read(reader, f"http://innocent.example:{port}/a")
    assert found.chunks and {one["host"] for one in server.headers} == {f"innocent.example:{port}"}
    assert {one["connection"] for one in server.headers} == {"close"}, "none is used for another name"


def test_an_address_with_a_login_and_no_web_address_are_not_asked(reader: WebPages) -> None:
    with answering(site({"/a": page()})) as server:
        found = read(reader, server.url.replace("//", "//user:secret@") + "/a", "ftp://example.org/a", "http://[bad/")
    assert server.paths == [] and all(one.why and "secret" not in one.why for one in found)
    assert replace(found[0], seconds=0.0).why == "was not asked, since its address holds a name or a password"
