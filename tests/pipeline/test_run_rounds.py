"""Retrieving again: the expanded question, refined keywords, other ways of searching, and what ends it."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from crag_core.base.errors import DocumentMissing, ModelUnavailable
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action, CorrectionKind
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Engine, Passage
from crag_core.base.types.steps import StepState, Usage
from crag_core.decision.policy import Policy
from crag_core.decision.steps import EXPAND
from crag_core.pipeline.pipeline import raise_failure
from crag_core.pipeline.run import Run
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from tests.fakes import (
    KEYWORDS,
    QUESTION,
    REPHRASED,
    WEB_QUERY,
    Bench,
    Diary,
    FakeModel,
    Finding,
    by_id,
    card,
    changed,
    lanes,
    passage,
    passages,
)

SYNONYMS = {"ferry": ("boat", "ship", "vessel"), "leave": ("depart",)}
EXPANDED = f"{QUESTION} boat ship depart"
LISTED = replace(card("llm-list", calls_model=True), batch=20)
WEAK = 0.1
"""Below the lower threshold of agentic; 0.5 between its thresholds, 0.9 above both."""


def numbered(*numbers: int) -> tuple[Passage, ...]:
    """Passages that share no sentence with each other and no word with the question."""
    return tuple(passage(number, f"Fact{number} stands alone. Note{number} lies apart.") for number in numbers)


def finding(first: Sequence[Passage], **later: Sequence[Passage]) -> Finding:
    """`first` for the question, and by the name of the round for what is asked afterwards; else nothing."""
    queries: Mapping[tuple[str, Engine], Sequence[Passage]] = {
        (QUESTION, Engine.HYBRID): first,
        (QUESTION, Engine.KEYWORD): later.get("keyword", ()),
        (REPHRASED, Engine.DENSE): later.get("rewritten", ()),
        (EXPANDED, Engine.HYBRID): later.get("expanded", ()),
        (KEYWORDS, Engine.HYBRID): later.get("refined", ()),
    }
    return lambda query, engine: queries.get((query, engine), ())


def looks(count: int) -> Policy:
    return changed("agentic", max_rounds=count)


def paths(trace: Trace) -> list[tuple[str, ...]]:
    return [found.path for found in trace.rounds]


def evidence(trace: Trace) -> list[str]:
    return [passage.id for passage in reroute(trace, trace.settings.policy).decision_path.evidence]


# --- an expanded question (heuristic, PARTIAL) ----------------------------------------------------------------------

PARTIAL = changed("heuristic").with_thresholds(0.0, 1.0)
OVERLAP = finding(numbered(1, 2, 3), expanded=numbered(3, 4, 5))


def test_partial_retrieves_with_both_questions_and_fuses_by_rank() -> None:
    bench = Bench(PARTIAL, finding=OVERLAP, synonyms=SYNONYMS, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert bench.retriever.asked[0] == (QUESTION, 20), "the settings' number of chunks"
    assert sorted(bench.retriever.asked[1:]) == sorted([(QUESTION, 20), (EXPANDED, 20)])
    (found,) = trace.rounds
    assert found.path == (EXPAND,)
    assert [(one.query, one.engine) for one in found.retrievals] == [
        (QUESTION, Engine.HYBRID),
        (EXPANDED, Engine.HYBRID),
    ]
    assert found.added[:2] == (("boat", "synonym of ferry"), ("ship", "synonym of ferry"))
    assert found.query_by == "expanded by boat, ship, depart"
    assert evidence(trace) == ["p3", "p1", "p2", "p4", "p5"], "p3 is in both rankings"
    assert trace.context == ("p3", "p1", "p2", "p4", "p5")


def test_both_retrievals_are_made_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=5.0)
    first = [True]

    def meet(query: str, engine: Engine) -> Sequence[Passage]:
        if first:
            first.clear()
        else:
            meeting.wait()
        return OVERLAP(query, engine)

    assert Bench(PARTIAL, finding=meet).pipeline.run(QUESTION).rounds
    assert not meeting.broken


def test_with_the_expansion_off_partial_answers_from_what_was_retrieved_first() -> None:
    off = replace(PARTIAL, ambiguous=(("keep", None),))
    bench = Bench(off, finding=OVERLAP, synonyms=SYNONYMS)
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.label == "Partial"
    assert trace.rounds == () and bench.counts["retrieve"] == 1
    assert evidence(trace) == [one.id for one in trace.passages or ()] and trace.answer is not None
    assert summarize(trace).strategy == "none" and not summarize(trace).correction_applied


# --- refined keywords (agentic, AMBIGUOUS) --------------------------------------------------------------------------


def test_refine_keeps_what_was_kept_adds_what_is_new_and_decides_again() -> None:
    bench = Bench(
        "agentic",
        scoring=by_id(p1=WEAK, p2=0.5, p3=0.5, p4=0.9, p5=0.9, p6=0.9),
        finding=finding(numbered(1, 2, 3), refined=numbered(3, 4, 5, 6, 1)),
        judge=LISTED,
        model=FakeModel(),
    )
    trace = bench.pipeline.run(QUESTION)
    assert evidence(trace) == ["p2", "p3", "p4", "p5", "p6"], "p1 was discarded, and finding it again is no news"
    assert bench.evaluator.asked == [("p1", "p2", "p3"), ("p4", "p5", "p6")], "each is graded once"
    assert trace.decision is not None and [one.action for one in trace.earlier] == [Action.AMBIGUOUS]
    assert trace.decision.action is Action.CORRECT and trace.decision.score == pytest.approx(0.74)
    (found,) = trace.rounds
    assert (found.path, found.query_by) == (("refine",), "written by fake-model")
    assert lanes(trace) == (
        ["retrieve", *["grade", "route", "retrieve again"], *["grade", "route", "score strips", "assemble", "answer"]],
        [],
    )
    assert trace.context == ("p2", "p3", "p4", "p5", "p6")


@pytest.mark.parametrize(
    ("reply", "note", "calls"),
    [
        ("", "since fake-model gave no query", 1),
        ("<think>Hm.</think>", "since fake-model gave no query", 1),
        (QUESTION.upper(), "since fake-model repeated a query", 1),
        (ModelUnavailable("Ollama does not answer.", hint="Start it."), "since: Ollama does not answer.", 1),
        (None, "", 0),
    ],
)
def test_without_a_query_from_the_model_the_questions_own_keywords_serve(
    reply: str | Exception | None, note: str, calls: int
) -> None:
    model = None if reply is None else FakeModel(keywords=reply, answer="It leaves at nine [1].")
    bench = Bench(looks(2), best=0.5, found=passages(), synonyms=SYNONYMS, model=model)
    trace = bench.pipeline.run(QUESTION)
    (found,) = trace.rounds
    assert found.retrievals[0].query.startswith("ferry Vennick leave boat ship depart")
    assert found.query_by.startswith("keywords of question and chunks") and note in found.query_by
    step = next(step for step in trace.steps if step.name == "retrieve again")
    assert step.usage.calls == calls and trace.answer is not None


# --- other ways of searching (agentic, INCORRECT) -------------------------------------------------------------------

NEVER_GOOD = finding(
    numbered(1, 2, 3), keyword=numbered(3, 4, 5), rewritten=numbered(6, 7, 8), expanded=numbered(9, 10, 11)
)


def test_each_strategy_is_tried_once_in_order_and_the_web_last() -> None:
    bench = Bench(looks(5), best=WEAK, finding=NEVER_GOOD, judge=LISTED, synonyms=SYNONYMS, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert bench.retriever.ways == [
        (QUESTION, Engine.HYBRID),
        (QUESTION, Engine.KEYWORD),
        (REPHRASED, Engine.DENSE),
        (EXPANDED, Engine.HYBRID),
    ]
    assert paths(trace) == [("keyword", "rewritten", "expanded")[:n] for n in (1, 2, 3)]
    assert bench.evaluator.asked == [("p1", "p2", "p3"), ("p4", "p5"), ("p6", "p7", "p8"), ("p9", "p10", "p11")], (
        "what is known already is not graded again, and web results are not judged by a model"
    )
    assert bench.searcher.asked == [(WEB_QUERY, 5)]
    assert trace.context == ("web-1", "web-2"), "only the web has something to answer from"


# --- a last round that brings nothing -------------------------------------------------------------------------------


def test_where_the_last_round_finds_nothing_what_was_found_before_is_used() -> None:
    ways = finding(numbered(1, 2, 3), keyword=numbered(3, 4))
    bench = Bench("agentic", best=WEAK, finding=ways, judge=LISTED, model=(model := FakeModel()))
    trace = bench.pipeline.run(QUESTION)
    assert paths(trace) == [("keyword",), ("keyword", "rewritten")] and trace.decision is not None
    assert trace.context == ("p1", "p2", "p3", "p4") and trace.decision.action is Action.INCORRECT
    assert trace.decision.reason == (
        "iteration 3 found nothing, so 4 chunks of those before it again: "
        "no chunk reaches lower 0.30, the best scores 0.10"
    )
    assert model.kinds == ["rephrase", "answer"] and trace.answer is not None
    assert trace.answer.state is AnswerState.COMPLETE
    assert len(bench.evaluator.graded) == 4, "each once"
    assert Trace.from_json(trace.to_json()) == trace


# --- nothing new to ask ---------------------------------------------------------------------------------------------


def test_without_a_model_every_refinement_asks_for_the_next_terms() -> None:
    bench = Bench(looks(4), best=0.5, found=numbered(1, 2, 3), judge=LISTED, synonyms=SYNONYMS)
    trace = bench.pipeline.run(QUESTION)
    queries = [query for query, _ in bench.retriever.ways]
    assert queries == [
        QUESTION,
        "ferry Vennick leave boat ship depart",
        "ferry Vennick leave vessel",
        "ferry Vennick leave",
    ]
    assert trace.answer is not None


def test_where_no_new_keywords_are_left_the_loop_ends_and_says_so() -> None:
    bench = Bench(looks(5), best=0.5, found=numbered(1, 2, 3), judge=LISTED)
    trace = bench.pipeline.run(QUESTION)
    assert [query for query, _ in bench.retriever.ways] == [QUESTION, "ferry Vennick leave"], "none twice"
    assert [len(found.retrievals) for found in trace.rounds] == [1, 0]
    assert trace.decision is not None and trace.decision.next_round is None
    assert trace.decision.reason == (
        "mean of 3 kept chunks 0.50 between lower 0.30 and upper 0.70; "
        "no more retrieval: no keywords of question and chunks are left that were not asked"
    )
    assert trace.context == ("p1", "p2", "p3") and reroute(trace, trace.settings.policy).missing == ()
    kinds = [one.kind for one in trace.corrections or ()]
    assert kinds == [CorrectionKind.RE_RETRIEVE, CorrectionKind.KEEP, CorrectionKind.GENERATE]
    last = [step for step in trace.steps if step.name == "retrieve again"][-1]
    assert last.summary == "refine: not made, no keywords of question and chunks are left that were not asked"
    assert Trace.from_json(trace.to_json()) == trace


# --- stopped, broken off, resumed -----------------------------------------------------------------------------------


def test_outage_of_the_judge_in_a_later_round_is_no_verdict_and_is_made_up_for() -> None:
    away = {id_: Grade(id_, None, cause="Ollama went away.", retryable=True, usage=Usage(1)) for id_ in ("p4", "p5")}
    bench = Bench(
        "agentic", scoring=lambda p: away.get(p.id, WEAK), finding=NEVER_GOOD, judge=LISTED, model=FakeModel()
    )
    broken = bench.pipeline.run(QUESTION)
    assert broken.failure is not None and broken.answer is None
    assert (broken.failure.name, broken.failure.error) == ("grade", "ModelUnavailable")
    assert paths(broken) == [("keyword",)] and broken.earlier == ()
    assert [step.state for step in broken.steps if step.name == "grade"] == [StepState.DONE, StepState.FAILED]
    away.clear()
    bench.forget_counts()
    done = bench.pipeline.resume(broken)
    assert bench.evaluator.asked == [("p4", "p5"), ("p6", "p7", "p8")]
    assert done.failure is None and len(done.earlier) == 2
    assert [step.state for step in done.steps if step.name == "grade"] == [StepState.DONE] * 3


@pytest.mark.parametrize("policy", [PARTIAL, changed("agentic")])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6, 7, 8])
def test_stop_after_any_step_and_resume_asks_each_thing_once(policy: Policy, nth: int) -> None:
    def bench() -> Bench:
        return Bench(policy, best=WEAK, finding=NEVER_GOOD, judge=LISTED, synonyms=SYNONYMS, model=FakeModel())

    whole, stopped, run = bench(), bench(), Run(diary := Diary())
    expected = whole.pipeline.run(QUESTION)

    def stop_in_time(name: str) -> None:  # not within the lanes, where the strips would be scored twice
        if len(diary.done) >= nth and name not in ("score strips", "extract", "rewrite", "search"):
            run.cancel.set()

    diary.started = stop_in_time  # type: ignore[method-assign]
    done = stopped.pipeline.resume(stopped.pipeline.run(QUESTION, run))
    assert stopped.counts == whole.counts
    assert replace(done, id="", steps=()) == replace(expected, id="", steps=())
    assert lanes(done) == lanes(expected) and done.usage == expected.usage


# --- pinned files ---------------------------------------------------------------------------------------------------

FILE = passage(90, "The ferry to Vennick leaves at nine.", found_by=("read_file",))
OTHER_FILE = passage(91, "Dogs travel free of charge.", found_by=("read_file",))


def test_pinned_files_are_read_whole_and_nothing_is_retrieved() -> None:
    bench = Bench("agentic", files=(FILE, OTHER_FILE), judge=LISTED, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert bench.retriever.read == [("d90", "d91")]
    assert bench.counts == {"read": 1, "strips": 2, "answer": 1}
    assert trace.passages == (FILE, OTHER_FILE) and trace.decision is not None
    assert (trace.decision.action, trace.decision.rule) == (Action.CORRECT, "read_file")
    assert trace.steps[0].summary == "2 chunks from 2 documents, 2 of them whole files that you pinned"
    assert trace.grades is None


def test_pinned_file_that_is_gone_breaks_off_with_its_own_error() -> None:
    bench = Bench(files=(FILE,))
    bench.retriever.files.clear()
    trace = bench.pipeline.run(QUESTION)
    assert trace.passages is None
    with pytest.raises(DocumentMissing, match=r"'retrieve' failed: d90 is not indexed\. Add it\."):
        raise_failure(trace)


@pytest.mark.parametrize("policy", [PARTIAL, changed("agentic", skip=())])
@pytest.mark.parametrize("best", [0.5, WEAK])
def test_with_files_pinned_no_round_looks_beyond_them(policy: Policy, best: float) -> None:
    bench = Bench(policy, best=best, files=(FILE,), synonyms=SYNONYMS, judge=LISTED, model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert bench.counts["retrieve"] == 0, "other documents were searched although nobody asked for them"
    assert trace.answer is not None and trace.failure is None


def test_a_later_round_beside_pinned_files_brings_no_second_copy_of_them() -> None:
    of_file = replace(passage(90, "Dogs travel free of charge."), document_id=FILE.document_id)
    found = finding(numbered(1), expanded=(of_file, *numbered(4)))
    bench = Bench(PARTIAL, best=0.5, finding=found, files=(FILE,), search_too=True, synonyms=SYNONYMS)
    trace = bench.pipeline.run(QUESTION)
    assert [one.id for later in trace.rounds for made in later.retrievals for one in made.passages] == ["p1", "p4"]
