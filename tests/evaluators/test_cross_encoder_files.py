"""The files of the trained evaluator: loaded once, and refused when they are not what they should be."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.types.grades import Grade
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator, CrossEncoderStripEvaluator
from tests.evaluators.tiny_evaluator import (
    ANSWERING,
    TOPICAL,
    VOCABULARY,
    describe,
    make_embedder,
    make_evaluator,
    make_model,
    make_tokenizer,
)
from tests.fakes import passage

QUESTION = "When does the ferry leaves?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_evaluator(tmp_path / "retrieval-evaluator")


def ask(evaluator: Any, *texts: str) -> tuple[Grade, ...]:
    found: tuple[Grade, ...] = evaluator.grade(
        QUESTION, [passage(n, text) for n, text in enumerate(texts or ("The ferry leaves nine.",))], threading.Event()
    )
    return found


# --- loading --------------------------------------------------------------------------------------------------------


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The options of every session that is opened."""
    import onnxruntime

    opened: list[Any] = []
    original = onnxruntime.InferenceSession

    def note(model: bytes, options: Any, **more: Any) -> Any:
        opened.append((options, more))
        time.sleep(0.02)  # long enough for another thread to come
        return original(model, options, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", note)
    return opened


def test_model_is_loaded_once_for_all_evaluators_and_threads(folder: Path, sessions: list[Any]) -> None:
    several = [CrossEncoderEvaluator(folder) for _ in range(4)]
    several += [CrossEncoderStripEvaluator(folder), CrossEncoderEvaluator(folder / ".." / folder.name)]
    assert sessions == [], "not before the first use"
    with ThreadPoolExecutor(6) as pool:
        assert all(grade.score for (grade,) in pool.map(ask, several))
    assert len(sessions) == 2, "one for each of the two models"


def test_version_names_all_that_a_grade_is_made_with(folder: Path, tmp_path: Path) -> None:
    version = CrossEncoderEvaluator(folder).card.version
    assert len(version) == 16 and version == CrossEncoderEvaluator(folder).card.version
    assert version != CrossEncoderEvaluator(make_evaluator(tmp_path / "b", overlap=3)).card.version
    assert CrossEncoderEvaluator(tmp_path / "c").card.version == "absent"


# --- trouble --------------------------------------------------------------------------------------------------------


def change(name: str, data: bytes | str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def replaced(name: str, data: bytes) -> Callable[[Path], object]:
    """A file changed, and evaluator.json with it."""
    return lambda folder: (change(name, data)(folder), describe(folder))


def settings(**changed: Any) -> Callable[[Path], object]:
    return lambda folder: describe(folder, **changed)


def without(*path: str) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        told = json.loads((folder / "evaluator.json").read_text("utf-8"))
        inner = told
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        (folder / "evaluator.json").write_text(json.dumps(told), "utf-8")

    return act


NO_SEP = {sign: number for sign, number in VOCABULARY.items() if sign != "[SEP]"}
TROUBLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "one byte of the model": (change("model.onnx", b"x"), r"altered: expected model\.onnx with sha256 \w{16}…, found"),
    "no model": (
        lambda folder: (folder / "model.onnx").unlink(),
        r"not there: expected its file model\.onnx in .*evaluator, found: No such",
    ),
    "no settings": (lambda folder: (folder / "evaluator.json").unlink(), r"expected its file evaluator\.json"),
    "settings that are no JSON": (change("evaluator.json", "{"), r"evaluator\.json: Expecting"),
    "settings that nest": (change("evaluator.json", "[" * 100_000), r"evaluator\.json: .*nested"),
    "unknown key": (settings(tokns=3), r"tokns: unknown key\. Did you mean 'tokens'"),
    "another version": (settings(version=1), r"expected version 4, found 1"),
    "text for a number": (settings(tokens="256"), r"tokens: expected a valid integer, found str"),
    "no weight": (without("signals", "topical", "cosine"), r"signals\.topical\.cosine: missing"),
    "not a number": (
        settings(signals={"answering": ANSWERING | {"bias": float("nan")}, "topical": TOPICAL}),
        r"finite",
    ),
    "embedder that gives no number": (
        replaced("embedder.onnx", make_embedder(float("inf"))),
        r"embedder\.onnx: expected finite numbers, found nan",
    ),
    "no digest": (without("files", "model.onnx"), r"expected a SHA-256 of each file, found none of model\.onnx"),
    "no room for a chunk": (settings(tokens=12), r"overlap smaller than what they leave to a chunk"),
    "no room to go on": (settings(overlap=13), r"overlap smaller than what they leave to a chunk"),
    "model that is none": (replaced("model.onnx", b"junk"), r"model\.onnx: .*INVALID_PROTOBUF"),
    "model of another shape": (
        replaced("model.onnx", make_model(outputs=("logits", "b", "c"))),
        r"outputs \(.answering., .topical., .places.\), found",
    ),
    "model that gives no number": (
        replaced("model.onnx", make_model({"ferry": (float("nan"), 0.0)})),
        r"model\.onnx: expected finite numbers, found nan",
    ),
    "tokenizer that is none": (replaced("tokenizer.json", b"{}"), r"tokenizer\.json: "),
    "tokenizer without a sign": (
        replaced("tokenizer.json", make_tokenizer(NO_SEP).to_str().encode()),
        r"tokenizer\.json: expected a piece \[SEP\]",
    ),
    "tokenizer of a larger vocabulary": (
        replaced("tokenizer.json", make_tokenizer({**VOCABULARY, "ferry": 999}).to_str().encode()),
        r"model\.onnx: ",
    ),
}


@pytest.mark.parametrize(("spoil", "told"), TROUBLE.values(), ids=TROUBLE)
def test_what_is_wrong_is_told_and_no_number_comes_of_it(
    folder: Path, spoil: Callable[[Path], object], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    evaluator = CrossEncoderEvaluator(folder)
    for _ in range(2):
        with pytest.raises(EvaluatorUnavailable, match=told) as fault:
            ask(evaluator)
        assert fault.value.hint == "Restore data/models/retrieval-evaluator from the repository."
        assert "\n" not in str(fault.value) and len(str(fault.value)) < 700
    assert capfd.readouterr().err == "", "nothing is written to the server's log"
