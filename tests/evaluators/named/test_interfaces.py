"""Each interface through the real code of transformers and sentence-transformers, on tiny random models."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named import reader
from crag_core.evaluators.named.evaluator import NamedEvaluator
from crag_core.evaluators.named.names import parse_name
from tests.evaluators.named import tiny_models

Save = Callable[..., Path]
SAVED: dict[str, Save] = {"one logit": tiny_models.save_one_logit, "yes/no": tiny_models.save_yes_no}
QUESTION = "How many days of paid leave?"
TEXTS = ("The ferry leaves at ten. Paid leave is 27 days.", "harbour dues", "harbour dues at ten " * 30)
PASSAGES = tuple(Passage(str(place), text, "a.txt") for place, text in enumerate(TEXTS))
GO = threading.Event()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save(tmp_path_factory.mktemp("model")) for name, save in SAVED.items()}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test loads its models anew."""
    reader._opened.cache_clear()


def evaluator(folder: Path) -> NamedEvaluator:
    return NamedEvaluator(parse_name(f"hf:{folder}"))


def logits(folder: Path) -> list[float]:
    return [dict(grade.parts)["logit"] for grade in evaluator(folder).grade(QUESTION, PASSAGES, GO)]


@pytest.mark.parametrize("kind", SAVED)
def test_it_grades_each_chunk_by_its_best_window(folders: dict[str, Path], kind: str) -> None:
    judge = evaluator(folders[kind])
    grades = judge.grade(QUESTION, PASSAGES, GO)
    assert [grade.passage_id for grade in grades] == ["0", "1", "2"]
    assert all(grade.score is not None and 0 < grade.score < 1 for grade in grades)
    assert len({grade.score for grade in grades}) == 3
    assert "windows" in grades[2].reason and "windows" not in grades[0].reason


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_one_logit_is_that_of_sentence_transformers(folders: dict[str, Path]) -> None:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folders["one logit"]), device="cpu", local_files_only=True)
    expected = model.predict([(QUESTION, TEXTS[0])], activation_fn=torch.nn.Identity())
    assert logits(folders["one logit"])[0] == pytest.approx(float(expected[0]), abs=1e-6)


def test_heads_of_sentence_transformers_are_read(folders: dict[str, Path], tmp_path: Path) -> None:
    """A causal reranker with LogitScore, and an encoder with pooling and a linear layer, as ettin has them."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    causal, pooled = _made(tmp_path / "causal"), _made(tmp_path / "pooled")
    CrossEncoder(str(folders["yes/no"]), device="cpu", local_files_only=True).save_pretrained(str(causal))
    encoder = Transformer(str(folders["one logit"]))
    head = Dense(16, 1, activation_function=torch.nn.Identity(), module_output_name="scores")
    CrossEncoder(modules=[encoder, Pooling(16, "cls"), head], device="cpu").save_pretrained(str(pooled))
    for folder in (causal, pooled):
        expected = CrossEncoder(str(folder), device="cpu", local_files_only=True).predict(
            [(QUESTION, TEXTS[0])], activation_fn=torch.nn.Identity()
        )
        assert logits(folder)[0] == pytest.approx(float(expected[0]), abs=1e-5)


def test_yes_no_reads_the_last_position_after_the_documented_prompt(folders: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = folders["yes/no"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    whole = (  # of the model card of Qwen/Qwen3-Reranker-0.6B
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        f"<Query>: {QUESTION}\n<Document>: {TEXTS[0]}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    with torch.inference_mode():
        last = model(**tokenizer(whole, return_tensors="pt", add_special_tokens=False)).logits[0, -1]
    no, yes = (float(last[tokenizer.convert_tokens_to_ids(word)]) for word in ("no", "yes"))
    assert logits(folder)[0] == pytest.approx(yes - no, abs=1e-5)


MARKS = {"one logit": "[SEP]", "yes/no": "<|im_end|>"}


@pytest.mark.parametrize("kind", SAVED)
def test_a_document_cannot_end_itself_by_a_mark_of_the_model(folders: dict[str, Path], kind: str) -> None:
    made = reader.open_reader(evaluator(folders[kind]).files)
    (mark,) = made.tokenizer.convert_tokens_to_ids([MARKS[kind]])
    assert mark in made.tokenizer(f"dues {MARKS[kind]} ten", add_special_tokens=False)["input_ids"]
    asked, (text,) = made.windows(f"How {MARKS[kind]}", f"dues {MARKS[kind]} ten")
    assert mark not in made.tokenizer(asked + text, add_special_tokens=False)["input_ids"]


def test_what_is_no_number_is_not_graded(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader.Reader, "read", lambda self, question, texts, cancel: [(math.nan, 1)])
    (grade,) = evaluator(folders["one logit"]).grade(QUESTION, PASSAGES[:1], GO)
    assert grade.score is None and "expected a finite number" in grade.cause


# --- what is refused --------------------------------------------------------------------------------------------------


_one = tiny_models.save_one_logit


def _with(folder: Path, **config: Any) -> Path:
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(told | config))
    return folder


def _embedding_model(folder: Path) -> Path:
    tiny_models.save_one_logit(folder)
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Transformer", "path": ""}]))
    (folder / "config_sentence_transformers.json").write_text("{}")
    return folder


def _old(folder: Path) -> Path:
    (folder / "config_sentence_transformers.json").unlink()
    return folder


def _told(folder: Path, modules: str) -> Path:
    (folder / "modules.json").write_text(modules)
    return folder


def _foreign_module(folder: Path) -> Path:
    tiny_models.save_one_logit(folder)
    (folder / "modules.json").write_text(json.dumps([{"type": "custom_code.Head", "path": ""}]))
    (folder / "config_sentence_transformers.json").write_text('{"model_type": "CrossEncoder"}')
    return folder


def _pickled(folder: Path) -> Path:
    tiny_models.save_one_logit(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    return folder


def _stub(folder: Path) -> Path:
    tiny_models.save_one_logit(folder)
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n")
    return folder


def _without(folder: Path, part: str) -> Path:
    """The weights without those of `part`, which transformers would make up."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({name: one for name, one in weights.items() if part not in name}, folder / "model.safetensors")
    return folder


