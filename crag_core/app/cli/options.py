"""Options that several commands share, and the values that they take."""

from __future__ import annotations

import argparse

from crag_core.app.policy_files import DEFAULT
from crag_core.base.errors import WrongUse
from crag_core.decision.policy import Policy
from crag_core.evaluators import EVALUATORS

STREAM = "-"
"""In place of a file's name: standard input, or output."""


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", required=True, metavar="SET",
        help="a kept set by name, a CSV or JSONL file, or a folder with queries.jsonl and corpus.jsonl",
    )  # fmt: skip


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Policy, thresholds, evaluator, model, and what is searched."""
    parser.add_argument("--policy", help=f"the name of a file in data/policies; default: {DEFAULT}")
    parser.add_argument(
        "--preset", metavar="NAME",
        help="thresholds of the policy's file, such as conservative, or tuned ones by name or path",
    )  # fmt: skip
    parser.add_argument("--evaluator", help=f"{', '.join(EVALUATORS)}; default: what fits the policy")
    parser.add_argument(
        "--model", help='"extractive", "ollama/NAME" or "openai/NAME"; default: CRAG_MODEL or extractive'
    )
    add_thresholds(parser)
    parser.add_argument(
        "--top-k", type=int, choices=range(1, 21), metavar="1..20", help="chunks to retrieve; default: CRAG_TOP_K"
    )
    parser.add_argument("--collection", default="", metavar="NAME", help="search only there; default: everywhere")


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lower", type=share, metavar="0..1", help="lower threshold; default: that of the policy")
    parser.add_argument("--upper", type=share, metavar="0..1", help="upper threshold; default: that of the policy")


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"expected 0 to 1, found {text}")
    return value


def confidence(text: str) -> float:
    if not 0.0 < (value := share(text)) < 1.0:
        raise argparse.ArgumentTypeError(f"expected more than 0 and less than 1, found {text}")
    return value


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text!r}")
    return int(text)


def with_thresholds(policy: Policy, options: argparse.Namespace) -> Policy:
    """`policy` with the thresholds that the options give; raises `WrongUse` where lower exceeds upper."""
    try:
        return policy.with_thresholds(options.lower, options.upper, getattr(options, "cutoff", None))
    except ValueError as error:
        raise WrongUse(f"{error}.") from None
