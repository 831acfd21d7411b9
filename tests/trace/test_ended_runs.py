"""What a record says when the program ended while the run was under way."""

from dataclasses import replace

from crag_core.app.background_jobs import program_ended
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.steps import Step, StepState
from tests.builders import policy, trace

RETRIEVED = Step("retrieve", "4 chunks")


def test_a_run_that_stopped_for_it_does_not_say_that_you_did_it() -> None:
    broken = Step("grade", "stopped by you after 4 of 8 chunks", StepState.STOPPED)
    ended = program_ended(trace(policy("paper"), steps=(RETRIEVED, broken)))
    assert ended.steps == (RETRIEVED, replace(broken, summary="the program was ended after 4 of 8 chunks"))


def test_a_half_written_answer_says_it_too() -> None:
    half = Answer("Dues are", AnswerState.STOPPED, "m", "key", message="Stopped by you.")
    ended = program_ended(trace(policy("paper"), answer=half))
    assert ended.answer == replace(half, message="The program was ended.")


def test_a_run_that_did_not_stop_in_time_broke_off_where_it_was() -> None:
    ended = program_ended(trace(policy("paper"), steps=(RETRIEVED,), answer=None), "grade")
    assert ended.failure == Step("grade", "The program was ended.", StepState.STOPPED)


def test_a_run_that_had_broken_off_before_keeps_its_reason() -> None:
    away = Step("grade", "Ollama went away.", StepState.FAILED)
    taken = trace(policy("paper"), steps=(RETRIEVED, away), answer=None)
    assert program_ended(taken, "grade") == program_ended(taken) == taken


def test_a_run_that_came_to_its_end_all_the_same_stays_as_it_is() -> None:
    done = trace(policy("paper"), steps=(RETRIEVED,), answer=Answer("At nine.", AnswerState.COMPLETE, "m", "key"))
    assert program_ended(done) == program_ended(done, "check answer") == done
