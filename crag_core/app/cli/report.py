"""The command `report`: a recorded run as one HTML file."""

from __future__ import annotations

import argparse
from typing import Any

from crag_core.app import config
from crag_core.app.choice import with_thresholds
from crag_core.app.cli.options import STREAM, add_thresholds
from crag_core.decision.policy import Policy
from crag_core.evaluators.policies import find_policy
from crag_core.report import render
from crag_core.report.files import page_beside, read_run, write_page
from crag_core.trace.trace import Trace


def add_commands(commands: Any) -> None:
    page = commands.add_parser("report", help="write a recorded run as one HTML file to send to somebody")
    page.add_argument("run", metavar="RUN.json", help='what "ask … --json" printed; -: standard input')
    page.add_argument("-o", "--output", metavar="FILE.html", help="default: beside the run; -: standard output")
    page.add_argument("--policy", help="decide by this policy instead of that of the run")
    page.add_argument("--preset", metavar="NAME", help="thresholds of the policy's file")
    add_thresholds(page)
    page.set_defaults(command=report)


def report(options: argparse.Namespace) -> int:
    trace = read_run(options.run)
    policy = _policy(options, trace)
    name = options.output or page_beside(options.run)
    size = write_page(render(trace, policy), name, options.run)
    if name != STREAM:
        print(f"{name}: {size / 1000:.0f} kB, opens in any browser, without network")
    return 0


def _policy(options: argparse.Namespace, trace: Trace) -> Policy:
    """The policy of the run, or the one asked for with the thresholds that fit the run's evaluators."""
    made = trace.settings
    policy = made.policy
    if options.policy:
        policy = find_policy(options.policy, config.load()).with_thresholds_for(made.evaluator, made.strip_evaluator)
    if options.preset:
        policy = policy.preset(options.preset)
    return with_thresholds(policy, options)
