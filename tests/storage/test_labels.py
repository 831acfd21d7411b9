"""What people say of a run: which label is allowed, what it is about, and how labels leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import fingerprint, from_plain, to_plain
from crag_core.base.types.decisions import Action
from crag_core.trace.feedback import Label, Mark, label_of
from tests.builders import CARD, policy
from tests.storage.history_parts import HOSTILE, passage_label, route_label, run, whole_run

PAPER = policy("paper")


def test_a_label_tells_what_was_judged_and_who_had_graded() -> None:
    made = whole_run()
    judge = replace(CARD, version="2025-11")
    made = replace(made, settings=replace(made.settings, evaluator=judge))
    label = label_of(made, PAPER.with_thresholds(0.2, 0.9), Mark.NOT_RELEVANT, "2025-01-02", target="p3")
    assert label is not None
    assert (label.run_id, label.target, label.mark, label.question) == ("run-1", "p3", Mark.NOT_RELEVANT, HOSTILE)
    assert label.text == fingerprint(HOSTILE)
    assert (label.evaluator, label.evaluator_version) == ("hand", "2025-11")
    assert (label.policy, label.lower, label.upper, label.created) == ("paper", 0.2, 0.9, "2025-01-02")


def test_passages_of_later_rounds_and_of_the_web_can_be_labelled_and_no_others() -> None:
    targets = ("p1", "p2", "p3", "w1", "p9")
    made = [label_of(whole_run(), PAPER, Mark.RELEVANT, "now", target=target) for target in targets]
    assert [label and label.target for label in made] == ["p1", "p2", "p3", "w1", None]


@pytest.mark.parametrize(
    ("mark", "expected", "wanted"),
    [(Mark.RIGHT, None, Action.CORRECT), (Mark.WRONG, None, None), (Mark.WRONG, Action.INCORRECT, Action.INCORRECT)],
)
def test_a_label_of_a_route_tells_which_one_was_wanted(
    mark: Mark, expected: Action | None, wanted: Action | None
) -> None:
    label = route_label(run(), mark, expected)
    assert (label.wanted, label.text, label.action) == (wanted, "", Action.CORRECT)


@pytest.mark.parametrize(
    ("label", "change"),
    [
        *((passage_label(whole_run(), "p1"), change) for change in (
            {"mark": Mark.RIGHT}, {"target": ""}, {"action": Action.CORRECT}, {"expected": Action.CORRECT},
        )),
        *((route_label(run(), Mark.WRONG), change) for change in (
            {"mark": Mark.RELEVANT}, {"target": "p1"}, {"action": None}, {"expected": Action.CORRECT},
            {"mark": Mark.RIGHT, "expected": Action.INCORRECT},
        )),
    ],
)  # fmt: skip
def test_a_label_that_makes_no_sense_is_refused(label: Label, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        replace(label, **change)


def test_labels_of_one_thing_share_a_key_and_those_of_others_do_not() -> None:
    made, other = whole_run(), whole_run("run-2")
    answer = label_of(made, PAPER, Mark.RIGHT, "now")
    assert answer is not None
    same = [passage_label(made, "p1", mark) for mark in (Mark.RELEVANT, Mark.NOT_RELEVANT)]
    others = [passage_label(made, "p2"), passage_label(other, "p1"), route_label(made, Mark.RIGHT), answer]
    assert same[0].key == same[1].key
    assert len({label.key for label in (*same, *others)}) == 5


def test_a_label_from_elsewhere_is_checked() -> None:
    plain = to_plain(passage_label(whole_run(), "p1"))
    for change in ({"mark": "superb"}, {"mark": "right"}, {"lower": float("nan")}, {"stars": 5}):
        with pytest.raises(BadRecord):
            from_plain(Label, plain | change)
