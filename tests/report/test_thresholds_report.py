"""The page of chosen thresholds: every figure is one of its arguments, and nothing is claimed that they do not show."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.text.display import readable
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import Expected, Origin
from crag_core.experiments.thresholds.objective import Costs, Objective
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.experiments.thresholds.recommend import Recommendation, recommend
from crag_core.experiments.thresholds.threshold_board import Board, Prices, confusion, rate
from crag_core.report.thresholds.page import render_thresholds
from tests.browser.conftest import open_browser
from tests.builders import POLICIES, policy
from tests.experiments.made_up_sets import board, case, drawn
from tests.report.pages import Page
from tests.report.test_report_hostile import ATTRIBUTES, DISGUISED, EVIL, SHOWN, TAGS

MADE = Conditions("hand", "2", "llama", "prompts-7", "minilm", 5, "corpus-9")
COSTS, LIMIT = Objective(), Objective(most_wrong=0.1)
SEEN, MANY = drawn(160, seed=1), drawn(400, seed=1)
FOUND = recommend(SEEN, COSTS, own=(0.0, 0.1), others=(("start", 0.4, 0.6),))
(LOWER,), (UPPER,) = readable(FOUND.lower), readable(FOUND.upper)
PROMISED = recommend(MANY, LIMIT, others=(("start", 0.4, 0.6),), confidence=0.95)


def preset_of(of: Board, lower: float, upper: float, **fields: Any) -> TunedPreset:
    known: dict[str, Any] = {"labelled": "ferry", "labels": "labels-4", "reason": "least cost of wrong 5"}
    known |= {"created": "2026-11-22T08:04:18+00:00", "questions": len(of), "cutoff": 0.3, "conditions": MADE}
    return TunedPreset(**{"name": "desk", "policy": of.policy.name, "lower": lower, "upper": upper} | known | fields)


def page_of(
    of: Board = SEEN,
    found: Recommendation = FOUND,
    thresholds: tuple[float, float] | None = None,
    objective: Objective = COSTS,
    prices: Prices | None = None,
    **fields: Any,
) -> Page:
    """The thresholds are those of `found`, unless others are given."""
    preset = preset_of(of, *(thresholds or (found.lower, found.upper)), **fields)
    return Page(render_thresholds(preset, of, found, objective, prices or Prices()))


def one_kind(expected: Expected, count: int = 12) -> Board:
    return board(*(case(n, expected, 0.2 + n / 20) for n in range(count)))


def two_signals() -> Board:
    pairs = [(0.9, 0.8), (0.2, 0.7), (0.8, 0.3), (0.1, 0.1)]
    wanted = (Expected.CORRECT, Expected.AMBIGUOUS, Expected.CORRECT, Expected.INCORRECT)
    return board(*(case(n, wanted[n % 4], two=(pairs[n % 4],)) for n in range(24)), of=policy("two-signal"))


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_head_says_what_was_decided_for_what() -> None:
    told = page_of().told("#decision")
    assert f"Lower {LOWER} and upper {UPPER}, for the policy Paper with the evaluator By hand" in told
    assert "on 160 questions of the set “ferry”, 22 November 2026, 08:04 UTC" in told
    assert "as recorded: least cost of wrong 5." in told
    assert "80 answered by the documents, 80 not" in told
    assert f"The score is {UPPER} or more: Answered from the documents" in told
    assert f"The score is less than {LOWER}: Documents set aside, the web asked instead" in told
    assert "These are the thresholds that are recommended" in told
    assert page_of().told("h1") == "desk"


def test_routes_are_those_of_the_board_at_the_thresholds_of_the_preset() -> None:
    page, actions = page_of(thresholds=(0.3, 0.8)), SEEN.actions(0.3, 0.8)
    table = confusion(SEEN, actions).tolist()
    searched = SEEN.web[range(len(SEEN)), actions]
    rows = page.rows("#meaning tbody tr")
    assert len(rows) == 3
    for place, (row, counts) in enumerate(zip(rows, table[:3], strict=True)):
        cells = row.split(" | ")
        assert int(cells[1]) == sum(counts)
        web = int(searched[SEEN.expected == place].sum())
        for cell, count in zip(cells[2:], (*counts, web), strict=True):
            assert cell.removeprefix("✓ ") == f"{count} {count / sum(counts):.0%}"
        assert [cell.startswith("✓") for cell in cells[2:5]] == [at == place for at in range(3)]


def test_both_kinds_of_a_label_without_a_route_are_asked_for() -> None:
    (row,) = page_of(one_kind(Expected.UNANSWERABLE), thresholds=(0.4, 0.6)).rows("#meaning tbody tr")
    assert [cell.startswith("✓") for cell in row.split(" | ")[2:5]] == [False, True, True]


def test_the_rates_have_their_intervals() -> None:
    page, rates = page_of(), rate(SEEN, SEEN.actions(FOUND.lower, FOUND.upper))
    names = {
        "answered": 80,
        "confidently_wrong": 80,
        "needless_web": 80,
        "missed_web": 80,
        "ungraded": 160,
        "discarded": 80,
        "web": 160,
    }
    titles = {"discarded": "answer discarded", "web": "web rate"}
    for told, (name, among) in zip(page.all_told("#rates .figures div"), names.items(), strict=True):
        share = getattr(rates, name)
        assert told.lower().startswith(titles.get(name, name.replace("_", " ")))
        assert f"{share.value:.1%} {round(share.value * among)} of {among}; " in told
        assert f"95%: {100 * share.low:.1f}–{share.high:.1%}" in told


def test_what_a_question_takes_is_told_with_what_was_assumed() -> None:
    prices = Prices(7.0, 2.5)
    rates = rate(SEEN, SEEN.actions(FOUND.lower, FOUND.upper), prices)
    told = page_of(prices=prices).told("#rates")
    assert f"{rates.seconds:.1f} s and {rates.calls:.1f} model calls" in told
    assert "7 s assumed for every later call and 2.5 s for a web search" in told


def test_trust_is_told_in_the_figures_of_the_recommendation() -> None:
    assert FOUND.plateau and FOUND.drawn
    told = page_of().told("#trust")
    assert f"chosen on {FOUND.chosen_on} questions and judged on {FOUND.judged_on} other questions" in told
    (low, high), (first, last) = ((FOUND.grid[at] for at in FOUND.plateau.span(axis)) for axis in (0, 1))
    spans = (*readable(low, high), *readable(first, last))
    of_upper = "upper of {2}" if first == last else "upper from {2} to {3}"
    assert ("lower from {0} to {1} and " + of_upper).format(*spans) in told
    for low, high in FOUND.drawn:
        assert "lies between {} and {}".format(*readable(low, high)) in told
    assert f"Among them are the {FOUND.chosen_on} that the thresholds were chosen on" in page_of().told("#rates")


def test_the_comparison_is_the_recommendations() -> None:
    rows = page_of().rows("#trust tbody tr")
    assert len(rows) == len(FOUND.compared) == 3
    for row, one in zip(rows, FOUND.compared, strict=True):
        assert (
            row.startswith(one.name)
            and f"{one.lower:.2f} | {one.upper:.2f} | " in row
            and f" | {one.cost:.2f} | " in row
        )
        for share in (one.rates.answered, one.rates.confidently_wrong, one.rates.needless_web, one.rates.discarded):
            assert share and f"{share.value:.1%} ({100 * share.low:.1f}–{share.high:.1%})" in row
    saved = FOUND.compared[1].saved
    assert saved and rows[1].endswith(f"{saved.value:+.2f} ({saved.low:+.2f} to {saved.high:+.2f})")
    assert rows[0].endswith(" | –") and "this preset" in rows[0] and "this preset" not in rows[1]


def test_costs_are_those_of_the_objective() -> None:
    told = page_of(objective=Objective(Costs(wrong=12.5, mixed_up=0))).told("#trust")
    assert "charged 12.5 for each wrong answer" in told and "mixed-up" not in told and "least cost" in told
    told = page_of(objective=Objective(Costs(0, 0, 0, 0, 0, 0), 0.07)).told("#trust")
    assert "charged nothing" in told and "keep confident mistakes at 7.0% or fewer" in told


# --- rules ----------------------------------------------------------------------------------------------------------


def test_two_signals_are_compared_one_after_the_other() -> None:
    page = page_of(two_signals(), recommend(two_signals(), COSTS), (0.4, 0.6))
    assert page.all_told("#decision .rules li")[1].startswith("Otherwise, the score for the subject is less than 0.40")


def test_nothing_lies_between_two_thresholds_that_are_one() -> None:
    told = page_of(thresholds=(0.5, 0.5)).all_told("#decision .rules li")
    assert [one.split(":")[0] for one in told] == ["The score is 0.50 or more", "The score is less than 0.50"]


# --- nothing is claimed that is not so ------------------------------------------------------------------------------


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
    told = page.all_told("#rates .figures div")
    assert [one for one in told if "not measured No such question." in one] == [
        one for one in told if any(one.startswith(name) for name in unknown)
    ]
    assert "no thresholds can be recommended. Thresholds cannot be chosen from 12 questions" in page.told("#by-hand")
    assert "so there are none to judge" in page.told("#trust") and not page.soup.select("#trust table")


def test_no_question_at_all_is_no_crash_and_no_claim() -> None:
    page = page_of(board(), recommend(board(), COSTS), (0.4, 0.6), created="", reason="", labelled="", name=" ")
    assert page.told("#rates").count("not measured") == 7 and page.told("h1") == "(no name)"
    assert "on an unknown number of questions of the set “(no name)”, on a day that was not recorded" in page.told(
        "#decision"
    )
    assert not re.search(r"\d%", page.told("main"))


def test_thresholds_set_by_hand_are_said_to_be_so() -> None:
    page = page_of(thresholds=(0.3, 0.95), reason="set by hand")
    told = page.told("#by-hand")
    assert "lower {} and upper {} are recommended".format(*readable(FOUND.lower, FOUND.upper)) in told
    assert "lower 0.30 and upper 0.95, were set by hand or chosen in another way" in told
    assert "These are the thresholds that are recommended" not in page.told("main")
    assert "this preset" not in page.told("#trust table")
    assert f"The recommended thresholds, lower {LOWER}" in page.told("#trust")
    assert "flatters" not in page.told("#rates")
    assert not page_of().soup.select("#by-hand")


def test_a_preset_that_is_in_the_comparison_is_marked_there() -> None:
    rows = page_of(thresholds=(0.4, 0.6)).rows("#trust tbody tr")
    assert ["this preset" in row for row in rows] == [False, False, True]


def test_a_promise_stands_in_its_own_words() -> None:
    assert PROMISED.guaranteed and PROMISED.guaranteed.pair == (PROMISED.lower, PROMISED.upper)
    page = page_of(MANY, PROMISED, objective=LIMIT)
    told = page.told("#trust")
    assert PROMISED.guaranteed.reason in told and "1 of 20 such promises may be broken." in told
    assert "They were tested and judged on" in told and "are the middle of a plateau" not in told
    assert "does not hold" not in told and "flatters" in page.told("#rates")


def test_a_promise_is_held_against_the_thresholds_of_the_preset() -> None:
    assert PROMISED.guaranteed and len(PROMISED.guaranteed.passed) > 1
    untested = page_of(MANY, PROMISED, (PROMISED.lower, PROMISED.upper - 0.1)).told("#trust")
    safer = page_of(MANY, PROMISED, PROMISED.guaranteed.passed[0]).told("#trust")
    assert "does not hold for the thresholds of this preset" in untested
    assert "This holds for the thresholds of this preset, too." in safer


def test_keeping_yours_is_said_with_its_figures() -> None:
    found = recommend(SEEN, COSTS, own=(0.3, 0.7))
    assert found.keep
    page = page_of(SEEN, found)
    assert found.keep in page.told("#trust") and "Your thresholds beside others" in page.told("#trust")
    assert "These are the thresholds that are recommended" not in page.told("main")
    assert found.keep in page_of(SEEN, found, (0.1, 0.9)).told("#by-hand")


def test_no_promise_and_one_that_cannot_be_made_are_told() -> None:
    assert "No limit on mistakes is promised" in page_of().told("#trust")
    found = recommend(SEEN, Objective(most_wrong=0.01), confidence=0.99)
    assert found.why_not and found.guaranteed
    page = page_of(SEEN, found, (0.4, 0.6))
    assert found.why_not in page.told("#by-hand") and found.guaranteed.reason in page.told("#trust")
    assert "In plain words" not in page.told("#trust")


def test_thresholds_that_make_no_difference_are_not_said_to_be_good() -> None:
    nothing = Objective(Costs(0, 0, 0, 0, 0, 0))
    assert "Nothing better found: keep yours" in page_of(SEEN, recommend(SEEN, nothing)).told("#trust")


def test_labels_are_said_to_be_the_users_and_which_were_drafted() -> None:
    changed = [
        replace(one, asked=replace(one.asked, origin=Origin.DRAFTED, without="x" if n == 1 else "")) if n < 3 else one
        for n, one in enumerate(SEEN.cases)
    ]
    told = page_of(Board(SEEN.policy, changed, SEEN.judge)).told("#limits")
    assert "157 from a file, 3 drafted by the application" in told and "looked them through" in told
    assert "1 question is not answered only because the chunks with the answer were left out" in told
    assert "drafted" not in page_of().told("#limits")


def test_every_condition_is_named_as_a_warning_names_it() -> None:
    other = Conditions("other", "", "", "", "", 0, "")
    facts = page_of().all_told("#limits .facts div")
    for name in MADE.changed(other):
        assert any(fact.lower().startswith(name) for fact in facts), name
    for value in (getattr(MADE, field.name) for field in fields(MADE)):
        assert str(value) in " ".join(facts)


def test_only_the_first_retrieval_counts_and_that_is_said() -> None:
    assert "Only the first search for chunks counts." in page_of().told("#limits")
    assert "search again" not in page_of().told("#limits")
    seen = drawn(40, seed=1, of=policy("agentic"))
    assert "may search again and decide again" in page_of(seen, recommend(seen, COSTS)).told("#limits")


def test_what_does_not_fit_together_is_said() -> None:
    made = replace(MADE, evaluator="llm")
    page = page_of(SEEN, PROMISED, (PROMISED.lower, PROMISED.upper), questions=90, conditions=made)
    told = page.told("#decision")
    assert "The preset names 90 questions; the figures here are of 160 questions." in told
    assert "grades by another evaluator" in told and "with the evaluator llm" in told
    assert "The recommendation is of 400 questions, the figures here are of 160." in told
    assert len(page_of().soup.select("#decision .note")) == 1


def test_a_preset_of_another_policy_is_refused() -> None:
    with pytest.raises(BadRecord, match="was chosen for the policy 'agentic'"):
        page_of(policy="agentic")


# --- any page -------------------------------------------------------------------------------------------------------


class Nesting(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        assert "svg" in self.open, f"<{tag}/> closes itself in drawings only"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_sound(page: Page) -> None:
    nesting = Nesting()
    nesting.feed(page.html)
    assert nesting.open == []
    ids = [tag["id"] for tag in page.soup.select("[id]")]
    assert len(ids) == len(set(ids))
    assert {tag["aria-labelledby"] for tag in page.soup.select("[aria-labelledby]")} <= set(ids)
    levels = [int(tag.name[1]) for tag in page.soup.select("h1, h2, h3, h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    tags = page.soup.find_all(True)
    assert {tag.name for tag in tags} <= set(TAGS.split())
    assert {name.lower() for tag in tags for name in tag.attrs} <= set(ATTRIBUTES.split())
    assert all(svg.get("aria-label") or svg.get("aria-hidden") for svg in page.soup.select("svg:not(svg svg)"))
    assert not page.soup.select("a, [style], [src], [srcset], link, base, form, script, iframe")
    (policy_of,) = page.soup.select('meta[http-equiv="Content-Security-Policy"]')
    (sheet,) = page.soup.select("style")
    key = base64.b64encode(hashlib.sha256(sheet.get_text().encode()).digest()).decode()
    assert policy_of["content"] == f"default-src 'none'; style-src 'sha256-{key}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", sheet.get_text())


NEAREST = "Doubtful: the nearest sentences"
KEPT, BOTH = "Answered from the documents", "Answered from the documents and the web"
WEB = "Documents set aside, the web asked instead"
WAYS = {name: {KEPT, BOTH, WEB} for name in POLICIES} | {
    "rank-weighted": {KEPT, "Answered from the documents, and the web where little is left", WEB},
    "heuristic": {KEPT, "Searched for again in the documents", WEB},
    "adaptive-rag": {KEPT, "Searched for again in the documents"},
    "astute-rag": {KEPT, NEAREST},
    "self-route": {KEPT, NEAREST, "Documents set aside"},
    "sufficient-context": {KEPT, "Not answered: the policy abstains", "Documents set aside"},
    "agentic": {KEPT, "Searched for again in the documents", "Set aside, and searched for again"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_a_sound_page_that_says_what_its_routes_do(name: str) -> None:
    seen = drawn(60, seed=4, of=policy(name))
    page = page_of(seen, recommend(seen, COSTS))
    assert_sound(page)
    assert ("settled by a rule" in page.told("#decision")) is (name == "agentic")
    assert {one.partition(": ")[2] for one in page.all_told("#decision .rules li")} <= WAYS[name]


def evil_page(text: str = EVIL) -> Page:
    """Everything that comes from outside is `text`."""
    cases = [
        replace(one, asked=replace(one.asked, question=f"{text} {n}", note=text, document=text, answers=(text,)))
        for n, one in enumerate(SEEN.cases)
    ]
    of = replace(SEEN.policy, title=text, summary=text, source=text)
    of = replace(of, labels=("Correct", text, "Incorrect"))
    seen = Board(of, cases, replace(SEEN.judge, title=text, scale=text, version=text))
    found = recommend(seen, COSTS, others=((text, 0.4, 0.6),))
    made = Conditions("hand", text, text, text, text, 5, text)
    outside = {"name": text, "labelled": text, "labels": text, "reason": text, "created": text, "conditions": made}
    return page_of(seen, found, **outside)


def test_hostile_text_stays_text() -> None:
    page = evil_page()
    assert_sound(page)
    for place in ("h1", "head title", "#decision .why-so", "#trust tbody", "#limits .facts"):
        assert SHOWN in page.told(place), place
    assert "49" not in page.told("h1")
    assert page.part("h1")["dir"] == "auto" and page.part("h1")["lang"] == ""
    assert SHOWN in page_of(conditions=replace(MADE, evaluator=EVIL)).told("#decision .why-so")


def test_no_text_can_disguise_itself_or_break_the_file() -> None:
    page = evil_page(DISGUISED)
    page.html.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", page.html)


def test_questions_and_their_notes_are_not_in_the_file() -> None:
    asked = [replace(one.asked, question=f"Swordfish {n}", note="Swordfish") for n, one in enumerate(SEEN.cases)]
    secret = [replace(one, asked=other) for one, other in zip(SEEN.cases, asked, strict=True)]
    assert "Swordfish" not in page_of(Board(SEEN.policy, secret, SEEN.judge)).html


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert page_of().html == page_of().html


# --- in a browser ---------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.browser
def test_it_opens_offline_with_nothing_cut_off_and_prints_on_white(tmp_path: Path) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    two = two_signals()
    pages = {"plain": page_of(), "evil": evil_page(), "two": page_of(two, recommend(two, COSTS))}
    with open_browser() as browser:
        for name, made in pages.items():
            path = tmp_path / f"{name}.html"
            path.write_text(made.html, "utf-8")
            for width in (400, 800, 1440):
                size = {"width": width, "height": 1000}
                context = browser.new_context(
                    viewport=size, offline=True, java_script_enabled=False, color_scheme="dark"
                )
                page = context.new_page()
                page.on("request", lambda request: asked.append(request.url))
                page.on("console", lambda message: complaints.append(message.text))
                page.goto(path.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                if name != "evil" and width >= 800:
                    wide = (
                        "[...document.querySelectorAll('.wide-table')].every(one => one.scrollWidth <= one.clientWidth)"
                    )
                    assert page.evaluate(wide), (name, width)
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 27)"
                page.pdf(path=tmp_path / "sheet.pdf", prefer_css_page_size=True, print_background=True)
                context.close()
            with pypdfium2.PdfDocument(tmp_path / "sheet.pdf") as pdf:
                assert tuple(map(round, pdf[0].get_size())) == (595, 842)
                assert pdf[0].render().to_pil().getpixel((3, 3)) == (255, 255, 255)
    assert {url.rpartition("/")[2] for url in asked} == {f"{name}.html" for name in pages}
    assert complaints == []
