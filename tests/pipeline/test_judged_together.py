"""A language model reads all chunks together (arXiv 2411.06037): what is asked, recorded, kept, and asked again."""

import pytest

from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import Sufficiency
from crag_core.base.types.steps import StepState
from crag_core.pipeline.run import WebMode
from crag_core.report.comparison import described
from crag_core.report.run.sections import verdict_of
from crag_core.service.answers import answered
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from crag_core.view.story.story import tell
from crag_core.view.verdict_lines import flip_lines, headline, own_name
from tests.builders import policy_file
from tests.fakes import QUESTION, Bench, FakeModel, step_names
from ui.policies import judge_run

POLICY = policy_file("sufficient-context")
ENOUGH = '{"explanation": "Chunk 1 says when.", "verdict": "sufficient"}'
NOT_ENOUGH = '{"explanation": "No chunk says when.", "verdict": "not sufficient"}'


def bench(reply: object = ENOUGH, **options: object) -> tuple[Bench, FakeModel]:
    model = FakeModel(sufficient=reply)  # type: ignore[arg-type]
    return Bench(POLICY, model=model, web=WebMode.OFF, **options), model  # type: ignore[arg-type]


def judged(trace: Trace) -> Sufficiency:
    return trace.sufficiency[-1]


def test_one_call_reads_all_chunks_and_the_record_keeps_what_was_said() -> None:
    made, model = bench()
    trace = made.pipeline.run(QUESTION)
    (asked,) = [messages for kind, messages in model.asked if kind == "sufficient"]
    assert asked[1][1].count("\nDocument ") + asked[1][1].startswith("Document ") == 3
    assert trace.sufficiency and judged(trace).reason == "Chunk 1 says when."
    assert (judged(trace).passages, judged(trace).shown) == (("p1", "p2", "p3"), 3)
    assert trace.decision is not None and trace.decision.reason == "sufficiency 1.00 ≥ upper 0.83"
    assert "judge together" in step_names(trace) and trace.usage.calls == 2
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        (ENOUGH, 1.0),
        (NOT_ENOUGH, 0.0),
        ("Sufficient.", 1.0),
        ("**Not sufficient**", 0.0),
        ('<think>sufficient?</think>{"verdict": "not sufficient"}', 0.0),
        ('{"verdict": "insufficient"}', 0.0),
        ("Perhaps.", None),
        ("", None),
        ('{"verdict": 1}', 1.0),
        ('{"explanation": {"a": 1}, "verdict": "sufficient"}', 1.0),
        ('{"verdict": "sufficient"} {"verdict": "not sufficient"}', None),
    ],
)
def test_replies(reply: str, score: float | None) -> None:
    made, model = bench(reply)
    trace = made.pipeline.run(QUESTION)
    assert trace.sufficiency and judged(trace).score == score
    assert model.kinds.count("sufficient") == (2 if score is None else 1), "what cannot be read is asked for once more"
    if score is None:
        assert trace.decision is not None and trace.answer is not None
        assert (trace.decision.action, trace.decision.score) == (Action.AMBIGUOUS, None)
        assert trace.answer.state is AnswerState.CANNOT_ANSWER and judged(trace).cause.endswith("(asked twice)")
        assert Missing.SUFFICIENCY not in reroute(trace, POLICY).missing, "it was asked"


def test_a_run_under_another_policy_lacks_the_judgement_and_supplies_it_when_asked() -> None:
    model = FakeModel(sufficient=ENOUGH)
    paper = Bench("paper", model=model, web=WebMode.OFF)
    trace = paper.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert Missing.SUFFICIENCY in routed.missing and routed.decision.score is None and routed.answer is None
    assert routed.decision.reason == "sufficiency not judged"
    under = paper.under(policy=POLICY)
    paper.forget_counts()
    done = under.resume(under.adopt(trace))
    assert paper.counts == {"sufficient": 1, "answer": 1}
    back = reroute(done, trace.settings.policy)
    assert back.decision == trace.decision, "the facts of the first run are all there"


def test_without_a_language_model_the_best_chunk_decides_and_that_is_said() -> None:
    made = Bench(POLICY, best=0.9, web=WebMode.OFF)
    trace = made.pipeline.run(QUESTION)
    routed = reroute(trace, POLICY)
    assert routed.decision.reason == "best chunk 0.90 ≥ upper 0.83" and routed.missing == ()
    assert routed.knowledge.notes == (f"No language model: {POLICY.without_model}",)
    (step,) = [step for step in trace.steps if step.name == "judge together"]
    assert (step.state, step.usage.calls) == (StepState.SKIPPED, 0)
    assert flip_lines(view_run(trace)) == ("AMBIGUOUS if upper > 0.90",)
    # A stand-in for the model that nobody asked, wherever the verdict is told.
    assert headline(routed.decision) == "CORRECT · stand-in" and verdict_of(view_run(trace)).label == "stand-in"
    assert answered(trace, kept=False, with_record=False).decision.label == "Correct stand-in"
    assert "stand-in: the best chunk decides in place of all chunks together;" in described(trace.settings)
    captions = " ".join(step.caption for step in tell(view_run(trace)).steps)
    assert "A stand-in, since there was no language model: The best chunk" in captions
    assert [own_name(one.decision) for one in judge_run(trace, [POLICY, policy_file("paper")])] == ["stand-in", ""]
