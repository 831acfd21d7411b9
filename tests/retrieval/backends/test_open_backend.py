"""The one setting that says where documents are kept."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord
from crag_core.retrieval.backends import open_backend
from crag_core.retrieval.backends.disk import FolderBackend
from crag_core.retrieval.backends.postgres.backend import PostgresBackend


@pytest.mark.parametrize("setting", ["", "disk", " disk\n"])
def test_disk_is_the_folder(setting: str, tmp_path: Path) -> None:
    backend = open_backend(setting, tmp_path / "index")
    assert isinstance(backend, FolderBackend) and backend.place == str(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_url_is_a_postgresql_named_without_its_password(scheme: str, tmp_path: Path) -> None:
    backend = open_backend(f" {scheme}://me:secret@box:5433/crag ", tmp_path)
    assert isinstance(backend, PostgresBackend) and backend.place == "postgresql://box:5433/crag"


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("off", "'off'"),
        ("Disk", "'Disk'"),
        ("mysql://me:secret@box/crag", "a URL that starts with mysql://"),
        ("postgresql+psycopg2://me:secret@box/crag", "a URL that starts with postgresql+psycopg2://"),
        ("me:secret@box/crag", "something else"),
        ("secret" * 10, "something else"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(setting: str, shown: str, tmp_path: Path) -> None:
    with pytest.raises(BadRecord) as refused:
        open_backend(setting, tmp_path)
    assert str(refused.value).startswith("CRAG_STORE: expected disk, or a URL that starts with ")
    assert str(refused.value).endswith(f"found {shown}.") and "secret" not in str(refused.value)


def test_each_setting_loads_its_own_engine_only() -> None:
    code = (
        "import sys; from pathlib import Path; from crag_core.retrieval.backends import open_backend; "
        "open_backend(sys.argv[1], Path('nowhere')); "
        "print([name for name in ('lancedb', 'psycopg', 'sqlalchemy', 'llama_index') if name in sys.modules])"
    )
    for setting, loaded in (("disk", []), ("postgresql://box/crag", ["psycopg", "sqlalchemy"])):
        command = [sys.executable, "-c", code, setting]
        root = Path(__file__).parents[3]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == str(loaded)


def test_a_workbench_keeps_its_documents_there_and_another_place_is_another_store(tmp_path: Path) -> None:
    here = Workbench(Config(home=tmp_path, cache="off"))
    there = here.using(replace(here.config, store="postgresql://me:secret@box/crag"))
    assert (here.store.place, there.store.place) == (str(tmp_path / "index"), "postgresql://box/crag")
    assert there.using(replace(there.config, top_k=3)).store is there.store
