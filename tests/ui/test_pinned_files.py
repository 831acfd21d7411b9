"""Files pinned on the Ask page: they are the evidence, whole, and nothing else is looked at unless asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.ui.conftest import DOCUMENTS, ask, choose, header, settle, shown

pytestmark = pytest.mark.embedding
Start = Callable[..., AppTest]

PRICE = "What does a yacht of nine metres pay for a night?"


@pytest.fixture(scope="module")
def ids(home: Path) -> dict[str, str]:
    return {document.name: document.id for document in Workbench(Config(home=home)).store.documents()}


def pin(app: AppTest, *ids: str) -> AppTest:
    return app.multiselect(key="ask_pinned").set_value(list(ids)).run()


def sources(app: AppTest) -> list[str]:
    return [passage.source for passage in app.session_state["trace"].passages]


def test_every_document_can_be_pinned_by_its_name(start: Start) -> None:
    app = start()
    assert app.multiselect(key="ask_pinned").options == sorted(DOCUMENTS)
    assert app.multiselect(key="ask_pinned").value == []
    assert app.toggle(key="ask_search_too").value is False


def test_pinned_file_is_the_whole_evidence(start: Start, ids: dict[str, str]) -> None:
    app = ask(pin(start(), ids["crane.txt"]), PRICE)
    assert not app.exception
    trace = app.session_state["trace"]
    assert sources(app) == ["crane.txt"] and trace.passages[0].text == DOCUMENTS["crane.txt"]
    assert trace.passages[0].found_by == ("read_file",)
    assert "CORRECT" not in header(app).replace("INCORRECT", "")
    assert "1 of them whole files that you pinned" in shown(app)


def test_several_pinned_files_stand_in_the_order_of_pinning(start: Start, ids: dict[str, str]) -> None:
    app = ask(pin(start(), ids["crane.txt"], ids["berths.csv"]), PRICE)
    assert sources(app) == ["crane.txt", "berths.csv"]


@pytest.mark.usefixtures("unfolded")
def test_rule_for_pinned_files_decides_under_the_policy_agentic_without_a_grading_call(
    start: Start, ids: dict[str, str]
) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url), policy="agentic")
        assert app.selectbox(key="evaluator").value == "llm-list"
        ask(pin(app, *ids.values()), PRICE)
        assert heard(server) == {"answer": 1}
    assert "CORRECT · Generate" in header(app)
    text = shown(app)
    assert "Rule read_file: every chunk is a whole file that you pinned; nothing was graded" in text
    assert text.count("Not graded in this run") == len(ids)
    assert "No threshold changes this." in text


def test_other_documents_are_searched_too_where_that_is_asked_for(start: Start, ids: dict[str, str]) -> None:
    app = choose(pin(start(), ids["crane.txt"]), policy="agentic")
    app.toggle(key="ask_search_too").set_value(True).run()
    ask(app, PRICE)
    assert sources(app)[0] == "crane.txt" and set(sources(app)) == set(DOCUMENTS)
    trace = app.session_state["trace"]
    assert trace.decision.rule is None, "not all of it was pinned"
    assert trace.grades is not None


def test_pinned_file_is_no_other_document(start: Start, ids: dict[str, str]) -> None:
    app = pin(start(), ids["crane.txt"])
    app.toggle(key="ask_search_too").set_value(True).run()
    ask(app, PRICE)
    assert sorted(sources(app)) == sorted(DOCUMENTS)


def test_toggle_alone_pins_nothing(start: Start) -> None:
    app = start()
    app.toggle(key="ask_search_too").set_value(True).run()
    ask(app, PRICE)
    settings = app.session_state["trace"].settings
    assert (settings.pinned, settings.search_too) == ((), False)
    assert "Not run yet" not in shown(app)


def test_pinning_after_a_run_is_offered_and_not_done(start: Start, ids: dict[str, str]) -> None:
    app = ask(start(), PRICE)
    before = app.session_state["trace"]
    pin(app, ids["crane.txt"])
    assert app.session_state["trace"] is before
    assert "Not run yet: other pinned files" in shown(app)
    assert ":gray-badge[:material/history: Doubtful in the original run]" in shown(app), "of other evidence"
    app.button(key="ask_carry_out").click().run()
    settle(app)
    assert sources(app) == ["crane.txt"]
    assert "other pinned files" not in shown(app)


def test_pins_are_kept_on_other_pages(start: Start, ids: dict[str, str]) -> None:
    app = pin(start(), ids["crane.txt"])
    app.switch_page("pages/policies.py").run().run()
    app.switch_page("pages/ask.py").run().run()
    assert app.multiselect(key="ask_pinned").value == [ids["crane.txt"]]
    assert sources(ask(app, PRICE)) == ["crane.txt"]


def test_pinned_file_that_was_deleted_meanwhile_is_let_go(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sample-indexed").touch()
    store = Workbench(Config(home=tmp_path)).store
    store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
    gone = next(document.id for document in store.documents() if document.name == "crane.txt")
    app = pin(start(CRAG_HOME=str(tmp_path)), gone)
    store.delete_all([gone])
    ask(app.run(), PRICE)
    assert not app.exception and not app.error
    assert sorted(sources(app)) == ["berths.csv", "harbour-dues.md"]


def test_file_deleted_at_the_last_moment_breaks_the_run_off_and_continuing_goes_without_it(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "sample-indexed").touch()
    store = Workbench(Config(home=tmp_path)).store
    store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
    gone = next(document.id for document in store.documents() if document.name == "crane.txt")
    app = pin(start(CRAG_HOME=str(tmp_path)), gone)
    store.delete_all([gone])
    ask(app, PRICE)
    assert not app.exception
    assert "broke off at “retrieve”" in "".join(str(error.title) for error in app.error)
    assert "choose the file again" in shown(app)
    app.button(key="ask_continue").click().run()
    settle(app)
    assert not app.error and sorted(sources(app)) == ["berths.csv", "harbour-dues.md"]


def test_budget_counts_the_pinned_files_and_not_a_retrieval(start: Start, ids: dict[str, str]) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        app = choose(start(OLLAMA_HOST=server.url, CRAG_TOP_K="6"), policy="worst-chunk")
        assert "Correct] 7" in shown(app)
        pin(app, ids["crane.txt"], ids["berths.csv"])
        assert "Correct] 3" in shown(app)
        app.toggle(key="ask_search_too").set_value(True).run()
        assert "Correct] 9" in shown(app)
