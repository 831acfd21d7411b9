"""Every setup that outcomes are kept under can be found again, also by a version that knows other settings."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base import serialization
from crag_core.base.errors import BadRecord, ScoresUnavailable
from crag_core.base.types.decisions import Action
from crag_core.experiments.comparison.outcome import Outcome
from crag_core.experiments.comparison.setups import KeptSetup, Setup, read_setup
from crag_core.experiments.store import ExperimentStore
from crag_core.trace.trace import Trace
from tests import builders
from tests.fakes import Bench

FIRST = Setup(builders.settings(builders.policy("paper")), "corpus", name="Paper", created="2026-01-01T00:00:00+00:00")
SECOND = replace(FIRST, corpus="more", created="2026-03-01T00:00:00+00:00")
THIRD = replace(FIRST, corpus="most", created="2026-02-01T00:00:00+00:00")


@pytest.fixture
def laboratory(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path / "laboratory")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Bench().pipeline.run("When?")


@pytest.fixture
def run(laboratory: ExperimentStore, trace: Trace) -> Callable[..., None]:
    def keep(setup: Setup, *keys: str) -> None:
        for key in keys:
            laboratory.outcomes(setup).add(Outcome(key, f"run of {key}", Action.CORRECT), trace)

    return keep


def change(tmp_path: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(tmp_path / "laboratory" / "crag.db") as database:
        database.execute(statement, values)


def test_looking_makes_no_file(laboratory: ExperimentStore, tmp_path: Path) -> None:
    assert laboratory.setups() == () and list(tmp_path.iterdir()) == []


def test_every_setup_comes_back_with_its_keys_the_newest_first(
    laboratory: ExperimentStore, run: Callable[..., None]
) -> None:
    run(FIRST, "a", "b")
    run(SECOND, "b")
    run(THIRD, "a", "c", "d")
    assert laboratory.setups() == (
        KeptSetup(SECOND, SECOND.fingerprint, frozenset("b")),
        KeptSetup(THIRD, THIRD.fingerprint, frozenset("acd")),
        KeptSetup(FIRST, FIRST.fingerprint, frozenset("ab")),
    )


def test_the_outcomes_of_a_kept_setup_are_read_by_what_was_found(
    laboratory: ExperimentStore, run: Callable[..., None]
) -> None:
    run(FIRST, "a")
    run(SECOND, "a", "b")
    newest, oldest = laboratory.setups()
    assert laboratory.outcomes(newest).load() == laboratory.outcomes(SECOND).load()
    assert laboratory.outcomes(oldest).load().keys() == {"a"}


@pytest.mark.parametrize(
    "told",
    [
        "no JSON",
        "[]",
        "{}",
        "[" * 100_000,
        '{"settings": {"policy": "tomorrow"}, "corpus": "c"}',
        '{"corpus": 7}',
        "\ud83d".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    ],
    ids=range(7),
)
def test_a_setup_that_this_version_cannot_read_is_left_out(
    told: str, laboratory: ExperimentStore, run: Callable[..., None], tmp_path: Path
) -> None:
    run(FIRST, "a")
    run(SECOND, "b")
    change(tmp_path, "UPDATE crag_conditions SET told = ? WHERE fingerprint = ?", told, FIRST.fingerprint)
    assert [one.setup for one in laboratory.setups()] == [SECOND]
    assert laboratory.outcomes(FIRST).keys() == {"a"}, "the outcomes are there all the same"


def test_a_setup_of_an_older_version_is_found_under_the_fingerprint_of_then(
    laboratory: ExperimentStore, run: Callable[..., None], tmp_path: Path
) -> None:
    """It had no word for a setting that has its default now, and so another fingerprint."""
    run(FIRST, "a", "b")
    with sqlite3.connect(tmp_path / "laboratory" / "crag.db") as database:
        ((written,),) = database.execute("SELECT told FROM crag_conditions").fetchall()
    older = json.loads(written)
    del older["settings"]["search_too"], older["settings"]["policy"]["expansion"]
    change(tmp_path, "UPDATE crag_conditions SET fingerprint = 'of-then', told = ?", json.dumps(older))
    change(tmp_path, "UPDATE crag_scored SET conditions = 'of-then'")
    (found,) = laboratory.setups()
    assert found == KeptSetup(FIRST, "of-then", frozenset("ab")) and found.id == "of-then"
    assert laboratory.outcomes(found).load().keys() == {"a", "b"} and laboratory.outcomes(FIRST).keys() == set()
    laboratory.outcomes(found).clear()
    assert laboratory.setups() == ()


OLD_PAPER = {
    "aggregation": "best",
    "strips": {"cutoff": 0.3, "order": "document", "token_budget": None, "top": 5, "scorer": "cross-encoder"},
    **{"refine_web": True, "web_query": "phrases", "web_query_phrases": 3, "web_pages": 3},
    **{"web_when_ungraded": False, "second_opinion": None, "doubtful": "show"},
    "fast_path": {"read_file": False, "few_context": None, "high_vector_score": None, "always": False},
    "loop": {"max_iterations": 3, "strategies": ["keyword", "rewritten", "expanded", "web"]},
    "correct": {"label": "Correct", "passages": "refine", "web": "never", "re_retrieve": None},
    "ambiguous": {"label": "Ambiguous", "passages": "refine", "web": "always", "re_retrieve": None},
    "incorrect": {"label": "Incorrect", "passages": "discard", "web": "always", "re_retrieve": None},
}
"""The policy `paper` as setups were kept before policies were lists of steps."""


def test_a_setup_of_before_policies_were_lists_of_steps_is_read(
    laboratory: ExperimentStore, run: Callable[..., None], tmp_path: Path
) -> None:
    run(FIRST, "a")
    older = serialization.to_plain(FIRST)
    now = older["settings"]["policy"]
    told = ("name", "title", "summary", "source", "evaluator", "lower", "upper", "presets")
    older["settings"]["policy"] = {key: now[key] for key in told} | OLD_PAPER
    change(tmp_path, "UPDATE crag_conditions SET told = ?", json.dumps(older))
    assert read_setup(older) == FIRST
    assert [one.setup for one in laboratory.setups()] == [FIRST]


@pytest.mark.parametrize("plain", [None, [], "setup", {"settings": None}, {"settings": {"policy": {"aggregation": 3}}}])
def test_what_is_no_setup_is_refused(plain: Any) -> None:
    with pytest.raises(BadRecord):
        read_setup(plain)


def test_rows_without_their_setup_are_nobodys(
    laboratory: ExperimentStore, run: Callable[..., None], tmp_path: Path
) -> None:
    run(FIRST, "a")
    run(SECOND, "b")
    change(tmp_path, "DELETE FROM crag_conditions WHERE fingerprint = ?", FIRST.fingerprint)
    assert [one.setup for one in laboratory.setups()] == [SECOND]


def test_what_is_forgotten_is_gone_and_nothing_else(laboratory: ExperimentStore, run: Callable[..., None]) -> None:
    run(FIRST, "a", "b")
    run(SECOND, "a", "b")
    newest, oldest = laboratory.setups()
    laboratory.outcomes(oldest).clear()
    assert laboratory.setups() == (newest,) and laboratory.outcomes(newest).load().keys() == {"a", "b"}
    laboratory.outcomes(oldest).clear()
    assert laboratory.setups() == (newest,)


def test_questions_of_other_sets_stay_where_those_of_one_are_forgotten(
    laboratory: ExperimentStore, run: Callable[..., None]
) -> None:
    run(FIRST, "a", "b", "c")
    laboratory.outcomes(FIRST).clear({"a", "c", "x"})
    (left,) = laboratory.setups()
    assert left.keys == {"b"} and laboratory.outcomes(left).load().keys() == {"b"}
    laboratory.outcomes(FIRST).clear({"b"})
    assert laboratory.setups() == ()


def test_after_it_was_forgotten_it_has_a_new_name_and_day(
    laboratory: ExperimentStore, run: Callable[..., None]
) -> None:
    run(FIRST, "a")
    again = replace(FIRST, name="Again", created="2027-01-01T00:00:00+00:00")
    run(again, "b")
    assert laboratory.setups()[0].setup == FIRST, "those of its first question"
    laboratory.outcomes(FIRST).clear()
    run(again, "a")
    assert laboratory.setups()[0].setup == again


def test_a_damaged_file_is_told_with_what_to_do(laboratory: ExperimentStore, tmp_path: Path) -> None:
    (tmp_path / "laboratory").mkdir()
    (tmp_path / "laboratory" / "crag.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ScoresUnavailable, match="not a database"):
        laboratory.setups()
