"""The command line: `python -m crag_core COMMAND …`. Parses options and prints; the commands are in `app/cli`."""

from __future__ import annotations

import signal

if __name__ == "__main__":  # until the imports below are done, Ctrl-C would show where in them it came
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import io
import json
import os
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import replace
from pathlib import Path
from threading import Event

from crag_core.app import config
from crag_core.app.cli import backup, compare, metrics, tune
from crag_core.app.cli import settings as settings_commands
from crag_core.app.cli.set_files import check_collection
from crag_core.app.policy_files import DEFAULT, find_policy
from crag_core.app.workbench import (
    DATA,
    VERSION,
    Choice,
    Workbench,
    default_evaluator,
    known_card,
    preset_choice,
    suit,
)
from crag_core.base.concurrency import shutdown
from crag_core.base.documents import MAIN, Ingested, Progress, Recipe
from crag_core.base.errors import CragError, ModelMissing, UnknownName, WrongUse, as_typed
from crag_core.base.types import AnswerState, Step
from crag_core.decision.policy import Policy
from crag_core.evaluators import EVALUATORS
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.observability.log_format import show_logs
from crag_core.pipeline.call_budget import JUDGING, budget
from crag_core.pipeline.pipeline import approve, is_waiting, refuse
from crag_core.pipeline.run import Listener, Run, WebMode
from crag_core.pipeline.web_query import LONGEST_QUESTION, check_question
from crag_core.report import render
from crag_core.report.files import STREAM, page_beside, read_run, write_page
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace

FAILED, WRONG, STOPPED, UNHEARD = 1, 2, 130, 141
EXIT_CODES = (
    "exit code: 0 done; 1 something was refused or failed; 2 wrong use: an option, a value or a name (a file, policy, "
    "preset, model, …) that cannot be, and nothing was begun; 3 evaluate and tune: a limit is not kept; 130 stopped by "
    "Ctrl-C; 141 whatever read the output has closed it"
)


def run() -> int:
    """`main` on a console or in a pipe, which may be closed at any time, be full, or write less than every letter."""
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(os.devnull, mode)  # noqa: SIM115  closed by whoever started this
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            code = main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else FAILED
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        code = UNHEARD
    except OSError as error:  # of the output: what else the disk refuses is told where it happens
        print(f"error: the output cannot be written ({error.strerror or error}).", file=sys.stderr)
        code = FAILED
    # What is left in the buffers would be written once more at the end, and complained of.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2) if code == UNHEARD else (1,):
        os.dup2(nowhere, number)
    return code


