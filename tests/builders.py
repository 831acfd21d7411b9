"""Passages, grades, strips and traces made by hand: everything that the pure core works on, without any model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import CorrectionKind, Decision
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.knowledge import Strip, StripVerdict
from crag_core.base.types.passages import ANSWERING, TOPICAL, Engine, Origin, Passage, Retrieval, Round, Scores
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import parse_policy
from crag_core.decision.signals import SUFFICIENCY
from crag_core.trace.trace import RunSettings, Trace

Grades = tuple[Grade, ...] | None
POLICY_FILES = Path(__file__).parents[1] / "data" / "policies"
POLICIES = (
    "paper",
    "worst-chunk",
    "rank-weighted",
    "heuristic",
    "signals",
    "agentic",
    "two-signal",
    "sufficient-context",
    "self-route",
    "adaptive-rag",
    "astute-rag",
)

CARD = EvaluatorCard(
    name="hand",
    title="By hand",
    scale="0 to 1",
    lower=0.20,
    upper=0.80,
    strip_cutoff=0.45,
    calls_model=False,
    cost="nothing",
)


@cache
def policy_file(name: str) -> Policy:
    return parse_policy((POLICY_FILES / f"{name}.toml").read_text("utf-8"), name)


def policy(name: str) -> Policy:
    """The policy from its file; with round thresholds where those of the file follow the evaluator's tuning."""
    tuned = name in ("paper", "two-signal", "sufficient-context", "self-route", "adaptive-rag", "astute-rag")
    return policy_file(name).with_thresholds(0.40, 0.60, 0.30) if tuned else policy_file(name)


def changing(of: Policy, **fields: Any) -> Policy:
    """`of` with other fields; `web_limit` stands for the field `limit` of its table `web`, and so on."""
    web = {name.removeprefix("web_"): fields.pop(name) for name in [*fields] if name.startswith("web_")}
    return replace(of, web=replace(of.web, **web), **fields)


def passage(name: str, text: str = "Some text.", **fields: Any) -> Passage:
    return Passage(name, text, **{"source": f"{name}.txt"} | fields)


def passages(count: int, **fields: Any) -> tuple[Passage, ...]:
    """p1, p2 and so on, in rank order."""
    return tuple(passage(f"p{number}", **fields) for number in range(1, count + 1))


def grade(name: str, score: float | None) -> Grade:
    if score is None:
        return Grade(name, None, raw="I am not sure.", cause="the reply holds no score")
    return Grade(name, score, reason="by hand")


def graded(*scores: float | None) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    """Passages p1, p2 and so on with these grades; None: asked, but not graded."""
    found = passages(len(scores))
    return found, tuple(grade(p.id, score) for p, score in zip(found, scores, strict=True))


def twice(*signals: tuple[float, float] | float | None) -> tuple[tuple[Passage, ...], tuple[Grade, ...]]:
    """As `graded`, with (answering, topical) for a grade of two parts, whose score is their mean."""
    found, grades = graded(*(sum(one) / 2 if isinstance(one, tuple) else one for one in signals))
    parted = (
        replace(given, parts=tuple(zip((ANSWERING, TOPICAL), one, strict=True))) if isinstance(one, tuple) else given
        for given, one in zip(grades, signals, strict=True)
    )
    return found, tuple(parted)


def even(value: float) -> Scores:
    """Every signal that any policy weighs, all of the same value: then the weighted sum is that value too."""
    names = ("keyword_overlap", "coherence", "length_adequacy", "diversity", "keyword_coverage", "agreement")
    return tuple((name, value) for name in (*names, SUFFICIENCY))


def strips_of(found: Passage, *pieces: tuple[str, float | None]) -> tuple[Strip, ...]:
    """Scored strips of a passage, each given by its text, which must stand in the passage in this order."""
    strips: list[Strip] = []
    at = 0
    for index, (text, score) in enumerate(pieces):
        at = found.text.index(text, at)
        strips.append(Strip(found.id, index, at, at + len(text), text, score))
        at += len(text)
    return tuple(strips)


def web_page(name: str, text: str) -> Passage:
    return Passage(name, text, f"{name}.example", Origin.WEB, url=f"https://{name}.example/")


def searched(*pages: Passage, strips: tuple[Strip, ...] = ()) -> WebSearch:
    outcome = WebOutcome.USED if pages else WebOutcome.EMPTY
    return WebSearch(outcome, "ferry fares", "the question's keywords", "duckduckgo", passages=pages, strips=strips)


def round_of(path: str, *found: Passage, query: str = "ferry fares", signals: Scores = ()) -> Round:
    """A later retrieval; `path` names the rounds that led to it, and itself last: "keyword refine"."""
    retrieval = Retrieval(query, Engine.HYBRID, found)
    return Round(tuple(path.split()), (retrieval,), "written by hand", signals=signals)


def settings(of: Policy) -> RunSettings:
    return RunSettings(of, CARD, CARD, "minilm", "extractive", "auto", 5, "1", "0.1")


def trace(of: Policy, *, grades: Grades = None, web_grades: Grades = None, **fields: Any) -> Trace:
    known = {"id": "run-1", "created": "2025-01-01T00:00:00Z", "question": "What does the ferry cost?"}
    return graded_by_its_own(Trace(**known | {"settings": settings(of)} | fields), grades, web_grades)


def graded_by_its_own(run: Trace, grades: Grades, web_grades: Grades = None) -> Trace:
    """With these in place of what its evaluator says; None and None: nothing."""
    made, own = run.settings, (*(grades or ()), *(web_grades or ()))
    opinion = Opinion(made.evaluator, made.writer, own, made.writer_version)
    is_graded = (grades, web_grades) != (None, None)
    return replace(run, opinions=((opinion,) if is_graded else ()) + run.other_opinions)


def answer(context_key: str, text: str = "Nine euros [1].") -> Answer:
    return Answer(text, AnswerState.COMPLETE, "extractive", context_key)


def kinds(decision: Decision) -> tuple[CorrectionKind, ...]:
    return tuple(correction.kind for correction in decision.plan)


def kept(verdicts: tuple[StripVerdict, ...]) -> list[str]:
    return [verdict.strip.text for verdict in verdicts if verdict.kept]


def struck(verdicts: tuple[StripVerdict, ...]) -> dict[str, str]:
    """Each struck-out strip's text with the reason."""
    return {verdict.strip.text: verdict.reason for verdict in verdicts if not verdict.kept}
