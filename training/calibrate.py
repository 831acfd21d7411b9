"""Calibrate a trained model: `python -m training.calibrate --base BASE --weights FILE --out FOLDER`.

Writes everything that ships but the model card: both quantised graphs, the tokenizer, the rarity of words, and
evaluator.json with the digests of the four and the two signals. They are made of logistic regressions: one for being on
the subject, over the two logits, the coverage of the question's words, and the cosine of the embedding model's vectors;
one for answering, over its logit alone, learnt from pairs of which each answers or nearly does; and a third that makes
the signal *answering* of both. All are fitted on half of the questions of the validation pairs and of the everyday
documents kept apart, none of which was trained on, and reported on the other half. Each is fitted at even odds: as much
weight on pairs that have it as on pairs that do not, and within each the same on passages that answer, are on topic
only, and are off topic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from crag_core.evaluators.shared.model_files import (
    EMBEDDER,
    FRAME,
    MODEL,
    RARITY,
    SETTINGS,
    TOKENIZER,
    VERSION,
    Fusion,
    Joint,
    Signals,
    coverage,
    log_chance,
)
from crag_core.evaluators.shared.pair_encoder import cut_windows, open_reader
from training.encoding import MAX_TOKENS, counter
from training.everyday import FOLDER, UNANSWERED, Count, everyday_pairs, is_kept_apart, read_everyday
from training.export import export, export_embedder, quantize
from training.mixture import search_elsewhere
from training.model import RetrievalEvaluator, TextEmbedder
from training.options import embedder_folder, parser
from training.pairs import Pair, known_pairs, read_rows
from training.rarity import write_rarity

QUESTION_TOKENS, OVERLAP = 96, 48
SOURCES = ("squad2", "nq", "selqa", "ares_nq", "ares_hotpotqa", "ares_wow")
"""Medical questions name their subject in one pattern, claims and clozes are no questions."""
NEAR = (
    "/answers",
    "/human_unanswerable",
    "/human_sentence",
    "/synthetic",
    "/answered",
    *(f"/{kind}" for kind in UNANSWERED),
)
"""Kinds of pairs that tell apart what answers from what is only near."""
LOGIT_ALONE = np.array([1.0, 0.0, 0.0, 0.0])
"""Of the features, what tells an answer from what is near: the other three move with the wording of a question."""
_PLAIN = Fusion(0.0, 1.0, 0.0, 0.0, 0.0)
_SHIPPED = (MODEL, EMBEDDER, TOKENIZER, RARITY)
STOP_WORDS = Path(__file__).parent.parent / "data" / "stopwords.txt"


@dataclass(frozen=True)
class Reading:
    """What the shipped graphs say of pairs: (pairs, 4), answering logit, topical logit, coverage, cosine.

    `is_near`: answered, or made on purpose to be nearly answered.
    """

    features: np.ndarray
    answering: np.ndarray
    topical: np.ndarray
    halves: np.ndarray
    is_near: np.ndarray


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.weights:
        _write_graphs(options.base, options.weights, options.out)
        (options.out / TOKENIZER).write_bytes((embedder_folder() / "tokenizer.json").read_bytes())
        write_rarity(read_rows(options.data / "train" / "train_en.jsonl.gz"), options.out / RARITY)
    _write_settings(options.out, Signals(_PLAIN, _PLAIN, Joint(0.0, 1.0, 0.0)))
    pairs = _validation(options.data, options.limit)
    pairs += _everyday(options.everyday, counter(options.base / "tokenizer.json"))
    reading = read_pairs(options.out, pairs)
    signals = fit(reading)
    _write_settings(options.out, signals)
    scores = np.array([signals.scores(*row) for row in reading.features])
    for place, (name, labels) in enumerate((("answering", reading.answering), ("topical", reading.topical))):
        report(name, scores[:, place], reading, labels)


def fit(reading: Reading) -> Signals:
    """Logistic regressions on the first half of the questions; pairs whose label is not known are left out."""
    given = _fusion(reading, reading.features * LOGIT_ALONE, reading.answering, reading.is_near)
    topical = _fusion(reading, reading.features, reading.topical, np.ones(len(reading.topical), bool))
    odds = np.array([(given.odds(*row), log_chance(topical.odds(*row))) for row in reading.features])
    everything = np.ones(len(odds), bool)
    return Signals(given, topical, Joint(*_weights_of(odds, reading, reading.answering, everything)))


def _fusion(reading: Reading, features: np.ndarray, labels: np.ndarray, among: np.ndarray) -> Fusion:
    return Fusion(*_weights_of(features, reading, labels, among))


def _weights_of(features: np.ndarray, reading: Reading, labels: np.ndarray, among: np.ndarray) -> tuple[float, ...]:
    """Bias and weights of a logistic regression on the first half of the questions, at even odds."""
    chosen = ~np.isnan(labels) & (reading.halves == 0) & among
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(features[chosen], labels[chosen], sample_weight=_balance(reading, labels, chosen)[chosen])
    return tuple(round(float(weight), 4) for weight in (model.intercept_[0], *model.coef_[0]))


def report(name: str, scores: np.ndarray, reading: Reading, labels: np.ndarray) -> None:
    """AUROC, Brier score and expected calibration error (ten bins) on the second half."""
    chosen = ~np.isnan(labels) & (reading.halves == 1)
    weights, scores = _balance(reading, labels, chosen)[chosen], scores[chosen]
    wanted = labels[chosen]
    bins = np.minimum((scores * 10).astype(int), 9)
    gaps = [
        abs(np.average(scores[bins == b] - wanted[bins == b], weights=weights[bins == b])) * weights[bins == b].sum()
        for b in np.unique(bins)
    ]
    area = roc_auc_score(wanted, scores, sample_weight=weights)
    brier = np.average((scores - wanted) ** 2, weights=weights)
    print(f"{name:<10} {chosen.sum()} pairs: AUROC {area:.3f}, Brier {brier:.3f}, ECE {sum(gaps) / weights.sum():.3f}")


def read_pairs(folder: Path, pairs: Sequence[Pair]) -> Reading:
    """Each pair as the application reads it; of a long passage the window that answers best."""
    reader = open_reader(folder, (folder / SETTINGS).read_bytes())
    stop_words = frozenset(STOP_WORDS.read_text("utf-8").split())
    rows = []
    for pair in pairs:
        asked = reader.pieces(pair.question)
        question = asked.ids[:QUESTION_TOKENS]
        windows = cut_windows(reader.pieces(pair.passage), MAX_TOKENS - FRAME - len(question), OVERLAP)
        weights = reader.rarity.weigh(pair.question, stop_words)
        ids = [window.ids for window in windows]
        read, cosines = reader.read(question, ids, Event()), reader.cosines(question, ids, Event())
        found = zip(read, windows, cosines, strict=True)
        rows.append(max((a, t, coverage(weights, window.text), cosine) for (a, t), window, cosine in found))
    return Reading(
        np.array(rows),
        np.array([np.nan if pair.answering is None else pair.answering for pair in pairs]),
        np.array([np.nan if pair.topical is None else pair.topical for pair in pairs]),
        np.array([zlib.crc32(pair.question.encode()) % 2 for pair in pairs]),
        np.array([pair.kind.endswith(NEAR) for pair in pairs]),
    )


def _balance(reading: Reading, labels: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """As much weight on pairs that have the label as on those that have it not, and within each the same on passages
    that answer, that are on topic only, and that are off topic."""
    kinds = np.where(reading.answering == 1.0, 2, np.where(reading.topical == 0.0, 0, 1))
    weights = np.zeros(len(labels))
    for label in (0.0, 1.0):
        own = chosen & (labels == label)
        groups = [own & (kinds == kind) for kind in np.unique(kinds[own])]
        for group in groups:
            weights[group] = 0.5 / (len(groups) * group.sum())
    weights *= chosen.sum()
    return weights


def _validation(data: Path, limit: int) -> list[Pair]:
    random = Random(0)
    rows = [row for row in read_rows(data / "train" / "valid_en.jsonl.gz") if row.source in SOURCES]
    pairs = known_pairs(rows) + list(search_elsewhere(rows, random))
    return random.sample(pairs, min(limit, len(pairs)))


def _everyday(folder: Path, count: Count) -> list[Pair]:
    return everyday_pairs([one for one in read_everyday(folder) if is_kept_apart(one)], count, Random(0))


def _write_graphs(base: Path, weights: Path, out: Path) -> None:
    model = RetrievalEvaluator(base)
    model.load_state_dict(torch.load(weights, weights_only=True))
    full = out / "full.onnx"
    export(model, full)
    quantize(full, out / MODEL)
    export_embedder(TextEmbedder(embedder_folder()), full)
    quantize(full, out / EMBEDDER)
    full.unlink()


def _write_settings(folder: Path, signals: Signals) -> None:
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in _SHIPPED}
    settings = {
        "version": VERSION,
        "tokens": MAX_TOKENS,
        "question_tokens": QUESTION_TOKENS,
        "overlap": OVERLAP,
        "files": digests,
        "signals": asdict(signals),
        "question_first": True,
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def _options() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--weights", type=Path, help="weights.pt of training.train; without: calibrate what is there")
    options.add_argument("--limit", type=int, default=6000, help="validation pairs at most, beside the everyday ones")
    options.add_argument("--everyday", type=Path, default=FOLDER, help="folder of the everyday documents")
    return options.parse_args()


if __name__ == "__main__":
    main()
