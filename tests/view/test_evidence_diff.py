"""What two routes of one record give the answer to read: what both do, and what only one of them does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.types.edits import Edits
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace, context_ids
from crag_core.view.evidence import difference
from tests.builders import POLICIES, grade, passage, policy, searched, strips_of, trace, web_page
from tests.made_up_runs import edits_of, facts

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
WHOLE = replace(PAPER, correct=(("keep", None),))
TAKEN = reroute(RUN, PAPER)


def changed(drop: str = "", pin: str = "", run: Trace = RUN) -> Reroute:
    return reroute(replace(run, edits=Edits(tuple(drop.split()), tuple(pin.split()))), PAPER)


def test_a_dropped_passage_takes_its_sentences_with_it() -> None:
    found = difference(TAKEN, changed(drop="p1"))
    assert (found.kept, found.gone, found.new) == (("p2#0",), ("p1#0",), ("w1#0",))
    assert found.counts == (("kept", 1), ("gone", 1), ("new", 1))


def test_a_passage_that_goes_in_whole_instead_of_in_part_keeps_its_sentences_and_gains_the_rest() -> None:
    whole = reroute(RUN, WHOLE)
    assert context_ids(whole.knowledge.excerpts) == ("p1", "p2")
    there, back = difference(TAKEN, whole), difference(whole, TAKEN)
    assert (there.kept, there.gone, there.new) == (("p1#0", "p2#0"), (), ("p1#1", "p2#1"))
    assert (back.kept, back.gone, back.new) == (("p1#0", "p2#0"), ("p1#1", "p2#1"), ())


def test_passages_that_are_only_ever_whole_count_as_passages() -> None:
    whole = reroute(RUN, WHOLE)
    less = reroute(replace(RUN, edits=Edits(("p2",))), WHOLE)
    found = difference(whole, less)
    assert (found.kept, found.gone, found.new) == (("p1",), ("p2",), ())
    mixed = difference(reroute(RUN, WHOLE), changed(drop="p2"))
    assert (mixed.kept, mixed.gone) == (("p1#0",), ("p1#1", "p2"))


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
