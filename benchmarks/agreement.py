"""How far words, and a model as judge, agree with what people said of the same sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean
from threading import Event

import numpy as np

from benchmarks import sentences
from benchmarks.evaluator import tell
from benchmarks.measures import Estimate, auroc, kappa_estimate, share
from benchmarks.sentences import Case
from benchmarks.tables import Cell
from crag_core.app import config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Backing, LanguageModel, Piece, SupportMeter
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import SUPPORTED, WEAK, WORDS

LABELLED = (sentences.HALLUCINATED, sentences.SAME_LENGTH, sentences.WRITTEN)
"""Sets whose right sentences people wrote, beside invented ones or other passages. Others were altered by rule."""

SMALL = "small"
"""SmolLM2-135M in this process, which comes with the tests: it has no judgement, and shows that all of this works."""


@dataclass(frozen=True)
class Told:
    """What two ways say of one sentence, each with the milliseconds that it took."""

    case: Case
    words: Backing
    judge: Backing
    milliseconds: tuple[float, float]

    @property
    def is_unread(self) -> bool:
        return self.judge.score is None and self.judge.usage.calls > 0


@contextmanager
def opened(choice: str) -> Iterator[LanguageModel]:
    """The language model of a choice, of the servers that the settings name, or the small one."""
    if choice == SMALL:
        from crag_core.llms import ollama
        from crag_core.llms.model import CallLimit
        from tests.stand_ins.ollama_server import MODEL, OllamaServer
        from tests.stand_ins.real_model import RealModel

        with OllamaServer(RealModel()) as server:
            yield ollama.model(server.url, MODEL, 600.0, CallLimit(1))
        return
    model = Workbench(replace(config.load(), cache="off", history="off", audit="off")).servers.model(choice)
    if model is None:
        raise SystemExit(f"expected {SMALL}, ollama/NAME or openai/NAME, found {choice!r}")
    yield model


@contextmanager
def checker(choice: str, stop_words: frozenset[str]) -> Iterator[SupportMeter]:
    """Who checks answers where CRAG_SUPPORT is `choice`; or the small one, asked as any language model."""
    if choice == SMALL:
        with opened(SMALL) as model:
            yield ModelSupport(model, stop_words)
        return
    try:
        settings = replace(config.load(), cache="off", history="off", audit="off", support=choice)
    except BadRecord as error:
        raise SystemExit(f"--judge: {SMALL}, or a value of CRAG_SUPPORT. {error}") from None
    yield Workbench(settings).support()


def ask(cases: Mapping[str, Sequence[Case]], judge: SupportMeter, stop_words: frozenset[str]) -> dict[str, list[Told]]:
    """Every sentence of the labelled sets, once, by itself, as if it were an answer; raises as `judge` does."""
    meters = WordSupport(EVALUATOR_FOLDER, stop_words), judge
    known: dict[Case, Told] = {}
    for name in LABELLED:
        start = time.perf_counter()
        for case in cases.get(name, ()):
            if case not in known:
                (words, fast), (judged, slow) = (_measured(meter, case) for meter in meters)
                known[case] = Told(case, words, judged, (fast, slow))
        tell(f"{name}: {len(cases.get(name, ()))} sentences judged in {time.perf_counter() - start:.0f} s")
    return {name: [known[case] for case in cases[name]] for name in LABELLED if name in cases}


def agreement(told: Mapping[str, Sequence[Told]], judge: str) -> dict[str, dict[str, Cell]]:
    """Of each set a line for words and one for the judge, on the sentences that the judge gave a readable reply to."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, every in told.items():
        both = [one for one in every if one.judge.score is not None and one.words.score is not None]
        for way, by in enumerate((WORDS, judge)):
            scores = [(one.words, one.judge)[way].score or 0.0 for one in both]
            rows[f"{name}: {by}"] = {"sentences": str(len(both)), **_row(both, scores)} | {
                "not read": str(sum(one.is_unread for one in every)) if way else "–",
                "ms a sentence": f"{fmean(one.milliseconds[way] for one in every):.1f}" if every else None,
            }
    return rows


def _row(both: Sequence[Told], scores: Sequence[float]) -> dict[str, Cell]:
    if not both:
        return {}
    homes = {home: number for number, home in enumerate(dict.fromkeys(one.case.home for one in both))}
    labels = [one.case.is_right for one in both]
    right = [score for score, label in zip(scores, labels, strict=True) if label]
    wrong = [score for score, label in zip(scores, labels, strict=True) if not label]
    return {
        "AUROC": auroc(scores, labels, [homes[one.case.home] for one in both]),
        "right: supported": share(sum(score >= SUPPORTED for score in right), len(right)),
        "wrong: unsupported": share(sum(score < WEAK for score in wrong), len(wrong)),
        "kappa": agreed(scores, labels),
    }


def agreed(scores: Sequence[float], labels: Sequence[bool]) -> Estimate | None:
    """Cohen's kappa of supported or not against the labels; None of nothing."""
    if not labels:
        return None
    table = np.zeros((2, 2), dtype=int)
    for score, label in zip(scores, labels, strict=True):
        table[int(label), int(score >= SUPPORTED)] += 1
    return kappa_estimate(table)


def _measured(meter: SupportMeter, case: Case) -> tuple[Backing, float]:
    pieces = [Piece(str(at), text, 1) for at, text in enumerate(case.evidence)]
    start = time.perf_counter()
    found = meter.measure([case.sentence], pieces, Event())[0]
    return found, (time.perf_counter() - start) * 1000
