"""An index that is taken away in mid-run: the run says where it broke off, and goes on when it is back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crag_core.base.errors import HistoryUnavailable
from crag_core.trace.trace import Trace
from tests.faults.conftest import Open
from tests.faults.parts import QUESTION, at, broken_at, judged, quoting
from tests.judge import ANSWER, heard
from tests.stand_ins.ollama_server import OllamaServer


def whole(trace: Trace) -> bool:
    return broken_at(trace) == "" and trace.answer is not None and "14 pounds" in trace.answer.text


def test_a_folder_that_is_taken_away_in_mid_run(open_bench: Open, server: OllamaServer, tmp_path: Path) -> None:
    workbench = open_bench(ollama_host=server.url)
    folder, aside = workbench.config.home, tmp_path / "aside"
    pipeline = workbench.engine(judged(workbench))

    def damage() -> None:
        shutil.copytree(folder, aside)
        for path in [path for path in folder.glob("crag.db*") if path.suffix != ".made"]:
            path.unlink()

    broken = pipeline.run(QUESTION, at("retrieve", damage))
    assert broken_at(broken) == "retrieve" and broken.failure is not None and heard(server) == {}
    assert f"The index {folder / 'crag.db'} cannot be read (it was here and is not any more)" in broken.failure.summary
    assert "a backup of it back" in broken.failure.hint
    with pytest.raises(HistoryUnavailable, match="was here and is not any more"):
        workbench.history.save(broken)
    shutil.rmtree(folder)
    shutil.copytree(aside, folder)
    done = pipeline.resume(broken)
    assert done.answer is not None and done.answer.text == ANSWER and heard(server) == {"judge": 3, "answer": 1}


def test_once_it_was_read_nothing_more_is_asked_of_it(open_bench: Open) -> None:
    workbench = open_bench()
    pipeline = workbench.engine(quoting(workbench))
    trace = pipeline.run(QUESTION, at("grade", lambda: shutil.rmtree(workbench.config.home)))
    assert whole(trace)
