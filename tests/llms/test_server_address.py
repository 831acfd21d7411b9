"""The address of a model server: how it is read and refused, and how the server is called."""

from __future__ import annotations

import pytest

from crag_core.base.errors import BadRecord
from crag_core.llms.servers import check_openai_url, ollama_url, shown


@pytest.mark.parametrize(
    "text", ["a,b", "a , b/", "a:1 b:2", "http://a\tb", "a,", ",a", ",", "http://a/v1, http://b/v1"]
)
def test_more_than_one_address_is_refused_with_what_to_do(text: str) -> None:
    for read, variable in ((ollama_url, "OLLAMA_HOST"), (check_openai_url, "OPENAI_BASE_URL")):
        with pytest.raises(BadRecord) as refused:
            read(text)
        assert refused.value.message == f"{variable}: expected one address, found 2."
        assert refused.value.hint == "Put LiteLLM or nginx in front of several servers: docs/scaling.md"


def test_words_are_no_address() -> None:
    for read in (ollama_url, check_openai_url):
        with pytest.raises(BadRecord, match='not an address: "not a url"'):
            read("not a url")


@pytest.mark.parametrize(
    "text", ["ftp://me:s3cret@a", "http://me:x s3cret@a:x", "http://me:s3cret@a,ftp://b", "http://me:x,s3cret@a,b:x"]
)
def test_refusal_keeps_passwords_to_itself(text: str) -> None:
    for read in (ollama_url, check_openai_url):
        with pytest.raises(BadRecord) as refused:
            read(text)
        assert "s3cret" not in str(refused.value) and "me" not in refused.value.message.split()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a:8000/v1", "http://a:8000"),
        ("https://me:s3cret@a:8000/v1?key=s3cret", "https://a:8000"),
        ("http://me:s3/cret@a:8000", "http://a:8000"),
        ("http://a://s3cret@b:1", "http://b:1"),
        ("http://a?key=s3cret", "http://a"),
        ("http://a#s3cret", "http://a"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("me:s3cret@a", "a"),
        ("nonsense", "nonsense"),
    ],
)
def test_server_is_called_by_scheme_host_and_port(url: str, name: str) -> None:
    assert shown(url) == name
