"""Which kept results stand to choice beside the configurations of now, under which name, and unlike what."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from crag_core.evaluators.policies import plain_rag
from crag_core.experiments.comparison.setups import (
    OTHER_DOCUMENTS,
    OTHER_VERSION,
    Earlier,
    KeptSetup,
    Setup,
    day_of,
    earlier_results,
    listed,
)
from tests import builders

NOON = "2026-11-12T12:03:59+00:00"
AT = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
PAPER = Setup(builders.settings(builders.policy("paper")), "corpus", name="Paper", created=NOON)
PLAIN = replace(PAPER, settings=builders.settings(plain_rag()), name="Plain RAG")
NOW = {"Plain RAG": PLAIN, "Paper": PAPER}
THEN = replace(PAPER, corpus="before")


def kept(setup: Setup = THEN, *keys: str, fingerprint: str = "") -> KeptSetup:
    return KeptSetup(setup, fingerprint or setup.fingerprint, frozenset(keys or ("a", "b")))


def found(those: Iterable[KeptSetup], keys: Collection[str] = ("a", "b", "c"), **options: Any) -> tuple[Earlier, ...]:
    made: dict[str, Any] = {"now": NOW, "at": AT, "readable": lambda one: one.keys} | options
    return earlier_results(those, keys, **made)


def test_a_result_on_other_documents_has_its_day_and_what_differs() -> None:
    (one,) = found([kept()])
    assert (one.name, one.like, one.differs) == ("Paper · 12 Nov 12:03", "Paper", (OTHER_DOCUMENTS,))
    assert one.asked == {"a", "b"} and one.has_other_documents
    assert one.remark == "Paper · 12 Nov 12:03 is an earlier result, as it was kept. Unlike Paper: other documents."


def test_what_is_a_configuration_of_now_or_has_no_question_of_the_set_is_left_out() -> None:
    assert found([kept(PAPER), kept(PLAIN), kept(THEN, "x")]) == ()


def test_only_questions_of_the_set_that_can_be_read_count() -> None:
    (one,) = found([kept(THEN, "a", "b", "x")], readable=lambda one: {"b", "x"})
    assert one.asked == {"b"}
    assert found([kept()], readable=lambda one: ()) == ()


def test_nobody_reads_what_is_left_out_anyway() -> None:
    asked: list[KeptSetup] = []
    found([kept(PAPER), kept(THEN, "x"), kept()], readable=lambda one: asked.append(one) or ())
    assert asked == [kept()]


def test_a_setup_that_this_version_would_write_otherwise_is_an_earlier_one() -> None:
    (one,) = found([kept(PAPER, fingerprint="0123456789abcdef")])
    assert one.differs == (OTHER_VERSION,) and one.like == "Paper" and one.kept.id == "01234567"


def test_each_is_told_against_the_nearest_of_now() -> None:
    strict = replace(PAPER, settings=builders.settings(builders.policy("paper").with_thresholds(upper=0.9)))
    signals = replace(PAPER, settings=builders.settings(builders.policy("signals")))
    others = [kept(replace(PLAIN, corpus="before")), kept(strict), kept(signals)]
    assert [one.like for one in found(others)] == ["Plain RAG", "Paper", "Paper"]
    few = replace(strict, settings=replace(strict.settings, top_k=2))
    assert [one.like for one in found(others, now={"few": few, "Paper": PAPER})] == ["Paper", "few", "Paper"]


def test_the_order_is_kept_and_names_differ_from_all_others() -> None:
    twins = [kept(replace(THEN, corpus=str(number))) for number in range(2)]
    late = kept(replace(THEN, created="2026-11-20T08:00:00+00:00"))
    made = found([late, *twins])
    assert made[0].name == "Paper · 20 Nov 08:00"
    assert [one.name for one in made[1:]] == [f"Paper · 12 Nov 12:03 · {one.id}" for one in twins]
    (one,) = found([kept()], now={"Paper · 12 Nov 12:03": PAPER})
    assert one.name == f"Paper · 12 Nov 12:03 · {kept().id}"


@pytest.mark.parametrize(
    ("name", "shown"), [("", "Paper"), (" a\n b ", "a b"), ("x" * 99, f"{'x' * 59}…"), ("x" * 60, "x" * 60)]
)
def test_a_name_is_short_and_on_one_line(name: str, shown: str) -> None:
    (one,) = found([kept(replace(THEN, name=name))])
    assert one.name == f"{shown} · 12 Nov 12:03"


@pytest.mark.parametrize(
    ("created", "zone", "told"),
    [
        (NOON, UTC, "12 Nov 12:03"),
        (NOON, timezone(timedelta(hours=-5)), "12 Nov 07:03"),
        ("2026-11-12T23:30:00+00:00", timezone(timedelta(hours=2)), "13 Nov 01:30"),
        ("2025-11-02T12:03:00+00:00", UTC, "2 Nov 2025 12:03"),
        ("2025-12-31T23:30:00+00:00", timezone(timedelta(hours=1)), "1 Jan 00:30"),
        ("", UTC, "undated"),
        ("yesterday", UTC, "undated"),
        ("0001-01-01T00:00:00+00:00", timezone(timedelta(hours=-5)), "undated"),
    ],
)
def test_days_are_those_of_the_reader(created: str, zone: timezone, told: str) -> None:
    assert day_of(created, datetime(2026, 6, 1, tzinfo=zone)) == told


def test_without_a_zone_it_is_that_of_the_machine() -> None:
    local = datetime.fromisoformat(NOON).astimezone()
    assert day_of(NOON, datetime(2026, 6, 1)) == f"{local.day} Nov {local:%H:%M}"


def test_files_tell_what_is_from_when() -> None:
    (one,) = found([kept()])
    assert listed([one]) == [
        {
            "configuration": "Paper · 12 Nov 12:03",
            "id": kept().fingerprint[:8],
            "created": NOON,
            "unlike": "Paper",
            "differs": ["other documents"],
        }
    ]