def main(arguments: list[str] | None = None) -> int:
    """The exit code, as `EXIT_CODES` tells; wrong use of options raises `SystemExit` with it."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.command(options))
    except CragError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG if isinstance(error, WrongUse | ModelMissing) else FAILED
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return STOPPED


def ingest(options: argparse.Namespace) -> int:
    if absent := [str(path)[:200] for path in options.paths if not os.path.lexists(path)]:
        raise WrongUse(f"There is no file or folder {', '.join(absent)}.", hint="Nothing was indexed.")
    store = Workbench().store
    try:
        store.finish_rebuild(_print_progress)
        if interrupted := store.finish_interrupted():
            print("Finished what was interrupted before:")
            _print_outcomes(interrupted)
        outcomes = store.ingest(((path.name, path) for path in options.paths), collection=options.collection or MAIN)
    except KeyboardInterrupt:
        print("\nstopped; what is indexed is kept, and the next start goes on from there", file=sys.stderr)
        return 130
    if not outcomes:
        print("error: no file found there.", file=sys.stderr)
        return 1
    _print_outcomes(outcomes)
    return int(any(outcome.outcome == "refused" for outcome in outcomes))


def reindex(options: argparse.Namespace) -> int:
    workbench = Workbench()
    now = workbench.store.index_version
    recipe = Recipe(
        options.embedding or now.embedding,
        now.tokens if options.tokens is None else options.tokens,
        now.overlap if options.overlap is None else options.overlap,
    )
    try:
        with as_typed():
            done = workbench.rebuild(recipe, _print_progress, Event())
    except KeyboardInterrupt:
        print("\nstopped; the present chunks stay, and the next start goes on with the new ones", file=sys.stderr)
        return 130
    print(f"{done.passages} chunks of {done.documents} documents made anew: at most {recipe.tokens} tokens, ", end="")
    print(f"{recipe.overlap} of them repeated, by {recipe.embedding}")
    if done.kept_text:
        print(f"of {done.kept_text} the text was taken from the old chunks, since the file is not kept")
    return 0


def _print_progress(progress: Progress) -> None:
    if not progress.passages:
        print(f"  {progress.position} of {progress.total}  {progress.name}", file=sys.stderr)


def _print_outcomes(outcomes: tuple[Ingested, ...]) -> None:
    for outcome in outcomes:
        count = f" ({outcome.passages} chunks)" if outcome.passages else ""
        print(f"{outcome.name}: {outcome.outcome}{count}")
        if outcome.outcome == "refused":
            print(f"  {outcome.message} {outcome.hint}")


def ask(options: argparse.Namespace) -> int:
    question = _question(options.question)
    workbench = Workbench()
    show_logs(workbench.config.log)
    choice = _choice(options, workbench)
    policy = choice.policy
    try:
        policy = policy.with_thresholds(options.lower, options.upper)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    pinned = _find_documents(workbench, options.pin)
    check_collection(options.collection, workbench)
    if pinned and not options.search_too:
        policy = policy.without_retrieval()
    choice = replace(
        choice,
        policy=policy,
        web=WebMode(options.web),
        top_k=options.top_k or choice.top_k,
        pinned=pinned,
        search_too=options.search_too,
        collection=options.collection,
    )
    if not options.json:
        print(_cost(choice, workbench.config.support), file=sys.stderr)
    pipeline = workbench.pipeline(choice)
    run = Run(Listener() if options.json else _Progress())
    trace = pipeline.run(question, run)
    if is_waiting(trace):
        trace = pipeline.resume(_approval(trace, workbench.searcher.name), run)
    print(_record(trace) if options.json else _describe(trace))
    if trace.failure is None:
        return 0
    return WRONG if trace.failure.error == ModelMissing.__name__ else FAILED


def _question(text: str) -> str:
    """As it was typed, or from standard input for "-"; raises `WrongUse` for none, and for one that is too long."""
    if text == STREAM:
        data = sys.stdin.buffer.read(8 * LONGEST_QUESTION)  # of more it is known that it is too long
        encoding = "utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig"
        try:
            text = data.decode(encoding, "strict" if len(data) < 8 * LONGEST_QUESTION else "replace")
        except UnicodeDecodeError as error:
            words = f"Expected a question in UTF-8 on standard input, found other bytes ({error.reason})."
            raise WrongUse(words, hint="Convert it to UTF-8, or give it as an argument.") from error
    question = text.encode(errors="replace").decode().strip()  # a console may give bytes that are no text
    if not question:
        raise WrongUse("Expected a question, found nothing.", hint='For example: ask "When does the ferry leave?"')
    with as_typed():
        check_question(question)
    return question


def _record(trace: Trace) -> str:
    """All letters as they are, where the output can have them: a question mark in their place is another record."""
    text = trace.to_json()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(trace.to_dict(), indent=1)
    return text


def _choice(options: argparse.Namespace, workbench: Workbench) -> Choice:
    """Policy, evaluator, model and thresholds; a preset is one of the policy's file, else a tuned one."""
    model = options.model or workbench.config.model or EXTRACTIVE
    policy = find_policy(options.policy or DEFAULT, workbench.config)
    if options.preset and options.preset not in {preset.name for preset in policy.presets}:
        tuned = _tuned(workbench, options.preset, policy)
        with as_typed():
            return preset_choice(workbench, tuned, options.policy, options.evaluator, model)
    evaluator = options.evaluator or default_evaluator(policy, model)
    policy = suit(policy, evaluator)
    policy = policy.preset(options.preset) if options.preset else policy
    return Choice(policy, evaluator, model, top_k=workbench.config.top_k)


