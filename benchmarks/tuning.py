"""Tuning: how long it takes, what chosen thresholds save on other questions, and how often a promised limit is broken.

Run: python benchmarks/tuning.py               (needs the shared evaluation data, see CRAG_SHARED_DATA; 12 minutes)
     python benchmarks/tuning.py --home HOME   (where the set was graded before, nothing is graded: 2 minutes)
     python benchmarks/tuning.py --only bound --json report.json
     python benchmarks/tuning.py --only halvings   (grades three sets once, 4,207 questions)

Gains are mean costs of the published thresholds less those of the recommended ones, on the half of the questions that
had no part in choosing: of one halving with a 95 % interval (paired), of many with the least and the most.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluator import DATA, show, tell
from benchmarks.tuning_bound import measure_bound
from benchmarks.tuning_gain import POLICIES, grade, measure_gain, measure_halvings
from benchmarks.tuning_speed import JUDGE, TARGET, measure_recommend, measure_surfaces

SET = "route_dev"
HOME = Path(__file__).parent.parent / "build" / "tuning-home"
HALVED = ("route_dev", "squad2_dev", "nomiracl_en_dev")
PARTS = ("time", "gain", "halvings", "bound")
_CAUTION = "With confidence, the half that is judged is the half that the promise was tested on."


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parse(arguments)
    report: dict[str, Any] = {}
    if "time" in chosen.only:
        print(f"## Time\n\nThe target for all cells of 500 questions is {TARGET} s.")
        report["time"] = show({"surface": measure_surfaces(), "recommend": measure_recommend()})
    if "gain" in chosen.only:
        print(f"\n## Thresholds chosen on {SET}, evaluator {JUDGE}\n\n{_CAUTION}")
        report["gain"] = _gain(DATA / "dev" / "sets" / SET, chosen.home, chosen.halvings)
    if "halvings" in chosen.only:
        print(f"\n## Keep yours, or better: half of {', '.join(HALVED)} to tune with, the other half to judge by")
        report["halvings"] = _halvings(DATA / "dev" / "sets", chosen.home)
    if "bound" in chosen.only:
        print("\n## A limit on confident mistakes, on questions drawn from a known distribution")
        report["bound"] = show({"bound": measure_bound(chosen.simulations)})
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _gain(folder: Path, home: Path, halvings: int) -> dict[str, Any]:
    if not folder.is_dir():
        print("\nskipped: shared data not found")
        return {}
    graded = grade(folder, home, JUDGE, tell)
    return {name: show(measure_gain(graded, name, halvings)) for name in POLICIES}


def _halvings(folder: Path, home: Path) -> dict[str, Any]:
    there = [name for name in HALVED if (folder / name).is_dir()]
    if not there:
        print("\nskipped: shared data not found")
        return {}
    graded = {name: grade(folder / name, home if name == SET else home / name, JUDGE, tell) for name in there}
    return show({name: measure_halvings(graded, name) for name in POLICIES})


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="parts; all")
    parser.add_argument("--home", type=Path, default=HOME, help="where sets are indexed and graded, once")
    parser.add_argument("--halvings", type=_count, default=20, help="ways to halve the set")
    parser.add_argument("--simulations", type=_count, default=1000, help="sets drawn for the bound")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text!r}")
    return int(text)


if __name__ == "__main__":
    main()
