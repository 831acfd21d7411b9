"""What `python -m ui` takes itself, and what it leaves to Streamlit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ui.__main__ import arguments


def test_port_and_home_are_ours_and_others_go_to_streamlit() -> None:
    known, others = arguments(["--port", "9000", "--home", "there", "--server.headless", "true"])
    assert (known.port, known.home, known.demo) == (9000, Path("there"), False)
    assert others == ["--server.headless", "true"]


def test_the_demo_has_a_home_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--demo", "--home", "there"])
    assert "leave out --home" in capsys.readouterr().err
