"""A point of the learning curve: how well a training's weights tell what answers from what nearly does, by kind.

Run: python -m benchmarks.curve --base build/evaluator/base --sample build/curve.json.gz WEIGHTS.pt …
     (weights.pt, or what training.train keeps on its way, or an ONNX file; the 8-bit graph is what is measured)

The sample is drawn once, from the development sets and the documents kept apart, and kept in the file, so that every
point is measured on the same texts. The score is the raw *answering* logit of the best passage. Needs the shared data.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks.measures import SEED, auroc
from benchmarks.nearest import RememberingEmbedder
from benchmarks.readers import READERS
from benchmarks.sets import Source, open_source
from crag_core.evaluators.shared.pair_encoder import INPUTS, heading_of
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from training.encoding import MAX_TOKENS, counter
from training.everyday import (
    Everyday,
    chunks_as_shown,
    is_kept_apart,
    read_near_misses,
)
from training.export import export, quantize
from training.model import RetrievalEvaluator, load_weights

OVERLAP = 48
LIMITS = {"squad2_dev": 500, "route_dev": 400, "everyday": 200, "nomiracl_en_dev": 130, "pairs": 100_000}
OF_PAIRS = 40
"""Of each source and label."""
OF_KIND, OF_ANSWERED = 45, 160
"""Questions on documents kept apart, each in full and in casual wording."""

Item = dict[str, Any]
"""`set`, `kind`, `label` (1: answered), `question`, `texts`; `own`: how many of these, the first, its document has."""


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    data = Path(os.environ.get("CRAG_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    options.add_argument("weights", type=Path, nargs="+")
    options.add_argument("--base", type=Path, required=True, help="folder of the base, made by training.base")
    options.add_argument("--sample", type=Path, required=True, help="the texts, drawn where the file does not exist")
    options.add_argument("--data", type=Path, default=data, help="folder of the shared data")
    options.add_argument("--sets", default="", help="those that begin so, with | between; all")
    given = options.parse_args()
    torch.set_num_threads(1)
    if not given.sample.is_file():
        items = [*draw_sets(given.data / "dev"), *draw_kept_apart(given.data, given.base)]
        with gzip.open(given.sample, "wt", encoding="utf-8") as file:
            json.dump(items, file)
    with gzip.open(given.sample, "rt", encoding="utf-8") as file:
        items = json.load(file)
    items = [item for item in items if item["set"].startswith(tuple(given.sets.split("|")))]
    tokenizer = _windows(given.base)
    for weights in given.weights:
        print(f"\n## {weights.name}\n", flush=True)
        session = open_graph(weights, given.base)
        for name in dict.fromkeys(item["set"] for item in items):
            some = [item for item in items if item["set"] == name]
            for title, told in report(some, score(session, tokenizer, some)).items():
                print(f"{title:<48} {told}", flush=True)


def draw_sets(dev: Path) -> Iterator[Item]:
    embedder = RememberingEmbedder(HuggingFaceEmbedder(), lambda text: print(text, file=sys.stderr))
    for name, limit in LIMITS.items():
        source = open_source(dev, name, limit, embedder)
        if source is None:
            print(f"{name}: not in the shared data", file=sys.stderr)
            continue
        task = READERS[name](source)[1 if name == "everyday" else 0]
        if name == "pairs":
            yield from _few_pairs(source)
            continue
        routes = {row["query"]: row.get("route") for row in source.rows}
        of_squad = _of_squad(source) if name == "route_dev" else set()
        for question in task.questions:
            texts = [heading_of(passage) + passage.text for passage in question.passages]
            if name == "squad2_dev":
                for text, label in zip(texts, question.labels, strict=True):
                    yield _item(name, label, label == "answered", question.text, [text])
                continue
            route = routes[question.text]
            if route == "incorrect":
                continue
            answered = question.label == "True" if route is None else route == "correct"
            kind = "SQuAD" if question.text in of_squad or not answered else "NQ"
            yield _item(name, question.label if name == "everyday" else kind, answered, question.text, texts)


def _of_squad(source: Source) -> set[str]:
    return {
        row["query"] for row in source.rows if any("squad" in one for one in source.judged.get(row["query_id"], ()))
    }


def _few_pairs(source: Source) -> Iterator[Item]:
    drawn: dict[tuple[str, int], list[Item]] = {}
    for row in source.rows:
        drawn.setdefault((row["from"], row["label"]), []).append(row)
    for (name, label), rows in sorted(drawn.items()):
        for row in Random(SEED).sample(rows, min(OF_PAIRS, len(rows))):
            yield _item("pairs", name, bool(label), row["query"], [row["passage"]])


def draw_kept_apart(data: Path, base: Path) -> Iterator[Item]:
    documents = [one for one in read_near_misses(data / "train" / "everyday2") if is_kept_apart(one)]
    count = counter(base / "tokenizer.json")
    shown = {one.file: chunks_as_shown(one, count) for one in documents}
    for name, wanted in (("everyday2", False), ("siblings", True)):
        own = [one for one in documents if bool(one.group) is wanted]
        for document, number in _few_asked(own):
            asked = document.questions[number]
            texts = [f"{above}: {text}" if above else text for above, text in shown[document.file]]
            others = [one for one in own if one.group and one.group == document.group and one is not document]
            near = [f"{above}: {text}" if above else text for one in others for above, text in shown[one.file]]
            for way, wording in zip(("full", "casual"), asked.wordings, strict=False):
                common = (asked.kind, asked.is_answered, wording)
                yield _item(f"{name}, {way}", *common, texts + near, len(texts))
                if name == "everyday2":
                    yield _item(f"{name}, {way}, text alone", *common, [text for _, text in shown[document.file]])


def _few_asked(documents: Iterable[Everyday]) -> list[tuple[Everyday, int]]:
    by_kind: dict[str, list[tuple[Everyday, int]]] = {}
    for document in documents:
        for number, asked in enumerate(document.questions):
            by_kind.setdefault(asked.kind, []).append((document, number))
    limits = {kind: OF_ANSWERED if kind == "answered" else OF_KIND for kind in by_kind}
    return [
        one
        for kind, found in sorted(by_kind.items())
        for one in Random(SEED).sample(found, min(limits[kind], len(found)))
    ]


def _item(name: str, kind: str, label: bool, question: str, texts: Sequence[str], own: int = 0) -> Item:
    return {
        **{"set": name, "kind": kind, "label": int(label), "question": question},
        **{"texts": list(texts), "own": own or len(texts)},
    }


def open_graph(weights: Path, base: Path) -> Any:
    """On one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        graph = weights if weights.suffix == ".onnx" else _graph(weights, base, Path(folder))
        return onnxruntime.InferenceSession(graph.read_bytes(), options, providers=["CPUExecutionProvider"])


