"""The stage "grade": by the evaluator of the run, a second one beside it, or a model that reads all chunks together."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any

from crag_core.base.concurrency.cancellation import REPLIED
from crag_core.base.errors import CragError, EvaluatorUnavailable, ModelUnavailable, Stopped
from crag_core.base.prompts.messages import Prompts
from crag_core.base.prompts.replies import SUFFICIENCY_SAID, SUFFICIENT, SUFFICIENT_SCHEMA
from crag_core.base.protocols import Cancel, Evaluator, LanguageModel
from crag_core.base.reply_parsing import parse_records, parse_verdict, without_thoughts
from crag_core.base.text.codes import codes_of, has_code, other_code
from crag_core.base.text.comparisons import says_both, two_things
from crag_core.base.text.display import counted
from crag_core.base.text.refusals import is_refusal
from crag_core.base.text.years import years_asked, years_named
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion, Sufficiency
from crag_core.base.types.knowledge import Excerpt, Strip
from crag_core.base.types.passages import ANSWERING, Passage
from crag_core.base.types.steps import StepName, StepState, Usage
from crag_core.decision.policy import ContextJudge
from crag_core.decision.steps import DOCUMENTS
from crag_core.pipeline.run import Parts, Result, Run, ask_twice
from crag_core.trace.edits import edited
from crag_core.trace.grounding.quoted_answer import why_cut
from crag_core.trace.opinions import grades_under, with_grades, with_opinion
from crag_core.trace.reroute import decision_path_of
from crag_core.trace.trace import RunSettings, Trace

HALF = 0.5  # the most that *answering* may be where a chunk has one of two things that are asked for together
GRADED_TOGETHER = 4  # passages that a model judges before the grades are kept and shown: the most that a stop can lose


def grade(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Grade what the present iteration looks at; what an expansion adds is graded only if that costs no model call."""
    policy, card = trace.settings.policy, trace.settings.evaluator
    decision_path = decision_path_of(trace, policy)
    passages = decision_path.evidence
    if decision_path.decision.next_round == DOCUMENTS:  # which are read, not judged
        passages = decision_path.iterations[-1].passages
    if card.calls_model:  # which is not asked about what counts as 1.0 anyway
        judged = decision_path.iterations[-1].passages[: policy.top]
        passages = tuple(passage for passage in judged if passage.id not in trace.edits.pinned)
    asking = _Asking(StepName.GRADE, card, passages, _by_id(trace.all_grades))
    todo = asking.open_among(passages)
    if trace.deciding and not todo:
        return None
    if decision_path.decision.rule:
        return Result({}, f"not needed, {decision_path.decision.reason}", state=StepState.SKIPPED)
    asking.ask(parts.evaluator, trace.question, todo, run)
    return asking.result({"opinions": with_grades(trace, asking.known.values())} if asking.known or not todo else {})


def judge_together(trace: Trace, parts: Parts, run: Run) -> Result | None:
    view, policy = edited(trace), trace.settings.policy
    if not policy.judges_together or not view.passages or view.judgement(policy):
        return None
    if parts.model is None:
        return Result({}, "no language model to ask; the best chunk decides", state=StepState.SKIPPED)
    asking = _answer_or_decline if policy.context_judge is ContextJudge.ANSWER else _rate
    judged, what, usage = asking(trace.question, view.passages, parts.model, parts.prompts, run)
    count, shown = len(judged.passages), judged.shown
    read = f"{shown} of {count} chunks" if shown < count else counted(count, "chunk")
    told = what if judged.score is not None else f"not judged, {judged.cause}"
    summary = f"{read} read together: {told}{f'. {judged.reason}' if judged.reason else ''}"
    return Result({"sufficiency": (*trace.sufficiency, judged)}, summary, usage)


def _rate(
    question: str, passages: tuple[Passage, ...], model: LanguageModel, prompts: Prompts, run: Run
) -> tuple[Sufficiency, str, Usage]:
    """A label for the whole context; a reply that cannot be read is asked for once more, with what was wrong."""
    asked, shown = prompts.sufficient(question, [passage.text for passage in passages])
    read = partial(parse_verdict, verdicts=SUFFICIENCY_SAID)
    found, replies, usage = ask_twice(model, prompts, asked, read, run.cancel, SUFFICIENT_SCHEMA)
    raw = replies[-1] if found.verdict else "\n--- asked again ---\n".join(replies)
    score = None if found.verdict is None else float(found.verdict == SUFFICIENT)
    told = next((record.get("explanation") for record in parse_records(replies[-1], "verdict")), "")
    reason = told.strip() if isinstance(told, str) else ""
    ids = tuple(passage.id for passage in passages)
    cause = "" if found.verdict else f"{found.cause} (asked twice)"
    return Sufficiency(ContextJudge.AUTORATER, ids, shown, score, reason, raw, cause), found.verdict or "", usage


