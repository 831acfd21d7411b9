"""The page of chosen thresholds: every figure is one of its arguments, and nothing is claimed that they do not show."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.text.display import readable
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import Expected, Origin
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation, recommend
from crag_core.experiments.thresholds.threshold_board import Board, confusion, rate
from crag_core.report.thresholds.page import render_thresholds
from tests.builders import POLICIES, policy
from tests.experiments.made_up_sets import board, case, drawn
from tests.report.pages import Page
from tests.report.sound_pages import assert_sound

MADE = Conditions("hand", "2", "llama", "prompts-7", "minilm", 5, "corpus-9")
COSTS, LIMIT = Objective(), Objective(most_wrong=0.1)
SEEN, MANY = drawn(160, seed=1), drawn(400, seed=1)
FOUND = recommend(SEEN, COSTS, own=(0.0, 0.1), others=(("start", 0.4, 0.6),))
PROMISED = recommend(MANY, LIMIT, others=(("start", 0.4, 0.6),), confidence=0.95)
DECIDED, ROUTES, RATES, TRUST, LIMITS = (f"#part-{place}" for place in range(1, 6))


def page_of(
    of: Board = SEEN,
    found: Recommendation = FOUND,
    thresholds: tuple[float, float] | None = None,
    objective: Objective = COSTS,
    **fields: Any,
) -> Page:
    """The thresholds are those of `found`, unless others are given."""
    lower, upper = thresholds or (found.lower, found.upper)
    known: dict[str, Any] = {"labelled": "ferry", "labels": "labels-4", "reason": "least cost of wrong 5"}
    known |= {"created": "2026-11-22T08:04:18+00:00", "questions": len(of), "cutoff": 0.3, "conditions": MADE}
    preset = TunedPreset(**{"name": "desk", "policy": of.policy.name, "lower": lower, "upper": upper} | known | fields)
    return Page(render_thresholds(preset, of, found, objective))


def one_kind(expected: Expected) -> Board:
    return board(*(case(n, expected, 0.2 + n / 20) for n in range(12)))


def test_the_head_says_what_was_decided_for_what() -> None:
    facts = page_of().all_told(f"{DECIDED} .facts div")
    lower, upper = readable(FOUND.lower, FOUND.upper)
    assert facts == [
        f"Thresholds lower {lower} and upper {upper}",
        "Recommended these",
        "Policy Paper",
        "Evaluator By hand",
        "Labelled questions 160 of the set “ferry”",
        "How they were chosen least cost of wrong 5",
    ]
    assert page_of().told("h1") == "desk" and "22 November 2026, 08:04 UTC" in page_of().told("header")
    assert f"Recommended lower {lower} and upper {upper}" in page_of(thresholds=(0.3, 0.95)).told(DECIDED)
    told = page_of(thresholds=(0.3, 0.95)).told(TRUST)
    assert f"The recommended thresholds, lower {lower} and upper {upper}," in told


def test_routes_are_those_of_the_board_at_the_thresholds_of_the_preset() -> None:
    page, actions = page_of(thresholds=(0.3, 0.8)), SEEN.actions(0.3, 0.8)
    searched = SEEN.web[range(len(SEEN)), actions]
    rows = page.rows(f"{ROUTES} tbody tr")
    for place, (row, counts) in enumerate(zip(rows, confusion(SEEN, actions).tolist()[:3], strict=True)):
        cells = row.split(" | ")[1:]
        web = int(searched[SEEN.expected == place].sum())
        shares = [f"{count} {count / sum(counts):.0%}" for count in (*counts, web)]
        assert [cells[0], *(cell.removeprefix("✓ ") for cell in cells[1:])] == [str(sum(counts)), *shares]
        assert [cell.startswith("✓") for cell in cells[1:4]] == [at == place for at in range(3)]
    (row,) = page_of(one_kind(Expected.UNANSWERABLE), thresholds=(0.4, 0.6)).rows(f"{ROUTES} tbody tr")
    assert [cell.startswith("✓") for cell in row.split(" | ")[2:5]] == [False, True, True], "a label without a route"


def test_the_rates_have_their_intervals() -> None:
    page, rates = page_of(), rate(SEEN, SEEN.actions(FOUND.lower, FOUND.upper))
    titles = {"discarded": "answer discarded", "web": "web rate"}
    for name in ("answered", "confidently_wrong", "needless_web", "missed_web", "ungraded", "discarded", "web"):
        title = titles.get(name, name.replace("_", " ")).capitalize()
        (row,) = (row for row in page.rows(f"{RATES} tbody tr") if row.startswith(title))
        share, among = getattr(rates, name), rates.among(name)
        assert f" | {share.value:.1%} {round(share.value * among)} of {among}; " in row
        assert row.endswith(f"; {100 * share.low:.1f}–{share.high:.1%}")
    assert f"is expected to take {rates.calls:.1f} LLM calls" in page.told(RATES)


def test_trust_is_told_in_the_figures_of_the_recommendation() -> None:
    assert FOUND.plateau
    told = page_of().told(TRUST)
    assert f"chosen on {FOUND.chosen_on} questions and judged on {FOUND.judged_on} other questions" in told
    (low, high), (first, last) = ((FOUND.grid[at] for at in FOUND.plateau.span(axis)) for axis in (0, 1))
    of_upper = "upper of {2}" if first == last else "upper from {2} to {3}"
    assert ("lower from {0} to {1} and " + of_upper).format(*readable(low, high), *readable(first, last)) in told
    assert "the mean of a question: wrong 12.5" in page_of(objective=Objective(Costs(wrong=12.5))).told(TRUST)


def test_the_comparison_is_the_recommendations() -> None:
    rows = page_of().rows(f"{TRUST} tbody tr")
    for row, one in zip(rows, FOUND.compared, strict=True):
        assert row.startswith(one.name) and f"{one.lower:.2f} | {one.upper:.2f} | " in row
        assert f" | {one.cost:.2f} | " in row
        for share in (one.rates.answered, one.rates.confidently_wrong, one.rates.needless_web, one.rates.discarded):
            assert share and f"{share.value:.1%} {100 * share.low:.1f}–{share.high:.1%}" in row
    saved = FOUND.compared[1].saved
    assert saved and rows[1].endswith(f"{saved.value:+.2f} {saved.low:+.2f} to {saved.high:+.2f}")


@pytest.mark.parametrize(
    ("expected", "unknown"),
    [
        (Expected.CORRECT, ["Confidently wrong", "Missed web"]),
        (Expected.INCORRECT, ["Answered", "Needless web", "Answer discarded"]),
    ],
)
def test_what_one_kind_of_question_cannot_show_is_not_measured(expected: Expected, unknown: list[str]) -> None:
    seen = one_kind(expected)
    page = page_of(seen, recommend(seen, COSTS), (0.4, 0.6), reason="set by hand")
    rows = page.rows(f"{RATES} tbody tr")
    assert [row for row in rows if "not measured No such question." in row] == [
        row for row in rows if any(row.startswith(name) for name in unknown)
    ]
    assert "Recommended none" in page.told(DECIDED)
    assert "Thresholds cannot be chosen from 12 questions" in page.told(TRUST)
    assert not page.soup.select(f"{TRUST} table")


def test_no_question_at_all_is_no_crash_and_no_claim() -> None:
    page = page_of(board(), recommend(board(), COSTS), (0.4, 0.6), created="", reason="", labelled="", name=" ")
    assert_sound(page)
    assert page.told(RATES).count("not measured") == 7 and page.told("h1") == "(no name)"
    assert "0 of the set “(no name)”" in page.told(DECIDED) and "on a day that was not recorded" in page.told("header")
    assert not re.search(r"\d%", page.told("main").replace("95%", ""))


def test_a_promise_is_held_against_the_thresholds_of_the_preset() -> None:
    promised = PROMISED.guaranteed
    assert promised and promised.pair == (PROMISED.lower, PROMISED.upper) and len(promised.passed) > 1
    told = page_of(MANY, PROMISED, objective=LIMIT).told(TRUST)
    assert promised.reason() in told and "1 of 20 such promises may be broken." in told and "does not hold" not in told
    untested = page_of(MANY, PROMISED, (PROMISED.lower, PROMISED.upper - 0.1)).told(TRUST)
    assert "does not hold for the thresholds of this preset" in untested
    assert "does not hold" not in page_of(MANY, PROMISED, promised.passed[0]).told(TRUST)


def test_no_promise_and_one_that_cannot_be_made_are_told() -> None:
    assert "No limit on mistakes is promised" in page_of().told(TRUST)
    found = recommend(SEEN, Objective(most_wrong=0.01), confidence=0.99)
    assert found.why_not and found.guaranteed
    assert found.guaranteed.reason() in page_of(SEEN, found, (0.4, 0.6)).told(TRUST)


def test_two_signals_have_their_bars_by_name() -> None:
    seen = drawn(60, seed=4, of=policy("two-signal"))
    page = page_of(seen, recommend(seen, COSTS, own=(0.0, 0.1), others=(("start", 0.4, 0.6),)))
    assert page.told(DECIDED).count("bar for the subject ") and "lower" not in page.told("main").lower()
    assert page.rows(f"{TRUST} thead tr")[0].startswith("Thresholds | Bar for the subject | Bar for an answer | ")


def test_keeping_yours_is_said_with_its_figures() -> None:
    found = recommend(SEEN, COSTS, own=(0.3, 0.7))
    assert found.keep and found.keep in page_of(SEEN, found).told(TRUST)
    assert "Recommended none but yours" in page_of(SEEN, found).told(DECIDED)


def test_labels_are_said_to_be_the_users_and_which_were_drafted() -> None:
    drafted = [replace(one, asked=replace(one.asked, origin=Origin.DRAFTED)) for one in SEEN.cases[:3]]
    told = page_of(Board(SEEN.policy, (*drafted, *SEEN.cases[3:]), SEEN.judge)).told(LIMITS)
    assert "3 questions and their labels were drafted by the application" in told
    assert "drafted" not in page_of().told(LIMITS) and "labels are the user's, not the truth" in page_of().told(LIMITS)


def test_every_condition_is_named_as_a_warning_names_it() -> None:
    facts = page_of().all_told(f"{LIMITS} .facts div")
    for name in MADE.changed(Conditions("other", "", "", "", "", 0, "")):
        assert any(fact.lower().startswith(name) for fact in facts), name
    for value in (getattr(MADE, field.name) for field in fields(MADE)):
        assert str(value) in " ".join(facts)


def test_a_preset_of_another_policy_is_refused() -> None:
    with pytest.raises(BadRecord, match="was chosen for the policy 'agentic'"):
        page_of(policy="agentic")


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_a_sound_page(name: str) -> None:
    seen = drawn(60, seed=4, of=policy(name))
    assert_sound(page_of(seen, recommend(seen, COSTS)))


def test_questions_are_not_in_the_file_which_is_always_the_same() -> None:
    asked = [replace(one.asked, question=f"Swordfish {n}", note="Swordfish") for n, one in enumerate(SEEN.cases)]
    secret = [replace(one, asked=other) for one, other in zip(SEEN.cases, asked, strict=True)]
    assert "Swordfish" not in page_of(Board(SEEN.policy, secret, SEEN.judge)).html
    assert page_of().html == page_of().html
