"""What the tests of the history share: runs of every kind, labels, a clock that counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crag_core.base.types.answers import Answer, AnswerState, Support
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.steps import Step
from crag_core.decision.decide import decide
from crag_core.trace.feedback import Label, Mark, label_of
from crag_core.trace.trace import Trace
from tests import builders
from tests.builders import POLICIES, graded, passage, policy, round_of, searched, strips_of, web_page
from tests.decision import test_golden
from tests.fakes import Bench
from tests.made_up_runs import JUDGE

HOSTILE = "<script>alert('x')</script> 東京 \u202e العربية \ufffd \x00 ' \" ; DROP TABLE crag_runs; --"


class Ticking:
    """One second more at every look."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def run(id: str = "run-1", **fields: Any) -> Trace:
    return builders.trace(policy("paper"), id=id, **fields)


def whole_run(id: str = "run-1") -> Trace:
    """A bit of everything that a record can hold, in text that databases choke on."""
    found, grades = graded(0.9, None)
    later, page = passage("p3", HOSTILE), web_page("w1", "Fares rose.")
    return run(
        id,
        question=HOSTILE,
        passages=found,
        rounds=(round_of("keyword", later),),
        grades=grades,
        strips=strips_of(later, (HOSTILE, 0.3)),
        decision=decide(policy("paper"), found, grades),
        web_grades=(Grade("w1", 0.5),),
        web=searched(page, strips=strips_of(page, ("Fares rose.", 0.4))),
        context=("p3#0", "w1"),
        answer=Answer("Nine euros [1].", AnswerState.COMPLETE, "extractive", "key"),
        support=(Support(0, 15, 0.8, ("p3#0",), (1,)),),
        edits=Edits(dropped=("p2",), signals=(("agreement", 0.5),)),
        opinions=(Opinion(JUDGE, "qwen", (Grade("p1", 0.2),)),),
        steps=(Step("retrieve", "2 chunks", seconds=0.5),),
    )


def large_run(id: str = "large") -> Trace:
    """More than 5 MB as JSON."""
    return run(id, passages=tuple(passage(f"p{n}", f"{n} Straße 東京 " * 400) for n in range(1000)))


def golden_runs() -> list[Trace]:
    """A record of every case that was worked out by hand."""
    return [
        replace(_worked_out(name, case), id=f"golden-{name}-{number}")
        for name in POLICIES
        for number, case in enumerate(test_golden.load(name))
    ]


def _worked_out(name: str, case: test_golden.Case) -> Trace:
    of, found = test_golden.policy_of(name, case), test_golden.passages_of(case)
    grades, signals = test_golden.grades_of(case, found), test_golden.signals_of(case, found)
    decision = decide(of, found, grades, signals, test_golden.path_of(case))
    return builders.trace(of, passages=found, grades=grades, signals=signals, decision=decision)


def fake_runs() -> list[Trace]:
    """What the pipeline records with small parts, for every policy and action."""
    scores = (0.9, 0.5, 0.1, None)
    runs = [Bench(name, score).pipeline.run("When does the ferry leave?") for name in POLICIES for score in scores]
    return [replace(made, id=f"fake-{number}") for number, made in enumerate(runs)]


def passage_label(trace: Trace, passage_id: str, mark: Mark = Mark.RELEVANT) -> Label:
    made = label_of(trace, trace.settings.policy, mark, "now", target=passage_id)
    assert made is not None
    return made


def route_label(trace: Trace, mark: Mark, expected: Action | None = None) -> Label:
    made = label_of(trace, trace.settings.policy, mark, "now", action=Action.CORRECT, expected=expected)
    assert made is not None
    return made
