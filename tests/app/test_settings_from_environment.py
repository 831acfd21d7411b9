"""Every environment variable: its default, what it accepts, and how a wrong value is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.app import config
from crag_core.app.config import Config, load
from crag_core.base.errors import BadRecord


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file .env of the folder where these tests are, not that of whoever runs them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(config, "ENV_FILE", Path(".env"))


CHECKERS = "words, ollama/NAME or openai/NAME"


@pytest.mark.parametrize("blank", ["", "   "])
def test_blank_variables_keep_the_defaults(blank: str) -> None:
    assert load({setting.metadata["variable"]: blank for setting in fields(Config)}) == Config()


@pytest.mark.parametrize(
    "url",
    ["sqlite:///runs.db", "sqlite+pysqlite:///x", "postgres://h/d", "postgresql://h/d", "postgresql+psycopg://h/d"],
)
def test_history_may_be_an_sqlite_file_or_postgresql(url: str) -> None:
    assert load({"CRAG_HISTORY": url}).history == url


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("CRAG_TOP_K", "many", "a whole number, found 'many'"),
        ("CRAG_TOP_K", "21", "1 to 20, found 21"),
        ("CRAG_MODEL_TIMEOUT", "nan", "1 to 3600, found nan"),
        ("CRAG_WEB_TIMEOUT", "8s", "a number, found '8s'"),
        ("CRAG_SERVICE_TOKEN", "short", "at least 16 letters, digits and signs without spaces, found 5 characters"),
        (
            "CRAG_SERVICE_TOKEN",
            "0123456789 abcdef",
            "at least 16 letters, digits and signs without spaces, found 17 characters",
        ),
        ("CRAG_SERVICE_HOSTS", "http://box:80", "names of hosts, without port or scheme, found 'http://box:80'"),
        ("CRAG_WEB", "AUTO", "auto, ask or off, found 'AUTO'"),
        ("CRAG_SUPPORT", "llama3.2", f"{CHECKERS}, found 'llama3.2'"),
        ("CRAG_SUPPORT", "ollama/", f"{CHECKERS}, found 'ollama/'"),
        (
            "CRAG_HISTORY",
            "mysql://me:s3cret@box/crag",
            "disk, off, sqlite:///FILE or postgresql://HOST/DATABASE, found a URL that starts with mysql://",
        ),
        ("CRAG_CACHE_HOURS", "0", "0.01 to 87600, found 0.0"),
        ("OLLAMA_HOST", "box, box:11434", "one address, found 2"),
        ("OPENAI_BASE_URL", "http://a/v1 http://b/v1,http://c/v1", "one address, found 3"),
        ("CRAG_LOG", "verbose", "text, json or off, found 'verbose'"),
        ("KB_AGENT_VECTOR_SCORE_THRESHOLD", "1.01", "0 to 1, found 1.01"),
        ("CRAG_WEB_PROVIDERS", "duckduckgo, DuckDuckGo", "each provider once, found 'duckduckgo, DuckDuckGo'"),
    ],
)
def test_wrong_value_is_refused_by_name(variable: str, text: str, expected: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({variable: text})
    assert refused.value.message == f"{variable}: expected {expected}."


@pytest.mark.parametrize(("variable", "text"), [("OLLAMA_HOST", "ftp://box"), ("OPENAI_BASE_URL", "b/v1")])
def test_what_is_no_address_is_told_with_an_example(variable: str, text: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({variable: text})
    assert refused.value.message == f'{variable}: not an address: "{text}".' and "http" in refused.value.hint


def test_evaluators_by_name_are_read_and_wrong_ones_refused() -> None:
    found = load({"CRAG_EVALUATORS": " hf:a/b@v2, hf:/srv/judge/ ,hf:a/b@v2"}).named_evaluators
    assert found == ("hf:a/b@v2", "hf:/srv/judge")
    with pytest.raises(BadRecord, match=r"CRAG_EVALUATORS: Expected an evaluator such as hf:OWNER/NAME.*found 'bge'"):
        load({"CRAG_EVALUATORS": "hf:a/b,bge"})


def test_a_model_of_a_server_that_is_not_set_cannot_check_answers() -> None:
    with pytest.raises(BadRecord, match=r"names openai/x, and OPENAI_BASE_URL is not set\. Set OPENAI_BASE_URL\."):
        load({"CRAG_SUPPORT": "openai/x"})
    assert load({"CRAG_SUPPORT": "openai/org/x", "OPENAI_BASE_URL": "http://box/v1"}).support == "openai/org/x"


def test_who_checks_answers_is_a_model_of_a_server() -> None:
    for wrong in ("hf:owner/model", "/srv/models/nli", "bespoke-minicheck"):
        with pytest.raises(BadRecord, match="CRAG_SUPPORT: expected words, "):
            load({"CRAG_SUPPORT": wrong})


# Who is asked on the web


TAVILY, SEARXNG = {"TAVILY_API_KEY": "s3cret"}, {"CRAG_SEARXNG_URL": "http://box:8080"}


@pytest.mark.parametrize(
    ("text", "providers"),
    [
        ("", ("duckduckgo",)),
        ("searxng", ("searxng",)),
        ("tavily, searxng ,duckduckgo", ("tavily", "searxng", "duckduckgo")),
        ("DuckDuckGo,,Tavily,", ("duckduckgo", "tavily")),
    ],
)
def test_providers_are_asked_in_the_order_given(text: str, providers: tuple[str, ...]) -> None:
    assert load({"CRAG_WEB_PROVIDERS": text} | TAVILY | SEARXNG).providers == providers


@pytest.mark.parametrize(
    ("provider", "variable"),
    [("tavily", "TAVILY_API_KEY"), ("searxng", "CRAG_SEARXNG_URL"), ("snapshot", "CRAG_WEB_SNAPSHOT")],
)
def test_a_provider_without_what_it_needs_is_refused(provider: str, variable: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({"CRAG_WEB_PROVIDERS": f"duckduckgo,{provider}"})
    assert refused.value.message == f"CRAG_WEB_PROVIDERS names {provider}, and {variable} is not set."
    assert refused.value.hint == f"Set {variable}."


def test_an_unknown_provider_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(BadRecord) as refused:
        load({"CRAG_WEB_PROVIDERS": "duckduckgo,travily"})
    assert str(refused.value) == (
        "CRAG_WEB_PROVIDERS: Unknown web search provider 'travily'. "
        "Did you mean 'tavily'? Known: duckduckgo, searxng, snapshot, tavily."
    )


# Variables of description 001


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("KB_AGENT_MAX_ITERATION", "Did you mean KB_AGENT_MAX_ITERATIONS? "),
        ("KB_AGENT_VECTOR_THRESHOLD", "Did you mean KB_AGENT_VECTOR_SCORE_THRESHOLD? "),
        ("KB_AGENT_", ""),
    ],
)
def test_an_unknown_variable_of_the_agent_is_refused_with_the_nearest_one(name: str, guess: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({name: "3"})
    assert refused.value.message == f"{name}: unknown variable."
    assert refused.value.hint == (
        f"{guess}Known: KB_AGENT_MAX_ITERATIONS, KB_AGENT_AUTO_APPROVE_MAX_ITEMS, KB_AGENT_VECTOR_SCORE_THRESHOLD."
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [("CRAG_TOPK", "CRAG_TOP_K"), ("CRAG_MODEL_TIME_OUT", "CRAG_MODEL_TIMEOUT"), ("CRAG_WEBS", "CRAG_WEB")],
)
def test_a_name_that_is_nearly_a_known_one_is_refused(name: str, meant: str) -> None:
    with pytest.raises(BadRecord) as refused:
        load({name: "3"})
    assert refused.value.message == f"{name}: unknown variable."
    assert refused.value.hint == f"Did you mean {meant}? All are in docs/settings.md."


def test_an_unknown_variable_of_others_is_none_of_our_business() -> None:
    others = ("KB_OTHER", "CRAG_OTHER", "CRAG_SERVICE_HOST", "CRAG_SERVICE_PORT", "CRAG_SHARED_DATA", "PATH")
    assert load(dict.fromkeys(others, "3")) == Config()


# The file .env


def env_file(folder: Path, text: str | bytes, name: str = ".env") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


FULL = """\
# Settings of this machine
CRAG_TOP_K=9

