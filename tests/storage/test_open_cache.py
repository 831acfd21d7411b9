"""The one setting that says where grades are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crag_core.app.config import load
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord
from crag_core.base.network import drivers
from crag_core.storage.cache import RedisCache, TableCache, open_cache
from tests.storage.cache_parts import grade, key

HOUR = 3600.0


@pytest.mark.parametrize("setting", ["", "disk", " disk\n"])
def test_disk_is_the_default(setting: str, tmp_path: Path) -> None:
    cache = open_cache(setting, tmp_path, HOUR)
    assert isinstance(cache, TableCache) and cache.name == "disk"
    cache.put_many({key(1): grade()})
    assert (tmp_path / "crag.db").is_file()


def test_off_is_none(tmp_path: Path) -> None:
    assert open_cache("off", tmp_path, HOUR) is None


def test_url_is_a_redis(tmp_path: Path) -> None:
    assert isinstance(open_cache(" redis://cache:6379/0 ", tmp_path, HOUR), RedisCache)


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("on", "'on'"),
        ("memcached://user:secret@cache", "a URL that starts with memcached://"),
        ("REDIS://:secret@cache", "a URL that starts with REDIS://"),
        ("postgresql://me:secret@box/crag", "a URL that starts with postgresql://"),
        ("user:secret@cache:6379", "something else"),
    ],
)
def test_anything_else_is_refused_with_what_was_expected(setting: str, shown: str, tmp_path: Path) -> None:
    with pytest.raises(BadRecord) as refused:
        open_cache(setting, tmp_path, HOUR)
    assert str(refused.value).startswith("CRAG_CACHE: expected disk, off, or a URL that starts with redis://")
    assert str(refused.value).endswith(f"found {shown}.")
    assert "secret" not in str(refused.value)


def test_cache_on_disk_never_loads_the_client_of_a_server() -> None:
    code = (
        "import sys; from pathlib import Path; from crag_core.storage.cache import open_cache; "
        "open_cache('disk', Path('nowhere'), 1.0); "
        "print([m for m in ('redis', 'sqlalchemy', 'psycopg', 'filelock') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("variable", "value", "package"),
    [
        ("CRAG_CACHE", "redis://cache:6379/0", "redis"),
        ("CRAG_HISTORY", "postgresql://me:secret@box/crag", "'psycopg[binary]'"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318", "opentelemetry-exporter-otlp-proto-http"),
    ],
)
def test_a_package_that_only_a_setting_needs_is_named_at_the_start(
    variable: str, value: str, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(drivers, "find_spec", lambda module: None)
    settings = load({"CRAG_HOME": str(tmp_path), variable: value})
    with pytest.raises(BadRecord, match=f"^{variable}: expected the package") as refused:
        Workbench(settings)
    assert refused.value.hint == f"Run: pip install {package}"
