"""Each interface through the real code of transformers and sentence-transformers, on tiny random models."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
)

from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage
from crag_core.evaluators.named import find, reader
from crag_core.evaluators.named.evaluator import NamedEvaluator, NamedStripEvaluator
from crag_core.evaluators.named.files import find_files
from crag_core.evaluators.named.find import INTERFACES, interface_of
from crag_core.evaluators.named.names import parse_name
from crag_core.evaluators.named.one_logit import OneLogit
from crag_core.evaluators.named.pruner import Pruner, keep_above
from crag_core.evaluators.named.span import LONGEST_SPAN, Span
from crag_core.evaluators.named.yes_no import AFTER, BEFORE, BODY, INSTRUCT, YesNo
from tests.evaluators.named import tiny_models

Save = Callable[..., Path]
SAVED: dict[str, tuple[Save, str]] = {
    "one logit": (tiny_models.save_one_logit, "one-logit"),
    "span": (tiny_models.save_span, "span"),
    "yes/no": (tiny_models.save_yes_no, "yes-no"),
    "OpenProvence": (tiny_models.save_open_provence, "pruner"),
    "Provence": (tiny_models.save_provence, "pruner"),
}
QUESTION = "How many days of paid leave?"
TEXTS = ("The ferry leaves at ten. Paid leave is 27 days.", "harbour dues", "harbour dues at ten " * 30)
PASSAGES = tuple(Passage(str(place), text, "a.txt") for place, text in enumerate(TEXTS))
GO = threading.Event()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save(tmp_path_factory.mktemp("model")) for name, (save, _) in SAVED.items()}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test loads its models anew."""
    find._loaded.clear()


def evaluator(folder: Path, told: str = "") -> NamedStripEvaluator:
    return NamedStripEvaluator(parse_name(f"hf:{folder}{f'?as={told}' if told else ''}"))


def logits(folder: Path) -> list[float]:
    return [dict(grade.parts)["logit"] for grade in evaluator(folder).grade(QUESTION, PASSAGES, GO)]


@pytest.mark.parametrize("kind", SAVED)
def test_interface_is_found_in_the_files_and_grades(folders: dict[str, Path], kind: str) -> None:
    judge = evaluator(folders[kind])
    assert judge.interface == SAVED[kind][1]
    grades = judge.grade(QUESTION, PASSAGES, GO)
    assert [grade.passage_id for grade in grades] == ["0", "1", "2"]
    assert all(grade.score is not None and 0 < grade.score < 1 for grade in grades)
    assert len({grade.score for grade in grades}) == 3
    assert "windows" in grades[2].reason and "windows" not in grades[0].reason
    assert set(INTERFACES) == {interface for _, interface in SAVED.values()}


@pytest.mark.parametrize("kind", SAVED)
def test_same_pair_has_the_same_score_in_any_company_and_when_loaded_again(folders: dict[str, Path], kind: str) -> None:
    first = logits(folders[kind])
    find._loaded.clear()
    alone = [dict(evaluator(folders[kind]).grade(QUESTION, [one], GO)[0].parts)["logit"] for one in PASSAGES]
    assert alone == first


@pytest.mark.parametrize("kind", SAVED)
def test_version_is_that_of_the_files(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    save = SAVED[kind][0]
    again, other = save(_made(tmp_path / "again")), save(_made(tmp_path / "other"), seed=2)
    versions = [find_files(parse_name(f"hf:{folder}")).revision for folder in (folders[kind], again, other)]
    assert versions[0] == versions[1] != versions[2]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_one_logit_is_that_of_sentence_transformers(folders: dict[str, Path]) -> None:
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folders["one logit"]), device="cpu", local_files_only=True)
    expected = model.predict([(QUESTION, TEXTS[0])], activation_fn=torch.nn.Identity())
    assert logits(folders["one logit"])[0] == pytest.approx(float(expected[0]), abs=1e-6)