export CRAG_WEB='off'
CRAG_MODEL = "ollama/llama3.2"   # with a comment
CRAG_HOME=
KB_AGENT_MAX_ITERATIONS=4
SOMETHING_ELSE=1
"""


def test_a_file_env_is_read_where_the_program_starts(tmp_path: Path) -> None:
    env_file(tmp_path, FULL)
    assert load({}) == Config(top_k=9, web="off", model="ollama/llama3.2", agent_iterations=4)


@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_a_file_from_any_editor_is_read(tmp_path: Path, ending: str, start: bytes) -> None:
    env_file(tmp_path, start + f"CRAG_TOP_K=9{ending}".encode())
    assert load({}).top_k == 9


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    env_file(tmp_path, FULL)
    config = load({"CRAG_TOP_K": "2", "CRAG_WEB": " "})
    assert (config.top_k, config.web) == (2, "off"), "a blank variable counts as unset"


@pytest.mark.parametrize(
    "line", ["CRAG_TOP_K", "CRAG_TOP_K 9", "KB AGENT=3", "= 9", 'CRAG_MODEL="open', "CRAG_WEB: off"]
)
def test_a_line_that_sets_nothing_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    env_file(tmp_path, f"# first\nCRAG_TOP_K=9\n{line}\nCRAG_WEB=off\n")
    with pytest.raises(BadRecord) as refused:
        load({})
    assert refused.value.message == ".env, line 3: expected NAME=value or a comment, found something else."
    assert refused.value.hint == "Correct the line, or put # before it."


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    env_file(tmp_path, "CRAG_HOME=größer".encode("latin-1"))
    with pytest.raises(BadRecord, match=r"^\.env cannot be read: 'utf-8' codec"):
        load({})


@pytest.mark.parametrize("place", ["s3://bucket/folder", "postgresql://me:s3cret@box/crag", "elsewhere"])
def test_a_place_for_documents_of_an_earlier_version_is_refused_with_what_to_do(place: str) -> None:
    with pytest.raises(BadRecord, match=r"CRAG_STORE: not a setting any more, found .*CRAG_HOME") as refused:
        load({"CRAG_STORE": place})
    assert "s3cret" not in str(refused.value) and "ingest" in refused.value.hint
    assert load({"CRAG_STORE": "disk"}) == load({})
