"""A home with a file for each kind of thing, written by the last version that kept it so, at its first start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from crag_core.app import earlier_home
from crag_core.app.workbench import Workbench
from crag_core.experiments.labelled.graded import Conditions
from tests.conftest import REPOSITORY
from tests.deployment.homes import QUESTION, held_in, open_home
from tests.experiments.test_kept_files import PRESET, SET
from tests.matrix import mostly

HELD = (
    *("history.db", "audit.jsonl", "laboratory/sets", "laboratory/presets", "laboratory/logs"),
    *("laboratory/scores.db", "laboratory/outcomes.db"),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).with_name("earlier_home.tar.xz")) as archive:
        archive.extractall(tmp_path / "home", filter="data")
    return tmp_path / "home"


def check(workbench: Workbench) -> None:
    assert workbench.not_taken == ()
    held = held_in(workbench)
    assert [one.name for one in held.documents] == ["bread.md", "ferry.txt"] and held.found and held.by_words
    (run,) = held.runs
    assert run is not None and run.question == QUESTION and len(held.labels) == 1
    assert [read.questions for read in held.sets] == [SET.questions] and held.presets == (PRESET,)
    assert [f'"run": "{run.id}"' in line for line in held.audit] == [True]
    assert len(workbench.experiments.scores(Conditions("judge", "1", "", "", "none", 6, "corpus")).load()) == 1
    assert workbench.experiments.load_log("old log").records[0].question == "When?"
    (kept,) = workbench.experiments.tables.rows("SELECT facts FROM crag_scored WHERE log = 'outcomes'")
    assert json.loads(kept[0])["run_id"] == run.id and json.loads(kept[0])["action"] == "CORRECT"


def test_all_of_it_is_in_the_one_file_and_the_files_of_before_are_left(home: Path) -> None:
    before = {name: (home / name).read_bytes() for name in HELD if (home / name).is_file()}
    check(open_home(home))
    for name in HELD:
        assert not (home / name).exists() and (home / f"{name}.before").exists()
        assert name not in before or name.endswith(".db") or (home / f"{name}.before").read_bytes() == before[name]
    assert not (home / "index" / "index.db").exists() and (home / "crag.db").stat().st_mode & 0o077 == 0
    again = open_home(home)
    check(again)
    again.experiments.delete_set("mine")
    assert open_home(home).experiments.set_names() == (), "what is deleted does not come back"


def test_what_a_kill_left_half_way_is_taken_over_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step in turn: what is there already is not there twice."""
    replace, steps = os.replace, [0]

    def die(source: str, target: str) -> None:
        steps[0] -= 1
        if not steps[0]:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(earlier_home.os, "replace", die)
    for step in (1, 2, 4, 1):
        steps[0] = step
        with pytest.raises(KeyboardInterrupt):
            open_home(home)
    monkeypatch.undo()
    check(open_home(home))


@pytest.mark.parametrize("after", [0.05, *mostly(0.2, 0.0, 0.1, 0.4)])
def test_killed_while_it_takes_over_nothing_is_lost(after: float, home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.deployment.homes import open_home; "
        "print('ready', flush=True); open_home(Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(home)], cwd=REPOSITORY, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    time.sleep(after)
    process.kill()
    process.wait()
    check(open_home(home))


@pytest.mark.parametrize("name", [name for name in HELD if "." in name and name != "audit.jsonl"])
def test_a_damaged_file_is_told_and_left_and_the_others_are_there(home: Path, name: str) -> None:
    (home / name).write_bytes(b"this was never a database " * 400)
    workbench = open_home(home)
    (told,) = workbench.not_taken
    assert str(home / name) in told and "not a database" in told and told in workbench.problems
    assert (home / name).exists() and len(workbench.store.documents()) == 2
    assert bool(workbench.history.count()) == (name != "history.db")
