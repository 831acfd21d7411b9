"""Names on the hub, through the client of Hugging Face and a server of our own: downloaded once, pinned, refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session, constants

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named.evaluator import Calibrated, NamedEvaluator
from crag_core.evaluators.named.files import find_files
from crag_core.evaluators.named.names import parse_name
from tests.evaluators.named import tiny_models
from tests.stand_ins.hub_server import HubServer

NAME = "harbour/judge"
PASSAGE = Passage("1", "The ferry leaves at ten.", "a.txt")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    server = HubServer()
    server.start()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants._HF_DEFAULT_ENDPOINT, server.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    yield server
    server.stop()
    close_session()


def made(folder: Path, **options: Any) -> Path:
    folder.mkdir()
    return tiny_models.save_one_logit(folder, **options)


def test_model_is_downloaded_once_and_told_in_one_line(hub: HubServer, tmp_path: Path) -> None:
    commit = hub.put(NAME, made(tmp_path / "one"), "main")
    (tmp_path / "one" / "pytorch_model.bin").write_bytes(b"a pickle")
    (tmp_path / "one" / "modeling_own.py").write_text("raise SystemExit")
    commit = hub.put(NAME, tmp_path / "one", "main")
    told: list[str] = []
    found = find_files(parse_name(f"hf:{NAME}"), told.append)
    assert found.revision == commit
    assert told == [f"Downloading hf:{NAME}"]
    assert not {"pytorch_model.bin", "modeling_own.py"} & set(hub.fetched) and "model.safetensors" in hub.fetched
    count = len(hub.fetched)
    assert find_files(parse_name(f"hf:{NAME}"), told.append).revision == commit
    assert (len(hub.fetched), len(told)) == (count, 1)
    (grade,) = NamedEvaluator(parse_name(f"hf:{NAME}")).grade(
        "When does the ferry leave?", [PASSAGE], threading.Event()
    )
    assert grade.score is not None


def test_calibrated_commit_stays_until_it_is_calibrated_again(hub: HubServer, tmp_path: Path) -> None:
    first = hub.put(NAME, made(tmp_path / "one"), "main")
    name = parse_name(f"hf:{NAME}")
    assert find_files(name).revision == first
    second = hub.put(NAME, made(tmp_path / "two", seed=2), "main")
    kept = Calibrated(first, lambda logit: 0.5, 0.3, 0.7, "v")
    assert NamedEvaluator(name, kept).files.revision == first
    assert NamedEvaluator(name).files.revision == second != first
    assert find_files(parse_name(f"hf:{NAME}@{first}")).revision == first
    hub.stop()
    assert NamedEvaluator(name, kept).files.revision == first, "what is here needs no hub"


def refusal(text: str) -> EvaluatorUnavailable:
    with pytest.raises(EvaluatorUnavailable) as refused:
        find_files(parse_name(text))
    assert refused.value.hint
    return refused.value


def test_what_cannot_be_had_is_told(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.put(NAME, made(tmp_path / "one"), "main")
    hub.put("harbour/gated", tmp_path / "one", "main")
    hub.gated.add("harbour/gated")
    pickled = made(tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    hub.put("harbour/pickled", pickled, "main")
    assert "no model of that name on the hub" in refusal("hf:harbour/none").message
    assert "no such revision" in refusal(f"hf:{NAME}@v9").message
    assert "accepted its terms" in refusal("hf:harbour/gated").message
    assert hub.fetched == []
    with pytest.raises(EvaluatorUnavailable, match=r"found none\. Pickled weights are not read"):
        find_files(parse_name("hf:harbour/pickled")).check_weights()
    assert "pytorch_model.bin" not in hub.fetched
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set, so it is not downloaded" in refusal(f"hf:{NAME}").message
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    hub.stop()
    assert "cannot be had" in refusal(f"hf:{NAME}").message


def test_offline_what_is_in_the_cache_is_used(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.put(NAME, made(tmp_path / "one"), "main")
    find_files(parse_name(f"hf:{NAME}"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.stop()
    assert find_files(parse_name(f"hf:{NAME}")).revision == commit
