"""What two routes of one record, or several runs, give the answer to read: what all do, and what only some of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.edits import Edits
from crag_core.base.types.knowledge import Excerpt, Knowledge
from crag_core.base.types.passages import Passage
from crag_core.decision.refine import decompose
from crag_core.trace.reroute import Reroute, reroute
from crag_core.view.evidence import difference, side_by_side
from tests.builders import POLICIES, grade, passage, policy, searched, strips_of, trace, web_page
from tests.made_up_runs import SOURCES, edits_of, facts

PAPER = policy("paper")
FARES = passage("p1", "Adults pay nine euros. The sea is blue.")
TIMES = passage("p2", "The ferry leaves at eight. Bring a coat.", ordinal=1)
PAGE = web_page("w1", "Fares rose.")
RUN = trace(
    PAPER,
    passages=(FARES, TIMES),
    grades=(grade("p1", 0.9), grade("p2", 0.5)),
    strips=(
        *strips_of(FARES, ("Adults pay nine euros.", 0.9), ("The sea is blue.", 0.1)),
        *strips_of(TIMES, ("The ferry leaves at eight.", 0.5), ("Bring a coat.", 0.2)),
    ),
    web=searched(PAGE, strips=strips_of(PAGE, ("Fares rose.", 0.4))),
)
WHOLE = reroute(RUN, replace(PAPER, correct=(("keep", None),)))
TAKEN = reroute(RUN, PAPER)
LESS = reroute(replace(RUN, edits=Edits(("p2",))), replace(PAPER, correct=(("keep", None),)))


def without(id_: str) -> Reroute:
    return reroute(replace(RUN, edits=Edits((id_,))), PAPER)


@pytest.mark.parametrize(
    ("was", "now", "kept", "gone", "new"),
    [
        pytest.param(TAKEN, without("p1"), "p2#0", "p1#0", "w1#0", id="a dropped passage takes its sentences with it"),
        pytest.param(TAKEN, WHOLE, "p1#0 p2#0", "", "p1#1 p2#1", id="whole instead of in part gains the rest"),
        pytest.param(WHOLE, TAKEN, "p1#0 p2#0", "p1#1 p2#1", "", id="in part instead of whole loses the rest"),
        pytest.param(WHOLE, LESS, "p1", "p2", "", id="only ever whole counts as passages"),
        pytest.param(WHOLE, without("p2"), "p1#0", "p1#1 p2", "", id="one only whole, the other in part too"),
    ],
)
def test_what_two_routes_share(was: Reroute, now: Reroute, kept: str, gone: str, new: str) -> None:
    found = difference(was, now)
    assert (found.kept, found.gone, found.new) == tuple(tuple(one.split()) for one in (kept, gone, new))
    assert found.counts == (("kept", len(found.kept)), ("gone", len(found.gone)), ("new", len(found.new)))


@pytest.mark.slow
@given(st.data())
def test_every_piece_of_either_route_is_kept_gone_or_new(data: st.DataObject) -> None:
    of = data.draw(facts())
    run = of.record()
    names = st.sampled_from(POLICIES)
    was = reroute(run, policy(data.draw(names)))
    now = reroute(replace(run, edits=data.draw(edits_of(of.ids))), policy(data.draw(names)))
    there, back = difference(was, now), difference(now, was)
    assert not any(one.gone or one.new or one.reordered for one in (difference(was, was), difference(now, now)))
    assert (set(there.kept), there.gone, there.new) == (set(back.kept), back.new, back.gone)
    told = (*there.kept, *there.gone, *there.new)
    assert len(set(told)) == len(told)


# --- side by side -----------------------------------------------------------------------------------------------------

DUES = passage("p1", "Adults pay nine euros. Dogs pay half. The sea is blue.", document_id="dues", ordinal=0)
HOURS = passage("p2", "The ferry leaves at eight. It is painted white.", document_id="hours", ordinal=0)
OVERLAP = passage("p3", "The  sea is blue. Children pay nothing.", document_id="dues", ordinal=1)
ADULTS, DOGS, SEA, CHILDREN = "Adults pay nine euros.", "Dogs pay half.", "The sea is blue.", "Children pay nothing."


def whole(*passages: Passage) -> Knowledge:
    return Knowledge(tuple(Excerpt(one, one.text) for one in passages), (), ())


def some(of: Passage, *places: int) -> Knowledge:
    chosen = [decompose(of)[place] for place in places]
    text = " ".join(strip.text for strip in chosen)
    return Knowledge((Excerpt(of, text, tuple(strip.id for strip in chosen)),), (), ())


def both(one: Knowledge, other: Knowledge) -> Knowledge:
    return Knowledge(one.internal + other.internal, one.external + other.external, ())


CUT = Knowledge((Excerpt(DUES, "Adults pay nine euros. Dogs pay half. The se"),), (), ())


@pytest.mark.parametrize(
    ("given_to", "told"),
    [
        pytest.param(
            [whole(DUES), some(DUES, 0), some(DUES, 0, 2)],
            [(ADULTS, "xxx"), (DOGS, "x--"), (SEA, "x-x")],
            id="each sentence once",
        ),
        pytest.param([CUT, whole(DUES)], [(ADULTS, "xx"), (DOGS, "xx"), (SEA, "-x")], id="what is left of a cut one"),
        pytest.param(
            [whole(DUES, OVERLAP), both(some(DUES, 0), some(OVERLAP, 0))],
            [(ADULTS, "xx"), (DOGS, "x-"), (SEA, "xx"), (CHILDREN, "x-")],
            id="in two passages of one document",
        ),
        pytest.param(
            [whole(HOURS), both(some(DUES, 2, 0), whole(HOURS))],
            [("The ferry leaves at eight.", "xx"), ("It is painted white.", "xx"), (ADULTS, "-x"), (SEA, "-x")],
            id="passages as the first run names them, sentences as in the text",
        ),
    ],
)
def test_sentences_stand_with_every_run_that_was_given_them(
    given_to: list[Knowledge], told: list[tuple[str, str]]
) -> None:
    lines = side_by_side(given_to)
    assert [(line.text, "".join("x" if held else "-" for held in line.held)) for line in lines] == told
    assert [line.differs for line in lines] == ["x" in marks and "-" in marks for _, marks in told]


@given(st.lists(st.lists(st.sampled_from(sorted(SOURCES)), unique=True, max_size=4), min_size=1, max_size=4))
def test_every_run_is_told_to_hold_exactly_what_it_was_given(given_ids: list[list[str]]) -> None:
    lines = side_by_side([whole(*(SOURCES[id_] for id_ in ids)) for ids in given_ids])
    for place, ids in enumerate(given_ids):
        told = {(line.passage.document_id or line.passage.id, line.text) for line in lines if line.held[place]}
        owned = {(SOURCES[id_].document_id or id_, strip.text) for id_ in ids for strip in decompose(SOURCES[id_])}
        assert told == owned
    assert all(any(line.held) for line in lines)
    assert len({(line.passage.id, line.index) for line in lines}) == len(lines)


def test_headings_stand_before_their_sentence() -> None:
    rules = passage("p9", "# Rules\n\n## Animals\n\nSix hens may be kept. Dogs must be on a lead.")
    assert [line.text for line in side_by_side([whole(rules)])] == [
        "Rules › Animals › Six hens may be kept.",
        "Dogs must be on a lead.",
    ]
