"""What sidebar and Settings page tell of several model servers, and that nothing of it is there for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from tests.judge import judging
from tests.pages.conftest import ask, press, shown
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.openai_server import OpenAIServer

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "How many pounds does a yacht of ten metres pay a night?"
AWAY = "http://127.0.0.1:9"
ADDRESS = re.compile(r"`(http[^`]*)`")


@pytest.fixture
def servers() -> Iterator[tuple[OllamaServer, OllamaServer]]:
    with (
        OllamaServer(ScriptedModel(judging())) as one,
        OllamaServer(ScriptedModel(judging()), models=["smollm2:135m", "other:1b"]) as two,
    ):
        yield one, two


def health(app: AppTest) -> dict[str, str]:
    """The lines of the health box, by their name; an address is code in them."""
    lines = [ADDRESS.sub(r"\1", str(element.value).replace("\\", "")) for element in app.markdown]
    parts = [line.split("**") for line in lines if line.startswith(":small[:") and "**" in line]
    return {part[1]: part[0].removeprefix(":small[:").partition("[")[0] + part[2] for part in parts}


def rows(app: AppTest) -> list[list[str]]:
    """The table of servers on the Settings page."""
    table = app.table[0].value
    assert list(table.columns) == ["Server", "State", "Models", "Calls served"]
    return [[ADDRESS.sub(r"\1", str(cell).replace("\\", "")) for cell in row] for row in table.values.tolist()]


def test_each_server_is_told_of_and_the_one_that_is_away(start: Start, servers: tuple[OllamaServer, ...]) -> None:
    one, two = servers
    app = start(OLLAMA_HOST=f"{one.url}, {AWAY}, {two.url}")
    told = health(app)
    assert list(told)[:4] == ["Model", one.url, AWAY, two.url]
    assert told["Model"].startswith(f"orange 2 available. 2 of 3 Ollama servers answer; {AWAY} does not.")
    assert "`Start it with: ollama serve`" in told["Model"]
    assert told[one.url].startswith("green answers · 1 model · 0 served")
    assert told[AWAY].startswith(f"orange Ollama does not answer at {AWAY} · 0 models · 0 served")
    assert app.selectbox(key="model").options[:2] == ["ollama: smollm2:135m", "ollama: other:1b"]


def test_server_that_fails_in_a_run_is_told_as_left_out(start: Start, servers: tuple[OllamaServer, ...]) -> None:
    bad, good = servers
    app = start(policy="worst-chunk", OLLAMA_HOST=f"{bad.url}, {good.url}", CRAG_TOP_K="3")
    app.selectbox(key="evaluator").set_value("llm").run()
    bad.faults.status = 500
    ask(app, PRICE)
    assert app.session_state["trace"].failure is None and not app.error
    told = health(app)
    assert told["Model"].startswith("green 2 available"), "it does answer when asked what it has"
    assert told[bad.url].startswith("orange left out for another ") and "failed: fault: status 500" in told[bad.url]
    assert told[good.url].startswith(f"green answers · 2 models · {good.chat_calls} served")
    app.switch_page("pages/settings.py").run().run()
    (left_out, used) = rows(app)
    assert left_out[0] == bad.url and left_out[1].startswith("left out for another ") and left_out[3] == "0"
    assert used == [good.url, "answers", "smollm2:135m, other:1b", str(good.chat_calls)]


def test_settings_page_takes_a_list_and_refuses_a_bad_one(start: Start, servers: tuple[OllamaServer, ...]) -> None:
    one, two = servers
    app = start("pages/settings.py")
    assert "Calls served" not in app.table[0].value.columns, "nothing of it for one address"
    field = next(field for field in app.text_input if field.label == "Ollama answers at")
    field.set_value(f"{one.url}, {one.url}")
    press(app, "Use these")
    assert "expected each server once" in shown(app)
    next(field for field in app.text_input if field.label == "Ollama answers at").set_value(f"{one.url} {two.url}")
    press(app, "Use these")
    assert not app.exception and not app.error
    assert [row[0] for row in rows(app)] == [one.url, two.url]
    assert "Ollama answers with 2 models: smollm2:135m, other:1b." in shown(app)


def test_servers_of_a_list_that_are_all_away_leave_quotations(start: Start) -> None:
    app = start(OLLAMA_HOST=f"{AWAY},127.0.0.1:10", OPENAI_BASE_URL="http://me:s3cret@127.0.0.1:9/v1,http://a:0s/v1")
    assert "OPENAI_BASE_URL: expected addresses" in shown(app) and "s3cret" not in shown(app)
    app = start(OLLAMA_HOST=f"{AWAY},127.0.0.1:10")
    told = health(app)["Model"]
    assert "none: answers are quotations. None of the 2 Ollama servers answers." in told


def test_password_of_a_server_is_not_told(start: Start) -> None:
    with OpenAIServer(ScriptedModel(judging()), models=["x"]) as server:
        secret = server.api_base.replace("http://", "http://me:s3cret@")
        app = start(OPENAI_BASE_URL=f"{secret},http://me:s3cret@127.0.0.1:9/v1")
        told = health(app)
        assert server.url in told and AWAY in told
        assert "s3cret" not in shown(app)
