"""The address of a provider: what is taken, what is refused, and that a refusal keeps a password to itself."""

from __future__ import annotations

import pytest

from crag_core.base.errors import BadRecord
from crag_core.websearch.http import read_address
from crag_core.websearch.searxng import SearXNG


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://example.org/tools/searxng//", "https://example.org/tools/searxng"),
        ("HTTP://Example.org", "http://Example.org"),
        ("http://searx_ng:8080", "http://searx_ng:8080"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("https://bücher.example", "https://bücher.example"),
    ],
)
def test_address_is_taken_without_its_last_slash(text: str, url: str) -> None:
    assert read_address("SearXNG", text) == (url, None)


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("http://ann:secret@example.org/x", ("ann", "secret")),
        ("http://:secret@example.org/x", ("", "secret")),
        ("http://a%40b:p%3Aw%2F@example.org/x", ("a@b", "p:w/")),
    ],
)
def test_name_and_password_are_kept_apart(text: str, login: tuple[str, str]) -> None:
    assert read_address("SearXNG", text) == ("http://example.org/x", login)


BAD = [
    "", "localhost:8080", "//localhost", "ftp://localhost", "file:///etc/passwd", "http://", "http://:8080", "http://@",
    "http://localhost:port", "http://localhost:99999", "http://localhost:0", "http://local host", "http://local\nhost",
    "http://localhost\x00", "http://[::1", "http://a..b", "http://localhost/search?q=x",
    "http://localhost/#top", "http://localhost:8080, http://localhost:8081",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=ascii)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        BadRecord, match=r"SearXNG: expected an address such as http://localhost:8080, found "
    ) as refused:
        SearXNG(text)
    assert "http:// or https://" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["ann:secret@host", "http://ann:sec?ret@host", "ftp://ann:secret@host/", "http://secret@"]
)
def test_refusal_does_not_repeat_a_password(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        SearXNG(text)
    shown = str(refused.value)
    assert "sec" not in shown and "ann" not in shown
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
