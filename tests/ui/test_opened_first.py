"""Every page, opened first in a new session, whatever is kept in the home or asked for by the address."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.types.decisions import Action
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.policies import DEFAULT, load_policies, suit
from crag_core.experiments.comparison.outcome import Outcome, Setup
from crag_core.experiments.labelled.graded import Conditions, scored_from
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from crag_core.experiments.store import ExperimentStore
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.trace.feedback import Mark, label_of
from tests import builders
from tests.fakes import Bench
from tests.matrix import diagonal, mostly
from tests.policy_files import PAPER, use_folder
from tests.storage.history_parts import run, whole_run
from tests.ui.conftest import Start, press, shown

PAGES = ("ask", "compare", "tune", "logs", "policies", "documents", "history", "metrics", "settings")
NO_FILES = (
    b"",
    b"\x00\xff\xfe\x00",
    b"[[[[",
    b"[" * 100_000,
    b'{"question": ' * 5000,
    "☃".encode("utf-16"),
    b"a = nan\n",
)
_SET = LabelledSet("mine", tuple(LabelledQuestion(f"Question {n}?", Expected.CORRECT) for n in range(3)))
EVALUATOR = next(iter(EVALUATORS))
_DATE = "2026-01-01T00:00:00+00:00"
_MADE = Conditions(EVALUATOR, "1", "", "", "all-MiniLM-L6-v2", 6, "corpus")


def keep_sound(home: Path) -> None:
    """Presets that equal what the sliders start from, for every policy; a set, grades, outcomes, runs and labels."""
    policies, _ = load_policies()
    laboratory = ExperimentStore(home)
    for policy in (suit(one, EVALUATOR) for one in policies.values()):
        preset = TunedPreset(f"same as {policy.name}", policy.name, policy.lower, policy.upper, policy.cutoff, _MADE)
        laboratory.save_preset(preset)
    laboratory.keep_set(_SET)
    trace = Bench().pipeline.run("Question 1?")
    laboratory.scores(_MADE).add(scored_from(trace, _SET.questions[1]), trace)
    setup = Setup(builders.settings(builders.policy("paper")), "corpus")
    laboratory.outcomes(setup).add(Outcome("key", trace.id, Action.CORRECT), trace)
    history = Workbench(Config(home=home)).history
    for one in (trace, whole_run("hostile"), run("plain")):
        history.save(one)
    said = label_of(trace, trace.settings.policy, Mark.WRONG, _DATE, action=Action.CORRECT, expected=Action.INCORRECT)
    history.add_label(said)


def keep_stale(home: Path) -> None:
    """What an older or newer version, or other policy files, left: names, columns and keys that are not known here."""
    keep_sound(home)
    laboratory = ExperimentStore(home)
    known = laboratory._load("presets", f"same as {DEFAULT}")[1].decode()
    for name, old, new in (
        ("of another policy", f'policy = "{DEFAULT}"', 'policy = "gone"'),
        ("of another evaluator", f'evaluator = "{EVALUATOR}"', 'evaluator = "gone"'),
        ("of a newer version", "lower =", "later = 1\nlower ="),
        ("of no date", 'created = ""', 'created = "yesterday"'),
    ):
        assert old in known
        laboratory._save("presets", name, known.replace(old, new))
    laboratory._save("sets", "later", '{"question": "When?", "expected": "later", "x": 1}\n')
    with closing(sqlite3.connect(home / "crag.db")) as database, database:
        database.execute("UPDATE crag_runs SET policy = 'gone', evaluator = 'gone', writer = 'gone' WHERE rowid % 2")
        database.execute("UPDATE crag_scored SET facts = '{\"later\": 1}'")


def keep_damaged(home: Path) -> None:
    """Rows that are no such thing."""
    keep_stale(home)
    with closing(sqlite3.connect(home / "crag.db")) as database, database:
        for kind in ("presets", "sets"):
            rows = [(kind, f"damaged {number}", content) for number, content in enumerate(NO_FILES)]
            database.executemany("INSERT INTO crag_texts (kind, name, text) VALUES (?, ?, ?)", rows)
        tables = {
            name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            for (name,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'crag_%'"
            ).fetchall()
        }
        assert {"crag_runs", "crag_labels"} <= {*tables}
        database.execute("UPDATE crag_runs SET record = 'no record', action = 'PERHAPS', ending = 'later'")
        database.execute(
            "UPDATE crag_runs SET kept_at = 1e300, total_ms = -1e300, calls = -1, score = 7 WHERE rowid % 2"
        )
        database.execute("UPDATE crag_labels SET label = '[]', mark = 'perhaps'")
        database.execute("UPDATE crag_scored SET facts = 'no facts', record = x'00'")


def put_folder(place: Path) -> None:
    """In the place of a file that other tests may have left in the home that they share."""
    place.unlink(missing_ok=True)
    place.mkdir()


def keep_no_databases(home: Path) -> None:
    """Every file of a database is something else; some are folders."""
    keep_sound(home)
    (home / "laboratory").mkdir(exist_ok=True)
    for file in home.rglob("*.db*"):
        file.unlink()
    for name in ("crag.db", "history.db", "laboratory/scores.db", "laboratory/outcomes.db"):
        (home / name).write_bytes(b"no database at all, but long enough to look like one" * 100)
    put_folder(home / "audit.jsonl")


@pytest.fixture(scope="module", params=[keep_damaged, keep_no_databases, *mostly(keep_stale, keep_sound)])
def kept(request: pytest.FixtureRequest, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "home"
    shutil.copytree(home, folder)
    request.param(folder)
    return folder


def open_first(
    start: Start, page: str, address: dict[str, str | list[str]] | None = None, **environment: str
) -> AppTest:
    """A page that is the first of its session, with these parameters in its address."""
    return start(f"pages/{page}.py", policy="", address=address, **{"CRAG_CACHE": "disk", **environment})


def is_drawn(app: AppTest) -> bool:
    assert not app.exception, app.exception[0].value + "\n".join(app.exception[0].stack_trace)
    return bool(app.selectbox(key="policy").value) and len(shown(app)) > 200


def test_presets_that_cannot_be_used_are_told_and_not_offered(own: Path, start: Start) -> None:
    keep_stale(own)
    app = open_first(start, "tune", CRAG_HOME=str(own))
    app.segmented_control(key="tune_source").set_value("Sample questions").run()
    press(app, "Use 49 questions")
    assert is_drawn(app)
    said = shown(app)
    assert "of another policy: its policy 'gone' is not known here" in said
    assert "of another evaluator: its evaluator 'gone' is not known here" in said
    assert "preset of a newer version.later: unknown key" in said
    offered = {button.key for button in app.button if (button.key or "").startswith("tuned_")}
    assert offered == {f"tuned_same as {DEFAULT}", "tuned_of no date"}


@pytest.mark.parametrize("page", PAGES)
def test_no_policy_file_blanks_a_page(page: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = use_folder(tmp_path / "policies", monkeypatch)
    for number, content in enumerate(NO_FILES):
        (folder / f"damaged-{number}.toml").write_bytes(content)
    (folder / "folder.toml").mkdir()
    (folder / "stale.toml").write_text(PAPER.replace('evaluator = "embedding"', 'evaluator = "gone"'), "utf-8")
    assert is_drawn(open_first(start, page))


@pytest.mark.parametrize(
    ("page", "address"),
    diagonal(
        PAGES,
        [
            {"policy": "gone", "evaluator": "gone", "thresholds": ["2", "1"], "strips": "nan", "run": "gone"},
            {"policy": DEFAULT, "thresholds": ["0.6", "0.7"], "dropped": "00000000", "pinned": "x"},
            {"policy": "\x00", "evaluator": "", "thresholds": "", "strips": ["0.1", "0.2"], "run": ["", "a" * 10_000]},
            {"unknown": "1", "metrics_policy": "gone", "history_search": "(" * 5000, "thresholds": ["1e400", "-0"]},
        ],
    ),
)
def test_no_address_blanks_a_page(page: str, address: dict[str, str | list[str]], start: Start) -> None:
    assert is_drawn(open_first(start, page, address))


@pytest.mark.parametrize(
    "setting",
    [
        {"CRAG_MODEL": "ollama/gone"},
        {"CRAG_MODEL": "gone", "CRAG_SUPPORT": "ollama/gone"},
        {"CRAG_HISTORY": "postgresql://nobody@127.0.0.1:9/none"},
        {"CRAG_CACHE": "redis://127.0.0.1:9", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"CRAG_EMBEDDING": "gone", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
        {"CRAG_WEB": "auto", "CRAG_WEB_PROVIDERS": "searxng", "CRAG_SEARXNG_URL": "http://127.0.0.1:9"},
    ],
)
@pytest.mark.parametrize("page", mostly("ask", "tune", "documents", "settings"))
def test_no_setting_that_is_taken_blanks_a_page(setting: dict[str, str], page: str, start: Start) -> None:
    assert is_drawn(open_first(start, page, **setting))


@pytest.mark.parametrize("page", PAGES)
def test_no_kept_file_blanks_a_page(kept: Path, start: Start, page: str) -> None:
    assert is_drawn(open_first(start, page, CRAG_HOME=str(kept)))