def _bare(folder: Path) -> Path:
    for path in _one(folder).glob("tokenizer*"):
        path.unlink()
    return folder


def _adapter(folder: Path) -> Path:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "BAAI/bge-reranker-base"}')
    return folder


def _gguf(folder: Path) -> Path:
    (folder / "model-q4.gguf").write_bytes(b"GGUF")
    return folder


REFUSED: dict[str, tuple[Save, str]] = {
    "several labels": (lambda f: tiny_models.save_one_logit(f, labels=3), "one logit, found 3"),
    "no head": (lambda f: _with(_one(f), architectures=["BertModel"]), "architecture BertModel"),
    "question answering": (lambda f: _with(_one(f), architectures=["BertForQuestionAnswering"]), "QuestionAnswering"),
    "no architecture": (lambda f: _with(_one(f), architectures=None), "architecture none"),
    "head missing": (lambda f: _without(_one(f), "classifier"), "expected weights for classifier.bias"),
    "a layer missing": (lambda f: _without(_one(f), "layer.1."), "expected weights for bert.encoder.layer.1."),
    "weights of another size": (lambda f: _with(_one(f), hidden_size=32), "none that fit config.json"),
    "no tokenizer": (_bare, "expected the files of its tokenizer"),
    "adapter": (_adapter, "found an adapter"),
    "adapter beside a model": (lambda f: _adapter(_one(f)), "found an adapter"),
    "GGUF": (_gguf, "found: no such file in it"),
    "labels that are none": (lambda f: _with(_one(f), id2label=5), "cannot be read"),
    "old embedding model": (lambda f: _old(_embedding_model(f)), "embeds texts and does not judge pairs"),
    "modules that are none": (lambda f: _told(_foreign_module(f), '["x"]'), "cannot be read"),
    "causal model of unknown prompt": (
        lambda f: _with(tiny_models.save_yes_no(f), model_type="llama", architectures=["LlamaForCausalLM"]),
        "whose prompt as a reranker is not known",
    ),
    "code of its own": (
        lambda f: _with(_one(f), model_type="newer", auto_map={"AutoModel": "code.Newer"}), "needs code of its own"
    ),
    "embedding model": (_embedding_model, "embeds texts and does not judge pairs"),
    "module of its own": (_foreign_module, "custom_code.Head"),
    "pickled weights": (_pickled, "found pytorch_model.bin"),
    "stub of Git LFS": (_stub, "cannot be read"),
    "no folder": (lambda f: f / "gone", "no such folder"),
    "empty folder": (lambda f: f, "no such file in it"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_was_found(tmp_path: Path, wrong: str) -> None:
    save, found = REFUSED[wrong]
    with pytest.raises(EvaluatorUnavailable) as refused:
        evaluator(save(tmp_path)).grade(QUESTION, PASSAGES, GO)
    assert found in refused.value.message and refused.value.hint


def test_pickle_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def opened(*args: object, **options: object) -> None:
        raise AssertionError("a pickle was read")

    monkeypatch.setattr(torch, "load", opened)
    folder = tiny_models.save_one_logit(tmp_path)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04 no weights")
    assert NamedEvaluator(parse_name(f"hf:{folder}")).grade(QUESTION, PASSAGES[:1], GO)[0].score is not None
