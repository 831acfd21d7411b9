"""Sharing: a link that opens the same decision elsewhere, whatever somebody has written into it; files out and in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import hypothesis
import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from crag_core.app import uploads
from crag_core.app.config import Config
from crag_core.app.uploads import read_record
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord
from crag_core.base.types.edits import Edits
from crag_core.decision.policy import Doubtful
from crag_core.evaluators import EVALUATORS, cards
from crag_core.trace.trace import Trace
from tests.builders import POLICIES, graded, passage, policy, searched, strips_of, trace, web_page
from tests.made_up_runs import edits_of as made_up_edits
from tests.made_up_runs import facts
from tests.ui.conftest import thresholds as thresholds_of
from ui.run.share import (
    Parameters,
    SharedView,
    Titles,
    edits_of,
    link,
    link_parameters,
    parse_link,
    view_of,
)

TITLES = Titles(
    {"paper": "Paper", "two-signal": "Two signals", "mine": "<b>Mine</b> & 東京"},
    {"hand": "By hand"},
    frozenset({"two-signal"}),
)
PAPER = policy("paper")
HOSTILE = "<img src=x onerror=alert(1)> [click](https://evil.example) :red[boo]"


def recorded(**fields: Any) -> Trace:
    found, grades = graded(0.9, 0.3)
    web = searched(web_page("w1", "Fares rose."))
    return trace(PAPER, **{"id": "a1b2c3d4e5f6", "passages": found, "grades": grades, "web": web} | fields)


def round_trip(view: SharedView, titles: Titles = TITLES) -> SharedView:
    """Through a real address, as a browser sends it."""
    address = link("http://localhost:8501", link_parameters(view, titles))
    assert address.isascii() and " " not in address
    return parse_link(parse_qs(urlsplit(address).query, keep_blank_values=True), titles)


# --- there and back -------------------------------------------------------------------------------------------------

shares = st.floats(0, 1).map(abs)
marks = st.lists(st.text("0123456789abcdef", min_size=8, max_size=8), unique=True, max_size=30).map(tuple)
views = st.builds(
    SharedView,
    run_id=st.none() | st.from_regex(r"[0-9A-Za-z_-]{1,64}", fullmatch=True),
    policy=st.none() | st.sampled_from(sorted(TITLES.policies)),
    evaluator=st.none() | st.sampled_from(sorted(TITLES.evaluators)),
    thresholds=st.none() | st.tuples(shares, shares).map(lambda pair: (min(pair), max(pair))),
    strips=st.none() | shares,
    sentences=st.none() | st.integers(0, 999),
    doubtful=st.none() | st.sampled_from(Doubtful),
    dropped=marks,
    pinned=marks,
)


@given(views)
def test_whatever_a_link_can_say_comes_back_the_same(view: SharedView) -> None:
    assert round_trip(view) == view


def test_thresholds_of_two_scores_may_cross_in_a_link() -> None:
    two = policy("two-signal").with_thresholds(0.9, 0.2)
    parameters = link_parameters(view_of(recorded(), two), TITLES)
    assert (parameters["lower"], parameters["upper"], "thresholds" in parameters) == (["0.9"], ["0.2"], False)
    assert parse_link(parameters, TITLES).thresholds == (0.9, 0.2)
    broken = parse_link(parameters | {"lower": ["1.2"]}, TITLES)
    assert broken.thresholds is None and "its lower threshold" in broken.problem


@hypothesis.settings(deadline=None)  # making a run up takes long, above all while other tests are at work
@given(st.data())
def test_the_edits_of_any_run_come_back(data: st.DataObject) -> None:
    made = data.draw(facts())
    run = replace(made.record(), edits=replace(data.draw(made_up_edits(made.ids)), signals=()))
    edits, lost = edits_of(round_trip(view_of(run, PAPER)), made.record())
    stale = {"stale"}
    assert (set(edits.dropped), set(edits.pinned)) == (set(run.edits.dropped) - stale, set(run.edits.pinned) - stale)
    assert bool(lost) == bool(stale & {*run.edits.dropped, *run.edits.pinned})


def test_a_link_says_all_that_the_decision_depends_on() -> None:
    run = recorded(edits=Edits(dropped=("p2",), pinned=("w1",)))
    shown = PAPER.with_thresholds(0.005, 0.795, 0.31).with_limit(8).with_doubtful(Doubtful.ABSTAIN)
    view = round_trip(view_of(run, shown))
    assert (view.run_id, view.policy, view.evaluator) == ("a1b2c3d4e5f6", "paper", "hand")
    assert (view.thresholds, view.strips, view.sentences) == ((0.005, 0.795), 0.31, 8)
    assert view.doubtful is Doubtful.ABSTAIN and not view.problem
    assert edits_of(view, run) == (Edits(dropped=("p2",), pinned=("w1",)), "")


def test_a_link_tells_nothing_of_question_and_documents() -> None:
    run = recorded(edits=Edits(dropped=("p2",)), question=HOSTILE)
    address = link("http://host/app", link_parameters(view_of(run, PAPER), TITLES))
    assert "p2" not in address and "img" not in address and "evil" not in address


def test_the_address_of_the_page_keeps_its_place_and_loses_its_own_parameters() -> None:
    for url in ("https://box/crag", "https://box/crag?old=1#passage-3", "https://user:s3cret@box/crag"):
        assert link(url, {"run": ["abc"]}) == "https://box/crag?run=abc"
    assert link("http://localhost:8501", {"run": ["abc"]}) == "http://localhost:8501/?run=abc"


def test_what_cannot_be_chosen_here_is_left_out_of_the_link() -> None:
    parameters = link_parameters(view_of(recorded(), policy("agentic")), Titles({"paper": "Paper"}, {}))
    assert set(parameters) == {"run", "thresholds", "strips", "sentences", "doubtful"}
    assert parameters["sentences"] == ["no limit"]
    assert view_of(recorded(id="../etc"), PAPER).run_id is None


# --- whatever somebody has written into it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"run": ["../../etc/passwd"]},
            "its run",
        ),
        ({"run": ["a" * 65]}, "its run"),
        ({"run": [""]}, "its run"),
        ({"run": ["a\x00b"]}, "its run"),
        ({"run": ["a", "b"]}, "its run"),
        ({"run": []}, "its run"),
        ({"policy": ["papre"]}, "its policy"),
        ({"policy": ["x" * 10**6]}, "its policy"),
        ({"policy": ["Paper", "Paper"]}, "its policy"),
        ({"evaluator": ["cross-encoder"]}, "its evaluator"),
        ({"thresholds": ["0.9", "0.1"]}, "its thresholds"),
        ({"thresholds": ["0.4"]}, "its thresholds"),
        ({"thresholds": ["0.1", "0.2", "0.3"]}, "its thresholds"),
        ({"thresholds": []}, "its thresholds"),
        ({"thresholds": ["nan", "0.5"]}, "its thresholds"),
        ({"thresholds": ["-inf", "inf"]}, "its thresholds"),
        ({"thresholds": ["0.1", "1e400"]}, "its thresholds"),
        ({"thresholds": ["-0.1", "0.5"]}, "its thresholds"),
        ({"thresholds": ["0.1", "1.0000001"]}, "its thresholds"),
        ({"thresholds": ["0,1", "0.5"]}, "its thresholds"),
        ({"thresholds": ["0x1", "1"]}, "its thresholds"),
        ({"thresholds": ["٠", "1"]}, "its thresholds"),
        ({"thresholds": ["1_0", "1"]}, "its thresholds"),
        ({"thresholds": ["1" * 10**6 + "x", "1"]}, "its thresholds"),
        ({"strips": ["high"]}, "its sentence cut-off"),
        ({"strips": ["0.2", "0.3"]}, "its sentence cut-off"),
        ({"sentences": ["-1"]}, "its limit of sentences"),
        ({"sentences": ["٥"]}, "its limit of sentences"),
        ({"sentences": ["1000"]}, "its limit of sentences"),
        ({"sentences": ["no limit", "5"]}, "its limit of sentences"),
        ({"dropped": ["p1"]}, "its dropped chunks"),
        ({"dropped": ["00000000." * 999 + "00000000.00000000"]}, "its dropped chunks"),
        ({"pinned": ["ABCDEF01"]}, "its pinned chunks"),
        ({"pinned": ["0000000g"]}, "its pinned chunks"),
        ({"policy": [HOSTILE], "strips": ["2"], "thresholds": ["0.2", "0.3"]}, "its policy"),
    ],
)
def test_a_part_of_no_use_is_left_out_and_told_in_one_sentence(parameters: dict[str, list[str]], words: str) -> None:
    view = parse_link(parameters, TITLES)
    assert view.problem.startswith("This link was opened without its ")
    assert words in view.problem and len(view.problem) < 500
    fields = {"run": "run_id"}
    untouched = {fields.get(name, name) for name in parameters} - {"thresholds"}
    assert all(getattr(view, name) == getattr(SharedView(), name) for name in untouched)


def test_the_usable_parts_are_used_beside_the_others() -> None:
    view = parse_link({"run": ["abc"], "policy": ["nonsense"], "thresholds": ["0.2", "0.3"], "utm": ["x"]}, TITLES)
    assert (view.run_id, view.policy, view.thresholds) == ("abc", None, (0.2, 0.3))
    assert view.problem == "This link was opened without its policy, which cannot be used here."


def test_a_link_without_anything_asks_for_nothing() -> None:
    assert parse_link({}, TITLES) == SharedView()
    assert parse_link({"embed": ["true"], "Policy": ["Paper"]}, TITLES) == SharedView()


def test_a_policy_may_be_given_by_its_name_too() -> None:
    assert parse_link({"policy": ["two-signal"]}, TITLES) == SharedView(policy="two-signal")
    assert parse_link({"policy": ["Two signals"]}, TITLES) == SharedView(policy="two-signal")


names = st.sampled_from(["run", "policy", "evaluator", "thresholds", "strips", "dropped", "pinned", "other"])
texts = st.text(max_size=30) | st.sampled_from(["0.1", "0.9", "-0", "1e-3", "NaN", "Paper", "00000000", "\ud800"])


@given(st.dictionaries(names, st.lists(texts, max_size=3)))
def test_nothing_that_stands_in_a_link_breaks_anything(parameters: dict[str, list[str]]) -> None:
    view = parse_link(parameters, TITLES)
    for number in (*(view.thresholds or ()), view.strips or 0.0):
        assert math.isfinite(number) and 0 <= number <= 1 and math.copysign(1, number) == 1
    lower, upper = view.thresholds or (None, None)
    PAPER.with_thresholds(lower, upper, view.strips)
    edits_of(view, recorded())
    assert parse_link(link_parameters(view, TITLES), TITLES) == replace(view, problem="")


def test_edits_that_the_run_cannot_have_are_told_and_contradictions_settled() -> None:
    view = view_of(recorded(edits=Edits(dropped=("p1", "gone"), pinned=("w1",))), PAPER)
    edits, told = edits_of(view, recorded())
    assert edits == Edits(("p1",), ("w1",)) and told.startswith("1 chunk that this link drops or pins")
    both = replace(view, pinned=view.dropped)
    assert edits_of(both, recorded())[0] == Edits(("p1",))


# --- files out and in -----------------------------------------------------------------------------------------------


def exported(run: Trace) -> bytes:
    """As the browser saves it."""
    return run.to_json().encode("utf-8", "backslashreplace")


@hypothesis.settings(deadline=None)
@given(facts())
def test_an_exported_run_opens_again_as_it_was(made: Any) -> None:
    assert read_record(exported(made.record())) == made.record()


def test_a_file_with_a_byte_order_mark_opens() -> None:
    assert read_record(b"\xef\xbb\xbf" + exported(recorded())) == recorded()


def test_half_a_character_becomes_one_that_a_screen_can_take() -> None:
    found = passage("p1", "Half \ud83d of it. \x00 東京")
    run = recorded(question="Why \udfff?", passages=(found,), strips=strips_of(found, ("Half \ud83d of it.", 0.5)))
    opened = read_record(exported(run))
    assert opened.question == "Why \ufffd?"
    assert opened.strips and opened.strips[0].text == "Half \ufffd of it."
    assert opened.to_json().encode("utf-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"PK\x03\x04", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "schema None, expected one of"),
        (b'{"schema": 99}', "schema 99, expected one of"),
        (b'{"schema": 3, "id": 7}', "run.id: expected a valid string"),
    ],
)
def test_a_file_of_no_use_is_refused_with_what_to_do(content: bytes, words: str) -> None:
    with pytest.raises(BadRecord) as refusal:
        read_record(content)
    assert words in refusal.value.message and refusal.value.hint


def test_a_file_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "LARGEST_MB", 1)
    assert read_record(exported(recorded()) + b" " * 2**19) == recorded()
    with pytest.raises(BadRecord, match=r"This file has 1\.5 MB, expected at most 1\."):
        read_record(b"x" * (2**20 + 2**19))


WEB = web_page("w1", "Fares rose.")


@pytest.mark.parametrize(
    "fields",
    [
        {"passages": (passage("p1"), passage("p1", "Other."))},
        {"passages": (passage(""),)},
        {"passages": (passage("w1"),)},
        {"web": searched(WEB, web_page("w1", "Again."))},
        {"strips": strips_of(passage("p1"), ("Some text.", 0.1)) * 2},
        {"web": searched(WEB, strips=strips_of(WEB, ("Fares rose.", 0.1)) * 2)},
    ],
)
def test_a_run_whose_parts_cannot_be_told_apart_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(BadRecord, match="expected an id of its own for each"):
        read_record(exported(recorded(**fields)))


def test_a_run_with_more_passages_than_a_page_can_show_is_refused() -> None:
    many = tuple(passage(f"p{number}") for number in range(1001))
    with pytest.raises(BadRecord, match="has 1001 chunks, expected at most 1000"):
        read_record(exported(recorded(passages=many, web=None)))
    assert read_record(exported(recorded(passages=many[1:], web=None)))


# --- on the page ----------------------------------------------------------------------------------------------------


def sharing() -> None:
    import streamlit as st

    from ui.run.share import draw_share

    state = st.session_state
    draw_share(state["taken"], state["trace"], state["policy"], state["titles"], state["url"], state["no_link"])


def share(url: str | None = "http://localhost:8501", no_link: str = "", trace: Trace | None = None) -> AppTest:
    app = AppTest.from_function(sharing)
    shown = {"taken": recorded(), "trace": trace or recorded(), "policy": PAPER, "titles": TITLES}
    for name, value in {**shown, "url": url, "no_link": no_link}.items():
        app.session_state[name] = value
    app.run()
    assert not app.exception
    return app


def told(app: AppTest) -> str:
    return "\n".join(str(element.value) for element in app.markdown).replace("\\", "")


def test_the_link_can_be_copied_and_says_who_can_open_it() -> None:
    app = share(trace=recorded(edits=Edits(dropped=("p2",))))
    (address,) = [code.value for code in app.code]
    assert address.startswith("http://localhost:8501/?run=a1b2c3d4e5f6&policy=Paper&evaluator=By+hand&thresholds=0.4&")
    assert "&dropped=" in address
    assert "for whoever sits at this computer" in told(app)
    assert "for whoever can reach box.example" in told(share("https://box.example/crag"))


@pytest.mark.parametrize(("url", "why"), [(None, ""), ("http://localhost", "Runs are not kept: [off](https://e.x).")])
def test_where_no_link_can_lead_the_reason_stands_in_its_place(url: str | None, why: str) -> None:
    app = share(url, why)
    assert not app.code and (why or "the address of this page is not known") in told(app).replace("`", "")


def test_the_record_leaves_with_the_edits_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.run.share import draw_downloads

    saved: dict[str, Callable[[], bytes]] = {}

    def catch(label: str, data: Callable[[], bytes], file_name: str, mime: str, **_: Any) -> None:
        saved[file_name] = data

    monkeypatch.setattr(streamlit, "download_button", catch)
    hostile = recorded(id="../\ud800", question="Half \ud800")
    draw_downloads(hostile, hostile, PAPER)
    assert set(saved) == {"crag-run-record.json", "crag-run-record.html"}
    assert json.loads(saved["crag-run-record.json"]())["question"] == "Half \ud800"
    assert b"Half \xef\xbf\xbd" in saved["crag-run-record.html"]()


def importing() -> None:
    import streamlit as st

    from ui.run.share import draw_import

    opened = st.session_state.setdefault("opened", [])
    draw_import(opened.append, "import")


def test_a_chosen_file_is_opened() -> None:
    app = AppTest.from_function(importing).run()
    assert app.session_state["opened"] == [] and not app.error
    app.file_uploader[0].set_value(("run.json", exported(recorded()), "application/json")).run()
    assert app.session_state["opened"] == [recorded()] and not app.error


def test_a_file_that_cannot_be_opened_says_why_as_text() -> None:
    app = AppTest.from_function(importing).run()
    content = json.dumps({**recorded().to_dict(), HOSTILE: 1}).encode()
    app.file_uploader[0].set_value(("run.json", content, "application/json")).run()
    assert app.session_state["opened"] == [] and not app.exception
    assert "unknown key" in app.error[0].value and "<img" not in app.error[0].value.replace("\\<img", "")
    assert "](https" not in app.error[0].value.replace("\\](", "")


# --- in a session of its own ----------------------------------------------------------------------------------------


def titles_here() -> Titles:
    policies = {name: one.title for name, one in Workbench(Config()).policies.items()}
    return Titles(policies, {name: card.title for name, card in cards().items()}, frozenset({"two-signal"}))


def test_no_two_choices_have_the_same_title() -> None:
    """The address tells them apart by nothing else."""
    titles = titles_here()
    assert len(set(titles.policies.values())) == len(POLICIES)
    assert len(set(titles.evaluators.values())) == len(EVALUATORS)


def settings() -> None:
    """The sidebar that every page shares, behind a look at the address, as at the start of a session."""
    import streamlit as st

    from tests.ui.test_share import titles_here
    from ui.run.share import link_parameters, parse_link
    from ui.shell import sidebar

    given = {name: st.query_params.get_all(name) for name in st.query_params}
    if "problem" not in st.session_state:
        view = parse_link(given, titles_here())
        st.session_state["problem"] = view.problem
        if given != link_parameters(view, titles_here()):
            st.query_params.from_dict(link_parameters(view, titles_here()))
            st.rerun()
    sidebar.draw()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Parameters], AppTest]]:
    """Opens the sidebar in a session of its own with these parameters in its address."""

    def open_session(parameters: Parameters) -> AppTest:
        app = AppTest.from_function(settings, default_timeout=60)
        app.query_params.update(parameters)
        app.run()
        assert not app.exception
        return app

    for name, value in {"CRAG_HOME": str(tmp_path), "OLLAMA_HOST": "127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    streamlit.cache_resource.clear()
    yield open_session
    streamlit.cache_resource.clear()


@pytest.mark.parametrize("thresholds", [(0.015, 0.985), (0.1234567, 0.5), (0.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("name", ["two-signal", "worst-chunk", "paper"])
def test_a_fresh_session_opened_with_a_link_has_its_settings(
    session: Callable[[Parameters], AppTest], name: str, thresholds: tuple[float, float]
) -> None:
    judge = {"two-signal": "embedding", "worst-chunk": "llm-batch"}.get(name, "cross-encoder")
    view = SharedView(
        policy=name, evaluator=judge, thresholds=thresholds, strips=0.77, sentences=7, doubtful=Doubtful.ABSTAIN
    )
    app = session(link_parameters(view, titles_here()))
    for _ in range(2):
        assert [app.selectbox(key=key).value for key in ("policy", "evaluator")] == [name, judge]
        assert (thresholds_of(app), app.slider(key="strips").value) == (thresholds, 0.77)
        assert app.segmented_control(key="doubtful").value == "abstain"
        assert app.session_state["sentences"] == 7
        app.run()


def test_names_in_the_place_of_titles_and_thresholds_the_wrong_way_round_are_put_right_for_the_widgets(
    session: Callable[[Parameters], AppTest],
) -> None:
    app = session({"policy": ["worst-chunk"], "thresholds": ["0.9", "0.1"], "strips": ["0.2"]})
    assert app.selectbox(key="policy").value == "worst-chunk"
    lower, upper = app.slider(key="thresholds").value
    assert lower < upper and (lower, upper) != (0.1, 0.9) and app.slider(key="strips").value == 0.2
    assert "its thresholds" in app.session_state["problem"]


@pytest.mark.parametrize("value", ["nan", "", HOSTILE, "1e999", "\x00", "٠"])
def test_a_link_full_of_nonsense_opens_with_the_defaults(session: Callable[[Parameters], AppTest], value: str) -> None:
    names = ("run", "policy", "evaluator", "thresholds", "lower", "upper", "strips", "sentences", "doubtful",
             "dropped", "pinned")  # fmt: skip
    app, usual = session({name: [value] for name in names}), session({})
    for key in ("policy", "evaluator"):
        assert app.selectbox(key=key).value == usual.selectbox(key=key).value
    assert thresholds_of(app) == thresholds_of(usual)
    assert app.slider(key="strips").value == usual.slider(key="strips").value
    assert app.session_state["sentences"] == usual.session_state["sentences"]
