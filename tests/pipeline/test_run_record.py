"""What a run records: its cost, its seconds, its JSON; and that bugs show and runs do not mix."""

import pytest

from crag_core.base.types.steps import Usage
from crag_core.trace.trace import Trace
from crag_core.view.record import cost_of
from tests.fakes import QUESTION, Bench, FakeModel, card


def test_usage_of_every_step_is_recorded_and_summed() -> None:
    bench = Bench(best=0.5, model=FakeModel(), judge=card(calls_model=True))
    trace = bench.pipeline.run(QUESTION)
    usage = {step.name: step.usage for step in trace.steps}
    assert usage["grade"] == Usage(3, 30, 6)
    assert usage["rewrite"] == Usage(1, 20, 5)
    assert usage["grade web"] == Usage(2, 20, 4)
    assert usage["answer"] == Usage(1, 30, 7)
    assert usage["retrieve"] == usage["route"] == usage["assemble"] == Usage()
    assert trace.usage == Usage(7, 100, 22)
    assert trace.answer is not None and trace.answer.usage == usage["answer"]


def test_seconds_of_every_step_are_recorded_and_those_of_the_longer_lane_count() -> None:
    trace = Bench(best=0.5).pipeline.run(QUESTION)
    # The clock of the bench gives one second more at each look, and a step looks at its start and at its end;
    # the other lane may look in between.
    beside = {"score strips", "rewrite", "search"}
    seconds = {step.name: step.seconds for step in trace.steps}
    assert len(seconds) == 9 and all(seconds[name] >= 1.0 for name in beside)
    assert {seconds[name] for name in seconds.keys() - beside} == {1.0}
    shorter = min(seconds["score strips"], seconds["rewrite"] + seconds["search"])
    assert trace.seconds == sum(seconds.values()) - shorter, "two lanes at once take as long as the longer one"


def test_the_time_to_the_first_word_of_an_answer_is_recorded_and_records_without_it_are_read() -> None:
    trace = Bench(model=FakeModel()).pipeline.run(QUESTION)
    first_words = {step.name: step.first_word for step in trace.steps if step.first_word is not None}
    assert first_words == {"answer": 1.0}
    answer = next(step for step in trace.steps if step.name == "answer")
    assert "first word after 1.0 s" in cost_of(answer)
    data = trace.to_dict()
    data["steps"] = [{key: value for key, value in step.items() if key != "first_word"} for step in data["steps"]]
    assert {step.first_word for step in Trace.from_dict(data).steps} == {None}


def test_run_carries_its_settings_id_and_date() -> None:
    bench = Bench(model=FakeModel())
    trace = bench.pipeline.run(QUESTION)
    assert (trace.id, trace.created, trace.question, trace.settings) == (
        "run-1",
        "now",
        QUESTION,
        bench.pipeline.settings,
    )
    assert trace.fingerprint == bench.pipeline.run(QUESTION).fingerprint
    assert trace.fingerprint != Bench(best=0.9).pipeline.run(QUESTION).fingerprint, "another writer"


# --- bugs -----------------------------------------------------------------------------------------------------------


def bug(*_: object) -> None:
    raise KeyError("a bug")


@pytest.mark.parametrize(
    "part", ["evaluator.before", "strip_evaluator.before", "retriever.finding", "searcher.before", "phrases", "answer"]
)
def test_bug_in_a_part_is_not_swallowed(part: str) -> None:
    bench = Bench(best=0.5, model=(model := FakeModel()))
    owner, _, name = part.partition(".")
    if name:
        setattr(getattr(bench, owner), name, bug)
    else:
        model.replies[part] = KeyError("a bug")
    with pytest.raises(KeyError, match="a bug"):
        bench.pipeline.run(QUESTION)
