"""A trained evaluator of a thousand bytes: every word has its weights, so that scores can be worked out by hand.

Both logits are sums over the tokens of a pair. A token's weights for (answering, topical) are those of its word in the
passage or, in the second table, in the question. For every other pair in the same run `answering` is higher by 0.1: as
in the real model, whoever reads several pairs in a run gives a passage other scores in other company. The logit of a
place is its token's weight for answering.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from crag_core.evaluators.shared.pair_encoder import OUTPUTS

SIGNS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("ferry", "leaves", "nine", "vennick", "when", "does", "the", "coat", "?", ".", "[", "]", "sep", "last")
VOCABULARY = {word: number for number, word in enumerate((*SIGNS, *WORDS, "##s", "##t"))}

Weights = Mapping[str, tuple[float, float]]
IN_PASSAGE: Weights = {"nine": (4.0, 0.0), "ferry": (0.0, 2.0), "vennick": (0.0, 1.0)}
IN_QUESTION: Weights = {"last": (-1.0, 0.0)}
ANSWERING = {"bias": -1.0, "logit": 1.0, "topical": 0.0}
TOPICAL = {"bias": -1.0, "logit": 1.0, "cosine": 0.0}
SENTENCE = {"bias": 1.0, "behind": 0.5}
RARITY = {"documents": 9, "words": {"the": 9, "ferry": 4, "vennick": 0}}


def make_evaluator(folder: Path, *, in_passage: Weights = IN_PASSAGE, **settings: Any) -> Path:
    """The five files; `settings` change evaluator.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(make_model(in_passage))
    (folder / "embedder.onnx").write_bytes(make_embedder())
    (folder / "tokenizer.json").write_text(make_tokenizer().to_str(), "utf-8")
    (folder / "rarity.json").write_text(json.dumps(RARITY), "utf-8")
    return describe(folder, **settings)


def describe(folder: Path, **settings: Any) -> Path:
    """evaluator.json for the files as they are now."""
    names = ("model.onnx", "embedder.onnx", "tokenizer.json", "rarity.json")
    told = {
        "version": 4,
        "tokens": 24,
        "question_tokens": 8,
        "overlap": 4,
        "files": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names},
        "signals": {"answering": ANSWERING, "topical": TOPICAL},
        "sentence": SENTENCE,
    }
    (folder / "evaluator.json").write_text(json.dumps(told | settings), "utf-8")
    return folder


def make_tokenizer(vocabulary: Mapping[str, int] = VOCABULARY) -> Tokenizer:
    """As MiniLM's: lower case, words and signs apart, "[SEP]" in a text a sign of its own unless told otherwise."""
    made = Tokenizer(models.WordPiece(dict(vocabulary), unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([sign for sign in SIGNS if sign in vocabulary])
    made.enable_truncation(5)  # the real file cuts too, and must not here
    return made


def make_model(in_passage: Weights = IN_PASSAGE, outputs: tuple[str, ...] = OUTPUTS) -> bytes:
    count = len(VOCABULARY)
    table = np.zeros((2 * count, 2), np.float32)
    for row, weights in ((0, IN_QUESTION), (count, in_passage)):
        for word, pair in weights.items():
            table[row + VOCABULARY[word]] = pair
    nodes = [
        helper.make_node("Mul", ["token_type_ids", "count"], ["second"]),
        helper.make_node("Add", ["input_ids", "second"], ["rows"]),
        helper.make_node("Gather", ["table", "rows"], ["weights"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["weights", "wide"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "middle"], ["sums"], keepdims=0),
        helper.make_node("Split", ["masked"], ["of_places", "of_subjects"], axis=2, num_outputs=2),
        helper.make_node("Squeeze", ["of_places", "last"], [outputs[2]]),
        helper.make_node("Split", ["sums"], ["left", "right"], axis=1, num_outputs=2),
        helper.make_node("Squeeze", ["left", "middle"], ["answers"]),
        helper.make_node("Squeeze", ["right", "middle"], [outputs[1]]),
        helper.make_node("Shape", ["input_ids"], ["pairs"], start=0, end=1),
        helper.make_node("Cast", ["pairs"], ["all"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["all", "one"], ["others"]),
        helper.make_node("Mul", ["others", "tenth"], ["company"]),
        helper.make_node("Add", ["answers", "company"], [outputs[0]]),
    ]
    return _serialized(
        nodes,
        ("input_ids", "attention_mask", "token_type_ids"),
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["pairs", "tokens"][: 1 + (name == outputs[2])])
            for name in outputs
        ],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array(count, np.int64), "count"),
            numpy_helper.from_array(np.array([2], np.int64), "last"),
            numpy_helper.from_array(np.array([1], np.int64), "middle"),
            numpy_helper.from_array(np.array(1.0, np.float32), "one"),
            numpy_helper.from_array(np.array(0.1, np.float32), "tenth"),
        ],
    )


def make_embedder(ferry: float = 1.0) -> bytes:
    """`ferry` is the second number of its vector."""
    table = np.zeros((len(VOCABULARY), 2), np.float32)
    table[VOCABULARY["[CLS]"], 0] = 1.0
    table[VOCABULARY["ferry"], 1] = ferry
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["vectors", "wide"], ["masked"]),
        helper.make_node("ReduceMax", ["masked", "middle"], ["all"], keepdims=0),
        helper.make_node("LpNormalization", ["all"], ["vector"], axis=1, p=2),
    ]
    return _serialized(
        nodes,
        ("input_ids", "attention_mask"),
        [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["pairs", 2])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2], np.int64), "last"),
            numpy_helper.from_array(np.array([1], np.int64), "middle"),
        ],
    )


def _serialized(nodes: list[Any], inputs: tuple[str, ...], outputs: list[Any], constants: list[Any]) -> bytes:
    taken = [helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "tokens"]) for name in inputs]
    graph = helper.make_graph(nodes, "tiny", taken, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())
