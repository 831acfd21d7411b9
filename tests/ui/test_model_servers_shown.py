"""What sidebar and Settings page tell of the model servers, and that a list of them is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.judge import judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import press, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

AWAY = "http://127.0.0.1:9"
ADDRESS = re.compile(r"`(http[^`]*)`")


def health(app: AppTest) -> dict[str, str]:
    """The lines of the health box, by their name; an address is code in them."""
    lines = [ADDRESS.sub(r"\1", str(element.value).replace("\\", "")) for element in app.markdown]
    parts = [line.split("**") for line in lines if line.startswith(":small[:") and "**" in line]
    return {part[1]: part[0].removeprefix(":small[:").partition("[")[0] + part[2] for part in parts}


def test_settings_page_takes_one_address_and_refuses_a_list(start: Start) -> None:
    with OllamaServer(ScriptedModel(judging()), models=["smollm2:135m", "other:1b"]) as server:
        app = start("pages/settings.py")
        field = next(field for field in app.text_input if field.label == "Ollama address")
        field.set_value(f"{AWAY}, {server.url}")
        press(app, "Apply")
        assert "OLLAMA_HOST: expected one address, found 2" in shown(app) and "docs/scaling.md" in shown(app)
        next(field for field in app.text_input if field.label == "Ollama address").set_value(server.url)
        press(app, "Apply")
        assert not app.exception and not app.error
        assert "Ollama, 2 models: smollm2:135m, other:1b" in shown(app)


def test_password_of_a_server_is_not_told(start: Start) -> None:
    app = start(OPENAI_BASE_URL="http://me:s3cret@127.0.0.1:9/v1")
    assert AWAY in health(app)["Model"] and "s3cret" not in shown(app)
