"""The Documents page: what was added, what waits, what is refused, collections, and the passages of one document."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
import streamlit as st
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.index.store import PassageStore
from tests.retrieval.fakes import WordEmbedder, write_prose
from tests.ui.conftest import Start, ask, finished, job_named, shown
from ui.run import job_progress
from ui.session import startup

FERRY = b"# Ferry\n\n## Times\n\nThe ferry sails at nine.\n\n## Fares\n\nA ticket costs 4 pounds.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An index of its own, without the sample documents."""
    (tmp_path / "sample-indexed").touch()
    return tmp_path


def documents(start: Start, home: Path) -> AppTest:
    app = start("pages/documents.py", CRAG_HOME=str(home))
    assert not app.exception
    return app


def upload(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    kinds = {".md": "text/markdown", ".pdf": "application/pdf", ".zip": "application/zip"}
    app.file_uploader[0].set_value([(name, data, kinds.get(Path(name).suffix, "text/plain")) for name, data in files])
    app.run()
    next(button for button in app.button if button.label.startswith("Index")).click()
    app.run()
    return finished(app, "indexing")


def listed(app: AppTest) -> list[dict[str, object]]:
    return list(app.dataframe[0].value.to_dict("records"))


def choose(app: AppTest, label: str, value: str) -> AppTest:
    next(box for box in app.selectbox if box.label == label).set_value(value)
    return app.run()


def test_the_list_has_state_pages_passages_size_version_collection_and_time(start: Start, home: Path) -> None:
    app = upload(documents(start, home), ("ferry.md", FERRY), ("bad.pdf", b"<html>no pdf</html>"))
    bad, good = listed(app)
    assert (bad["name"], bad["state"], good["name"], good["state"]) == ("bad.pdf", "✗ refused", "ferry.md", "✓ indexed")
    assert (good["chunks"], good["size"], good["version"], good["collection"]) == (1, len(FERRY), 1, "main")
    upload(app, ("ferry.md", FERRY + b"It carries bicycles."))
    assert "replaced the older version" in shown(app)
    assert [(row["name"], row["version"]) for row in listed(app)] == [("bad.pdf", 1), ("ferry.md", 2)]
    assert app.dataframe[0].value["since"].notna().all()


def test_many_outcomes_are_counted_and_only_the_refused_are_spelled_out(start: Start, home: Path) -> None:
    files = [(f"note-{number}.md", b"Note %d of the ferry." % number) for number in range(9)]
    app = upload(documents(start, home), *files, ("bad.pdf", b"<html>no pdf</html>"))
    text = shown(app)
    assert "**9** indexed" in text and "**1** refused" in text
    assert text.index("bad.pdf") < text.index("note-0.md")


def test_documents_go_into_the_collection_that_is_chosen_and_are_asked_alone(start: Start, home: Path) -> None:
    store = Workbench(Config(home=home)).store
    store.ingest([("ferry.md", FERRY)], collection="ships")
    app = documents(start, home)
    upload(app, ("crane.md", b"The crane lifts 6 tonnes. The ferry has no crane."))
    choose(app, "Add to collection", "ships")
    upload(app, ("buoy.md", b"A buoy is red."))
    assert {row["collection"] for row in listed(app) if row["name"] == "buoy.md"} == {"ships"}
    store.delete_all(document.id for document in store.documents() if document.name == "buoy.md")
    app.run()
    assert {row["name"]: row["collection"] for row in listed(app)} == {"ferry.md": "ships", "crane.md": "main"}
    choose(app, "Collection", "ships")
    assert [row["name"] for row in listed(app)] == ["ferry.md"]

    app = start(CRAG_HOME=str(home))
    choose(app, "Search in", "ships")
    ask(app, "When does the ferry sail?")
    record = app.session_state["trace"]
    assert record.settings.collection == "ships"
    assert {passage.source for passage in record.passages} == {"ferry.md"}
    assert "under Ferry › Times" in shown(app)
    choose(app, "Search in", "")
    ask(app, "When does the ferry sail?")
    assert {passage.source for passage in app.session_state["trace"].passages} == {"ferry.md", "crane.md"}


def test_after_adding_one_click_leads_to_a_question_about_these(start: Start, home: Path) -> None:
    Workbench(Config(home=home)).store.ingest([("ferry.md", FERRY)], collection="Boats")
    app = documents(start, home)
    upload(app, ("crane.md", b"The crane lifts 6 tonnes."))
    choose(app, "Add to collection", "Boats")
    upload(app, ("boats.md", b"The yacht is white."))
    next(button for button in app.button if button.label == "Ask about these").click()
    app.run()
    assert not app.exception and app.text_input(key="ask_question") and app.session_state["collection"] == "Boats"


def killed_while_indexing(start: Start, home: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    class Killed(BaseException):
        pass

    def die(self: object, texts: object) -> None:
        raise Killed

    workbench = Workbench(Config(home=home))
    with monkeypatch.context() as patched:
        patched.setattr(HuggingFaceEmbedder, "embed_texts", die)
        with pytest.raises(Killed):
            workbench.store.ingest([("ferry.md", FERRY), ("crane.md", b"The crane lifts 6 tonnes.")])
    app = start("pages/documents.py", CRAG_HOME=str(home))
    from ui.session import startup

    startup.warm_up().wait()
    app.run().run()
    return app


def test_what_a_kill_interrupted_goes_on_at_the_next_start(
    start: Start, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = killed_while_indexing(start, home, monkeypatch)
    assert not app.exception and [row["state"] for row in listed(app)] == ["✓ indexed"] * 2


def test_a_second_click_that_comes_before_the_page_is_drawn_indexes_nothing_twice(
    start: Start, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = documents(start, home)
    app.file_uploader[0].set_value([("ferry.md", FERRY, "text/markdown")])
    app.run()
    (button,) = (one.id for one in app.button if one.label == "Index 1 file")
    with monkeypatch.context() as patch:
        patch.setattr(
            job_progress, "draw_warming", lambda key: st.stop()
        )  # as where the next click breaks off what the first drew
        for _ in range(2):
            app._run(WidgetStates(widgets=[WidgetState(id=button, trigger_value=True)]))
            assert not app.exception
    job = job_named(app, "indexing")
    job.wait()
    app.run()
    assert not app.exception and [one.outcome for one in job.result] == ["indexed"]
    assert job_named(app, "indexing") is job and [row["name"] for row in listed(app)] == ["ferry.md"]


def test_every_session_sees_and_stops_what_another_one_indexes(
    start: Start, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, opened = threading.Event(), threading.Event()

    def hold(self: HuggingFaceEmbedder, texts: list[str]) -> object:
        reached.set()
        assert opened.wait(60)
        return [[1.0] * 384 for _ in texts]

    app = documents(start, home)
    startup.warm_up().wait()
    monkeypatch.setattr(HuggingFaceEmbedder, "embed_texts", hold)
    app.file_uploader[0].set_value([("ferry.md", FERRY, "text/markdown")])
    app.run()
    next(button for button in app.button if button.label.startswith("Index")).click()
    app.run()
    assert reached.wait(60)
    job = job_named(app, "indexing")
    del app.session_state["jobs"]  # as after the page was loaded again
    app.run()
    app.button(key="documents_stop_0").click().run()
    opened.set()
    job.wait()
    app.run()
    assert not app.exception and [one.outcome for one in job.result] == ["left out"]


def test_hostile_names_stay_text(start: Start, home: Path) -> None:
    name = "<b>x</b> [a](http://e.vil) **bold**\u202e.md"
    app = upload(documents(start, home), (name, FERRY))
    assert listed(app)[0]["name"] == "<b>x</b> [a](http://e.vil) **bold**.md"
    assert all("<b>" not in str(one.value) for one in app.markdown)


def passage_list() -> None:
    import streamlit as st

    from ui.documents.document_list import draw_passage_list

    store = st.session_state["store"]
    draw_passage_list(store, next(row for row in store.listing() if row.is_whole))


def drawn_list(store: PassageStore) -> AppTest:
    app = AppTest.from_function(passage_list)
    app.session_state["store"] = store
    return app.run()


def test_passages_are_shown_with_page_and_headings(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([("ferry.md", FERRY)])
    app = drawn_list(store)
    assert "Chunk 1 · Ferry › Times" in shown(app) and "A ticket costs 4 pounds." in shown(app)


def test_long_documents_are_paged_and_searched(tmp_path: Path) -> None:
    store = PassageStore(tmp_path, WordEmbedder())
    store.ingest([("long.txt", write_prose("the harbour", 900))])
    app = drawn_list(store)
    assert shown(app).count("Chunk ") == 20
    app.text_input[0].set_value("SENTENCE 877 tells").run()
    assert not app.exception
    assert "1 chunk of 48" in shown(app) and "Sentence 877 tells something" in shown(app)


# --- re-indexing ---------------------------------------------------------------------------------------------------


def test_all_documents_are_reindexed_with_other_lengths(start: Start, home: Path) -> None:
    app = upload(documents(start, home), ("long.txt", write_prose("the harbour", 200)))
    before = listed(app)[0]["chunks"]
    assert "up to 220 tokens, 30 overlap" in app.expander[-1].label
    tokens, overlap = app.number_input
    tokens.set_value(60)
    overlap.set_value(31)
    app = press(app, "Re-index all documents")
    assert "found 31" in app.error[0].value
    app.number_input[0].set_value(60)
    app.number_input[1].set_value(10)
    app = press(app, "Re-index all documents")
    job = job_named(app, "rebuild")
    assert job is not None
    job.wait()
    app.run()
    assert not app.exception
    assert re.search(r"1 document re-indexed as \d+ chunks: up to 60 tokens", shown(app))
    assert listed(app)[0]["chunks"] > 2 * before


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click()
    return app.run()
