"""The commands `evaluate` and `tune`: thresholds on a labelled set."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from crag_core.app.cli.options import add_choice, add_set, confidence, share, with_thresholds
from crag_core.app.cli.set_files import Opened, check_collection, open_set, write_file
from crag_core.app.cli.tune_output import Progress, advice, describe, plain
from crag_core.app.configuration_text import choose
from crag_core.app.policy_files import find_policy
from crag_core.app.workbench import Choice, Workbench, now, suit
from crag_core.base.errors import CragError, WrongUse
from crag_core.experiments.batch import Controls, score
from crag_core.experiments.labelled.graded import Conditions, cases
from crag_core.experiments.statistics.calibration import calibrated
from crag_core.experiments.statistics.curves import auroc
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation, recommend
from crag_core.experiments.thresholds.threshold_board import Board, Rates, confusion, rate
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

NOT_KEPT = 3
"""Exit code: everything worked, and the limit that was asked for is not kept."""
MOST = ("confidently_wrong", "needless_web", "missed_web", "discarded", "ungraded", "web")
LEAST = ("right",)
"""Rates that a limit can be put on, from above and from below."""
_LIMIT = re.compile(r"confidently wrong *(?:<=|at most) *([0-9.]+) *(%?)")


def add_commands(commands: Any) -> None:
    """The two subcommands, with their options."""
    check = commands.add_parser("evaluate", help="route a labelled set, and measure how often it goes wrong")
    add_set(check)
    add_choice(check)
    for option, word in [*((f"--max-{name.replace('_', '-')}", "more") for name in MOST), ("--min-right", "less")]:
        check.add_argument(option, type=share, metavar="0..1", help=f"exit code {NOT_KEPT} where it is {word}")
    check.add_argument("--json", action="store_true", help="print all figures as JSON")
    check.set_defaults(command=evaluate)
    better = commands.add_parser("tune", help="choose thresholds with a labelled set")
    add_set(better)
    add_choice(better)
    names = ", ".join(f"{field.name}={field.default:g}" for field in fields(Costs))
    better.add_argument(
        "--objective", type=objective, default=Objective(), metavar="WHAT",
        help=f'costs such as "wrong=10,web=1" (default: {names}), or "confidently wrong <= 5%%"',
    )  # fmt: skip
    better.add_argument(
        "--confidence", type=confidence, metavar="0..1",
        help="keep the limit with this confidence, not only on the questions of this set",
    )  # fmt: skip
    better.add_argument("--out", type=Path, metavar="FILE.toml", help="write the preset to this file")
    better.add_argument("--save", metavar="NAME", help="keep the preset for the Ask page and --preset")
    better.set_defaults(command=tune)


@dataclass(frozen=True)
class Graded:
    """A labelled set graded under a choice."""

    opened: Opened
    choice: Choice
    conditions: Conditions
    board: Board


def evaluate(options: argparse.Namespace) -> int:
    graded = grade(options)
    board, name = graded.board, graded.opened.labelled.name
    actions = board.actions()
    rates, table = rate(board, actions), confusion(board, actions).tolist()
    parting = auroc(board.deciding().upper, board.answerable)
    if options.json:
        print(json.dumps(plain(name, board, graded.conditions, rates, table, parting), indent=1))
    else:
        print(describe(name, board, rates, table, parting))
    broken = list(_broken(options, rates))
    for limit in broken:
        print(f"limit not kept: {limit}", file=sys.stderr)
    return NOT_KEPT if broken else 0


def tune(options: argparse.Namespace) -> int:
    if options.confidence and options.objective.most_wrong is None:
        raise WrongUse('--confidence goes with a limit, such as --objective "confidently wrong <= 5%".')
    graded = grade(options)
    policy = graded.board.policy
    start = suit(find_policy(policy.name, graded.opened.workbench.config), graded.choice.evaluator)
    others = (("shipped", start.lower, start.upper), *((one.name, one.lower, one.upper) for one in policy.presets))
    found = recommend(graded.board, options.objective, others=others, confidence=options.confidence)
    if found.why_not:
        print(found.why_not, file=sys.stderr)
        return NOT_KEPT
    print(advice(found))
    name = options.save or (options.out.stem if options.out else graded.opened.labelled.name)
    preset = _preset(name, graded, found, options.objective.describe(options.confidence))
    if options.out:
        write_file(options.out, preset.to_toml(), "preset")
    if options.save:
        print(f"kept as {graded.opened.workbench.experiments.save_preset(preset)}")
    return 0


def grade(options: argparse.Namespace) -> Graded:
    """Open the set, grade what is not graded yet, and put it under the chosen policy."""
    workbench = Workbench()
    choice = choose(workbench, options.policy, options.evaluator, options.model, options.preset)
    choice = replace(
        choice,
        policy=with_thresholds(choice.policy, options),
        top_k=options.top_k or choice.top_k,
        collection=options.collection,
    )
    opened = open_set(options.set, workbench)
    check_collection(options.collection, opened.workbench)
    pipeline = opened.workbench.pipeline(choice, observed=False)
    conditions = opened.workbench.conditions(pipeline)
    log = opened.workbench.experiments.scores(conditions)
    controls, questions = Controls(), opened.labelled.questions
    try:
        done = score(
            questions, pipeline, log, time.monotonic, workers=opened.workbench.scoring_workers, controls=controls,
            on_progress=Progress("graded"),
        )  # fmt: skip
    except KeyboardInterrupt:
        controls.cancel.set()
        print("\nstopped; what is graded is kept, and the same command continues from there", file=sys.stderr)
        raise SystemExit(130) from None
    if done.failed:
        hint = "What was graded is kept; the same command tries them again."
        raise CragError(f"{done.failed} of {done.total} questions could not be graded.", hint=hint)
    found = cases(questions, log.load())
    board = Board(choice.policy, found, pipeline.settings.evaluator, writer=choice.model != EXTRACTIVE)
    return Graded(opened, choice, conditions, board)


def _preset(name: str, graded: Graded, found: Recommendation, why: str) -> TunedPreset:
    policy, created = graded.board.policy, now()
    curve, remark = calibrated(graded.board.deciding().upper, graded.board.answerable, graded.conditions, created)
    print(remark)
    return TunedPreset(
        name=name,
        policy=policy.name,
        lower=found.lower,
        upper=found.upper,
        cutoff=policy.strips.cutoff,
        conditions=graded.conditions,
        labelled=graded.opened.labelled.name,
        labels=graded.opened.labelled.fingerprint,
        questions=len(graded.board),
        created=created,
        reason=why,
        calibration=curve,
    )


def _broken(options: argparse.Namespace, rates: Rates) -> Iterator[str]:
    """The limits that are not kept, in words; a rate that cannot be measured keeps none."""
    for name in (*MOST, *LEAST):
        limit = getattr(options, f"{'max' if name in MOST else 'min'}_{name}")
        found = getattr(rates, name)
        if limit is None:
            continue
        if found is None:
            yield f"{name.replace('_', ' ')} cannot be measured with these labels"
        elif found.value > limit if name in MOST else found.value < limit:
            wanted = "at most" if name in MOST else "at least"
            yield f"{name.replace('_', ' ')} is {found.value:.1%}, {wanted} {limit:.1%} was asked for"


def objective(text: str) -> Objective:
    """Costs by name, the others at their defaults, or a limit on what is confidently wrong."""
    try:
        if limit := _LIMIT.fullmatch(text.strip().lower().replace("_", " ")):
            return Objective(most_wrong=float(limit[1]) / (100 if limit[2] else 1))
        return Objective(Costs(**dict(_cost(part) for part in text.split(",") if part.strip())))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _cost(part: str) -> tuple[str, Any]:
    known = [field.name for field in fields(Costs)]
    name, _, value = (piece.strip() for piece in part.partition("="))
    if name not in known:
        raise ValueError(f'expected costs of {", ".join(known)}, or "confidently wrong <= 5%", found {part!r}')
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"expected a number for {name}, found {value!r}") from None
