"""Every environment variable: its default, what it accepts, and how a wrong value is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from crag_core.config import Config, load, variable_of
from crag_core.errors import BadRecord

DEFAULTS: dict[str, tuple[str, Any]] = {
    "home": ("CRAG_HOME", Path(".crag")),
    "embedding": ("CRAG_EMBEDDING", "all-MiniLM-L6-v2"),
    "ollama_host": ("OLLAMA_HOST", ""),
    "openai_url": ("OPENAI_BASE_URL", ""),
    "openai_key": ("OPENAI_API_KEY", ""),
    "model": ("CRAG_MODEL", ""),
    "model_timeout": ("CRAG_MODEL_TIMEOUT", 180.0),
    "calls_at_once": ("CRAG_MODEL_CALLS", 2),
    "web": ("CRAG_WEB", "ask"),
    "web_timeout": ("CRAG_WEB_TIMEOUT", 8.0),
    "top_k": ("CRAG_TOP_K", 6),
}
GIVEN: dict[str, tuple[str, Any]] = {
    "CRAG_HOME": ("/srv/crag", Path("/srv/crag")),
    "CRAG_EMBEDDING": ("other/model", "other/model"),
    "OLLAMA_HOST": ("box:1234", "box:1234"),
    "OPENAI_BASE_URL": ("http://box/v1", "http://box/v1"),
    "OPENAI_API_KEY": ("s3cret", "s3cret"),
    "CRAG_MODEL": ("ollama/llama3.2", "ollama/llama3.2"),
    "CRAG_MODEL_TIMEOUT": ("30.5", 30.5),
    "CRAG_MODEL_CALLS": ("8", 8),
    "CRAG_WEB": ("off", "off"),
    "CRAG_WEB_TIMEOUT": ("3", 3.0),
    "CRAG_TOP_K": ("20", 20),
}


def test_these_are_all_the_settings() -> None:
    assert {setting.name: variable_of(setting.name) for setting in fields(Config)} == {
        name: variable for name, (variable, _) in DEFAULTS.items()
    }
    assert set(GIVEN) == {variable for variable, _ in DEFAULTS.values()}
    assert all(setting.metadata["meaning"] for setting in fields(Config))


@pytest.mark.parametrize("name", DEFAULTS)
def test_default(name: str) -> None:
    assert getattr(load({}), name) == DEFAULTS[name][1]


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("blank", ["", "   "])
def test_blank_variable_keeps_the_default(name: str, blank: str) -> None:
    assert load({DEFAULTS[name][0]: blank}) == Config()


@pytest.mark.parametrize("name", DEFAULTS)
def test_variable_sets_its_own_field_and_no_other(name: str) -> None:
    variable = DEFAULTS[name][0]
    text, value = GIVEN[variable]
    config = load({variable: f" {text} ", "CRAG_OTHER": "x"})
    assert getattr(config, name) == value
    assert type(getattr(config, name)) in (type(value), type(Path()))
    assert {other for other in DEFAULTS if getattr(config, other) != DEFAULTS[other][1]} == {name}


def test_all_at_once() -> None:
    config = load({variable: text for variable, (text, _) in GIVEN.items()})
    assert config == Config(**{name: GIVEN[variable][1] for name, (variable, _) in DEFAULTS.items()})


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("CRAG_TOP_K", "many", "a whole number, found 'many'"),
        ("CRAG_TOP_K", "6.5", "a whole number, found '6.5'"),
        ("CRAG_TOP_K", "0", "1 to 20, found 0"),
        ("CRAG_TOP_K", "21", "1 to 20, found 21"),
        ("CRAG_TOP_K", "-3", "1 to 20, found -3"),
        ("CRAG_MODEL_CALLS", "two", "a whole number, found 'two'"),
        ("CRAG_MODEL_CALLS", "0", "1 to 64, found 0"),
        ("CRAG_MODEL_CALLS", "65", "1 to 64, found 65"),
        ("CRAG_MODEL_TIMEOUT", "long", "a number, found 'long'"),
        ("CRAG_MODEL_TIMEOUT", "0.5", "1 to 3600, found 0.5"),
        ("CRAG_MODEL_TIMEOUT", "nan", "1 to 3600, found nan"),
        ("CRAG_MODEL_TIMEOUT", "inf", "1 to 3600, found inf"),
        ("CRAG_WEB_TIMEOUT", "8s", "a number, found '8s'"),
        ("CRAG_WEB_TIMEOUT", "121", "1 to 120, found 121.0"),
        ("CRAG_WEB", "AUTO", "auto, ask or off, found 'AUTO'"),
        ("CRAG_WEB", "yes", "auto, ask or off, found 'yes'"),
    ],
)
def test_wrong_value_is_refused_by_name(variable: str, text: str, expected: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({variable: text})
    assert refused.value.message == f"{variable}: expected {expected}."


@pytest.mark.parametrize(("variable", "text"), [("CRAG_TOP_K", "1"), ("CRAG_MODEL_CALLS", "64"), ("CRAG_WEB", "auto")])
def test_values_at_the_edge_are_accepted(variable: str, text: str) -> None:
    load({variable: text})


def test_values_set_in_code_are_checked_too() -> None:
    with pytest.raises(BadRecord, match="CRAG_TOP_K"):
        Config(top_k=50)


def test_home_may_start_with_a_tilde() -> None:
    assert load({"CRAG_HOME": "~/crag"}).home == Path.home() / "crag"


def test_key_is_never_shown() -> None:
    assert "s3cret" not in repr(load({"OPENAI_API_KEY": "s3cret"}))


def test_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_TOP_K", "3")
    assert load().top_k == 3
