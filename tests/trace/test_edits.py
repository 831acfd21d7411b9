"""What if: dropped passages count as never found, pinned ones as perfect, and the facts stay as they were."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.knowledge import Extraction
from crag_core.base.types.passages import ANSWERING, TOPICAL
from crag_core.base.types.web import WebOutcome
from crag_core.decision.signals import SignalMeter
from crag_core.trace.edits import PINNED, edited, measured
from crag_core.trace.reroute import Missing, Reroute, decision_path_of, reroute
from crag_core.trace.trace import Trace
from tests.builders import (
    POLICIES,
    even,
    grade,
    graded_by_its_own,
    passage,
    policy,
    searched,
    strips_of,
    trace,
    twice,
    web_page,
)
from tests.made_up_runs import HEURISTIC, Facts, Said, edits_of, facts

PAPER = policy("paper")
FARES = passage("p1", "Adults pay nine euros. The sea is blue.")
TIMES = passage("p2", "The ferry leaves at eight. Bring a coat.")
PAGE, OTHER_PAGE = web_page("w1", "Fares rose."), web_page("w2", "Fares fell.")
RUN = trace(
    PAPER,
    passages=(FARES, TIMES),
    signals=even(0.5),
    grades=(grade("p1", 0.9), grade("p2", 0.5)),
    strips=(
        *strips_of(FARES, ("Adults pay nine euros.", 0.9), ("The sea is blue.", 0.1)),
        *strips_of(TIMES, ("The ferry leaves at eight.", 0.5), ("Bring a coat.", 0.1)),
    ),
    web_grades=(grade("w1", 0.4), grade("w2", 0.2)),
    web=searched(
        PAGE, OTHER_PAGE, strips=(*strips_of(PAGE, ("Fares rose.", 0.4)), *strips_of(OTHER_PAGE, ("Fares fell.", 0.2)))
    ),
    opinions=(Opinion(HEURISTIC, "extractive", (grade("p1", 0.3), grade("w1", 0.6))),),
)


def but(run: Trace = RUN, *, drop: str = "", pin: str = "", signals: float = 0.0) -> Trace:
    """The run with these passages dropped and pinned."""
    return replace(run, edits=Edits(tuple(drop.split()), tuple(pin.split()), even(signals)))


# --- nothing changed ------------------------------------------------------------------------------------------------


def test_edits_of_passages_that_are_not_there_change_nothing() -> None:
    assert edited(but(drop="p9 w9", pin="p8")) == RUN


# --- dropped --------------------------------------------------------------------------------------------------------


def test_a_dropped_passage_is_gone_from_all_that_is_said_of_it() -> None:
    read = replace(RUN, extractions=(Extraction("p1", (0,)), Extraction("p2", ())))
    view = edited(but(read, drop="p1 w1"))
    assert view.web is not None and view.edits == Edits()
    assert [p.id for p in (*view.all_passages, *view.web.passages)] == ["p2", "w2"]
    said = (view.grades, view.strips, view.extractions, view.web_grades, view.web.strips, view.opinions[1].grades)
    assert [sorted({one.passage_id for one in some or ()}) for some in said] == [["p2"]] * 3 + [["w2"]] * 2 + [[]]


def test_signals_of_the_edits_count_once_something_of_the_first_retrieval_is_dropped() -> None:
    assert edited(but(drop="p1", signals=0.9)).signals == even(0.9)
    for others in (but(drop="w1", signals=0.9), but(drop="p9", signals=0.9), but(pin="p1", signals=0.9)):
        assert edited(others).signals == even(0.5)


def test_a_search_of_which_every_result_is_dropped_found_nothing() -> None:
    views = [edited(but(drop=dropped)).web for dropped in ("w1", "w1 w2")]
    assert [view.outcome for view in views if view] == [WebOutcome.USED, WebOutcome.EMPTY]


# --- pinned ---------------------------------------------------------------------------------------------------------


def test_a_pinned_passage_is_graded_in_two_signals_where_the_evaluator_tells_them_apart() -> None:
    found, grades = twice((0.2, 0.6), (0.1, 0.4))
    run = trace(policy("two-signal"), passages=found, grades=grades, web=searched(PAGE))
    view = edited(but(run, pin="p2 w1"))
    for pinned in ("p2", "w1"):
        given = view.grade_of(pinned)
        assert given is not None and given.parts == ((ANSWERING, 1.0), (TOPICAL, 1.0))
    assert reroute(but(run, pin="p2"), policy("two-signal")).decision.score == 1.0
    one_number = graded_by_its_own(run, tuple(replace(g, parts=()) for g in grades))
    assert reroute(but(one_number, pin="p2"), policy("two-signal")).decision.topical is None


def test_every_evaluator_agrees_on_what_is_pinned() -> None:
    given = edited(but(pin="p1 p2")).opinions[1].grades
    assert [(g.passage_id, g.score) for g in given] == [("p1", 1.0), ("w1", 0.6), ("p2", 1.0)]


def test_what_is_pinned_is_graded_by_an_evaluator_that_has_graded_nothing_yet() -> None:
    view = edited(but(replace(RUN, opinions=()), pin="p1"))
    assert [(one.passage_id, one.score) for one in view.grades or ()] == [("p1", 1.0)]


# --- measured -------------------------------------------------------------------------------------------------------


def test_the_signals_of_the_rest_are_measured_without_what_is_dropped() -> None:
    meter = SignalMeter()
    edits = measured(RUN, Edits(("p1",), ("p2",)), meter)
    assert edits == Edits(("p1",), ("p2",), meter.measure(RUN.question, (TIMES,)))
    assert "agreement" not in dict(edits.signals), "which takes vectors"
    assert measured(RUN, Edits(("p1", "p2")), meter).signals == ()


# --- anything at all ------------------------------------------------------------------------------------------------


def by_hand(of: Facts, edits: Edits) -> Trace:
    """The record as if it had come about this way in the first place."""

    def rest(ids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(id_ for id_ in ids if id_ not in edits.dropped)

    def said(id_: str, one: Said) -> Said:
        two = any(other.grade and other.grade.two_signals for other_id, other in of.said.items() if rest((other_id,)))
        full = Grade(id_, 1.0, PINNED, ((ANSWERING, 1.0), (TOPICAL, 1.0)) if two else ())
        return Said(full, (1.0, 1.0, 1.0), (0, 1, 2), (full, full)) if id_ in edits.pinned else one

    first, later = rest(of.first), {path: rest(ids) for path, ids in of.later.items()}
    left = replace(
        of,
        said={id_: said(id_, one) for id_, one in of.said.items() if id_ not in edits.dropped},
        first=first,
        later=later,
        results=None if of.results is None else rest(of.results),
        signals=of.signals if first == of.first else edits.signals,
    )
    corpus = [id_ for id_ in edits.pinned if id_ in left.said and id_[0] == "p"]
    return replace(left, absent=left.absent - {"grades"} if corpus else left.absent).record()


def comparable(routed: Reroute) -> tuple[object, ...]:
    verdicts = {(v.strip, v.kept, v.reason) for v in routed.knowledge.verdicts}
    # Whether a model is still to be asked for sentences is said by the record with edits alone.
    missing = {one for one in routed.missing if one is not Missing.EXTRACTION}
    return routed.decision_path, routed.knowledge.excerpts, verdicts, routed.knowledge.notes, missing


@pytest.mark.slow
@given(st.data())
def test_a_record_with_edits_is_routed_as_one_that_came_about_this_way(data: st.DataObject) -> None:
    of = data.draw(facts())
    if "grades" in of.absent:  # nothing that is graded without its passage having been
        of = replace(of, said={id_: replace(one, grade=None) if id_[0] == "p" else one for id_, one in of.said.items()})
    edits = data.draw(edits_of(of.ids))
    run, name = replace(of.record(), edits=edits), data.draw(st.sampled_from(POLICIES))
    hand_made = by_hand(of, edits)
    assert comparable(reroute(run, policy(name))) == comparable(reroute(hand_made, policy(name)))
    assert decision_path_of(run, policy(name)) == decision_path_of(hand_made, policy(name))


@pytest.mark.slow
@given(st.data())
def test_edits_never_change_the_facts_and_are_applied_once(data: st.DataObject) -> None:
    of = data.draw(facts())
    run = replace(of.record(), edits=data.draw(edits_of(of.ids)))
    before = run.to_json()
    view = edited(run)
    assert edited(view) is view
    reroute(run, policy(of.policy))
    assert run.to_json() == before
    assert reroute(view, policy(of.policy)).knowledge == reroute(run, policy(of.policy)).knowledge
