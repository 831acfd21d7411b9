"""The command `ask`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

from crag_core.app.choice import Choice, Request, choose
from crag_core.app.cli.documents import take_over
from crag_core.app.cli.options import STREAM, add_choice, check_collection
from crag_core.app.workbench import Workbench
from crag_core.base.errors import UnknownName, WrongUse, as_typed
from crag_core.base.text.display import clean
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Step
from crag_core.decision.policy import Doubtful
from crag_core.observability.logs import show_logs
from crag_core.pipeline.call_budget import JUDGING
from crag_core.pipeline.run import LONGEST_QUESTION, Listener, Run, WebMode, check_question
from crag_core.pipeline.web_stages import approve, is_waiting, refuse
from crag_core.report.files import encoding_of, read_run
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE, doubtful_title, quote
from crag_core.trace.reroute import caution
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from crag_core.view.chunk_cards import chunk_cards
from crag_core.view.record import step_title
from crag_core.view.run_view import view_run
from crag_core.view.score_words import BESIDE, reason_of
from crag_core.view.verdict_lines import chip

_YES = ("y", "yes")


def add_commands(commands: Any) -> None:
    query = commands.add_parser("ask", help="ask the indexed documents a question")
    query.add_argument("question", help=f"{STREAM}: from standard input, in UTF-8")
    add_choice(query)
    query.add_argument("--plain", action="store_true", help="plain RAG: what is retrieved is used as it is, ungraded")
    query.add_argument("--web", default="off", choices=[mode.value for mode in WebMode], help="ask: confirm each query")
    shown = "where nothing was judged CORRECT: show the nearest sentences, or abstain; default: that of the policy"
    query.add_argument("--doubtful", choices=[one.value for one in Doubtful], help=shown)
    query.add_argument("--pin", action="append", default=[], metavar="FILE", help="read this indexed file whole")
    query.add_argument("--search-too", action="store_true", help="search the other documents as well")
    query.add_argument(
        "--after", default="", metavar="RUN", help="what it follows: the id of a kept run, or a file of --json"
    )
    query.add_argument("--json", action="store_true", help="print the whole record of the run")
    query.set_defaults(command=ask)


def ask(options: argparse.Namespace) -> int:
    question = _question(options.question)
    workbench = Workbench()
    show_logs(workbench.config.log)
    take_over(workbench.store)
    choice = choose(workbench, Request.of(options))
    pinned = _find_documents(workbench, options.pin)
    check_collection(options.collection, workbench)
    policy = choice.policy.without_retrieval() if pinned and not options.search_too else choice.policy
    choice = replace(choice, policy=policy, pinned=pinned, search_too=options.search_too)
    if not options.json:
        print(_cost(choice, workbench.config.support), file=sys.stderr)
    workbench.servers.check(choice.model)
    pipeline = workbench.engine(choice)
    run = Run(Listener() if options.json else _Progress())
    trace = pipeline.run(question, run, after=_run_before(options.after, workbench) if options.after else None)
    while is_waiting(trace):
        trace = pipeline.resume(_approval(trace, workbench.searcher.name), run)
    while trace.answer and trace.answer.state is AnswerState.CUT:
        asking = f"{clean(trace.answer.message)} Continue? [y = yes, n = print what there is] "
        if _reply(asking).lower() not in _YES:
            break
        trace = pipeline.resume(trace, run)
    print(_record(trace) if options.json else _describe(trace))
    return 0 if trace.failure is None else 1


def _run_before(run_id: str, workbench: Workbench) -> Trace:
    """Raises `UnknownName` for what is neither a kept run nor a file, and `BadRecord` for a file that is no run."""
    if run_id.endswith(".json"):
        return read_run(run_id)
    found = workbench.history.load(run_id) if workbench.history.is_on else None
    if found is None:
        raise UnknownName(
            f"There is no kept run {run_id!r}.",
            hint="The application shows its id under Run; a run of this command is given as its file of --json.",
        )
    return found


def _question(text: str) -> str:
    """As it was typed, or from standard input for "-"; raises `WrongUse` for none, and for one that is too long."""
    if text == STREAM:
        data = sys.stdin.buffer.read(8 * LONGEST_QUESTION)  # anything longer is refused
        try:
            text = data.decode(encoding_of(data), "strict" if len(data) < 8 * LONGEST_QUESTION else "replace")
        except UnicodeDecodeError as error:
            words = f"Expected a question in UTF-8 on standard input, found other bytes ({error.reason})."
            raise WrongUse(words, hint="Convert it to UTF-8, or give it as an argument.") from error
    question = text.encode(errors="replace").decode().strip()  # a console may pass bytes that are not text
    if not question:
        raise WrongUse("Expected a question, found nothing.", hint='For example: ask "When does the ferry leave?"')
    with as_typed():
        check_question(question)
    return question


def _record(trace: Trace) -> str:
    """JSON, in ASCII where the output cannot encode it: a question mark in place of a letter changes the record."""
    text = trace.to_json()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(trace.to_dict(), indent=1)
    return text


class _Progress(Listener):
    def finished(self, step: Step, trace: Trace) -> None:
        print(f"  {step_title(step.name):<15} {step.seconds * 1000:7.0f} ms  {step.summary}", file=sys.stderr)


def _cost(choice: Choice, support: str) -> str:
    calls = choice.calls_by_action()
    if choice.policy.is_plain:
        return f"model calls: {calls[Action.CORRECT]}" + (f", {JUDGING}" if support != WORDS else "")
    words = ", ".join(f"{choice.policy.label(one)} {calls[one]}" for one in calls)
    return f"model calls by route: {words}" + (f", {JUDGING}" if support != WORDS else "")


def _find_documents(workbench: Workbench, names: list[str]) -> tuple[str, ...]:
    """Ids of documents by file name; of two versions, as a kill can leave them, the newer."""
    known = {document.name: document.id for document in reversed(workbench.store.documents())} if names else {}
    for name in names:
        if name not in known:
            raise UnknownName.among("document", name, known)
    return tuple(known[name] for name in names)


def _approval(trace: Trace, who: str) -> Trace:
    """Ask on the terminal, for the query or for the pages; without one, nothing leaves the machine."""
    assert trace.web is not None
    if pages := trace.web.pages_waiting:
        listed = "".join(f"\n  {clean(page.url)}" for page in pages)
        reply = _reply(f"Read these pages?{listed}\n[y = yes, n = only the snippets] ")
        return approve(trace) if reply.lower() in _YES else refuse(trace)
    reply = _reply(f"Ask {who} for “{trace.web.query}”? [y = yes, n = no, or another query] ")
    if reply.lower() in ("", "n", "no"):
        return refuse(trace)
    return approve(trace, trace.web.query if reply.lower() in _YES else reply)


def _reply(asking: str) -> str:
    """What somebody types at the terminal; "" without one."""
    if not sys.stdin.isatty():
        return ""
    print(asking, end="", file=sys.stderr, flush=True)  # standard output may be on its way into a file
    return sys.stdin.readline().strip()


def _describe(trace: Trace) -> str:
    lines = []
    if trace.follow_up and trace.follow_up.is_changed:
        how = "; ".join(filter(None, (trace.follow_up.by, trace.follow_up.note)))
        lines.append(f"Understood as: {clean(trace.question)} ({clean(how)})")
    if trace.asks_back:
        return "\n".join((*lines, f"Asks back: {clean(trace.asks_back)}"))
    if trace.decision:
        verdict = chip(trace.decision, reason_of(trace.decision, trace.settings.policy))
        lines.append(f"{verdict.title}. {verdict.reason}")
    if trace.failure:
        lines.append(f"Broke off at {trace.failure.name}: {trace.failure.summary} {trace.failure.hint}")
    view, why = view_run(trace), ""
    routed = view.routed
    if trace.answer:
        lines.append(f"Ending: {clean(routed.said)}")
        if trace.answer.state is AnswerState.COMPLETE:
            title, why = caution(trace, routed, BESIDE)
            lines += ["", *filter(None, (title, why))] if why else []
        lines += ["", view.cited(trace.answer.shown)]
        if trace.answer.state.is_unfinished and trace.answer.text:
            lines += ["", trace.answer.message]
        if not trace.answer.text and routed.is_doubtful:
            nearest = quote(routed.knowledge, trace.all_strips, nearest=True)
            lines += ["", doubtful_title(EXTRACTIVE), view.cited(nearest)]
    if trace.decision:
        lines += [f"note: {note}" for note in routed.knowledge.notes if note != why]
    if found := routed.knowledge.consolidation:
        lines += [f"the model's own knowledge: {clean(text)}" for text in found.own]
        lines += [f"only the model's own knowledge says: {clean(one.text)}" for one in found.from_memory_alone]
    made = summarize(trace)
    lines += [
        "",
        f"corrections: {made.strategy}; {made.model_calls} model calls, {made.retrieval_ms:.0f} ms to the context",
    ]
    lines.append("")
    for card in chunk_cards(view):
        scores = ", ".join(f"{one.name} {one.text}" for one in card.scores) or "not graded"
        lines.append(f"  [{card.label.number}] {card.label.name}  {scores}{f'  {card.action}' if card.action else ''}")
    lines += [
        f"  [{view.labels[result.id].number}] web   {result.source}  {result.url}"
        for result in (trace.web.results if trace.web else ())
    ]
    return "\n".join(lines)
