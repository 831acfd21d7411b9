"""The stages of a run's path: title, state, and what came of each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from crag_core.base.text.display import against, counted, duration
from crag_core.base.types.decisions import HANDLING_WORDS, Action, CorrectionKind, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import StripVerdict
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage
from crag_core.base.types.steps import Step, StepName, StepState
from crag_core.base.types.web import WEB_WORDS, PageOutcome, WebOutcome, WebPage, WebSearch
from crag_core.decision.steps import DOCUMENTS, EXPAND, REFINE, WIDENING
from crag_core.trace.reroute import Missing, Reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import model_name
from crag_core.view.score_words import CALLED, reason_of


class StageState(StrEnum):
    """`WOULD_BE`: on the path under the present thresholds, and not carried out in this record."""

    TAKEN = "taken"
    NOT_TAKEN = "not taken"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"
    WOULD_BE = "would be taken"
    RUNNING = "running"
    TO_COME = "to come"


@dataclass(frozen=True)
class Stage:
    """`headline` says in a few words what came of it, or why it was not taken; `detail` says more.

    `anchor` is the part of the page with its evidence. `seconds` is None where nothing was carried out. Only "route"
    has an `action`, not in plain RAG, only "refine" a `handling`. `leads_on` is False where nothing of it goes further.
    """

    id: str
    title: str
    state: StageState
    headline: str
    detail: str = ""
    anchor: str = ""
    calls: int = 0
    seconds: float | None = None
    action: Action | None = None
    handling: Handling | None = None
    leads_on: bool = True

    @property
    def cost(self) -> str:
        """ "2 calls · 1.2 s"; "" where nothing was carried out."""
        if self.seconds is None:
            return ""
        time = duration(self.seconds)
        return f"{counted(self.calls, 'call')} · {time}" if self.calls else time


_ROUNDS = {
    EXPAND: "the question expanded",
    DOCUMENTS: "whole documents",
    REFINE: "keywords refined",
    "keyword": "by keywords",
    "rewritten": "the question in other words",
    "expanded": "the question expanded",
}
PLACES = {
    "retrieve": ("Retrieve", "passages", (StepName.CONDENSE, StepName.CLASSIFY, StepName.RETRIEVE)),
    "grade": ("Grade", "scores", (StepName.GRADE, StepName.JUDGE_TOGETHER)),
    "route": ("Route", "scores", (StepName.ROUTE,)),
    "again": ("Look again", "record", (StepName.RETRIEVE_AGAIN,)),
    "refine": ("Refine", "passages", (StepName.SCORE_STRIPS, StepName.EXTRACT)),
    "rewrite": ("Web query", "web", (StepName.REWRITE,)),
    "search": ("Search web", "web", (StepName.SEARCH, StepName.READ_PAGES)),
    "grade_web": ("Grade web", "web", (StepName.GRADE_WEB,)),
    "assemble": ("Assemble", "answers", (StepName.CONSOLIDATE, StepName.ASSEMBLE)),
    "answer": ("Answer", "answers", (StepName.ANSWER,)),
    "check": ("Check", "answers", (StepName.CHECK_ANSWER,)),
}
"""Of every stage by its id, in order: title, anchor, and the steps of the record that carry it out."""

BROKEN = {StepState.FAILED: StageState.FAILED, StepState.STOPPED: StageState.STOPPED}


def stage(name: str, state: StageState, headline: str = "", detail: str = "") -> Stage:
    title, anchor, _ = PLACES[name]
    return Stage(name, title, state, headline, detail, anchor)


def break_at(trace: Trace, name: str) -> Step | None:
    """The step at which this stage broke off, if it did."""
    steps = PLACES[name][2]
    return next((step for step in trace.steps if step.name in steps and step.state in BROKEN), None)


def is_skipped(trace: Trace, step_name: StepName) -> bool:
    return any(step.name == step_name and step.state is StepState.SKIPPED for step in trace.steps)


def why_not(routed: Reroute) -> str:
    action = routed.decision.action
    if routed.decision.verdict is None:
        return "no document is needed" if routed.decision.is_from_memory else "not part of plain RAG"
    return f"not needed: {action}" if action is Action.CORRECT else f"not asked: {action}"


def kept(verdicts: tuple[StripVerdict, ...], passages: tuple[Passage, ...]) -> str:
    ids = {passage.id for passage in passages}
    own = [verdict.kept for verdict in verdicts if verdict.strip.passage_id in ids]
    return f"{sum(own)} of {counted(len(own), 'sentence')}"


# --- on the documents -------------------------------------------------------------------------------------------------


def retrieve(trace: Trace, routed: Reroute) -> Stage:
    if routed.decision.is_from_memory:
        unused = "the record holds chunks that are not used now" if trace.passages else ""
        return stage("retrieve", StageState.SKIPPED, why_not(routed), unused)
    found = routed.decision_path.iterations[0].passages
    pinned = sum("read_file" in passage.found_by for passage in found)
    files, rest = counted(pinned, "pinned file"), counted(len(found) - pinned, "chunk")
    message = (f"{files}, {rest}" if len(found) > pinned else f"{files}, whole") if pinned else rest
    of = _sorted(trace) + f"from {counted(len({passage.stems_from for passage in found}), 'document')}" if found else ""
    return stage("retrieve", StageState.TAKEN, message if found else "nothing found", of)


def _sorted(trace: Trace) -> str:
    """What a model or a rule made of the question before anything was retrieved; "" where nobody sorted it."""
    step = next((step for step in trace.steps if step.name == StepName.CLASSIFY), None)
    return f"question {step.summary}; " if step and trace.settings.policy.classifies else ""


def grade(trace: Trace, routed: Reroute) -> Stage:
    decision_path = routed.decision_path
    first = decision_path.iterations[0].decision
    if first.verdict is None:
        return stage("grade", StageState.SKIPPED, why_not(routed))
    if first.rule:
        return stage("grade", StageState.SKIPPED, f"not needed: rule {first.rule}", first.reason)
    ids = {passage.id for passage in decision_path.looked_at}
    grades = [grade for grade in trace.grades or () if grade.passage_id in ids]
    is_broken = break_at(trace, "grade") is not None and any(grade.retryable for grade in grades)
    unsorted = Missing.QUESTION_CLASS in routed.missing
    if decision_path.ungraded or is_broken or unsorted or Missing.SUFFICIENCY in routed.missing:
        return stage("grade", StageState.WOULD_BE)
    if not grades:
        return stage("grade", StageState.SKIPPED, "not read by this policy" if ids else "nothing to grade")
    scores = [grade.score for grade in grades if grade.score is not None]
    count = f"{len(scores)}" if len(scores) == len(grades) else f"{len(scores) or 'none'} of {len(grades)}"
    # Where two signals decide, the combined score is none of the numbers that the route tells.
    best = _best(grades, routed) if routed.decision.topical is None else ""
    detail = f"by {trace.settings.evaluator.title}"
    if judged := trace.judgement(trace.settings.policy):
        label = {1.0: "enough", 0.0: "not enough", None: "not judged"}.get(judged.score, "in part")
        detail += f". Read together by {model_name(trace.settings.writer)}: {label}"
    return stage("grade", StageState.TAKEN, ", ".join(filter(None, (f"{count} graded", best))), detail)


def _best(grades: Sequence[Grade], routed: Reroute) -> str:
    scores = [grade.score for grade in grades if grade.score is not None]
    return f"best {against(max(scores), routed.policy.lower, routed.policy.upper)[0]}" if scores else ""


def route(trace: Trace, routed: Reroute) -> Stage:
    decision, policy = routed.decision, routed.policy
    message = decision.reason
    if decision.verdict is None:
        message = decision.label.lower()
    elif decision.rule:
        message = f"by rule {decision.rule}"
    elif decision.score is not None and decision.topical is not None:
        (first, _), (then, _) = against(decision.score, policy.upper), against(decision.topical, policy.lower)
        message = f"{CALLED[ANSWERING]} {first}, {CALLED[TOPICAL]} {then}"
    elif decision.score is not None:
        message = f"overall {against(decision.score, policy.lower, policy.upper)[0]}"
    own, reason = decision.label.upper() != decision.action, reason_of(decision, policy)
    detail = f"{decision.label}: {reason}" if own else reason
    return replace(stage("route", StageState.TAKEN, message, detail), action=decision.verdict)


def again(trace: Trace, routed: Reroute) -> Stage:
    decision_path = routed.decision_path
    last = decision_path.iterations[-1]
    following = last.decision.next_round
    is_widened = following in WIDENING and not decision_path.ungraded and decision_path.wanted is None
    path = (*last.path, str(following)) if is_widened else last.path
    first = {passage.id for passage in decision_path.iterations[0].passages}
    new = sum(passage.id not in first for passage in decision_path.looked_at)
    made = f"{counted(len(path), 'more round')}, {new} new" if path else ""
    detail = ", then ".join(_ROUNDS.get(name, name) for name in decision_path.wanted or path)
    if decision_path.not_made:
        message = f"{made}; then nothing new to ask" if made else "nothing new to ask"
        return stage("again", StageState.TAKEN, message, "; ".join(filter(None, (detail, decision_path.not_made))))
    if decision_path.wanted is None:
        state = StageState.TAKEN if path else StageState.NOT_TAKEN
        return stage("again", state, made or why_not(routed), detail)
    if is_skipped(trace, StepName.RETRIEVE_AGAIN):
        return stage("again", StageState.SKIPPED, "only your pinned files", detail)
    return stage("again", StageState.WOULD_BE, f"{made}; the next not in this record" if made else "", detail)


def refine(trace: Trace, routed: Reroute) -> Stage:
    decision_path, handling, knowledge = routed.decision_path, routed.decision.handling, routed.knowledge
    message = replace(
        stage("refine", StageState.TAKEN, detail=_set_aside(routed)),
        title=HANDLING_WORDS[handling][0],
        handling=handling,
        leads_on=bool(knowledge.internal),
    )
    if not decision_path.evidence:
        return replace(message, state=StageState.NOT_TAKEN, headline="no chunks")
    whole = sum(not excerpt.strip_ids for excerpt in knowledge.internal)
    if handling is Handling.DISCARD:
        count = counted(len(decision_path.evidence), "chunk")
        return replace(
            message, headline=f"{whole} of {count} used after all" if whole else f"{count} set aside", detail=""
        )
    needs = {Missing.STRIPS, *([Missing.DOCUMENTS] if handling is Handling.DOCUMENTS else [])}
    if needs & set(routed.missing):
        return replace(message, state=StageState.WOULD_BE)
    if handling is Handling.DOCUMENTS:
        return replace(message, headline=counted(whole, "document"))
    if handling is Handling.KEEP or whole:
        return replace(message, headline=f"{counted(whole, 'chunk')} as {'it is' if whole == 1 else 'they are'}")
    count = kept(knowledge.verdicts, decision_path.evidence)
    if Missing.EXTRACTION not in routed.missing:
        return replace(message, headline=count)
    if is_skipped(trace, StepName.EXTRACT):
        return replace(message, headline=f"{count}, by score", detail="no language model to extract them")
    return replace(message, state=StageState.WOULD_BE)


def _set_aside(routed: Reroute) -> str:
    left = len(routed.decision_path.evidence) - len(routed.decision_path.kept)
    return f"{counted(left, 'chunk')} set aside first" if left else ""


# --- on the web -------------------------------------------------------------------------------------------------------


_STATES = {
    WebOutcome.OFF: StageState.SKIPPED,
    WebOutcome.COOLING: StageState.SKIPPED,
    WebOutcome.PENDING: StageState.WAITING,
    WebOutcome.APPROVED: StageState.WOULD_BE,
    WebOutcome.REFUSED: StageState.SKIPPED,
    WebOutcome.EMPTY: StageState.TAKEN,
}


def web_stage(name: str, trace: Trace, routed: Reroute) -> Stage:
    web = trace.web
    if routed.decision.web_below is not None:
        return stage(name, StageState.WOULD_BE, f"if fewer than {routed.decision.web_below} chunks are left")
    if not routed.decision.wants(CorrectionKind.WEB_SEARCH):
        unused = "the record holds a search that is not used now" if web and web.passages else ""
        return stage(name, StageState.NOT_TAKEN, why_not(routed), unused)
    if web is None:
        return stage(name, StageState.WOULD_BE)
    if web.outcome in (WebOutcome.OFF, WebOutcome.COOLING):
        return stage(name, StageState.SKIPPED, WEB_WORDS[web.outcome].short, web.message)
    if name == "rewrite":
        return stage(name, StageState.TAKEN, f"“{web.query}”", web.query_by)
    return _search(web) if name == "search" else _grade_web(web, trace.web_grades, routed)


def _search(web: WebSearch) -> Stage:
    by, found = web.provider or "the web", counted(len(web.results), "result")
    if web.pages_waiting:
        waiting = f"{found}, {counted(len(web.pages_waiting), 'page')} to read"
        return stage("search", StageState.WAITING, waiting, "waits for your approval")
    if web.outcome is not WebOutcome.USED:
        state = _STATES.get(web.outcome, StageState.FAILED)
        detail = "nothing left this machine" if web.outcome is WebOutcome.REFUSED else web.message
        return stage("search", state, WEB_WORDS[web.outcome].short.format(by), detail)
    cached = "from the cache, the query did not leave this machine" if web.from_cache else ""
    if read := pages_read(web):
        return stage("search", StageState.TAKEN, f"{found}, {read}", ", ".join(filter(None, (f"from {by}", cached))))
    return stage("search", StageState.TAKEN, f"{found} from {by}", cached)


def pages_read(web: WebSearch) -> str:
    """ "2 of 3 pages read"; "" where none was tried."""
    tried = [page for page in web.pages or () if page.outcome in (PageOutcome.READ, PageOutcome.FAILED)]
    read = sum(page.outcome is PageOutcome.READ for page in tried)
    return f"{read} of {counted(len(tried), 'page')} read" if tried else ""


def _grade_web(web: WebSearch, grades: tuple[Grade, ...] | None, routed: Reroute) -> Stage:
    is_ungraded = bool(web.passages) and grades is None and web.strips is None
    if web.is_waiting or web.outcome is WebOutcome.APPROVED or is_ungraded:
        return stage("grade_web", StageState.WOULD_BE)
    if not web.passages:
        return stage("grade_web", StageState.NOT_TAKEN, "no results to grade")
    external = routed.knowledge.external
    if external and not any(excerpt.strip_ids for excerpt in external):
        summary = f"{counted(len(external), 'result')} as {'it is' if len(external) == 1 else 'they are'}"
    else:
        summary = kept(routed.knowledge.verdicts, web.passages)
    best = _best(grades or (), routed)
    return replace(stage("grade_web", StageState.TAKEN, summary, best), leads_on=bool(external))


def describe_web(trace: Trace, routed: Reroute) -> str:
    """What came of the web search, or why there was none; the query stands beside it."""
    web, is_wanted = trace.web, routed.decision.wants(CorrectionKind.WEB_SEARCH)
    if web is None:
        why = ", though this route asks for one" if is_wanted else ": this route asks for none"
        if routed.decision.web_below is not None:
            why = f" yet: this route asks for one if refinement leaves fewer than {routed.decision.web_below} chunks"
        return f"No web search was made in this run{why}."
    if web.outcome is WebOutcome.USED:
        found = (
            f"{counted(len(web.results), 'result')} from {web.provider}{', from the cache' if web.from_cache else ''}"
        )
        said = f"{'; '.join(filter(None, (found, pages_read(web))))}."
    else:
        nothing = f"The web search brought nothing ({web.outcome}). {web.message}".strip()
        said = WEB_WORDS[web.outcome].sentence or nothing
    unused = " Recorded, but not used under the present thresholds." if web.passages and not is_wanted else ""
    return f"{said}{unused}"


def describe_page(page: WebPage) -> str:
    """What came of a page of a result, and how long it took; its address stands before it."""
    if page.outcome is PageOutcome.READ:
        came = f"read: {page.characters:,} characters, the best {len(page.chunks)} of {counted(page.cut, 'chunk')}"
    elif page.outcome in (PageOutcome.FAILED, PageOutcome.REFUSED):
        came = f"{page.message or page.outcome}; its snippet stands in its place"
    else:
        came = page.outcome
    return f"{came} ({duration(page.seconds)})" if page.seconds else came


def web_failure(trace: Trace, routed: Reroute) -> str:
    """Why the web search that the route asks for brought nothing, if it failed; "" otherwise."""
    web = trace.web
    if web is None or not web.outcome.is_failure or not routed.decision.wants(CorrectionKind.WEB_SEARCH):
        return ""
    return f"{search_failed(web.outcome)}. {web.message}".strip()


def search_failed(outcome: WebOutcome) -> str:
    return "Web search failed" if outcome is WebOutcome.FAILED else f"Web search failed ({outcome})"
