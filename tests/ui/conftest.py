"""One small index with the real embedding model, shared by all page tests."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.concurrency import shared
from tests.ui.drawn import parts
from ui.run import passages
from ui.session import app_state, startup

Start = Callable[..., AppTest]
"""Of the fixture `start`."""

APP = Path(__file__).parents[2] / "app.py"
DOCUMENTS = {
    "harbour-dues.md": "# Harbour dues\n\nA yacht of up to ten metres pays 14 pounds a night. "
    "Longer yachts pay 21 pounds. "
    "Dues are paid at the harbour office before eight in the evening. Dr. Ames keeps the office on weekdays.",
    "crane.txt": "The crane lifts at most 6 tonnes. It is inspected every March by an outside firm. "
    "Nobody may stand under a load.",
    "berths.csv": "berth,length,depth\nA1,12 m,2.1 m\nB4,18 m,3.0 m\n",
}

# Which installed packages hold components; AppTest looks anew in every run, which would take most of a test.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# The compiled script and pages, which a server keeps and AppTest makes anew in every run.
app_test.ScriptCache = local_script_runner.ScriptCache = cache(ScriptCache)  # type: ignore[attr-defined]


@pytest.fixture
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every card of a chunk starts open: a click on its head is the browser's."""
    head = passages._draw_head
    monkeypatch.setattr(passages, "_draw_head", lambda card, key, is_open: head(card, key, is_open=True))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A CRAG_HOME whose first start is over: its own three documents instead of the sample ones.

    The embedding model is loaded once for all tests, not once for each.
    """
    from crag_core.app import workbench
    from crag_core.app.config import Config

    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workbench, "HuggingFaceEmbedder", cache(workbench.HuggingFaceEmbedder))
        store = workbench.Workbench(Config(home=folder)).store
        store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])
        (folder / "sample-indexed").touch()
        shutil.copytree(folder, _before(folder))
        yield folder


def _before(home: Path) -> Path:
    """The home as it was before anything was asked there."""
    return home.with_name(f"{home.name}-before")


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Path:
    """A copy of the indexed home, without what was asked there: what is kept here is nobody else's."""
    return Path(shutil.copytree(_before(home), tmp_path / "own"))