def test_model_saved_by_sentence_transformers_is_read(folders: dict[str, Path], tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    CrossEncoder(str(folders["one logit"]), device="cpu", local_files_only=True).save_pretrained(str(tmp_path))
    assert (tmp_path / "modules.json").is_file()
    assert evaluator(tmp_path).interface == "one-logit"
    assert logits(tmp_path) == pytest.approx(logits(folders["one logit"]), abs=1e-6)


def test_heads_of_sentence_transformers_are_read(folders: dict[str, Path], tmp_path: Path) -> None:
    """A causal reranker with LogitScore, and an encoder with pooling and a linear layer, as ettin has them."""
    from sentence_transformers import CrossEncoder
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    causal, pooled = _made(tmp_path / "causal"), _made(tmp_path / "pooled")
    CrossEncoder(str(folders["yes/no"]), device="cpu", local_files_only=True).save_pretrained(str(causal))
    encoder = Transformer(str(folders["span"]))
    head = Dense(16, 1, activation_function=torch.nn.Identity(), module_output_name="scores")
    CrossEncoder(modules=[encoder, Pooling(16, "cls"), head], device="cpu").save_pretrained(str(pooled))
    for folder in (causal, pooled):
        expected = CrossEncoder(str(folder), device="cpu", local_files_only=True).predict(
            [(QUESTION, TEXTS[0])], activation_fn=torch.nn.Identity()
        )
        assert evaluator(folder).interface == "one-logit"
        assert logits(folder)[0] == pytest.approx(float(expected[0]), abs=1e-5)


def test_span_is_the_best_pair_of_places_minus_no_answer(folders: dict[str, Path]) -> None:
    folder = folders["span"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pair = tokenizer(QUESTION, TEXTS[0], return_tensors="pt")
    with torch.inference_mode():
        found = AutoModelForQuestionAnswering.from_pretrained(folder).eval()(**pair)
    starts, ends = found.start_logits[0].tolist(), found.end_logits[0].tolist()
    inside = [place for place, of in enumerate(pair.sequence_ids(0)) if of == 1]
    spans = [starts[a] + ends[b] for a in inside for b in inside if 0 <= b - a < LONGEST_SPAN]
    assert logits(folder)[0] == pytest.approx(max(spans) - starts[0] - ends[0], abs=1e-5)


def test_yes_no_reads_the_last_position_after_the_documented_prompt(folders: dict[str, Path]) -> None:
    folder = folders["yes/no"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    whole = BEFORE + BODY.format(instruct=INSTRUCT, question=QUESTION, text=TEXTS[0]) + AFTER
    with torch.inference_mode():
        last = model(**tokenizer(whole, return_tensors="pt", add_special_tokens=False)).logits[0, -1]
    no, yes = (float(last[tokenizer.convert_tokens_to_ids(word)]) for word in ("no", "yes"))
    grade = evaluator(folder).grade(QUESTION, PASSAGES[:1], GO)[0]
    assert grade.score == pytest.approx(math.exp(yes) / (math.exp(yes) + math.exp(no)), abs=1e-5)
    assert grade.reason.endswith(f"P(yes) {grade.score:.2f}")


def test_yes_no_is_padded_on_the_left(folders: dict[str, Path]) -> None:
    made = YesNo(find_files(parse_name(f"hf:{folders['yes/no']}")))
    with torch.inference_mode():
        together = made.read_together([(QUESTION, text) for text in TEXTS[:2]])
    alone = made.read(QUESTION, TEXTS[:2], GO)
    assert [one.logit for one in together] == pytest.approx([one.logit for one in alone], abs=1e-4)


def test_open_provence_ranks_by_its_backbone_and_provence_reads_the_question_bare(folders: dict[str, Path]) -> None:
    # Made from the same seed, so that the backbone is that of the cross-encoder.
    assert logits(folders["OpenProvence"]) == pytest.approx(logits(folders["one logit"]), abs=1e-5)
    bare, same = (
        evaluator(folders["Provence"]).grade(question, PASSAGES[:1], GO)[0].score
        for question in (QUESTION, "how many days of paid leave")
    )
    assert bare == same


def test_pruner_scores_sentences_by_the_mean_of_their_tokens_from_one_pass(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, read = evaluator(folders["OpenProvence"]), Pruner._read
    asked: list[str] = []

    def counted(self: Pruner, question: str, text: str) -> reader.Reading:
        asked.append(text)
        return read(self, question, text)

    monkeypatch.setattr(Pruner, "_read", counted)
    judge.grade(QUESTION, PASSAGES[:1], GO)
    text = TEXTS[0]
    strips = [Strip("0", 0, 0, 24, text[:24]), Strip("0", 1, 25, len(text), text[25:])]
    found, why = judge.score(QUESTION, [(PASSAGES[0], strips)], GO)
    assert (why, asked) == ("", [text])
    (reading,) = find.open_reader(judge.files, "pruner").read(QUESTION, [text], GO)
    for strip in found:
        own = [chance for a, b, chance in reading.kept if a >= strip.start and b <= strip.end]
        assert strip.score == pytest.approx(sum(own) / len(own))
    assert judge.card.strip_cutoff == keep_above(judge.files) == 0.25


@pytest.mark.parametrize("kind", ["OpenProvence", "Provence"])
def test_pruner_keeps_by_the_second_output_over_the_last_hidden_states(folders: dict[str, Path], kind: str) -> None:
    folder, is_open = folders[kind], kind == "OpenProvence"
    weights = load_file(folder / "model.safetensors")
    told = json.loads((folder / "config.json").read_text())
    if is_open:
        model: Any = BertForSequenceClassification(BertConfig(**told["base_model_config"]))
    else:
        model = DebertaV2ForSequenceClassification(DebertaV2Config(**told))
    model.load_state_dict({name.removeprefix("ranking_model."): one for name, one in weights.items()}, strict=False)
    head = "pruning_head.classifier" if is_open else "token_classifier"
    question = QUESTION if is_open else "how many days of paid leave"
    pair = AutoTokenizer.from_pretrained(folder, config=model.config)(question, TEXTS[0], return_tensors="pt")
    with torch.inference_mode():
        last = model.eval()(**pair, output_hidden_states=True).hidden_states[-1][0]
    keep = (last @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]).softmax(-1)[:, 1].tolist()
    expected = [keep[place] for place, of in enumerate(pair.sequence_ids(0)) if of == 1]
    (reading,) = find.open_reader(evaluator(folder).files, "pruner").read(QUESTION, TEXTS[:1], GO)
    assert [chance for _, _, chance in reading.kept] == pytest.approx(expected, abs=1e-5)


def test_sentences_of_a_long_chunk_and_under_a_heading_have_scores(folders: dict[str, Path]) -> None:
    text = TEXTS[2]
    passage = Passage("2", text, "a.txt", section="Harbour dues")
    strips = [Strip("2", 0, 0, 20, text[:20]), Strip("2", 1, len(text) - 20, len(text), text[-20:])]
    found, _ = evaluator(folders["Provence"]).score(QUESTION, [(passage, strips)], GO)
    assert all(strip.score for strip in found)


MARKS = {"one logit": "[SEP]", "span": "[SEP]", "yes/no": "<|im_end|>", "OpenProvence": "[SEP]", "Provence": "[CLS]"}


@pytest.mark.parametrize("kind", SAVED)
def test_a_document_cannot_end_itself_by_a_mark_of_the_model(folders: dict[str, Path], kind: str) -> None:
    made = find.open_reader(evaluator(folders[kind]).files, SAVED[kind][1])
    (mark,) = made.tokenizer.convert_tokens_to_ids([MARKS[kind]])
    assert mark not in made.tokenizer(f"dues {MARKS[kind]} ten", add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("kind", SAVED)
def test_ugly_input_is_graded_or_told(folders: dict[str, Path], kind: str) -> None:
    judge = evaluator(folders[kind])
    assert judge.grade(QUESTION, [], GO) == ()
    (blank,) = judge.grade(QUESTION, [Passage("1", " \n", "a")], GO)
    assert (blank.score, blank.reason) == (0.0, "no text")
    (unasked,) = judge.grade(" ?! ", PASSAGES[:1], GO)
    assert (unasked.score, unasked.cause) == (None, "The question has no words.")
    ugly = [Passage("1", "\U0001f6a2 港湾 \x00 ِميناء", "a"), Passage("2", "a" * 5000, "a")]
    assert all(grade.score is not None for grade in judge.grade("how many days? " * 300, ugly, GO))
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Stopped):
        judge.grade(QUESTION, PASSAGES, stopped)


def test_what_is_no_number_is_not_graded(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneLogit, "_read", lambda self, question, text: reader.Reading(math.nan))
    (grade,) = evaluator(folders["one logit"]).grade(QUESTION, PASSAGES[:1], GO)
    assert grade.score is None and "expected a finite number" in grade.cause


def test_only_the_last_models_stay_in_memory(folders: dict[str, Path]) -> None:
    for kind in SAVED:
        evaluator(folders[kind]).grade(QUESTION, PASSAGES[:1], GO)
    assert [key[2] for key in find._loaded] == ["pruner", "pruner"]


# --- what is refused --------------------------------------------------------------------------------------------------


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


def _other_pruner(folder: Path) -> Path:
    """XProvence's layout, which is not known."""
    tiny_models.save_provence(folder)
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name.replace("deberta.", "roberta."): one for name, one in weights.items()}, folder / "model.safetensors"
    )
    return folder


def _without(folder: Path, part: str) -> Path:
    """The weights without those of `part`, which transformers would make up."""
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


_one = tiny_models.save_one_logit
REFUSED: dict[str, tuple[Save, str, str]] = {
    "several labels": (lambda f: tiny_models.save_one_logit(f, labels=3), "", "3 labels (LABEL_0, LABEL_1, LABEL_2)"),
    "several labels, told": (lambda f: tiny_models.save_one_logit(f, labels=3), "one-logit", "one logit, found 3"),
    "no head": (lambda f: _with(tiny_models.save_span(f), architectures=["BertModel"]), "", "architecture BertModel"),
    "no architecture": (lambda f: _with(tiny_models.save_span(f), architectures=None), "", "architecture none"),
    "head made up": (tiny_models.save_one_logit, "span", "expected weights for qa_outputs"),
    "head missing": (lambda f: _without(_one(f), "classifier"), "", "expected weights for classifier.bias"),
    "a layer missing": (lambda f: _without(_one(f), "layer.1."), "", "expected weights for bert.encoder.layer.1."),
    "weights of another size": (lambda f: _with(_one(f), hidden_size=32), "", "none that fit config.json"),
    "no tokenizer": (_bare, "", "expected the files of its tokenizer, found none"),
    "adapter": (_adapter, "", "found an adapter"),
    "adapter beside a model": (lambda f: _adapter(_one(f)), "", "found an adapter"),
    "GGUF": (_gguf, "", "found: no such file in it"),
    "labels that are none": (lambda f: _with(_one(f), id2label=5), "", "cannot be read"),
    "old embedding model": (lambda f: _old(_embedding_model(f)), "", "embeds texts and does not judge pairs"),
    "modules that are none": (lambda f: _told(_foreign_module(f), '["x"]'), "", "cannot be read"),
    "causal model of unknown prompt": (
        lambda f: _with(tiny_models.save_yes_no(f), model_type="llama", architectures=["LlamaForCausalLM"]),
        "", "whose prompt as a reranker is not known",
    ),
    "code of its own": (
        lambda f: _with(tiny_models.save_one_logit(f), model_type="newer", auto_map={"AutoModel": "code.Newer"}),
        "", "needs code of its own",
    ),
    "embedding model": (_embedding_model, "", "embeds texts and does not judge pairs"),
    "module of its own": (_foreign_module, "", "custom_code.Head"),
    "pickled weights": (_pickled, "", "found pytorch_model.bin"),
    "stub of Git LFS": (_stub, "", "is no safetensors file"),
    "layout of a pruner that is not known": (_other_pruner, "", "Provence over DeBERTa"),
    "no folder": (lambda f: f / "gone", "", "no such folder"),
    "empty folder": (lambda f: f, "", "no such file in it"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_was_found(tmp_path: Path, wrong: str) -> None:
    save, told, found = REFUSED[wrong]
    with pytest.raises(EvaluatorUnavailable) as refused:
        evaluator(save(tmp_path), told).grade(QUESTION, PASSAGES, GO)
    assert found in refused.value.message and refused.value.hint


def test_pickle_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*args: object, **options: object) -> None:
        raise AssertionError("a pickle was read")

    monkeypatch.setattr(torch, "load", opened)
    folder = tiny_models.save_one_logit(tmp_path)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04 no weights")
    assert NamedEvaluator(parse_name(f"hf:{folder}")).grade(QUESTION, PASSAGES[:1], GO)[0].score is not None


def test_interface_that_was_told_wins(tmp_path: Path) -> None:
    folder = _with(tiny_models.save_yes_no(tmp_path), architectures=["ForeignForCausalLM"], model_type="qwen3")
    assert interface_of(find_files(parse_name(f"hf:{folder}")), "yes-no") == "yes-no"
    assert evaluator(folder, "yes-no").grade(QUESTION, PASSAGES[:1], GO)[0].score is not None
    assert isinstance(find.open_reader(evaluator(folder).files, "yes-no"), YesNo) and Span.scores_sentences is False
