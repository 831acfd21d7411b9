"""An evaluator made of two in the sidebar: added by name, and what each of both said in the record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.conftest import ask, press, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]
BOTH = "cross-encoder+heuristic@0.3-0.999"


def test_the_second_reads_what_the_first_leaves_in_doubt(start: Start) -> None:
    app = start()
    app.text_input(key="evaluator_by_name").set_value("cross-encoder+cross-encoder@0.3-0.999")
    press(app, "Add")
    assert "Expected two evaluators such as" in shown(app)
    app.text_input(key="evaluator_by_name").set_value(BOTH)
    press(app, "Add")
    assert not app.exception and app.selectbox(key="evaluator").value == BOTH
    ask(app, "What does a yacht of nine metres pay for a night?")
    run = app.session_state["trace"]
    assert not app.exception and run.failure is None and run.settings.evaluator.name == BOTH
    read_again = [grade for grade in run.grades if "(first score" in grade.reason]
    assert 0 < len(read_again) < len(run.grades)
    assert "(first score" in shown(app)
