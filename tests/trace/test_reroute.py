"""One recorded run under many policies: decision always, knowledge as recorded, answer only where it belongs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import Round
from crag_core.decision.policy import Doubtful
from crag_core.trace.reroute import Missing, quoted, reroute
from crag_core.trace.trace import Trace, context_key
from tests.builders import (
    POLICIES,
    answer,
    even,
    grade,
    graded,
    graded_by_its_own,
    kept,
    passage,
    policy,
    round_of,
    searched,
    strips_of,
    trace,
    web_page,
)

PAPER = policy("paper").with_thresholds(0.3, 0.7, 0.5)
FARES = passage("p1", "Adults pay nine euros. The sea is blue.")
OTHER = passage("p2", "The ferry leaves at eight.")
STRIPS = (
    *strips_of(FARES, ("Adults pay nine euros.", 0.9), ("The sea is blue.", 0.4)),
    *strips_of(OTHER, ("The ferry leaves at eight.", 0.2)),
)
GRADES = tuple(replace(g, passage_id=p.id) for g, p in zip(graded(0.5, 0.1)[1], (FARES, OTHER), strict=True))
RUN = trace(PAPER, passages=(FARES, OTHER), grades=GRADES, signals=even(0.5), strips=STRIPS, web=searched())


def answered(run: Trace) -> Trace:
    """The run with an answer that a model wrote from what its own policy keeps."""
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(
        run, settings=replace(run.settings, writer="ollama/small"), answer=replace(answer(key), writer="ollama/small")
    )


def quoting(run: Trace) -> Trace:
    """The run as it was answered without a model."""
    routed = reroute(run, run.settings.policy)
    return replace(run, answer=quoted(run, routed.decision_path, routed.knowledge))


def test_sliders_move_one_run_across_all_three_actions() -> None:
    thresholds = {Action.CORRECT: (0.1, 0.5), Action.AMBIGUOUS: (0.5, 0.51), Action.INCORRECT: (0.51, 0.7)}
    for action, (lower, upper) in thresholds.items():
        assert reroute(RUN, PAPER.with_thresholds(lower, upper)).decision.action is action


def test_the_strip_cut_off_applies_again() -> None:
    routed = {cutoff: reroute(RUN, PAPER.with_thresholds(cutoff=cutoff)) for cutoff in (0.1, 0.3, 0.5, 0.95)}
    assert {cutoff: len(kept(one.knowledge.verdicts)) for cutoff, one in routed.items()} == {
        0.1: 3,
        0.3: 2,
        0.5: 1,
        0.95: 0,
    }


def test_an_old_answer_is_never_shown_under_a_new_action() -> None:
    run = answered(RUN)
    moved = reroute(run, PAPER.with_thresholds(upper=0.5))
    own = reroute(run, PAPER)
    assert (own.decision.action, moved.decision.action) == (Action.AMBIGUOUS, Action.CORRECT)
    assert moved.knowledge.excerpts == own.knowledge.excerpts
    assert moved.answer is None
    assert Missing.ANSWER in moved.missing


# --- quotations cost no call, so they follow at once ------------------------------------------------------------------


def test_quotations_are_made_anew_from_what_is_kept_now() -> None:
    run = quoting(RUN)
    assert reroute(run, PAPER).answer is run.answer
    now = reroute(run, PAPER.with_thresholds(cutoff=0.3, upper=0.5))
    assert now.answer and now.answer.text == "“Adults pay nine euros.” [1]" and now.answer != run.answer
    assert Missing.ANSWER not in now.missing
    assert run.answer and run.answer.context_key != now.answer.context_key, "its own evidence and action"


def test_a_policy_that_abstains_withholds_what_remains() -> None:
    of = PAPER.with_thresholds(0.05, 0.5, 0.1).with_doubtful(Doubtful.ABSTAIN)
    run = quoting(replace(RUN, settings=replace(RUN.settings, policy=of, web_mode="off"), web=None))
    rest = reroute(replace(run, edits=Edits(dropped=("p1",))), of)
    assert rest.answer and rest.answer.state is AnswerState.CANNOT_ANSWER
    assert rest.answer.message.startswith("Not certain enough") and Missing.WEB in rest.missing


def test_nothing_is_quoted_where_the_web_would_be_searched() -> None:
    of = PAPER.with_thresholds(0.05, 0.95, 0.1)
    for mode, is_quoted in (("off", True), ("ask", False), ("auto", False)):
        run = quoting(replace(RUN, settings=replace(RUN.settings, web_mode=mode), web=None))
        then = reroute(run, of)
        assert then.decision.action is Action.AMBIGUOUS and Missing.WEB in then.missing
        assert (then.answer is not None) is is_quoted


def test_nothing_is_quoted_while_the_decision_itself_is_open() -> None:
    run = quoting(RUN)
    agentic = reroute(run, replace(policy("agentic"), skip=()).with_thresholds(0.3, 0.95))
    assert Missing.RE_RETRIEVAL in agentic.missing and agentic.answer is None
    unscored = reroute(replace(run, strips=None), PAPER.with_thresholds(upper=0.5))
    assert Missing.STRIPS in unscored.missing and unscored.answer is None
    assert reroute(RUN, PAPER).answer is None, "a run that was not answered yet"


NEVER = trace(PAPER, passages=(FARES, OTHER))


@pytest.mark.parametrize(
    ("run", "name", "missing"),
    [
        (RUN, "paper", (Missing.ANSWER,)),
        (NEVER, "paper", (Missing.GRADES, Missing.STRIPS, Missing.ANSWER)),
        (NEVER, "worst-chunk", (Missing.GRADES, Missing.STRIPS, Missing.EXTRACTION, Missing.ANSWER)),
        (NEVER, "rank-weighted", (Missing.GRADES, Missing.STRIPS, Missing.ANSWER)),
        (NEVER, "agentic", (Missing.ANSWER,)),
        (NEVER, "signals", (Missing.GRADES, Missing.STRIPS, Missing.ANSWER)),
        (replace(NEVER, signals=even(0.9)), "heuristic", (Missing.ANSWER,)),
        (replace(NEVER, signals=even(0.6)), "heuristic", (Missing.EXPANSION, Missing.ANSWER)),
        (replace(NEVER, signals=even(0.1)), "heuristic", (Missing.WEB, Missing.ANSWER)),
        (replace(RUN, web=None), "paper", (Missing.WEB, Missing.ANSWER)),
        (replace(RUN, strips=None), "paper", (Missing.STRIPS, Missing.ANSWER)),
        (graded_by_its_own(RUN, ()), "paper", (Missing.GRADES, Missing.ANSWER)),
        (graded_by_its_own(RUN, GRADES[:1]), "paper", (Missing.GRADES, Missing.ANSWER)),
        (replace(RUN, strips=STRIPS[:2]), "paper", (Missing.STRIPS, Missing.ANSWER)),
        (RUN, "rank-weighted", (Missing.ANSWER,)),
        (RUN, "worst-chunk", (Missing.ANSWER,)),
        (trace(PAPER, passages=()), "paper", (Missing.WEB, Missing.ANSWER)),
        (trace(PAPER), "agentic", (Missing.RE_RETRIEVAL, Missing.ANSWER)),
    ],
)
def test_what_the_run_never_did_is_missing(run: Trace, name: str, missing: tuple[Missing, ...]) -> None:
    of = PAPER if name == "paper" else policy(name)
    assert reroute(run, of).missing == missing


def looked_again(*more: Round, scores: tuple[float, ...] = (0.1, 0.2, 0.1)) -> Trace:
    """A run whose first passages score so low; p4 is useful and p5 is not graded."""
    found, grades = graded(*scores)
    return trace(policy("agentic"), passages=found, grades=(*grades, grade("p4", 0.9)), signals=even(0.6), rounds=more)


NEW = (passage("p4", "Fares rose."), passage("p6", "Fares fell."), passage("p7", "Nothing changed."))
HALF_KNOWN = (*NEW[:1], passage("p5"), passage("p8"))


@pytest.mark.parametrize(
    ("run", "name", "missing"),
    [
        (looked_again(scores=(0.5, 0.5, 0.5)), "agentic", {Missing.RE_RETRIEVAL}),
        (looked_again(), "agentic", {Missing.RE_RETRIEVAL}),
        (looked_again(round_of("keyword", NEW[0])), "agentic", set()),
        (looked_again(round_of("keyword", HALF_KNOWN[1])), "agentic", {Missing.GRADES}),  # a single one is graded too
        (looked_again(round_of("keyword", *HALF_KNOWN)), "agentic", {Missing.GRADES}),
        (looked_again(round_of("keyword")), "agentic", {Missing.RE_RETRIEVAL}),  # found nothing: the next strategy
        (looked_again(round_of("refine", *NEW)), "agentic", {Missing.RE_RETRIEVAL}),
        (looked_again(), "heuristic", {Missing.EXPANSION}),
        (looked_again(round_of("expand", *NEW)), "heuristic", set()),
        (looked_again(round_of("keyword", *NEW)), "heuristic", {Missing.EXPANSION}),
        (looked_again(round_of("keyword", *NEW)), "paper", {Missing.WEB}),
    ],
)
def test_another_retrieval_is_missing_until_the_run_has_made_it(run: Trace, name: str, missing: set[Missing]) -> None:
    assert set(reroute(run, policy(name)).missing) == missing | {Missing.ANSWER}


evidence = st.lists(st.none() | st.integers(0, 100).map(lambda n: n / 100), max_size=6)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(POLICIES), scores=evidence, value=st.integers(0, 100).map(lambda n: n / 100))
def test_rerouting_is_pure_and_always_decides(name: str, scores: list[float | None], value: float) -> None:
    found, grades = graded(*scores)
    strips = tuple(strip for p in found for strip in strips_of(p, (p.text, value)))
    page = web_page("w1", "Fares rose.")
    run = trace(PAPER, passages=found, grades=grades, signals=even(value), strips=strips, web=searched(page))
    before = run.to_json()
    first, second = reroute(run, policy(name)), reroute(run, policy(name))
    assert first == second
    assert run.to_json() == before
    assert first.decision.action in Action and first.decision.reason
    ids = {strip.id for strip in strips} | {p.id for p in (*found, page)}
    assert {piece for e in first.knowledge.excerpts for piece in (*e.strip_ids, e.passage.id)} <= ids


def test_under_its_own_policy_a_record_is_decided_once_and_a_changed_one_anew() -> None:
    found, grades = graded(0.9, 0.1)
    run = trace(policy("paper"), passages=found, grades=grades)
    own = reroute(run, policy("paper"))
    assert (
        reroute(run, policy("paper")) is own
        and run.to_json() == trace(policy("paper"), passages=found, grades=grades).to_json()
    )
    assert reroute(graded_by_its_own(run, grades[1:]), policy("paper")).decision != own.decision


def test_no_model_is_asked_for_sentences_of_a_pinned_chunk() -> None:
    found, grades = graded(0.5, 0.5)
    blank = (found[0], replace(found[1], text=" "))
    run = trace(policy("worst-chunk"), passages=blank, grades=grades, strips=strips_of(found[0], (found[0].text, 0.9)))
    assert run.settings.policy.steps(Action.AMBIGUOUS).keys() >= {"extract"}
    ways = [reroute(replace(run, edits=Edits(pinned=pins)), policy("worst-chunk")) for pins in (("p1",), ("gone",))]
    assert [Missing.EXTRACTION in way.missing for way in ways] == [False, True]
