"""The commands `evaluate` and `tune`: thresholds on a labelled set."""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag_core.app.choice import Request, choose
from crag_core.app.cli.options import (
    add_choice,
    add_set,
    confidence,
    interruptible,
    open_set,
    search_in,
    share,
    write_file,
)
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.errors import CragError, WrongUse
from crag_core.base.serialization import to_plain
from crag_core.base.text.display import counted, readable
from crag_core.experiments.batch import SetProgress, score
from crag_core.experiments.labelled.graded import Conditions, cases
from crag_core.experiments.labelled.questions import Expected, Gradable, LabelledSet
from crag_core.experiments.statistics.curves import auroc
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.preset import TunedPreset, preset_of
from crag_core.experiments.thresholds.recommend import Recommendation, recommend
from crag_core.experiments.thresholds.threshold_board import ACTIONS, Board, Rates, confusion, rate
from crag_core.pipeline.run import now
from crag_core.report.thresholds.view import describe_saved, recommendation_lines
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

if TYPE_CHECKING:
    from crag_core.llamaindex.query_engine import CRAGQueryEngine

NOT_KEPT = 3
"""Exit code: everything worked, and the limit that was asked for is not kept, or cannot be promised."""
MOST = ("confidently_wrong", "needless_web", "missed_web", "discarded", "ungraded", "web")
LEAST = ("right",)
"""Rates that a limit can be put on, from above and from below."""
_LIMIT = re.compile(r"confidently wrong *(?:<=|at most) *([0-9.]+) *(%?)")


def add_commands(commands: Any) -> None:
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
    labelled: LabelledSet
    workbench: Workbench
    choice: Choice
    conditions: Conditions
    board: Board


def evaluate(options: argparse.Namespace) -> int:
    graded = grade(options)
    rates = rate(graded.board, graded.board.actions())
    told = figures(graded, rates)
    print(json.dumps(told, indent=1) if options.json else describe(graded.board, rates, told))
    broken = list(_broken(options, rates))
    for limit in broken:
        print(f"limit not kept: {limit}", file=sys.stderr)
    return NOT_KEPT if broken else 0


def tune(options: argparse.Namespace) -> int:
    if options.confidence and options.objective.most_wrong is None:
        raise WrongUse('--confidence goes with a limit, such as --objective "confidently wrong <= 5%".')
    graded = grade(options)
    workbench, policy = graded.workbench, graded.board.policy
    start = workbench.suited(workbench.policy(policy.name), graded.choice.evaluator)
    shipped = start.lower, start.upper
    others = (("shipped", *shipped), *((one.name, one.lower, one.upper) for one in policy.presets))
    found = recommend(graded.board, options.objective, others=others, shipped=shipped, confidence=options.confidence)
    if found.why_not:
        if options.objective.most_wrong is None:
            raise CragError(found.why_not)
        print(found.why_not, file=sys.stderr)
        return NOT_KEPT
    print(advice(found))
    name = options.save or (options.out.stem if options.out else graded.labelled.name)
    if not found.keeps_limit:
        return NOT_KEPT
    preset = _preset(name, graded, found, found.reason(options.objective.describe(options.confidence)))
    if options.out:
        write_file(options.out, preset.to_toml(), "preset")
    if options.save:
        workbench.experiments.save_preset(preset)
        print(f"kept as the preset {preset.name!r}")
    return 0


def grade(options: argparse.Namespace) -> Graded:
    """Open the set, grade what is not graded yet, and put it under the chosen policy."""
    workbench = Workbench()
    choice = choose(workbench, Request.of(options))
    labelled = open_set(options.set, workbench)
    questions = labelled.questions
    choice = replace(choice, collection=search_in(options.collection, labelled, workbench))
    engine = workbench.engine(choice, observed=False)
    conditions = grade_questions(questions, engine, workbench)
    found = cases(questions, workbench.experiments.scores(conditions).load())
    board = Board(choice.policy, found, engine.settings.evaluator, writer=choice.model != EXTRACTIVE)
    return Graded(labelled, workbench, choice, conditions, board)


def grade_questions(questions: Sequence[Gradable], engine: CRAGQueryEngine, workbench: Workbench) -> Conditions:
    """Grade what is not graded yet, and tell under which conditions. Raises `CragError` where one could not be."""
    cancel, conditions = threading.Event(), workbench.conditions(engine, questions)
    with interruptible(cancel, "is graded"):
        done = score(
            questions, engine, workbench.experiments.scores(conditions), time.monotonic,
            workers=workbench.scoring_workers, cancel=cancel, on_progress=Progress("graded"),
            recorded=workbench.recorded(questions),
        )  # fmt: skip
    if done.failed:
        hint = "What was graded is kept; the same command tries them again."
        raise CragError(f"{done.failed} of {counted(done.total, 'question')} could not be graded.", hint=hint)
    return conditions


