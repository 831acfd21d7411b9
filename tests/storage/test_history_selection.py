"""Kept runs by what they are: found, counted, measured, exported and deleted together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.storage.history import HistoryStore
from crag_core.storage.history.runs import EVERYTHING, LONGEST_TEXT, Feedback, Selection
from crag_core.trace.feedback import Mark
from crag_core.trace.summary import Ending, measure
from crag_core.trace.trace import Trace
from tests.storage.history_parts import HOSTILE, Ticking, fake_runs, passage_label, route_label, run, whole_run

FIRST = 1_000_001.0  # what the ticking clock says first


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    return HistoryStore(tmp_path / "history.db", Ticking())


def ids(store: HistoryStore, **wanted: object) -> list[str]:
    """Oldest first."""
    selection = Selection(**wanted)  # type: ignore[arg-type]
    found = [kept.id for kept in store.search(selection)]
    assert store.count(selection) == len(found)
    return found[::-1]


def save(store: HistoryStore, *runs: Trace) -> None:
    for made in runs:
        store.save(made)


def ended(id: str, state: StepState) -> Trace:
    return run(id, steps=(Step("grade", "it ended", state=state),))


def with_answer(id: str, text: str, question: str = "Why?") -> Trace:
    return run(id, question=question, answer=Answer(text, AnswerState.COMPLETE, "extractive", "key"))


# --- each of them runs on PostgreSQL too, see test_history_postgres.py ----------------------------------------------


def test_runs_are_found_by_action_policy_and_ending(store: HistoryStore) -> None:
    other = replace(run().settings, policy=replace(run().settings.policy, name="mine"))
    save(store, whole_run("correct"), run("undecided"), run("mine", settings=other))
    save(store, ended("failed", StepState.FAILED), ended("stopped", StepState.STOPPED))
    save(store, ended("waiting", StepState.WAITING))
    assert ids(store, actions=(Action.CORRECT,)) == ["correct"]
    assert "correct" not in ids(store, actions=(None,)) and len(ids(store, actions=(None,))) == 5
    assert len(ids(store, actions=(None, Action.CORRECT))) == 6 and ids(store, actions=(Action.INCORRECT,)) == []
    assert ids(store, policies=("mine",)) == ["mine"] and ids(store, policies=("theirs", HOSTILE)) == []
    assert ids(store, endings=(Ending.FAILED, Ending.WAITING)) == ["failed", "waiting"]
    assert ids(store, endings=(Ending.STOPPED,), actions=(Action.CORRECT,)) == [], "all fields have to fit"
    assert store.policies() == ("mine", "paper") and store.policies(Selection(actions=(Action.CORRECT,))) == ("paper",)


def test_runs_are_found_by_when_they_were_kept_the_end_excluded(store: HistoryStore) -> None:
    save(store, run("one"), run("two"), run("three"))
    assert ids(store, since=FIRST + 1) == ["two", "three"] and ids(store, until=FIRST + 1) == ["one"]
    assert ids(store, since=FIRST + 1, until=FIRST + 2) == ["two"] and ids(store, since=FIRST + 2, until=FIRST) == []


def test_text_is_found_in_question_and_answer_in_every_script_without_capitals(store: HistoryStore) -> None:
    save(store, with_answer("de", "Der Fußweg ist GESPERRT.", "Wo ist die STRASSE?"))
    save(store, with_answer("el", "ΟΔΥΣΣΕΎΣ", "τί;"), with_answer("ru", "МОСКВА"), with_answer("ja", "東京タワー"))
    save(store, with_answer("tr", "İstanbul"), with_answer("fr", "un cafe\u0301 noir"))
    assert ids(store, text="gesperrt") == ["de"] and ids(store, text="STRASSE") == ids(store, text="straße") == ["de"]
    assert ids(store, text="FUSSWEG") == ["de"] and ids(store, text="οδυσσεύς") == ["el"]
    assert (
        ids(store, text="москва") == ["ru"] and ids(store, text="京タ") == ["ja"] and ids(store, text="İSTAN") == ["tr"]
    )
    assert ids(store, text="CAFÉ") == ids(store, text="cafe\u0301") == ["fr"]
    assert ids(store, text="gespert") == [] and ids(store, text="東 京") == []


def test_no_sign_of_a_text_has_a_meaning_of_its_own(store: HistoryStore) -> None:
    texts = ("100 % sure", "under_score", "back\\slash", "it's; DROP TABLE runs; --", 'a "quoted" /slash/', "[a-z]*?")
    save(store, *(with_answer(f"run-{number}", text) for number, text in enumerate(texts)))
    for number, text in enumerate(texts):
        assert ids(store, text=text) == [f"run-{number}"]
    assert (
        ids(store, text="%") == ["run-0"] and ids(store, text="_") == ["run-1"] and ids(store, text="\\") == ["run-2"]
    )
    assert (
        ids(store, text="100%sure") == [] and ids(store, text="/") == ["run-4"] and ids(store, text="under?score") == []
    )
    assert store.count() == len(texts)


def test_hostile_text_is_kept_found_and_does_no_harm(store: HistoryStore) -> None:
    save(store, whole_run("hostile"), run("other"))
    assert ids(store, text=HOSTILE.replace("\x00", "").replace("\ufffd", "")) == []
    assert ids(store, text="drop table") == ["hostile"] and ids(store, text=HOSTILE) == ["hostile"]
    assert ids(store, asked_by=HOSTILE) == [] and store.count() == 2
    store.save(run("hers"), asked_by=HOSTILE)
    assert ids(store, asked_by=HOSTILE) == ["hers"]


def test_runs_are_found_by_what_was_said_of_them(store: HistoryStore) -> None:
    save(store, *(whole_run(name) for name in ("right", "wrong", "passage", "nothing")))
    store.add_label(route_label(whole_run("right"), Mark.RIGHT))
    store.add_label(route_label(whole_run("wrong"), Mark.WRONG, Action.INCORRECT))
    store.add_label(passage_label(whole_run("passage"), "p1"))
    store.add_label(passage_label(whole_run("wrong"), "p1", Mark.NOT_RELEVANT))
    assert ids(store, feedback=(Feedback.ROUTE_RIGHT,)) == ["right"]
    assert ids(store, feedback=(Feedback.ROUTE_RIGHT, Feedback.ROUTE_WRONG)) == ["right", "wrong"]
    assert ids(store, feedback=(Feedback.NONE,)) == ["nothing"] and ids(store, feedback=(Feedback.ANSWER_RIGHT,)) == []
    told = {kept.id: (kept.route, kept.answer, kept.labelled) for kept in store.search(EVERYTHING)}
    assert told["wrong"] == (Mark.WRONG, None, 1) and told["nothing"] == (None, None, 0)
    store.add_label(route_label(whole_run("wrong"), Mark.RIGHT))
    assert ids(store, feedback=(Feedback.ROUTE_WRONG,)) == []


def test_each_sees_his_own_and_who_asked_first_stays_who_asked(store: HistoryStore) -> None:
    store.save(run("hers"), asked_by="ann@example.org")
    store.save(run("his"), asked_by="bob@example.org")
    store.save(run("anybody's"))
    store.save(whole_run("hers"), asked_by="bob@example.org")
    store.save_import(run("import"), asked_by="ann@example.org")
    assert ids(store, asked_by="ann@example.org") == ["hers", "import"] and ids(store, asked_by="bob@example.org") == [
        "his"
    ]
    assert len(ids(store, asked_by="")) == 1 and len(ids(store)) == 4
    assert store.policies(Selection(asked_by="nobody")) == ()


def test_figures_are_those_of_the_records_oldest_first_without_imports(store: HistoryStore) -> None:
    runs = fake_runs()
    save(store, *runs)
    store.save_import(run("import"))
    assert store.measured() == tuple(measure(made, FIRST + number) for number, made in enumerate(runs))
    assert [one.policy for one in store.measured(Selection(policies=("paper",)))] == ["paper"] * 4
    assert store.measured(Selection(since=FIRST + 2, until=FIRST + 3)) == (measure(runs[2], FIRST + 2),)


def test_numbers_that_no_column_holds_are_kept_in_the_record_alone(store: HistoryStore) -> None:
    huge = (Step("a", "b", seconds=1e308, usage=Usage(2**70, 2**70, 5)), Step("c", "d", seconds=1e308))
    made = run("huge", steps=huge)
    store.save_import(made)
    store.save(replace(made, id="many", steps=huge[:1]))
    assert store.load("huge") == made and store.count() == 2
    kept = store.find("many")
    assert kept is not None and math.isfinite(kept.seconds) and kept.tokens < 2**33


def test_what_is_selected_is_deleted_with_its_labels_and_nothing_else(store: HistoryStore) -> None:
    runs = [whole_run(f"run-{number}") for number in range(4)]
    save(store, *runs)
    for made in runs:
        store.add_label(route_label(made, Mark.WRONG))
    assert store.delete_all(Selection(ids=())) == 0
    assert store.delete_all(Selection(ids=("run-1", "elsewhere"))) == 1
    assert store.delete_all(Selection(feedback=(Feedback.ROUTE_WRONG,), until=FIRST + 1)) == 1
    assert ids(store) == ["run-2", "run-3"] and [one.run_id for one in store.all_labels()] == ["run-2", "run-3"]
    assert store.delete_all(EVERYTHING) == 2 and store.all_labels() == () and store.delete_all(EVERYTHING) == 0


def test_an_export_has_every_record_that_fits_newest_first(store: HistoryStore) -> None:
    runs = [whole_run(f"run-{number}") for number in range(4)]
    save(store, *runs)
    assert list(store.export()) == runs[::-1]
    assert list(store.export(Selection(ids=("run-2", "run-0")))) == [runs[2], runs[0]]


# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Selection(text="x" * (LONGEST_TEXT + 1)),
        lambda: Selection(since=math.nan),
        lambda: Selection(until=math.inf),
    ],
)
def test_a_selection_that_no_run_can_fit_is_refused(make: Callable[[], Selection]) -> None:
    with pytest.raises(BadRecord, match="Expected"):
        make()
