"""Lists of model servers: how they are read and refused, how servers are called, and what several are together."""

from __future__ import annotations

import pytest

from crag_core.base.errors import BadRecord
from crag_core.llms.servers import ServerState, joined, names, ollama_urls, openai_urls, shown

A, B, C = "http://a:11434", "http://b:11434", "http://c:11434"


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", ("http://127.0.0.1:11434",)),
        ("a", (A,)),
        ("a,b", (A, B)),
        (" a , b/ ,http://c ", (A, B, C)),
        ("a b\tc", (A, B, C)),
        ("a,\n b", (A, B)),
        ("0.0.0.0, [::1]:1234", ("http://127.0.0.1:11434", "http://[::1]:1234")),
        ("a, a:1234, https://a", (A, "http://a:1234", "https://a:443")),
    ],
)
def test_list_of_ollama_servers_is_read_as_each_alone(text: str, urls: tuple[str, ...]) -> None:
    assert ollama_urls(text) == urls


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", ()),
        ("http://a/v1/", ("http://a/v1/",)),
        ("http://a/v1, https://b:8000/v1", ("http://a/v1", "https://b:8000/v1")),
        ("http://a/1 http://a/2", ("http://a/1", "http://a/2")),
        ("http://me:s3cret@a/v1,http://a:8000/v1", ("http://me:s3cret@a/v1", "http://a:8000/v1")),
    ],
)
def test_list_of_openai_servers_is_taken_as_written(text: str, urls: tuple[str, ...]) -> None:
    assert openai_urls(text) == urls


@pytest.mark.parametrize("text", [",", "a,", ",a", "a,,b", "a, ,b"])
def test_empty_entry_is_refused(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        ollama_urls(text)
    assert refused.value.message == "OLLAMA_HOST: expected an address before and after each comma, found none."
    assert refused.value.hint == "Take the comma out."


@pytest.mark.parametrize("text", ["a, b, a", "a http://a:11434/", "0.0.0.0,127.0.0.1:11434"])
def test_same_server_twice_is_refused(text: str) -> None:
    with pytest.raises(BadRecord, match=r"OLLAMA_HOST: expected each server once, found http://\S+:11434 twice\."):
        ollama_urls(text)


@pytest.mark.parametrize("text", ["box:8000/v1", "box", "ftp://box/v1", "http://", "http://box:99999", "file:///v1"])
def test_what_is_no_address_is_refused_as_it_was_written(text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        openai_urls(f"http://a/v1, {text}")
    told = f"OPENAI_BASE_URL: expected addresses such as http://localhost:8000, found {text!r}."
    assert refused.value.message == told and "http:// or https://" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["ftp://me:s3cret@a", "http://me:x s3cret@a:x", "http://me:s3cret@a,ftp://b", "http://me:x,s3cret@a,b:x"]
)
def test_refusal_keeps_passwords_to_itself(text: str) -> None:
    for read in (ollama_urls, openai_urls):
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


def test_servers_that_differ_in_what_is_not_shown_are_numbered() -> None:
    assert names(["http://a/1", "http://b/1", "http://a/2"]) == ("http://a (1)", "http://b", "http://a (2)")


# --- several together -----------------------------------------------------------------------------------------------

ONE, TWO = ServerState(True, ("x", "y")), ServerState(True, ("z", "x"))
EMPTY = ServerState(True, (), "Ollama at … has no model yet.", "pull one")
AWAY = ServerState(False, (), "Ollama does not answer at …", "serve it")


def test_one_server_is_as_it_is() -> None:
    for state in (ONE, EMPTY, AWAY):
        assert joined("Ollama", [A], [state]) is state


def test_models_of_all_in_the_order_of_the_first_that_has_them() -> None:
    told = joined("Ollama", [A, B, C], [ONE, EMPTY, TWO])
    assert told == ServerState(True, ("x", "y", "z"), servers=(ONE, EMPTY, TWO))


@pytest.mark.parametrize(
    ("states", "message", "hint"),
    [
        ([ONE, AWAY, TWO], f"2 of 3 Ollama servers answer; {B} does not.", "serve it"),
        ([AWAY, TWO, AWAY], f"1 of 3 Ollama servers answers; {A} and {C} do not.", "serve it"),
        ([AWAY, AWAY, AWAY], "None of the 3 Ollama servers answers.", "serve it"),
        ([EMPTY, EMPTY, EMPTY], "None of the 3 Ollama servers has a model.", "pull one"),
        ([EMPTY, AWAY, EMPTY], f"2 of 3 Ollama servers answer; {B} does not.", "serve it"),
    ],
)
def test_who_does_not_answer_is_named(states: list[ServerState], message: str, hint: str) -> None:
    told = joined("Ollama", [A, B, C], states)
    assert (told.message, told.hint, told.servers) == (message, hint, tuple(states))
    assert told.reachable is any(state.reachable for state in states)