def _preset(name: str, graded: Graded, found: Recommendation, why: str) -> TunedPreset:
    policy = graded.board.policy.with_thresholds(found.lower, found.upper)
    return preset_of(name, policy, graded.conditions, graded.labelled, len(graded.board), reason=why, created=now())


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


# --- output -----------------------------------------------------------------------------------------------------------


def figures(graded: Graded, rates: Rates) -> dict[str, Any]:
    """A labelled set under one policy, ready for JSON; `auroc` is how well the score tells answerable questions."""
    board, policy = graded.board, graded.board.policy
    table = zip(Expected, confusion(board, board.actions()).tolist(), strict=True)
    return {
        "set": graded.labelled.name,
        "questions": len(board),
        "policy": policy.name,
        "lower": policy.lower,
        "upper": policy.upper,
        "conditions": to_plain(graded.conditions),
        "table": {expected.value: dict(zip(ACTIONS, counts, strict=True)) for expected, counts in table},
        "rates": to_plain(rates),
        "auroc": to_plain(auroc(board.deciding().upper, board.answerable)),
    }


def describe(board: Board, rates: Rates, told: dict[str, Any]) -> str:
    lower, upper = (readable(told[name])[0] for name in ("lower", "upper"))
    lines = [
        f"{told['set']}: {counted(told['questions'], 'question')}, policy {told['policy']}, "
        f"evaluator {board.judge.name}, lower {lower}, upper {upper}",
        "",
        f"{'label':<14}" + "".join(f"{action:>12}" for action in ACTIONS),
    ]
    for label, counts in told["table"].items():
        if any(counts.values()):
            lines.append(f"{label:<14}" + "".join(f"{count:>12}" for count in counts.values()))
    lines += ["", *(f"{share.replace('_', ' '):<20}{describe_share(rates, share)}" for share in (*MOST, *LEAST))]
    apart = Estimate(**told["auroc"]) if told["auroc"] else "–"
    lines += [f"{'tells apart, AUROC':<20}{apart}", f"{'model calls':<20}{rates.calls:.2f} a question"]
    return "\n".join(lines)


def advice(found: Recommendation) -> str:
    """Thresholds that are recommended, with how far they can be trusted."""
    lower, upper = readable(found.lower, found.upper)
    lines = [] if found.keep else [f"lower {lower}, upper {upper}"]  # what is kept the next line names
    lines += recommendation_lines(found)
    if found.guaranteed:
        lines += [found.guaranteed.reason(), found.guaranteed.odds]
    on = f"on {counted(found.judged_on, 'other question')}"
    lines += ["", f"{on:<24}{'lower':>7}{'upper':>7}{'cost':>8}  confidently wrong"]
    for one in found.compared:
        saved = f"  {describe_saved(one.saved, 3)}" if one.saved else ""
        wrong = describe_share(one.rates, "confidently_wrong")
        lines.append(f"{one.name:<24}{one.lower:>7.3f}{one.upper:>7.3f}{one.cost:>8.3f}  {wrong}{saved}")
    return "\n".join(lines)


class Progress:
    """One line that grows on a terminal, a line every minute elsewhere."""

    def __init__(self, done: str) -> None:
        """`done` is what was done with a question."""
        self._done = done
        self._lock, self._last, self._pause = threading.Lock(), 0.0, 0.5 if sys.stderr.isatty() else 60.0

    def __call__(self, scoring: SetProgress) -> None:
        is_last = scoring.done + scoring.failed == scoring.total
        with self._lock:
            if not is_last and time.monotonic() - self._last < self._pause:
                return
            self._last = time.monotonic()
        left = "" if scoring.left is None or is_last else f", about {scoring.left:.0f} s left"
        failed = f", {scoring.failed} failed" if scoring.failed else ""
        end = "\n" if is_last or not sys.stderr.isatty() else "\r"
        print(f"{self._done} {scoring.done} of {scoring.total}{failed}{left}   ", end=end, file=sys.stderr, flush=True)


def describe_share(rates: Rates, name: str) -> str:
    found, among = getattr(rates, name), rates.among(name)
    if found is None:
        return "–"
    return f"{found.value:.1%} ({found.low:.1%}–{found.high:.1%}), {round(found.value * among)} of {among}"
