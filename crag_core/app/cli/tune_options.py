"""Options of the commands `evaluate` and `tune`."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from crag_core.app.policy_files import DEFAULT
from crag_core.evaluators import EVALUATORS
from crag_core.experiments.thresholds.objective import Costs, Objective

NOT_KEPT = 3
"""Exit code: everything worked, and the limit that was asked for is not kept."""
MOST = ("confidently_wrong", "needless_web", "missed_web", "discarded", "ungraded", "web")
LEAST = ("right",)
"""Rates that a limit can be put on, from above and from below."""
_LIMIT = re.compile(r"confidently wrong *(?:<=|at most) *([0-9.]+) *(%?)")


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    add_set(parser)
    for name in MOST:
        option = f"--max-{name.replace('_', '-')}"
        parser.add_argument(option, type=share, metavar="0..1", help=f"exit code {NOT_KEPT} where it is more than that")
    for name in LEAST:
        parser.add_argument(
            f"--min-{name}", type=share, metavar="0..1", help=f"exit code {NOT_KEPT} where it is less than that"
        )
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")


def add_tune(parser: argparse.ArgumentParser) -> None:
    add_set(parser)
    names = ", ".join(f"{field.name}={field.default:g}" for field in fields(Costs))
    parser.add_argument(
        "--objective", type=objective, default=Objective(), metavar="WHAT",
        help=f'costs such as "wrong=10,web=1" (default: {names}), or "confidently wrong <= 5%%"',
    )  # fmt: skip
    parser.add_argument(
        "--confidence",
        type=certainty,
        metavar="0..1",
        help="keep the limit with this confidence, not only on what was seen",
    )
    parser.add_argument("--out", type=Path, metavar="FILE.toml", help="write the preset there")
    parser.add_argument("--save", metavar="NAME", help="keep the preset for the Ask page and --preset")


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", required=True, metavar="SET",
        help="a kept set by name, a CSV or JSONL file, or a folder with queries.jsonl and corpus.jsonl",
    )  # fmt: skip
    parser.add_argument("--policy", help=f"default: {DEFAULT}, or that of the preset")
    parser.add_argument("--preset", metavar="NAME", help="tuned thresholds by name, or the path of their file")
    parser.add_argument("--evaluator", help=f"{', '.join(EVALUATORS)}; default: what fits the policy")
    parser.add_argument("--model", help='"extractive", "ollama/NAME" or "openai/NAME"')
    parser.add_argument("--lower", type=share, metavar="0..1")
    parser.add_argument("--upper", type=share, metavar="0..1")
    parser.add_argument("--collection", default="", metavar="NAME", help="search only there; default: everywhere")
    parser.add_argument("--top-k", type=int, choices=range(1, 21), metavar="1..20")


def objective(text: str) -> Objective:
    """Costs by name, the others at their defaults, or a limit on what is confidently wrong."""
    try:
        if limit := _LIMIT.fullmatch(text.strip().lower().replace("_", " ")):
            return Objective(most_wrong=float(limit[1]) / (100 if limit[2] else 1))
        return Objective(Costs(**dict(_cost(part) for part in text.split(",") if part.strip())))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"expected 0 to 1, found {text}")
    return value


def certainty(text: str) -> float:
    """A share that is neither nothing nor everything."""
    if not 0.0 < (value := share(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"expected more than 0 and less than 1, found {text}")
    return value


def _cost(part: str) -> tuple[str, Any]:
    known = [field.name for field in fields(Costs)]
    name, _, value = (piece.strip() for piece in part.partition("="))
    if name not in known:
        raise ValueError(f'expected costs of {", ".join(known)}, or "confidently wrong <= 5%", found {part!r}')
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"expected a number for {name}, found {value!r}") from None
