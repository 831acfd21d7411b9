"""How well a sentence that the evidence supports is told from one that it does not, by ways of scoring, and how fast.

Run: python benchmarks/support.py               (needs the shared evaluation data, see CRAG_SHARED_DATA; 2 minutes)
     python benchmarks/support.py --judge NAME  (and how far a judge agrees with people: ollama/NAME,
                                                 bespoke-minicheck, or what CRAG_SUPPORT takes)

Ways are compared on one half of the questions; everything else is measured on the other half, thresholds included.
Intervals are 95 %: AUROC with the sentences of one home taken together, Wilson's for shares,
resampled sentences for Cohen's kappa of supported or not against the labels.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from threading import Event
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import sentences
from benchmarks.agreement import LABELLED, SMALL, agreed, agreement, ask, checker
from benchmarks.evaluator import DATA, show, tell
from benchmarks.measures import SEED, auroc, share
from benchmarks.sentences import Case
from benchmarks.tables import Cell, Table
from crag_core.base.data_files import DATA as OURS
from crag_core.base.protocols import Piece
from crag_core.base.text.words import words
from crag_core.evaluators.shared.model_files import RARITY, parse_rarity, read_file
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import SUPPORTED, WEAK, Evidence, Match, match
from crag_core.trace.grounding.claims import claim_of, content_of, names_in

SHIPPED = "words, capped by facts"
KEPT, MISSED = 0.85, 0.03
"""Of right sentences of written answers: how many count as supported, and how many at most are called unsupported."""

STOP_WORDS = frozenset((OURS / "stopwords.txt").read_text("utf-8").split())
Scores = dict[str, float]
Scored = Mapping[str, Sequence[tuple[Case, Scores]]]


class Ways:
    """Every way of scoring a case that was tried, by name."""

    def __init__(self) -> None:
        self._rarity = parse_rarity(read_file(EVALUATOR_FOLDER, RARITY))
        self._shipped = WordSupport(EVALUATOR_FOLDER, STOP_WORDS)

    def score(self, case: Case) -> Scores | None:
        """None for a sentence that the shipped way gives no score."""
        pieces = tuple(Piece(str(at), text, 1) for at, text in enumerate(case.evidence))
        shipped = self._shipped.measure([case.sentence], pieces, Event())[0].score
        if shipped is None:
            return None
        claim = claim_of(case.sentence)
        found, flat = (self._match(claim, pieces, weigh) for weigh in (self._rarity.idf, lambda word: 1.0))
        return {
            "shorter first": -float(len(words(claim))),
            "words, best sentence": found.best,
            "words, three sentences": found.together,
            "words, both": found.score,
            "words, both, all alike": flat.score,
            SHIPPED: shipped,
        }

    def _match(self, claim: str, pieces: tuple[Piece, ...], weigh: Callable[[str], float]) -> Match:
        weights = {term: weigh(word) for term, word in content_of(claim, STOP_WORDS).items()}
        return match(weights, names_in(claim, STOP_WORDS), Evidence(pieces), range(len(pieces)))


def main(arguments: Sequence[str] | None = None) -> None:
    folder = DATA / "dev" / "sets"
    if not folder.is_dir():
        print("skipped: shared data not found")
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=600, help="sentences of a set, drawn with a fixed seed")
    parser.add_argument("--judge", default="", help=f"a judge beside words: {SMALL}, or as CRAG_SUPPORT")
    parser.add_argument("--judged", type=int, default=60, help="sentences of a set that it judges")
    chosen = parser.parse_args(arguments)
    cases = read_cases(folder, chosen.limit)
    ways = Ways()
    scored = {name: _score_all(name, some, ways) for name, some in cases.items()}
    halves = [
        {name: [one for one in some if _half(one[0]) == side] for name, some in scored.items()} for side in (0, 1)
    ]
    print("## On the half that ways and thresholds were chosen by")
    show({"ways": Table("AUROC", compare(halves[0])), "thresholds": Table("threshold", find_thresholds(halves[0]))})
    print("\n## On the other half")
    counted = Table(f"supported from {SUPPORTED}, unsupported below {WEAK}", rates(halves[1]))
    show({"ways": Table("AUROC", compare(halves[1])), "rates": counted})
    print("\n## In other languages, all of them")
    show({"languages": Table("answer / one from elsewhere", measure_languages(folder, ways, chosen.limit // 2))})
    if chosen.judge:
        print(f"\n## Agreement with the labels, on the other half: words and {chosen.judge}")
        show({"agreement": Table("set", judge(halves[1], chosen.judge, chosen.judged))})
    print(f"\n5 sentences against 30: {milliseconds():.1f} ms, median of 100")


def read_cases(folder: Path, limit: int) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    if (folder / "halueval_dev").is_dir():
        found |= sentences.read_halueval(folder / "halueval_dev")
    if (folder / "mtrag_un").is_dir():
        found |= sentences.read_written(folder / "mtrag_un", random.Random(SEED))
    if (folder / "squad2_dev").is_dir():
        found |= sentences.read_claims(folder / "squad2_dev", random.Random(SEED))
    return {name: sentences.sample(cases, limit) for name, cases in found.items()}


def compare(scored: Scored) -> dict[str, dict[str, Cell]]:
    """AUROC by way and set; the mean is over the sets, which weigh the same."""
    ways = list(dict.fromkeys(way for some in scored.values() for _, scores in some for way in scores))
    rows: dict[str, dict[str, Cell]] = {}
    for way in ways:
        row: dict[str, Cell] = {name: _auroc(some, way) for name, some in scored.items()}
        told = [cell.value for cell in row.values() if cell is not None and not isinstance(cell, float | str)]
        rows[way] = {"mean": fmean(told) if told else None} | row
    return rows


def find_thresholds(scored: Scored) -> dict[str, dict[str, Cell]]:
    """Two decimals, rounded down, by the right sentences of written answers."""
    right = [scores[SHIPPED] for case, scores in scored.get(sentences.WRITTEN, ()) if case.is_right]
    if not right:
        return {}
    low, high = np.quantile(right, (MISSED, 1 - KEPT), method="lower")
    return {
        f"supported, so that {KEPT:.0%} of what is right are": {"found": float(high), "shipped": SUPPORTED},
        f"unsupported, so that {MISSED:.0%} of what is right are": {"found": float(low), "shipped": WEAK},
    }


def rates(scored: Scored) -> dict[str, dict[str, Cell]]:
    """How many right and wrong sentences count as supported and as unsupported."""
    return {name: _rates(some) for name, some in scored.items()}


def judge(scored: Scored, choice: str, limit: int) -> dict[str, dict[str, Cell]]:
    """About `limit` sentences of each set that people labelled, as words and the judge see them."""
    cases = {name: sentences.sample([case for case, _ in scored[name]], limit) for name in LABELLED if scored.get(name)}
    with checker(choice, STOP_WORDS) as meter:
        return agreement(ask(cases, meter, STOP_WORDS), choice)


def measure_languages(folder: Path, ways: Ways, limit: int) -> dict[str, dict[str, Cell]]:
    rows: dict[str, dict[str, Cell]] = {}
    for language in sentences.LANGUAGES if (folder / "xquad_dev").is_dir() else ():
        cases = sentences.read_claims(folder / "xquad_dev", random.Random(SEED), language)[sentences.ELSEWHERE]
        drawn = sentences.sample(cases, limit)
        some = _score_all(language, drawn, ways)
        rows[language] = {"not checked": share(len(drawn) - len(some), len(drawn))}
        if some:
            rows[language] |= {"AUROC": _auroc(some, SHIPPED)} | _rates(some)
    return rows


def milliseconds() -> float:
    """For an answer of five sentences and thirty of evidence, none of them seen before."""
    meter = WordSupport(EVALUATOR_FOLDER, STOP_WORDS)
    taken = []
    for time_ in range(101):
        pieces = [
            Piece(str(at), f"Berth {time_}{at} of the harbour costs {at} pounds a night for boats of {at} metres.", 1)
            for at in range(30)
        ]
        said = [f"Boats of {at} metres pay {at} pounds a night at berth {time_}{at} [1]." for at in range(5)]
        start = time.perf_counter()
        meter.measure(said, pieces, Event())
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken[1:])  # the first one reads the table of rare words


def _score_all(name: str, cases: Sequence[Case], ways: Ways) -> list[tuple[Case, Scores]]:
    start = time.perf_counter()
    found = [(case, scores) for case in cases if (scores := ways.score(case)) is not None]
    tell(f"{name}: {len(found)} of {len(cases)} sentences scored in {time.perf_counter() - start:.0f} s")
    return found


def _auroc(some: Sequence[tuple[Case, Scores]], way: str) -> Any:
    homes = {home: number for number, home in enumerate(dict.fromkeys(case.home for case, _ in some))}
    return auroc(
        [scores[way] for _, scores in some],
        [case.is_right for case, _ in some],
        [homes[case.home] for case, _ in some],
    )


def _rates(some: Sequence[tuple[Case, Scores]]) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    for side, told in ((True, "right"), (False, "wrong")):
        found = [scores[SHIPPED] for case, scores in some if case.is_right is side]
        row[f"{told}: supported"] = share(sum(score >= SUPPORTED for score in found), len(found))
        row[f"{told}: unsupported"] = share(sum(score < WEAK for score in found), len(found))
    row["kappa"] = agreed([scores[SHIPPED] for _, scores in some], [case.is_right for case, _ in some])
    return row


def _half(case: Case) -> int:
    return random.Random(f"{SEED} {case.home}").randint(0, 1)


if __name__ == "__main__":
    main()
