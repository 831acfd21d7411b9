"""How well a sentence that the evidence supports is told from one that it does not, by words or by a judge of yours.

Run: python benchmarks/support.py               (needs the shared evaluation data, see CRAG_SHARED_DATA; a minute)
     python benchmarks/support.py --judge NAME  (and how far a judge agrees with people: ollama/NAME,
                                                 or what CRAG_SUPPORT takes)

Thresholds are found on one half of the questions; everything else is measured on the other half.
Intervals are 95 %: AUROC with the sentences of one home taken together, Wilson's for shares,
resampled sentences for Cohen's kappa of supported or not against the labels.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from threading import Event

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import sentences
from benchmarks.evaluator import DATA, show, tell
from benchmarks.measures import SEED, Estimate, auroc, kappa_estimate, share
from benchmarks.running import SMALL, serving
from benchmarks.sentences import Case
from benchmarks.tables import Cell, Table
from crag_core.app import config
from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA as OURS
from crag_core.base.errors import BadRecord
from crag_core.base.protocols import Backing, Piece, SupportMeter
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import SUPPORTED, WEAK, WORDS

KEPT, MISSED = 0.85, 0.03
"""Of right sentences of written answers: how many count as supported, and how many at most are called unsupported."""
LABELLED = (sentences.HALLUCINATED, sentences.SAME_LENGTH, sentences.WRITTEN)
"""Sets whose right sentences people wrote, beside invented ones or other passages. Others were altered by rule."""


@dataclass(frozen=True)
class Told:
    """What is said of one sentence, as if it were an answer, and the milliseconds that it took."""

    case: Case
    backing: Backing
    milliseconds: float


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
    by_words = WordSupport(EVALUATOR_FOLDER, frozenset((OURS / "stopwords.txt").read_text("utf-8").split()))
    cases = read_cases(folder, chosen.limit)
    first, other = (
        {name: [one for one in some if _half(one) == side] for name, some in cases.items()} for side in (0, 1)
    )
    print("## On the half that thresholds were chosen by")
    show({"thresholds": Table("threshold", find_thresholds(ask(first.get(sentences.WRITTEN, ()), by_words)))})
    print("\n## On the other half")
    title = f"supported from {SUPPORTED}, unsupported below {WEAK}"
    show({"rates": Table(title, {name: measured(ask(some, by_words)) for name, some in other.items()})})
    if chosen.judge:
        drawn = {name: sentences.sample(other[name], chosen.judged) for name in LABELLED if other.get(name)}
        with checker(chosen.judge) as judge:
            rows = agreement(drawn, {WORDS: by_words, chosen.judge: judge})
        print(f"\n## Agreement with the labels, on the other half: words and {chosen.judge}")
        show({"agreement": Table("set", rows)})
    print(f"\n5 sentences against 30: {milliseconds(by_words):.1f} ms, median of 100")


def read_cases(folder: Path, limit: int) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    if (folder / "halueval_dev").is_dir():
        found |= sentences.read_halueval(folder / "halueval_dev")
    if (folder / "mtrag_un").is_dir():
        found |= sentences.read_written(folder / "mtrag_un", random.Random(SEED))
    if (folder / "squad2_dev").is_dir():
        found |= sentences.read_claims(folder / "squad2_dev", random.Random(SEED))
    return {name: sentences.sample(cases, limit) for name, cases in found.items()}


@contextmanager
def checker(choice: str) -> Iterator[SupportMeter]:
    """Who checks answers where CRAG_SUPPORT is `choice`, or the small model of the tests."""
    try:
        with serving(choice) as (model, url):
            changed = {"support": model} | ({"ollama_host": url, "model_timeout": 600.0} if url else {})
            settings = replace(config.load(), cache="off", history="off", audit="off", **changed)  # type: ignore[arg-type]
            yield Workbench(settings).support()
    except BadRecord as error:
        raise SystemExit(f"--judge: {SMALL}, or a value of CRAG_SUPPORT. {error}") from None


def ask(cases: Sequence[Case], meter: SupportMeter) -> list[Told]:
    """Every sentence by itself; raises as `meter` does."""
    found = []
    for case in cases:
        pieces = [Piece(str(at), text, 1) for at, text in enumerate(case.evidence)]
        start = time.perf_counter()
        (backing,) = meter.measure([case.sentence], pieces, Event())
        found.append(Told(case, backing, 1000 * (time.perf_counter() - start)))
    return found


def agreement(cases: Mapping[str, Sequence[Case]], meters: Mapping[str, SupportMeter]) -> dict[str, dict[str, Cell]]:
    """Of each set a line for each of them, on the sentences that all of them gave a score."""
    rows: dict[str, dict[str, Cell]] = {}
    for name, some in cases.items():
        start = time.perf_counter()
        told = {who: ask(some, meter) for who, meter in meters.items()}
        tell(f"{name}: {len(some)} sentences judged in {time.perf_counter() - start:.0f} s")
        scored = [all(one.backing.score is not None for one in every) for every in zip(*told.values(), strict=True)]
        for who, every in told.items():
            both = [one for one, is_scored in zip(every, scored, strict=True) if is_scored]
            rows[f"{name}: {who}"] = measured(both) | {
                "not read": str(sum(one.backing.score is None and one.backing.usage.calls > 0 for one in every)),
                "ms a sentence": f"{fmean(one.milliseconds for one in every):.1f}" if every else None,
            }
    return rows


def measured(told: Sequence[Told]) -> dict[str, Cell]:
    """How right and wrong sentences are told apart, of those with a score."""
    some = [(one.case, one.backing.score) for one in told if one.backing.score is not None]
    homes = {home: number for number, home in enumerate(dict.fromkeys(case.home for case, _ in some))}
    scores, labels = [score for _, score in some], [case.is_right for case, _ in some]
    row: dict[str, Cell] = {"sentences": str(len(some))}
    if some:
        row["AUROC"] = auroc(scores, labels, [homes[case.home] for case, _ in some])
    for side, side_name in ((True, "right"), (False, "wrong")):
        found = [score for case, score in some if case.is_right is side]
        row[f"{side_name}: supported"] = share(sum(score >= SUPPORTED for score in found), len(found))
        row[f"{side_name}: unsupported"] = share(sum(score < WEAK for score in found), len(found))
    return row | {"kappa": agreed(scores, labels)}


def agreed(scores: Sequence[float], labels: Sequence[bool]) -> Estimate | None:
    """Cohen's kappa of supported or not against the labels; None of nothing."""
    if not labels:
        return None
    table = np.zeros((2, 2), dtype=int)
    for score, label in zip(scores, labels, strict=True):
        table[int(label), int(score >= SUPPORTED)] += 1
    return kappa_estimate(table)