def _tuned(workbench: Workbench, name: str, policy: Policy) -> TunedPreset:
    """A tuned preset; an unknown name lists those of the policy's file too."""
    try:
        return workbench.find_preset(name)
    except UnknownName:
        if name.endswith(".toml"):  # a file, which is not there
            raise
        known = [*(preset.name for preset in policy.presets), *workbench.laboratory.preset_names()]
        raise UnknownName.among(f"preset of policy {policy.name!r}", name, known) from None


def report(options: argparse.Namespace) -> int:
    trace = read_run(options.run)
    try:
        policy = _report_policy(options, trace)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    name = options.output or page_beside(options.run)
    size = write_page(render(trace, policy), name, options.run)
    if name != STREAM:
        print(f"{name}: {size / 1000:.0f} kB, opens in any browser, without network")
    return 0


def _report_policy(options: argparse.Namespace, trace: Trace) -> Policy:
    """The policy of the run, or the one asked for with the thresholds that fit the run's evaluators."""
    made = trace.settings
    policy = made.policy
    if options.policy:
        policy = find_policy(options.policy, config.load()).suited_to(made.evaluator, made.strip_evaluator)
    if options.preset:
        policy = policy.preset(options.preset)
    return policy.with_thresholds(options.lower, options.upper, options.cutoff)


class _Progress(Listener):
    def finished(self, step: Step, trace: Trace) -> None:
        print(f"  {step.name:<14} {step.seconds * 1000:7.0f} ms  {step.summary}", file=sys.stderr)


def _cost(choice: Choice, support: str) -> str:
    passages = len(choice.pinned) + (choice.top_k if choice.search_too or not choice.pinned else 0)
    calls = budget(
        choice.policy,
        known_card(choice.evaluator),
        passages,
        writer=choice.model != EXTRACTIVE,
        searches=choice.web is not WebMode.OFF,
    )
    words = ", ".join(f"{choice.policy.route(one).label} {calls[one]}" for one in calls)
    return f"model calls by route: {words}" + ("" if support == WORDS else f", {JUDGING}")


def _find_documents(workbench: Workbench, names: list[str]) -> tuple[str, ...]:
    """Ids of documents by file name; of two versions, as a kill can leave them, the newer."""
    known = {document.name: document.id for document in reversed(workbench.store.documents())} if names else {}
    for name in names:
        if name not in known:
            raise UnknownName.among("document", name, known)
    return tuple(known[name] for name in names)


def _approval(trace: Trace, who: str) -> Trace:
    """Ask on the terminal; without one, nothing leaves the machine."""
    assert trace.web is not None
    if not sys.stdin.isatty():
        return refuse(trace)
    asking = f"Ask {who} for “{trace.web.query}”? [y = yes, n = no, or another query] "
    print(asking, end="", file=sys.stderr, flush=True)  # standard output may be on its way into a file
    reply = sys.stdin.readline().strip()
    if reply.lower() in ("", "n", "no"):
        return refuse(trace)
    return approve(trace, trace.web.query if reply.lower() in ("y", "yes") else reply)