def _answer_or_decline(
    question: str, passages: tuple[Passage, ...], model: LanguageModel, prompts: Prompts, run: Run
) -> tuple[Sufficiency, str, Usage]:
    excerpts = tuple(Excerpt(passage, passage.text) for passage in passages)
    reply = model.complete(prompts.answer(question, excerpts), run.cancel)
    text = without_thoughts(reply.text)
    score = None if not text else float(not is_refusal(text))
    ids = tuple(passage.id for passage in passages)
    cause = why_cut(reply.usage) if text else "the reply was empty"
    judged = Sufficiency(ContextJudge.ANSWER, ids, len(ids), score, raw=reply.text, cause=cause)
    return judged, "answered" if score else "declined", reply.usage


def second_opinion(trace: Trace, parts: Parts, run: Run, settings: RunSettings) -> Result | None:
    """Grade what the run has looked at, and its web results, by the evaluator of `settings`, which are not the run's.

    What is dropped is left out, what is pinned is not.
    """
    card = settings.evaluator
    corpus = decision_path_of(trace, trace.settings.policy).looked_at
    web = edited(trace).web_passages
    if not (corpus or web):
        return Result({}, "nothing was retrieved that could be graded", state=StepState.SKIPPED)
    asking = _Asking(StepName.SECOND_OPINION, card, corpus + web, _by_id(grades_under(trace, settings)))
    todo = [asking.open_among(passages) for passages in (corpus, web)]
    if not any(todo):
        return None
    for passages in todo:  # apart, as in a run: some grades are made from the passages beside
        asking.ask(parts.evaluator, trace.question, passages, run)
    kept = asking.grades_of(trace.every_passage)
    opinion = Opinion(card, settings.writer, kept, settings.writer_version)
    return asking.result({"opinions": with_opinion(trace, opinion)} if kept else {})


def grades_by(evaluator: Evaluator, question: str, passages: tuple[Passage, ...], cancel: Cancel) -> tuple[Grade, ...]:
    """One a passage; what has no text, such as an image, is not graded.

    Raises `EvaluatorUnavailable` where the evaluator, which may be a user's own, forgets one.
    """
    asked = tuple(passage for passage in passages if passage.text.strip())
    grades = evaluator.grade(question, asked, cancel) if asked else ()
    if [grade.passage_id for grade in grades] != [passage.id for passage in asked]:
        raise EvaluatorUnavailable(
            f"The evaluator {evaluator.card.name!r} gave {len(grades)} grades for {len(asked)} chunks; "
            "expected one for each, with its id, in their order.",
            hint="See docs/extending.md.",
        )
    known = _by_id(grades_as_asked(question, passages, grades))
    return tuple(known.get(one.id) or Grade(one.id, None, cause="no text") for one in passages)


def without_code(question: str, passages: Sequence[Passage]) -> dict[str, str]:
    """Why a passage does not answer, by its id: "the question names 7-0064-18, this chunk 7-0064-16".

    Its headings and the name of its file count. A code that no passage holds says nothing.
    """
    texts = {one.id: f"{one.source}\n{one.section}\n{one.text}" for one in passages}
    found: dict[str, str] = {}
    for code in codes_of(question):
        lacking = [id_ for id_, text in texts.items() if not has_code(text, code)]
        for id_ in lacking if len(lacking) < len(texts) else ():
            found.setdefault(id_, f"the question names {code}, this chunk {other_code(texts[id_], code) or 'does not'}")
    return found


def of_later_year(question: str, passages: Sequence[Passage]) -> dict[str, str]:
    """Likewise, where headings and file name have only years after the question's, and the text has not that one.

    What an earlier document says may still have held.
    """
    found: dict[str, str] = {}
    asked = years_asked(question)
    for one in passages if asked else ():
        named = years_named(f"{one.source}\n{one.section}")
        if named and min(named) > max(asked) and not asked & years_named(one.text):
            found[one.id] = f"the question is about {max(asked)}, this chunk of {min(named)}"
    return found


def grades_as_asked(question: str, passages: Sequence[Passage], grades: Sequence[Grade]) -> tuple[Grade, ...]:
    """The grades, with *answering* lowered to 0 or 0.5 for passages that cannot answer; their reason says why.

    Those of evaluators that do not tell *answering* from *topical* stay as they are.
    """
    limits = {id_: (HALF, told) for id_, told in of_later_year(question, passages).items()}
    if things := two_things(question):
        told = "the question asks for {} and {} together, no sentence here has both".format(*things)
        limits |= {one.id: (HALF, told) for one in passages if not says_both(one.text, things)}
    limits |= {id_: (0.0, told) for id_, told in without_code(question, passages).items()}
    return tuple(
        _lowered(grade, *limits[grade.passage_id]) if grade.passage_id in limits else grade for grade in grades
    )