def find_thresholds(written: Sequence[Told]) -> dict[str, dict[str, Cell]]:
    """Two decimals, rounded down, by the right sentences of written answers."""
    right = [one.backing.score for one in written if one.case.is_right and one.backing.score is not None]
    if not right:
        return {}
    low, high = np.quantile(right, (MISSED, 1 - KEPT), method="lower")
    return {
        f"supported, so that {KEPT:.0%} of what is right are": {"found": float(high), "shipped": SUPPORTED},
        f"unsupported, so that {MISSED:.0%} of what is right are": {"found": float(low), "shipped": WEAK},
    }


def milliseconds(meter: SupportMeter) -> float:
    """For an answer of five sentences and thirty of evidence, none of them seen before."""
    taken = []
    for time_ in range(100):
        pieces = [
            Piece(str(at), f"Berth {time_}{at} of the harbour costs {at} pounds a night for boats of {at} metres.", 1)
            for at in range(30)
        ]
        said = [f"Boats of {at} metres pay {at} pounds a night at berth {time_}{at} [1]." for at in range(5)]
        start = time.perf_counter()
        meter.measure(said, pieces, Event())
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)


def _half(case: Case) -> int:
    return random.Random(f"{SEED} {case.home}").randint(0, 1)


if __name__ == "__main__":
    main()
