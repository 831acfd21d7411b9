"""The stage "check answer" in a run: what it records, when it is left out, and that it never spoils an answer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from crag_core.base.errors import EvaluatorUnavailable, ModelUnavailable, Stopped
from crag_core.base.protocols import Backing, Cancel, Piece
from crag_core.base.types.answers import AnswerState, Support
from crag_core.base.types.steps import StepName, StepState
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.pipeline.answer_stages import unmeasured
from crag_core.trace.trace import Trace
from tests.fakes import ANSWER, QUESTION, USEFUL, Bench, Diary, FakeModel


class FakeMeter:
    """Finds every sentence half supported by the first piece; `asked` holds what each call was given."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.cancels: list[Cancel] = []
        self.asked: list[tuple[list[str], tuple[Piece, ...]]] = []

    def measure(
        self, sentences: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        self.asked.append((list(sentences), tuple(pieces)))
        self.cancels.append(cancel)
        if self.fails:
            raise self.fails
        return tuple(Backing(0.5, (pieces[0].id,)) for _ in sentences)


def benched(meter: FakeMeter | None, **fields: object) -> Bench:
    bench = Bench(**{"model": FakeModel()} | fields)  # type: ignore[arg-type]
    bench.pipeline = bench.pipeline.with_parts(support=meter)
    return bench


def names(trace: Trace) -> list[str]:
    return [step.name for step in trace.steps]


def test_each_sentence_of_an_answer_is_measured_against_what_it_was_given() -> None:
    meter = FakeMeter()
    bench = benched(meter, model=FakeModel(answer="It leaves at nine [1]. [2] Bring a coat. [7]\n\n- Enjoy it."))
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None
    (said, pieces) = meter.asked[0]
    assert said == ["It leaves at nine [1]. [2]", "Bring a coat. [7]", "- Enjoy it."]
    assert [(piece.id, piece.text, piece.excerpt) for piece in pieces] == [("p1#0", USEFUL, 1)], "repetitions are out"
    assert trace.support == (
        Support(0, 26, 0.5, ("p1#0",), (1, 2)),
        Support(27, 44, 0.5, ("p1#0",), (7,)),
        Support(46, 57, 0.5, ("p1#0",)),
    )
    assert [trace.answer.text[one.start : one.end] for one in trace.support] == said
    assert names(trace)[-2:] == ["answer", StepName.CHECK_ANSWER]
    assert trace.steps[-1].summary == "The words of 0 of 3 sentences are found in the evidence, of 3 in part."
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize(
    "error", [EvaluatorUnavailable("rarity.json is gone.", hint="Restore it."), ModelUnavailable("away")]
)
def test_an_answer_that_cannot_be_measured_is_an_answer_all_the_same(error: Exception) -> None:
    bench = benched(meter := FakeMeter(error))
    trace = bench.pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert trace.support is None and trace.failure is None
    step = trace.steps[-1]
    assert (step.name, step.state, step.error) == (StepName.CHECK_ANSWER, StepState.SKIPPED, type(error).__name__)
    assert step.summary == f"not measured: {error.message}" and step.hint == error.hint  # type: ignore[attr-defined]
    meter.fails = None
    again = bench.pipeline.resume(trace)
    assert again.support is not None, "once it can be measured, it is"


def test_a_new_answer_loses_what_stood_behind_the_old_one() -> None:
    bench = benched(meter := FakeMeter())
    adopted = bench.pipeline.adopt(bench.pipeline.run(QUESTION))
    assert adopted.support is None and StepName.CHECK_ANSWER not in names(adopted)
    again = bench.pipeline.resume(adopted)
    assert again.support is not None and len(meter.asked) == 2
    meter.fails = EvaluatorUnavailable("gone")
    assert again.answer is not None
    stale = replace(again, answer=replace(again.answer, context_key="another", text="Old."))
    rewritten = bench.pipeline.resume(stale)
    assert rewritten.answer is not None and rewritten.answer.text == ANSWER and rewritten.support is None


# --- a model as judge -----------------------------------------------------------------------------------------------


def judged(judge: FakeModel, **fields: object) -> Bench:
    """Answers of two sentences, each judged by `judge` in one call."""
    bench = Bench(**{"model": FakeModel(answer="It leaves by nine [1]. Dogs swim.")} | fields)  # type: ignore[arg-type]
    bench.pipeline = bench.under(parts={"support": ModelSupport(judge, frozenset())}, support="ollama/judge")
    return bench


def test_a_stop_ends_the_judging_and_the_answer_stays() -> None:
    trace = judged(FakeModel(check=Stopped())).pipeline.run(QUESTION)
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE
    assert trace.failure is None and trace.support is None
    assert trace.steps[-1].summary == "not measured: Stopped by you."
    assert isinstance(unmeasured(trace), Stopped)


# --- other ways in ----------------------------------------------------------------------------------------------------


def test_a_streamed_answer_is_measured_when_its_stream_has_ended() -> None:
    observer = Diary()
    bench = benched(meter := FakeMeter(), observers=(observer,))
    corrected = bench.pipeline.correct(bench.pipeline.begin(QUESTION))
    assert meter.asked == [] and corrected.support is None
    *pieces, trace = bench.pipeline._pipeline.stream_answer(corrected)
    assert "".join(map(str, pieces)).strip() == ANSWER and isinstance(trace, Trace)
    assert trace.support is not None and names(trace)[-2:] == ["answer", StepName.CHECK_ANSWER]
    assert tuple(observer.done) == trace.steps
    assert list(bench.pipeline._pipeline.stream_answer(trace)) == []
