"""Sets and presets by name, in the file of a home; none is lost to another, or half written."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord, UnknownName
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from crag_core.experiments.labelled.read import write_questions
from crag_core.experiments.store import ExperimentStore, set_name_of
from crag_core.experiments.thresholds.preset import TunedPreset, parse_preset
from tests.builders import policy

CONDITIONS = Conditions("cross-encoder", "1", "", "", "all-MiniLM-L6-v2", 6, "corpus")
PRESET = TunedPreset("careful", "paper", 0.3, 0.7, 0.1, CONDITIONS, "mine", "abc", 120, "2026-01-01", "least cost")
SET = LabelledSet(
    "mine", (LabelledQuestion("Why?", Expected.CORRECT, ("since",)), LabelledQuestion("Où ?", Expected.INCORRECT))
)


@pytest.fixture
def laboratory(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path / "laboratory")


def test_nothing_is_made_by_looking(laboratory: ExperimentStore, tmp_path: Path) -> None:
    assert laboratory.set_names() == () and laboratory.preset_names() == ()
    assert not laboratory.delete_set("mine") and not laboratory.delete_preset("mine")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_lists_what_there_is(laboratory: ExperimentStore) -> None:
    laboratory.keep_set(SET)
    assert laboratory.load_set("mine").questions == SET.questions and laboratory.set_names() == ("mine",)
    with pytest.raises(UnknownName, match="Known: mine"):
        laboratory.load_set("mime")
    with pytest.raises(UnknownName, match="preset"):
        laboratory.load_preset("mine")
    assert laboratory.delete_set("mine") and laboratory.set_names() == ()


@pytest.mark.parametrize("name", ["", "..", "../x", "a\\b", ".hidden", "a\nb", "a\x00b", "x" * 61, "a ", "CON:"])
def test_a_name_that_is_none_is_refused(laboratory: ExperimentStore, name: str) -> None:
    for attempt in (
        lambda: laboratory.load_preset(name),
        lambda: laboratory.delete_set(name),
        lambda: laboratory.save_preset(replace(PRESET, name=name)),
    ):
        with pytest.raises(BadRecord, match="cannot be a name here"):
            attempt()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("harbour questions", "harbour questions"),
        ("../../etc/passwd", "etc passwd"),
        ("Fragen (März)", "Fragen März"),
        ("質問?", "質問"),
        (" .-_ ", "questions"),
        ("", "questions"),
        ("x" * 59 + " -y", "x" * 59),
    ],
)
def test_every_title_gives_a_name_that_a_set_may_have(laboratory: ExperimentStore, title: str, name: str) -> None:
    assert set_name_of(title) == name
    assert laboratory.keep_set(replace(SET, name=title)).name == name
    assert laboratory.set_names() == (name,)


def test_a_kept_set_never_takes_the_place_of_another(laboratory: ExperimentStore) -> None:
    other = replace(SET, questions=SET.questions[:1])
    assert laboratory.keep_set(SET).name == "mine" == laboratory.keep_set(SET).name
    assert laboratory.keep_set(other).name == "mine 2"
    assert laboratory.keep_set(other, SET).name == "mine"  # instead of it, since that is asked for
    assert laboratory.keep_set(SET, replace(SET, questions=())).name == "mine 3"
    assert laboratory.keep_set(replace(SET, name="x" * 60)).name == "x" * 60
    assert laboratory.keep_set(replace(other, name="x" * 60)).name == "x" * 58 + " 2"
    assert laboratory.load_set("mine").questions == other.questions


def test_a_question_is_put_into_a_set_and_taken_out(laboratory: ExperimentStore) -> None:
    first = LabelledQuestion("Why?", Expected.CORRECT)
    assert laboratory.change_set("own", lambda there: there.having(first)).questions == (first,)
    other = replace(first, expected=Expected.INCORRECT)
    laboratory.change_set("own", lambda there: there.having(SET.questions[1]).having(other))
    assert laboratory.load_set("own").questions == (other, SET.questions[1])  # in its place
    laboratory.change_set("own", lambda there: there.lacking(first.key))
    assert laboratory.load_set("own").questions == SET.questions[1:]
    laboratory.change_set("own", lambda there: there.lacking(SET.questions[1].key))
    laboratory.change_set("own", lambda there: there.having(first))  # an empty set takes questions again
    assert laboratory.load_set("own").questions == (first,)


def test_many_questions_at_once_are_all_kept(laboratory: ExperimentStore) -> None:
    def add(number: int) -> None:
        laboratory.change_set("own", lambda there: there.having(LabelledQuestion(f"{number}?", Expected.CORRECT)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(laboratory.load_set("own").questions) == 40


def test_a_row_that_cannot_be_read_is_not_lost(laboratory: ExperimentStore, tmp_path: Path) -> None:
    before = write_questions(SET.questions) + '{"question": "When?", "expected": "later"}\n'
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "mine.jsonl").write_text(before, "utf-8")
    laboratory.take_over(tmp_path / "sets")
    with pytest.raises(BadRecord, match="Row 3"):
        laboratory.change_set("mine", lambda there: there.having(LabelledQuestion("Who?", Expected.CORRECT)))
    assert laboratory._load("sets", "mine")[1].decode() == before


def test_a_preset_comes_back(laboratory: ExperimentStore) -> None:
    laboratory.save_preset(PRESET)
    assert laboratory.load_preset("careful") == PRESET
    assert tomllib.loads(PRESET.to_toml())["conditions"]["evaluator"] == "cross-encoder"
    assert PRESET.to_toml().startswith("# Thresholds of CRAG Explorer")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lower = ", "not valid TOML"),
        ("lower = 0.3", "missing"),
        (PRESET.to_toml().replace("lower = 0.3", "lower = 1.9"), "expected lower, upper and cutoff in 0..1, found 1.9"),
        (PRESET.to_toml().replace("lower = 0.3", 'lower = "0.3"'), "expected a valid number"),
        (PRESET.to_toml().replace("lower = ", "lowre = "), "Did you mean 'lower'"),
        ('name = "other"\n' + PRESET.to_toml(), "has the name of its file"),
    ],
)
def test_a_wrong_preset_names_file_and_key(text: str, told: str) -> None:
    with pytest.raises(BadRecord, match="careful") as refusal:
        parse_preset(text, "careful")
    assert told in str(refusal.value)


def test_a_preset_of_an_earlier_version_opens_without_the_keys_that_are_gone() -> None:
    kept = PRESET.to_toml().replace("lower = 0.3", "scores = [0, 60]\nlower = 0.3")
    assert parse_preset(f"{kept}\n[promise]\nwrong = 0.1\nconfidence = 0.95\n", "careful") == PRESET


def test_a_preset_belongs_to_its_policy() -> None:
    assert PRESET.applied_to(policy("paper")).thresholds == (0.3, 0.7, 0.1)
    with pytest.raises(BadRecord, match="chosen for the policy 'paper', not for 'signals'"):
        PRESET.applied_to(policy("signals"))
    crossed = replace(PRESET, lower=0.9)
    with pytest.raises(BadRecord, match=r"lower 0\.9 above upper 0\.7, but the policy 'paper' compares both"):
        crossed.applied_to(policy("paper"))
    eight = parse_preset(replace(PRESET, sentences=8).to_toml(), "careful").applied_to(policy("paper"))
    assert eight.refinement.top == 8
    two = replace(crossed, policy="two-signal").applied_to(policy("two-signal"))
    assert two.thresholds == (0.9, 0.7, 0.1)


def test_what_has_changed_since_is_told_in_one_sentence() -> None:
    assert PRESET.warning(CONDITIONS) == ""
    other = replace(CONDITIONS, corpus="new", evaluator_version="2", top_k=3)
    assert PRESET.warning(replace(CONDITIONS, corpus="new")) == (
        "Since “careful” was chosen, the documents changed: its thresholds may not fit any more."
    )
    assert "the evaluator, the number of chunks and the documents changed" in PRESET.warning(other)


def test_a_change_that_breaks_off_changes_nothing(laboratory: ExperimentStore) -> None:
    laboratory.keep_set(SET)

    def fail(there: LabelledSet) -> LabelledSet:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        laboratory.change_set("mine", fail)
    assert laboratory.load_set("mine").questions == SET.questions and laboratory.set_names() == ("mine",)
