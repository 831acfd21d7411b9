"""Questions that another system has retrieved for: its chunks take the place of the index."""

from dataclasses import replace

from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Logged
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import USEFUL, Bench, passage

CHUNKS = (passage("a", f"{USEFUL} The log has it."), passage("b", "Something else stands here."))
LOGGED = Logged("shop", "7", "At ten, they said.", ("At ten.",))


def test_the_chunks_that_are_given_are_graded_and_the_index_is_not_asked() -> None:
    bench = Bench()
    trace = bench.pipeline.over(CHUNKS, LOGGED).run("When does it leave?")
    assert trace.passages == CHUNKS and trace.logged == LOGGED and bench.retriever.asked == []
    assert trace.decision and trace.decision.action is Action.CORRECT and trace.answer
    assert trace.steps[0].name == "retrieve" and "as recorded in the log" in trace.steps[0].summary
    assert bench.evaluator.graded == ["pa", "pb"]
    assert Trace.from_json(trace.to_json()) == trace


def test_no_policy_retrieves_again_where_there_is_nothing_to_retrieve_from() -> None:
    bench = Bench("agentic", best=0.1)
    chunks = tuple(passage(name, f"Something else {name}.") for name in "abc")
    trace = bench.pipeline.over(chunks, LOGGED).run("When does it leave?")
    assert trace.rounds == () and bench.retriever.asked == []
    assert Missing.RE_RETRIEVAL not in reroute(trace, builders.policy("agentic")).missing
    assert Missing.RE_RETRIEVAL in reroute(replace(trace, logged=None), builders.policy("agentic")).missing


def test_a_record_goes_on_under_another_policy_with_its_own_chunks_and_their_grades() -> None:
    first = Bench().pipeline.over(CHUNKS, LOGGED).run("When does it leave?")
    bench = Bench("worst-chunk", top_k=first.settings.top_k + 3)  # how many are retrieved here does not matter
    engine = bench.pipeline.over(first.passages or (), first.logged)
    again = engine.resume(engine.adopt(first))
    assert again.passages == CHUNKS and again.logged == LOGGED and bench.retriever.asked == []
    assert bench.evaluator.graded == []