def strips_as_asked(question: str, passages: Sequence[Passage], strips: Sequence[Strip]) -> tuple[Strip, ...]:
    """The strips; those of passages without the code that is asked for score 0, those of a later year half."""
    shares = dict.fromkeys(of_later_year(question, passages), HALF) | dict.fromkeys(without_code(question, passages), 0)
    return tuple(
        replace(strip, score=strip.score * shares[strip.passage_id])
        if strip.score and strip.passage_id in shares
        else strip
        for strip in strips
    )


def _lowered(grade: Grade, most: float, why: str) -> Grade:
    read = dict(grade.parts).get(ANSWERING)
    if grade.score is None or read is None or read <= most:
        return grade
    parts = tuple((name, most if name == ANSWERING else value) for name, value in grade.parts)
    reason = f"{why}: answering {most:.2f} in place of {read:.2f}; {grade.reason}"
    return replace(grade, score=fmean(value for _, value in parts), parts=parts, reason=reason)


def _by_id(grades: tuple[Grade, ...]) -> dict[str, Grade]:
    return {grade.passage_id: grade for grade in grades}


@dataclass
class _Asking:
    name: str
    card: EvaluatorCard
    passages: tuple[Passage, ...]
    known: dict[str, Grade]
    usage: Usage = field(default_factory=Usage)
    state: StepState = StepState.DONE
    broken: str = ""
    hint: str = ""
    error: str = ""

    def open_among(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        settled = {grade.passage_id for grade in self.known.values() if not grade.retryable}
        return tuple(passage for passage in passages if passage.id not in settled)

    def ask(self, evaluator: Evaluator, question: str, todo: tuple[Passage, ...], run: Run) -> None:
        """Grade `todo`, some at a time where that costs calls; nothing, once it has broken off."""
        size = max(self.card.batch, GRADED_TOGETHER) if self.card.calls_model else max(len(todo), 1)
        done = len(self.passages) - len(self.open_among(self.passages))
        if self.card.calls_model and todo and not done:
            run.listener.progressed(self.name, done, len(self.passages))
        for start in range(0, len(todo), size):
            if self.state is not StepState.DONE:
                return
            token = REPLIED.set(self._heard(done, min(size, len(todo) - start), run))
            asked = todo[start : start + size]
            try:
                grades = grades_by(evaluator, question, asked, run.cancel)
            except Stopped:
                self.state = StepState.STOPPED
                self.broken = f"stopped by you after {done} of {counted(len(self.passages), 'chunk')}"
                return
            except CragError as error:
                self._fail(error.message, error.hint, type(error).__name__)
                return
            finally:
                REPLIED.reset(token)
            self.known |= _by_id(grades)
            self.usage = sum((grade.usage for grade in grades), self.usage)
            done += len(grades)
            run.listener.progressed(self.name, done, len(self.passages))
            if all(grade.retryable for grade in grades):  # the judge is away: asking on would only wait
                self._fail(grades[0].cause, "", grades[0].error or ModelUnavailable.__name__)

    def _heard(self, done: int, count: int, run: Run) -> Callable[[], None]:
        """Reports each reply of a model to the listener; one that is asked for again counts once."""
        replies = itertools.count(1)

        def tell() -> None:
            graded = min(next(replies) * self.card.batch, count)
            run.listener.progressed(self.name, done + graded, len(self.passages))

        return tell

    def grades_of(self, passages: tuple[Passage, ...]) -> tuple[Grade, ...]:
        return tuple(self.known[passage.id] for passage in passages if passage.id in self.known)

    def result(self, changes: dict[str, Any]) -> Result:
        return Result(
            changes,
            self.broken or self._describe(),
            self.usage,
            self.state,
            self.hint,
            self.error,
            by=self.card.name,
        )

    def _fail(self, message: str, hint: str, error: str) -> None:
        self.state, self.broken, self.hint, self.error = StepState.FAILED, message, hint, error

    def _describe(self) -> str:
        grades = self.grades_of(self.passages)
        ungraded = sum(grade.score is None for grade in grades)
        cached = sum(grade.from_cache for grade in grades)
        text = f"{len(grades) - ungraded} of {counted(len(self.passages), 'chunk')} graded by {self.card.title.lower()}"
        text += f", {cached} from the cache" if cached else ""
        return text + (f", {ungraded} not graded" if ungraded else "")
