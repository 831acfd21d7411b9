"""Which recorded facts hold under other settings. Pure.

One table names what each fact depends on; taking a run over and going on with it follow from it. What is decided,
written or checked is made anew from the facts.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace

from crag_core.base.types.steps import StepName, StepState
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.reasons import query_form
from crag_core.trace.opinions import with_grades_of
from crag_core.trace.trace import RunSettings, Trace

_SETTLED = (WebOutcome.USED, WebOutcome.EMPTY, WebOutcome.APPROVED, WebOutcome.REFUSED)


def _model(settings: RunSettings) -> Hashable:
    return settings.writer, settings.writer_version, settings.prompts


def _retrieval(settings: RunSettings) -> Hashable:
    searches_too = bool(settings.pinned) and settings.search_too
    return settings.embedding, settings.top_k, settings.collection, settings.pinned, searches_too


DEPENDS: dict[str, Callable[[RunSettings], Hashable]] = {
    "passages": _retrieval,  # every other fact depends on them as well
    "question_class": _model,
    "sufficiency": _model,
    "consolidations": _model,
    "answer": _model,  # one that is not whole, which goes on from its last word
    "strips": lambda settings: settings.strip_evaluator.identity,
    "web.query_waits": lambda settings: (settings.web_mode, settings.writer, query_form(settings.policy)),
    "web.pages_wait": lambda settings: settings.web_mode,
    "rounds.not_made": lambda settings: settings.writer,  # "there is nothing new to ask"
}
_OF_STEPS = {
    StepName.CONDENSE: "passages",
    StepName.RETRIEVE: "passages",
    StepName.RETRIEVE_AGAIN: "passages",
    StepName.EXTRACT: "passages",
    StepName.SCORE_STRIPS: "strips",
    StepName.JUDGE_TOGETHER: "sufficiency",
    StepName.CLASSIFY: "question_class",
    StepName.CONSOLIDATE: "consolidations",
    StepName.REWRITE: "web",
    StepName.SEARCH: "web",
    StepName.READ_PAGES: "web.pages",
    StepName.GRADE_WEB: "web.scores",
    StepName.GRADE: "grades",
    StepName.SECOND_OPINION: "opinions",
    StepName.ANSWER: "answer",
}


def held(then: RunSettings, now: RunSettings) -> set[str]:
    """The facts of `DEPENDS` that were made under `then` and hold under `now`, and grades by the same judge."""
    facts = {fact for fact, of in DEPENDS.items() if of(then) == of(now)}
    return facts | ({"grades"} if then.same_judge(now) else set())


def still_holding(trace: Trace, now: RunSettings) -> Trace | None:
    """The record with the facts that hold under `now`, and the steps and calls that made them; None where none does.

    Grades of every evaluator are kept, and those of the present one decide. A search that was answered is kept, and the
    user's word on a query; a query that waits for it where the same would be written again.
    """
    facts = held(trace.settings, now)
    if "passages" not in facts and trace.logged is None:
        return None
    graded = with_grades_of(trace, now)
    facts |= {"passages"} | ({"grades"} if graded.deciding else set())
    answer = trace.answer if "answer" in facts and trace.answer and trace.answer.state.is_unfinished else None
    facts -= set() if answer else {"answer"}
    web = _web(trace.web, facts)
    made = facts | ({"web"} if web else set()) | ({"opinions"} if graded.other_opinions else set())
    made |= {"web.pages"} if web and web.pages is not None else set()
    is_scored = web is not None and (web.strips is not None or graded.web_grades is not None)
    made |= {"web.scores"} if is_scored and "grades" in facts else set()
    judges = {"grades", "opinions"} & made  # whichever of both a call was made for
    steps = {name for name, fact in _OF_STEPS.items() if fact in made}
    calls = steps | ({StepName.GRADE, StepName.SECOND_OPINION} if judges else set())
    return replace(
        graded,
        settings=now,
        passages=None if trace.is_unretrieved else graded.passages,
        rounds=tuple(one for one in graded.rounds if one.retrievals or "rounds.not_made" in facts),
        strips=trace.strips if "strips" in facts else None,
        question_class=trace.question_class if "question_class" in facts else None,
        sufficiency=trace.sufficiency if "sufficiency" in facts else (),
        consolidations=trace.consolidations if "consolidations" in facts else (),
        web=web,
        steps=tuple(one for one in graded.steps if one.name in steps and one.state is not StepState.SKIPPED),
        calls=tuple(one for one in trace.calls if one.step in calls),
        decision=None,
        earlier=(),
        context=None,
        corrections=None,
        answer=answer,
        support=None,
    )


def _web(web: WebSearch | None, facts: set[str]) -> WebSearch | None:
    if web is None:
        return None
    waits = web.outcome is WebOutcome.PENDING and "web.query_waits" in facts
    if web.outcome not in _SETTLED and not waits:
        return None
    if web.pages_waiting and "web.pages_wait" not in facts:
        web = replace(web, pages=None)
    return web if "strips" in facts else replace(web, strips=None)
