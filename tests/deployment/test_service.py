"""The service file for systemd: what it starts and where it may write."""

from __future__ import annotations

import shutil
import subprocess
from configparser import ConfigParser
from dataclasses import fields
from pathlib import Path

import pytest

from crag_core.app.config import Config
from tests.conftest import REPOSITORY
from tests.deployment.parts import rests, words

UNIT = REPOSITORY / "deploy" / "crag-explorer.service"


@pytest.fixture(scope="module")
def service() -> dict[str, str]:
    read = ConfigParser(strict=True, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(UNIT.read_text("utf-8"))
    return dict(read["Service"])


def test_it_starts_what_the_dockerfile_starts_but_for_this_machine_only(service: dict[str, str]) -> None:
    python, *arguments = service["ExecStart"].split()
    assert python == "/opt/crag-explorer/.venv/bin/python"
    in_image = words(rests("CMD")[0])[1:]
    address = in_image.index("--server.address")
    assert arguments == [*in_image[:address], *in_image[address + 2 :]]
    assert 'address = "localhost"' in (REPOSITORY / ".streamlit" / "config.toml").read_text("utf-8")


def test_it_writes_to_its_home_and_to_no_other_place(service: dict[str, str]) -> None:
    given = dict(pair.split("=") for pair in service["Environment"].split())
    assert Path(given["CRAG_HOME"]).parent == Path("/var/lib") / service["StateDirectory"]
    assert {name for name in given if name.startswith("CRAG_")} <= {one.metadata["variable"] for one in fields(Config)}
    assert service["ProtectSystem"] == "strict" and service["CapabilityBoundingSet"] == ""
    assert service["KillSignal"] == rests("STOPSIGNAL")[0] and service["User"] == "crag"


def test_systemd_understands_it(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("skipped: systemd is not on this machine")
    text = UNIT.read_text("utf-8").replace("/opt/crag-explorer/.venv/bin/python", "/bin/true")
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("WorkingDirectory=/opt/crag-explorer", "WorkingDirectory=/"), "utf-8")
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and unit.name not in done.stderr, done.stderr
