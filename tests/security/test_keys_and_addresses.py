"""A visitor who sets an address on the Settings page gets neither the operator's key nor the operator's password."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from crag_core.base.errors import BadRecord
from crag_core.llms import ollama, openai_compatible
from crag_core.llms.servers import masked, unmasked
from tests.security.servers import Said, answering
from tests.ui.conftest import Start, home, press, shown, start  # noqa: F401  # fixtures

OPENAI = json.dumps({"data": [{"id": "m"}]}).encode()
OLLAMA = json.dumps({"models": [{"model": "m", "details": {"family": "llama"}}]}).encode()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", ""),
        ("http://localhost:11434", "http://localhost:11434"),
        ("http://ann:s3cret@host/v1", "http://•••@host/v1"),
        ("ann:s3cret@host:11434", "•••@host:11434"),
        ("http://a:s3@cret@host", "http://•••@host"),
        ("http://host/v1?key=s3cret", "http://host/v1?•••"),
        ("http://host/v1#s3cret", "http://host/v1#•••"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text: str, seen: str) -> None:
    assert masked(text) == seen
    assert unmasked(seen, text) == text
    assert unmasked(f" {seen} ", text) == text


@pytest.mark.parametrize("typed", ["http://•••@evil.example:1", "http://•••@a:1/", "https://•••@a:1"])
def test_the_password_goes_to_no_other_address(typed: str) -> None:
    with pytest.raises(BadRecord, match="stands for them") as refused:
        unmasked(typed, "http://ann:s3cret@a:1")
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"


def test_the_operators_key_is_not_sent_to_a_server_that_a_visitor_types(start: Start) -> None:  # noqa: F811
    with (
        answering(lambda path: Said(pieces=lambda: [OPENAI])) as own,
        answering(lambda path: Said(pieces=lambda: [OPENAI])) as other,
    ):
        app = start("pages/settings.py", OPENAI_BASE_URL=f"{own.url}/v1", OPENAI_API_KEY="k-s3cret")
        assert {one.get("authorization") for one in own.headers} == {"Bearer k-s3cret"}
        app.text_input[1].set_value(f"{other.url}/v1")
        press(app, "Apply")
        assert ", 1 model" in shown(app)
        assert other.headers and not any("authorization" in one for one in other.headers)
        assert "s3cret" not in repr(app.session_state["config"])
        app.text_input[1].set_value(f"{own.url}/v1")
        press(app, "Apply")
        assert app.session_state["config"].openai_key == "k-s3cret"


def test_ollamas_own_key_goes_to_the_server_of_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda path: Said(pieces=lambda: [OLLAMA])) as server:
        monkeypatch.setenv("OLLAMA_API_KEY", "o-s3cret")
        monkeypatch.setenv("OLLAMA_HOST", "http://ollama.example:11434")
        assert ollama.list_models(server.url).models == ("m",)
        assert "authorization" not in server.headers[-1]
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert ollama.list_models(server.url).models == ("m",)
        assert server.headers[-1]["authorization"] == "Bearer o-s3cret"


def test_a_name_and_password_in_an_address_are_sent_and_stand_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with (
        answering(lambda path: Said(pieces=lambda: [OLLAMA])) as local,
        answering(lambda path: Said(pieces=lambda: [OPENAI])) as other,
    ):
        assert ollama.list_models(local.url.replace("//", "//ann:pa%40ss-s3cret@")).models == ("m",)
        assert openai_compatible.list_models(f"{other.url}/v1".replace("//", "//ann:pa%40ss-s3cret@"), "k").models == (
            "m",
        )
    basic = f"Basic {b64encode(b'ann:pa@ss-s3cret').decode()}"
    assert local.headers[-1]["authorization"] == other.headers[-1]["authorization"] == basic
    assert "s3cret" not in caplog.text and "HTTP Request" in caplog.text
