"""What was not judged CORRECT, and is used: the nearest sentences, or withheld, and never counted as an answer."""

from dataclasses import replace

import pytest

from crag_core.base.protocols import WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Doubtful, Policy
from crag_core.experiments.comparison.outcome import outcome_of
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.llamaindex.synthesizer import metadata_of
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import summarize
from crag_core.trace.trace import Trace
from tests.builders import policy
from tests.fakes import ANSWER, QUESTION, Bench, FakeModel, card

EMPTY = WebReply(WebOutcome.EMPTY, "Fake search")
ASKED = LabelledQuestion(QUESTION, Expected.CORRECT, answers=("nine",))


def under(doubtful: Doubtful, of: Policy | None = None) -> Policy:
    return (of or policy("paper")).with_doubtful(doubtful)


def ran(
    doubtful: Doubtful, best: float = 0.5, web: WebMode = WebMode.OFF, of: Policy | None = None, **bench: object
) -> tuple[Bench, Trace]:
    made = Bench(under(doubtful, of), best=best, web=web, model=FakeModel(), **bench)  # type: ignore[arg-type]
    return made, made.pipeline.run(QUESTION)


@pytest.mark.parametrize(("web", "reply"), [(WebMode.OFF, None), (WebMode.AUTO, EMPTY)])
def test_a_policy_that_abstains_asks_no_model_and_says_why(web: WebMode, reply: WebReply | None) -> None:
    bench, trace = ran(Doubtful.ABSTAIN, web=web, **({"reply": reply} if reply else {}))
    assert trace.failure is None and trace.answer is not None and bench.counts["answer"] == 0
    assert (trace.answer.state, trace.answer.text) == (AnswerState.CANNOT_ANSWER, "")
    why = "the web search found nothing" if reply else "web search is off"
    assert trace.answer.message.startswith("Not certain enough for an answer: best chunk 0.50")
    assert trace.answer.message.endswith(f"and {why}.")


@pytest.mark.parametrize("name", ["agentic", "heuristic", "adaptive-rag"])
@pytest.mark.parametrize("doubtful", list(Doubtful))
def test_what_was_judged_irrelevant_and_is_used_is_no_answer(name: str, doubtful: Doubtful) -> None:
    """`agentic` and `adaptive-rag` after their last round, `heuristic` without web results."""
    of = replace(policy(name).with_thresholds(0.95, 0.99), skip=())
    bench, trace = ran(doubtful, 0.05, of=of)
    assert trace.decision is not None and trace.decision.action is Action.INCORRECT and trace.answer is not None
    summary, metadata = summarize(trace), metadata_of(trace)
    assert (summary.answered, summary.doubtful, outcome_of(trace, ASKED).is_answered) == (False, True, False)
    assert metadata["crag_doubtful"].startswith("These chunks were judged irrelevant: ")
    assert reroute(trace, trace.settings.policy).knowledge.notes[-1].endswith("they were graded as irrelevant.")
    is_shown = doubtful is Doubtful.SHOW
    assert summary.ending is (AnswerEnding.DOUBTFUL if is_shown else AnswerEnding.UNANSWERED)
    assert (bench.counts["answer"], trace.answer.text) == (int(is_shown), ANSWER if is_shown else "")
    assert (
        bool(budget(trace.settings.policy, card(), 6, writer=True, searches=False)[Action.INCORRECT].least) >= is_shown
    )


def test_what_was_shown_is_withheld_without_a_call_and_comes_back() -> None:
    bench, trace = ran(Doubtful.SHOW)
    abstaining = reroute(trace, under(Doubtful.ABSTAIN))
    assert abstaining.missing == reroute(trace, under(Doubtful.SHOW)).missing
    assert abstaining.answer is not None and abstaining.answer.state is AnswerState.CANNOT_ANSWER
    assert reroute(trace, under(Doubtful.SHOW)).answer == trace.answer
    _, withheld = ran(Doubtful.ABSTAIN)
    assert withheld.answer == abstaining.answer, "the same ending as when the run had abstained"
    assert bench.counts["answer"] == 1


def test_the_answer_is_promised_only_where_the_web_may_bring_something() -> None:
    for searches, calls in ((False, Calls(0, 0)), (True, Calls(2, 2))):
        found = budget(under(Doubtful.ABSTAIN), card(), 6, writer=True, searches=searches)
        assert found[Action.AMBIGUOUS] == calls
    assert budget(under(Doubtful.SHOW), card(), 6, writer=True, searches=False)[Action.AMBIGUOUS] == Calls(1, 1)