def _describe(trace: Trace) -> str:
    lines = []
    if trace.decision:
        lines.append(f"{trace.decision.label.upper()}: {trace.decision.reason}")
    if trace.failure:
        lines.append(f"Broke off at {trace.failure.name}: {trace.failure.summary} {trace.failure.hint}")
    if trace.answer:
        lines += ["", trace.answer.text] if trace.answer.text else []
        lines += ["", trace.answer.message] if trace.answer.state is not AnswerState.COMPLETE else []
    if trace.decision:
        lines += [f"note: {note}" for note in reroute(trace, trace.settings.policy).knowledge.notes]
    made = summarize(trace)
    lines += [
        "",
        f"corrections: {made.strategy}; {made.model_calls} model calls, {made.retrieval_ms:.0f} ms to the context",
    ]
    lines.append("")
    for passage in trace.all_passages:
        grade = trace.grade_of(passage.id)
        score = f"{grade.score:.2f}" if grade and grade.score is not None else "  - "
        page = f", page {passage.page}" if passage.page else ""
        both = grade.two_signals if grade else None
        signals = "  (answering {:.2f}, topical {:.2f})".format(*both) if both else ""
        lines.append(f"  {score}  {passage.source}{page}{signals}")
    lines += [f"  web   {result.source}  {result.url}" for result in (trace.web.passages if trace.web else ())]
    return "\n".join(lines)


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"expected 0 to 1, found {text}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m crag_core", description="Corrective RAG, from the command line.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("ingest", help="index files, ZIP archives and folders")
    add.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=f"for example {DATA.name}/sample")
    add.add_argument("--collection", default="", metavar="NAME", help="put them into this collection; default: main")
    add.set_defaults(command=ingest)
    anew = commands.add_parser("reindex", help="make all chunks anew, of other lengths or by another embedding model")
    anew.add_argument("--embedding", metavar="MODEL", help="default: the model of the present chunks")
    anew.add_argument("--tokens", type=int, metavar="N", help="in a chunk at most; default: as now")
    anew.add_argument("--overlap", type=int, metavar="N", help="repeated of the chunk before; default: as now")
    anew.set_defaults(command=reindex)
    query = commands.add_parser("ask", help="ask the indexed documents a question")
    query.add_argument("question", help=f"{STREAM}: from standard input, in UTF-8")
    query.add_argument("--policy", help=f"the name of a file in data/policies; default: {DEFAULT}")
    query.add_argument(
        "--preset", metavar="NAME",
        help="thresholds of the policy's file, such as conservative, or tuned ones by name or path",
    )  # fmt: skip
    query.add_argument("--evaluator", help=f"{', '.join(EVALUATORS)}; default: what fits the policy")
    query.add_argument(
        "--model", help='"extractive", "ollama/NAME" or "openai/NAME"; default: CRAG_MODEL or extractive'
    )
    query.add_argument("--web", default="off", choices=[mode.value for mode in WebMode])
    query.add_argument("--lower", type=_share, metavar="0..1")
    query.add_argument("--upper", type=_share, metavar="0..1")
    query.add_argument("--top-k", type=int, choices=range(1, 21), metavar="1..20")
    query.add_argument("--collection", default="", metavar="NAME", help="search only there; default: everywhere")
    query.add_argument("--pin", action="append", default=[], metavar="FILE", help="read this indexed file whole")
    query.add_argument("--search-too", action="store_true", help="search the other documents beside pinned files")
    query.add_argument("--json", action="store_true", help="print the whole record of the run")
    query.set_defaults(command=ask)
    page = commands.add_parser("report", help="write a recorded run as one HTML file to send to somebody")
    page.add_argument("run", metavar="RUN.json", help='what "ask … --json" printed; -: standard input')
    page.add_argument("-o", "--output", metavar="FILE.html", help="default: beside the run; -: standard output")
    page.add_argument("--policy", help="decide by this policy instead of that of the run")
    page.add_argument("--preset", metavar="NAME", help="thresholds of the policy's file")
    page.add_argument("--lower", type=_share, metavar="0..1")
    page.add_argument("--upper", type=_share, metavar="0..1")
    page.add_argument("--cutoff", type=_share, metavar="0..1", help="for sentences")
    page.set_defaults(command=report)
    tune.add_commands(commands)
    compare.add_compare(commands)
    metrics.add_commands(commands)
    backup.add_commands(commands)
    settings_commands.add_commands(commands)
    return parser


if __name__ == "__main__":
    shutdown.run(run)