@pytest.fixture
def start(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Starts the app on the shared index; `policy` "": the default one. Others are environment variables."""

    def start_app(
        page: str = "",
        policy: str = "paper",
        *,
        address: Mapping[str, Any] | None = None,
        **environment: str,
    ) -> AppTest:
        defaults = {"CRAG_HOME": str(home), "OLLAMA_HOST": "127.0.0.1:9", "OPENAI_BASE_URL": "", "CRAG_WEB": "off"}
        defaults |= {"CRAG_WEB_PAGES": "off"}  # most results that are made up here have none
        defaults |= {"CRAG_CACHE": "off"}  # else one test's judge would grade for the next
        for name, value in {**defaults, **environment}.items():
            monkeypatch.setenv(name, value)
        app = AppTest.from_file(APP, default_timeout=60)
        if policy:
            app.session_state["policy"] = policy
        for name, value in (address or {}).items():
            app.query_params[name] = value
        return app.switch_page(page).run() if page else app.run()

    _navigate_as_the_server_does(monkeypatch)
    new_process()
    yield start_app
    new_process()
    from crag_core.base.errors import ScoresUnavailable
    from crag_core.experiments.store import ExperimentStore

    kept = []
    with suppress(ScoresUnavailable):  # some tests damage the file
        kept = ExperimentStore(home).tables.rows("SELECT 1 FROM crag_texts UNION SELECT 1 FROM crag_scored")
    assert not kept, "this test keeps grades in the home that all share: let it use `own`"


def new_process() -> None:
    """Nothing is left of what sessions share, but for the recorded runs, which take long to read."""
    app_state.look_for_models.clear()
    app_state.look_again.clear()
    shared.forget()


def _navigate_as_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server learns once and AppTest forgets: that st.navigation rules, not the folder pages/."""
    original = PagesManager.__init__

    def remember(self: PagesManager, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", remember)


def ask(app: AppTest, question: str) -> AppTest:
    """Ask and wait for the run to end, as the page's own timer would."""
    app.text_input(key="ask_question").set_value(question)
    next(button for button in app.button if button.label == "Ask").click()
    app.run()
    return settle(app)


def settle(app: AppTest) -> AppTest:
    if (run := job_named(app, "run")) is not None:
        run.wait()
        app.run()
    return app


def job_named(app: AppTest, name: str) -> Any:
    """Work in the background, under way or not looked at since it ended; None without one."""
    return app.session_state["jobs"].get(name) if "jobs" in app.session_state else None


def finished(app: AppTest, name: str) -> AppTest:
    """Drawn once that work has ended, which the page may have seen and put away already."""
    if job := job_named(app, name):
        job.wait()
        assert not job.error
    app.run()
    assert not app.exception
    return app


def press(app: AppTest, label: str) -> AppTest:
    """Press the button with this label and wait for whatever it starts."""
    there = [button for button in app.button if button.label == label]
    if not there:
        raise AssertionError(f"no button {label!r}; there are {[button.label for button in app.button]}\n{shown(app)}")
    there[0].click()
    return settle(app.run())


def choose(app: AppTest, **choices: Any) -> AppTest:
    """Set selectboxes by key, one after the other as a user does."""
    for key, value in choices.items():
        app.selectbox(key=key).set_value(value).run()
    return app


def put_thresholds(app: AppTest, at: tuple[float, float]) -> AppTest:
    """Lower and upper, on the sliders that the policy has."""
    if any(slider.key == "thresholds" for slider in app.slider):
        app.slider(key="thresholds").set_value(at)
    else:
        app.slider(key="lower").set_value(at[0])
        app.slider(key="upper").set_value(at[1])
    return app


def thresholds(app: AppTest) -> tuple[float, float]:
    """Lower and upper, as the sliders have them."""
    sliders = {slider.key: slider.value for slider in app.slider}
    return sliders["thresholds"] if "thresholds" in sliders else (sliders["lower"], sliders["upper"])


def header(app: AppTest) -> str:
    """The verdict, escapes taken out."""
    return str(app.header[0].value).replace("\\", "")


def shown(app: AppTest) -> str:
    """All text on the page, escapes taken out."""
    kinds = ("title", "header", "subheader", "markdown", "caption", "info", "warning", "error", "success", "metric")
    texts = [str(element.value) for kind in kinds for element in getattr(app, kind)]
    texts += [str(part) for part in parts(app, "answer")]
    return "\n".join(texts).replace("\\", "")


def put_labels(app: AppTest, labels: dict[int, str | None]) -> None:
    """As the table sends them: all cells that were changed since it was drawn first."""
    (table,) = [one for one in app.dataframe if "label_table" in one.proto.id]
    edited = {"edited_rows": {str(row): {"label": label} for row, label in labels.items()}}
    state = json.dumps({**edited, "added_rows": [], "deleted_rows": []})
    app._run(WidgetStates(widgets=[WidgetState(id=table.proto.id, string_value=state)]))
    assert not app.exception


class Warming:
    """A first start that indexes one more document as soon as it is let go."""

    bug = error = progress = None

    def __init__(self, home: Path) -> None:
        self._home = home
        self.is_running = True
        self.let_go = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        self.let_go.wait(60)
        if self.is_running:
            Workbench(Config(home=self._home)).store.ingest([("late.txt", b"The pilot boat is painted orange.")])
            self.is_running = False


@pytest.fixture
def warming(own: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warming]:
    made = Warming(own)
    monkeypatch.setattr(startup, "warm_up", lambda: made)
    yield made
    made.let_go.set()


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Callable[[AppTest], list[bytes]]:
    """Draws the page anew and makes each file that it offers as Streamlit does: in a thread without a session."""

    def make(app: AppTest) -> list[bytes]:
        made: list[Callable[[], str | bytes]] = []

        def keep(self: MediaFileManager, file: Callable[[], str | bytes], *_: object, **__: object) -> str:
            made.append(file)
            return "file"

        monkeypatch.setattr(MediaFileManager, "add_deferred", keep)
        app.run()
        with ThreadPoolExecutor() as threads:
            files = [threads.submit(one).result() for one in made]
        return [one.encode() if isinstance(one, str) else one for one in files]

    return make