def score(session: Any, tokenizer: Any, items: Sequence[Item]) -> list[list[float]]:
    """The *answering* logit of every text of every item, of a long one its best window's."""
    known: dict[tuple[str, str], float] = {}
    found = []
    for item in items:
        for text in item["texts"]:
            if (item["question"], text) not in known:
                first = tokenizer.encode(item["question"][:600], text)
                known[item["question"], text] = max(_read(session, one) for one in (first, *first.overflowing))
        found.append([known[item["question"], text] for text in item["texts"]])
    return found


def _read(session: Any, encoded: Any) -> float:
    rows = (encoded.ids, encoded.attention_mask, encoded.type_ids)
    inputs = {name: np.array([row], np.int64) for name, row in zip(INPUTS, rows, strict=True)}
    return float(session.run(["answering"], inputs)[0][0])


def _windows(base: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS, stride=OVERLAP, strategy="only_second")
    return tokenizer


def _graph(weights: Path, base: Path, folder: Path) -> Path:
    """In 8 bits, as it ships."""
    model = RetrievalEvaluator(base)
    load_weights(model, weights)
    export(model, folder / "full.onnx")
    quantize(folder / "full.onnx", folder / "model.onnx")
    return folder / "model.onnx"


def report(items: Sequence[Item], scores: Sequence[Sequence[float]]) -> dict[str, str]:
    """AUROC with 95 % intervals; of those kept apart also the share of unanswered questions that score above the level
    that three quarters of the answered ones reach."""
    best = np.array([max(some[: item["own"]]) for item, some in zip(items, scores, strict=True)])
    labels = np.array([item["label"] for item in items], bool)
    sets, kinds = (np.array([item[key] for item in items]) for key in ("set", "kind"))
    told: dict[str, str] = {}
    for name in dict.fromkeys(sets):
        here = sets == name
        if name == "pairs":
            each = {
                kind: auroc(best[here & (kinds == kind)], labels[here & (kinds == kind)]) for kind in set(kinds[here])
            }
            values = {kind: one.value for kind, one in each.items() if one}
            worst = sorted(values, key=values.__getitem__)[:4]
            low = ", ".join(f"{kind} {values[kind]:.2f}" for kind in worst)
            told[f"pairs, mean of {len(values)}"] = f"{np.mean(list(values.values())):.3f}, worst {low}"
            continue
        told[name] = _told(best[here], labels[here])
        yes = here & labels
        if name.startswith(("everyday2", "siblings")):
            level = np.quantile(best[yes], 0.25)
            told[f"{name}, unanswered above the level"] = f"{np.mean(best[here & ~labels] >= level):.3f}"
        if name.startswith("siblings"):
            ahead = [max(s[: i["own"]]) > max(s[i["own"] :], default=-99.0) for i, s in zip(items, scores, strict=True)]
            told[f"{name}, own beats the siblings"] = f"{np.mean(np.array(ahead)[yes]):.3f}"
        for kind in sorted(set(kinds[here])) if name != "squad2_dev" else ():
            is_kind = here & (kinds == kind)
            chosen = is_kind | (here & ~labels if labels[is_kind].any() else yes)
            if chosen.sum() < here.sum():
                told[f"{name}: {kind}"] = _told(best[chosen], labels[chosen])
    return told


def _told(scores: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> str:
    return f"{auroc(scores, labels)}  ({labels.sum()} / {(~labels).sum()})"


if __name__ == "__main__":
    main()
