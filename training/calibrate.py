"""Calibrate a trained model: `python -m training.calibrate --base BASE --weights FILE --out FOLDER`.

Writes everything that ships but the model card: both quantised graphs, the tokenizer, the rarity of words, and
evaluator.json with the digests of the four and the two signals. They are made of logistic regressions: one for being on
the subject, over its logit and the cosine of the embedding model's vectors; one for answering, over its logit, learnt
from pairs of which each answers or nearly does; and a third that makes the signal *answering* of both. All are fitted
on half of the questions of the validation pairs and of the everyday documents kept apart, none of which was trained on,
and reported on the other half. Each is fitted at even odds: as much weight on pairs that have it as on pairs that do
not, within each the same on passages that answer, are on topic only, and are off topic, and within those the same on
everyday documents as on the other sources.

A fourth regression makes of how far the log-odds of a sentence, by the places that it holds, lie behind those of the
best sentence of its passage the chance that it holds the answer, where the passage does; it learns from passages in
which the sentence that answers is known.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.evaluators.shared.model_files import (
    EMBEDDER,
    FRAME,
    MODEL,
    RARITY,
    SETTINGS,
    TOKENIZER,
    VERSION,
    Answering,
    SentenceCurve,
    Signals,
    Topical,
    log_chance,
)
from crag_core.evaluators.shared.pair_encoder import cut_windows, open_reader
from crag_core.evaluators.shared.strip_places import chances, readable
from training.base import average_with_graph
from training.encoding import MAX_TOKENS, counter
from training.everyday import FOLDER, UNANSWERED, everyday_pairs, is_kept_apart, read_everyday, read_near_misses
from training.export import export, export_embedder, quantize
from training.mixture import search_elsewhere
from training.model import RetrievalEvaluator, TextEmbedder, load_weights
from training.options import embedder_folder, parser
from training.pairs import Pair, Row, known_pairs, read_rows, with_near_misses
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
    "/sibling",
    *(f"/{kind}" for kind in UNANSWERED),
)
"""Kinds of pairs that tell apart what answers from what is only near."""
_PLAIN = Signals(Answering(0.0, 1.0, 0.0), Topical(0.0, 1.0, 0.0))
_PLAIN_SENTENCE = SentenceCurve(0.0, 1.0)
_SHIPPED = (MODEL, EMBEDDER, TOKENIZER, RARITY)


@dataclass(frozen=True)
class Reading:
    """What the shipped graphs say of pairs: (pairs, 3), answering logit, topical logit, cosine.

    `is_near`: answered, or made on purpose to be nearly answered; `is_everyday`: of an everyday document.
    """

    features: np.ndarray
    answering: np.ndarray
    topical: np.ndarray
    halves: np.ndarray
    is_near: np.ndarray
    is_everyday: np.ndarray


@dataclass(frozen=True)
class Sentences:
    """How far the log-odds of a sentence lie behind the best of its passage, whether it holds the answer, and the half
    of its question."""

    behind: np.ndarray
    holds: np.ndarray
    halves: np.ndarray


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.weights:
        _write_graphs(options.base, options.weights, options.start, options.out)
        (options.out / TOKENIZER).write_bytes((embedder_folder() / "tokenizer.json").read_bytes())
        write_rarity(read_rows(options.data / "train" / "train_en.jsonl.gz"), options.out / RARITY)
    _write_settings(options.out, _PLAIN, _PLAIN_SENTENCE)
    pairs = _validation(options.data, options.limit)
    documents = read_everyday(options.everyday) + read_near_misses(options.data / "train" / "everyday2")
    kept_apart = [one for one in documents if is_kept_apart(one)]
    pairs += with_near_misses(everyday_pairs(kept_apart, counter(options.base / "tokenizer.json"), Random(0)))
    reading = read_pairs(options.out, pairs)
    signals = fit(reading)
    sentences = read_sentences(options.out, pairs)
    sentence = fit_sentence(sentences)
    _write_settings(options.out, signals, sentence)
    report_sentences(sentences)
    scores = np.array([signals.scores(*row) for row in reading.features])
    for place, (name, labels) in enumerate((("answering", reading.answering), ("topical", reading.topical))):
        report(name, scores[:, place], reading, labels)


def fit(reading: Reading) -> Signals:
    """Logistic regressions on the first half of the questions; pairs whose label is not known are left out.

    Given that a passage is on the subject, its logit alone tells whether it answers: cosine and the share of the
    question's words move with the wording.
    """
    everything = np.ones(len(reading.topical), bool)
    topical = Topical(*_weights_of(reading.features[:, 1:], reading, reading.topical, everything))
    bias, logit = _weights_of(reading.features[:, :1], reading, reading.answering, reading.is_near)
    on_subject = topical.bias + reading.features[:, 1:] @ np.array([topical.logit, topical.cosine])
    odds = np.stack([bias + logit * reading.features[:, 0], [log_chance(one) for one in on_subject]], axis=1)
    joint, given, subject = _weights_of(odds, reading, reading.answering, everything)
    return Signals(Answering(round(joint + given * bias, 4), round(given * logit, 4), subject), topical)


def _weights_of(features: np.ndarray, reading: Reading, labels: np.ndarray, among: np.ndarray) -> tuple[float, ...]:
    """Bias and weights of a logistic regression on the first half of the questions, at even odds."""
    chosen = ~np.isnan(labels) & (reading.halves == 0) & among
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(features[chosen], labels[chosen], sample_weight=_balance(reading, labels, chosen)[chosen])
    return tuple(round(float(weight), 4) for weight in (model.intercept_[0], *model.coef_[0]))


def fit_sentence(sentences: Sentences) -> SentenceCurve:
    """A logistic regression on the first half of the questions."""
    chosen = sentences.halves == 0
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit(sentences.behind[chosen, None], sentences.holds[chosen])
    return SentenceCurve(round(float(model.intercept_[0]), 4), round(-float(model.coef_[0][0]), 4))


def report_sentences(sentences: Sentences) -> None:
    """AUROC on the second half."""
    chosen = sentences.halves == 1
    area = roc_auc_score(sentences.holds[chosen], -sentences.behind[chosen])
    print(f"sentences  {chosen.sum()}: AUROC {area:.3f}")


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
    rows = []
    for pair in pairs:
        asked = reader.pieces(pair.question)
        question = asked.ids[:QUESTION_TOKENS]
        windows = cut_windows(reader.pieces(pair.passage), MAX_TOKENS - FRAME - len(question), OVERLAP)
        ids = [window.ids for window in windows]
        read, cosines = reader.read(question, ids, Event()), reader.cosines(question, ids, Event())
        found = zip(read, cosines, strict=True)
        rows.append(max((one.answering, one.topical, cosine) for one, cosine in found))
    return Reading(
        np.array(rows),
        np.array([np.nan if pair.answering is None else pair.answering for pair in pairs]),
        np.array([np.nan if pair.topical is None else pair.topical for pair in pairs]),
        np.array([zlib.crc32(pair.question.encode()) % 2 for pair in pairs]),
        np.array([pair.kind.endswith(NEAR) for pair in pairs]),
        np.array([pair.kind.startswith("everyday/") for pair in pairs]),
    )


def read_sentences(folder: Path, pairs: Sequence[Pair]) -> Sentences:
    """Of the passages in which the answer has a known place."""
    reader = open_reader(folder, (folder / SETTINGS).read_bytes())
    rows = []
    for pair in pairs:
        passage = Passage("p", pair.passage, "")
        texts = list(readable(passage, decompose(passage), reader)) if pair.evidence else []
        start = pair.passage.find(pair.evidence)
        for text, some in zip(texts, chances(texts, reader, reader.pieces(pair.question), Event()), strict=True):
            # Half is the chance of the best one by the plain settings.
            behind = [math.log((1.0 - chance) / max(chance, 1e-12)) for chance in some]
            for strip, far in zip(text.strips, behind, strict=True):
                holds = strip.start < start + len(pair.evidence) and start < strip.end
                rows.append((far, holds, zlib.crc32(pair.question.encode()) % 2))
    behind, holds, halves = np.array(rows, float).T
    return Sentences(behind, holds, halves)


def _balance(reading: Reading, labels: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """As much weight on pairs that have the label as on those that have it not, within each the same on passages that
    answer, that are on topic only, and that are off topic, and within those on everyday documents as on others."""
    kinds = 2 * np.where(reading.answering == 1.0, 2, np.where(reading.topical == 0.0, 0, 1)) + reading.is_everyday
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
    every = read_rows(data / "train" / "valid_en.jsonl.gz")
    rows, sentences = [row for row in every if row.source in SOURCES], _sentences_of(every)
    pairs = [_located(pair, sentences.get(pair.question, [])) for pair in known_pairs(rows)]
    pairs += search_elsewhere(rows, random)
    return random.sample(pairs, min(limit, len(pairs)))


def _located(pair: Pair, sentences: Sequence[str]) -> Pair:
    """With its evidence, where one of the sentences that answer stands in its passage."""
    evidence = next((text for text in sentences if text in pair.passage), "") if pair.answering else ""
    return replace(pair, evidence=evidence)


def _sentences_of(rows: Sequence[Row]) -> dict[str, list[str]]:
    """By question, the sentences that people say answer it."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.source.endswith("_sent") and row.label:
            found.setdefault(row.question, []).append(row.passage)
    return found


def _write_graphs(base: Path, weights: Path, start: Path | None, out: Path) -> None:
    model = RetrievalEvaluator(base)
    load_weights(model, weights)
    if start:
        average_with_graph(model, start)
    full = out / "full.onnx"
    export(model, full)
    quantize(full, out / MODEL)
    export_embedder(TextEmbedder(embedder_folder()), full)
    quantize(full, out / EMBEDDER)
    full.unlink()


def _write_settings(folder: Path, signals: Signals, sentence: SentenceCurve) -> None:
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in _SHIPPED}
    settings = {
        "version": VERSION,
        "tokens": MAX_TOKENS,
        "question_tokens": QUESTION_TOKENS,
        "overlap": OVERLAP,
        "files": digests,
        "signals": asdict(signals),
        "sentence": asdict(sentence),
    }
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def _options() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--weights", type=Path, help="weights.pt of training.train; without: calibrate what is there")
    options.add_argument(
        "--start", type=Path, help="the 8-bit graph trained on: the mean of both sets of weights ships"
    )
    options.add_argument("--limit", type=int, default=6000, help="validation pairs at most, beside the everyday ones")
    options.add_argument("--everyday", type=Path, default=FOLDER, help="folder of the everyday documents")
    return options.parse_args()


if __name__ == "__main__":
    main()
