"""Sharing: a link that opens the same decision elsewhere, whatever somebody has written into it; files out and in."""

from __future__ import annotations

import json
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
from crag_core.app.uploads import read_record
from crag_core.base.errors import BadRecord
from crag_core.base.types.edits import Edits
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import plain_rag
from crag_core.trace.trace import Trace
from tests.builders import CARD, graded, passage, policy, searched, strips_of, trace, web_page
from tests.made_up_runs import edits_of as made_up_edits
from tests.made_up_runs import facts
from tests.ui.conftest import new_process
from tests.ui.conftest import thresholds as thresholds_of
from tests.ui.drawn import drawn
from ui.run import share
from ui.run.share import Parameters, edits_of, link, link_parameters, unusable

PAPER = policy("paper")
KNOWN, CARDS = {"paper": PAPER}, {"hand": CARD}
HOSTILE = "<img src=x onerror=alert(1)> [click](https://evil.example) :red[boo]"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Policies and evaluators of a home of its own."""
    for name, value in {"CRAG_HOME": str(tmp_path), "OLLAMA_HOST": "127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    new_process()
    yield
    new_process()


def recorded(**fields: Any) -> Trace:
    found, grades = graded(0.9, 0.3)
    web = searched(web_page("w1", "Fares rose."))
    made = trace(PAPER, **{"id": "a1b2c3d4e5f6", "passages": found, "grades": grades, "web": web} | fields)
    by = replace(made.settings, evaluator=replace(made.settings.evaluator, name="llm"))
    return replace(made, settings=by, opinions=tuple(replace(one, evaluator=by.evaluator) for one in made.opinions))


def sent(run: Trace, shown: Policy) -> Parameters:
    """Through a real address, as a browser sends it."""
    address = link("http://localhost:8501", link_parameters(run, shown))
    assert address.isascii() and " " not in address
    return parse_qs(urlsplit(address).query)


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper", "two-signal"])
def test_a_fresh_session_opened_with_a_link_decides_the_same(
    here: None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = policy(name).with_thresholds(0.015, 0.1234567, 0.77).with_limit(7).with_doubtful(Doubtful.ABSTAIN)
    run = recorded(edits=Edits(dropped=("p2",), pinned=("w1",)))
    monkeypatch.setattr(share, "find", lambda run_id: recorded() if run_id == run.id else None)
    app = open_session(sent(run, shown))
    for _ in range(2):
        assert [app.selectbox(key=key).value for key in ("policy", "evaluator")] == [name, "llm"]
        assert (thresholds_of(app), app.slider(key="strips").value) == ((0.015, 0.1234567), 0.77)
        assert app.segmented_control(key="doubtful").value == "abstain" and app.session_state["sentences"] == 7
        kept = app.session_state["edits"]
        assert (kept.dropped, kept.pinned) == (("p2",), ("w1",)) and app.session_state["trace"].id == run.id
        app.run()


def test_a_link_tells_nothing_of_question_and_documents_and_leaves_out_what_nobody_can_choose(here: None) -> None:
    run = recorded(edits=Edits(dropped=("p2",)), question=HOSTILE, id="../etc")
    parameters = link_parameters(run, replace(PAPER, name="elsewhere"))
    assert set(parameters) == {"evaluator", "thresholds", "strips", "sentences", "doubtful", "dropped"}
    assert not {"p2", "img", "evil"} & set(str(parameters).split())
    assert link_parameters(run, plain_rag()).keys() == {"dropped"}


def test_the_address_of_the_page_keeps_its_place_and_loses_its_own_parameters() -> None:
    for url in ("https://box/crag", "https://box/crag?old=1#passage-3", "https://user:s3cret@box/crag"):
        assert link(url, {"run": ["abc"]}) == "https://box/crag?run=abc"
    assert link("http://localhost:8501", {"run": ["abc"]}) == "http://localhost:8501/?run=abc"


@hypothesis.settings(deadline=None)  # making a run up takes long, above all while other tests are at work
@given(st.data())
def test_the_edits_of_any_run_come_back(data: st.DataObject) -> None:
    made = data.draw(facts())
    kept = data.draw(made_up_edits(made.ids))
    marks = (".".join(map(share._mark, ids)) for ids in (kept.dropped, kept.pinned))
    edits, lost = edits_of(*marks, made.record())
    stale = {"stale"}
    assert (set(edits.dropped), set(edits.pinned)) == (set(kept.dropped) - stale, set(kept.pinned) - stale)
    assert bool(lost) == bool(stale & {*kept.dropped, *kept.pinned})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *(("run", [text]) for text in ("../../etc/passwd", "a" * 65, "", "a\x00b")),
        ("run", ["a", "b"]),
        ("run", []),
        *(("policy", values) for values in (["papre"], ["x" * 10**6], ["Paper", "Paper"], [HOSTILE])),
        ("evaluator", ["cross-encoder"]),
        *(("thresholds", pair.split()) for pair in ("0.9 0.1", "0.4", "", "0.1 0.2 0.3", "nan 0.5", "-inf inf")),
        *(("thresholds", pair.split()) for pair in ("0.1 1e400", "-0.1 0.5", "0.1 1.0000001", "0,1 0.5", "0x1 1")),
        ("dropped", ["p1"]),
        ("dropped", ["00000000." * 999 + "00000000.00000000"]),
        ("pinned", ["ABCDEF01"]),
    ],
)
def test_a_part_of_no_use_is_found(name: str, values: list[str]) -> None:
    assert unusable(
        {name: values, "utm": ["x"], "dropped": values if name == "dropped" else ["0" * 8]}, KNOWN, CARDS
    ) == (name,)


names = st.sampled_from(["run", "policy", "evaluator", "thresholds", "strips", "dropped", "pinned", "other"])
texts = st.text(max_size=30) | st.sampled_from(["0.1", "0.9", "-0", "1e-3", "NaN", "Paper", "00000000", "\ud800"])


@hypothesis.settings(max_examples=25)
@given(st.dictionaries(names, st.lists(texts, max_size=3)))
def test_nothing_that_stands_in_a_link_breaks_anything(parameters: dict[str, list[str]]) -> None:
    left_out = unusable(parameters, KNOWN, CARDS)
    usable = {name: values for name, values in parameters.items() if name not in left_out}
    assert unusable(usable, KNOWN, CARDS) == ()
    edits_of("".join(usable.get("dropped", ())), "".join(usable.get("pinned", ())), recorded())
    if "thresholds" in usable:
        PAPER.with_thresholds(*map(float, usable["thresholds"]))


def session() -> None:
    """The sidebar that every page shares, behind a look at the address, as at the start of a session."""
    from ui.run import share
    from ui.shell import sidebar

    share.follow()
    sidebar.draw()


def open_session(parameters: Parameters) -> AppTest:
    app = AppTest.from_function(session, default_timeout=60)
    app.query_params.update(parameters)
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize("value", ["nan", "", HOSTILE, "1e999", "\x00"])
def test_a_link_full_of_nonsense_opens_with_the_defaults_and_says_so(here: None, value: str) -> None:
    names = ("run", "policy", "evaluator", "thresholds", "lower", "upper", "strips", "sentences", "doubtful",
             "dropped", "pinned")  # fmt: skip
    app, usual = open_session({name: [value] for name in names}), open_session({})
    for key in ("policy", "evaluator", "strips", "sentences", "thresholds"):
        assert app.session_state[key] == usual.session_state[key], key
    assert app.session_state["doubtful"] in (None, Doubtful.SHOW)
    assert "its policy, its evaluator, its dropped chunks," in app.session_state["handed"]["problem"]


def test_thresholds_the_wrong_way_round_are_told_and_the_rest_of_the_link_is_used(here: None) -> None:
    app = open_session({"policy": ["worst-chunk"], "thresholds": ["0.9", "0.1"], "strips": ["0.2"]})
    lower, upper = app.slider(key="thresholds").value
    assert lower < upper and (lower, upper) != (0.1, 0.9)
    assert (app.selectbox(key="policy").value, app.slider(key="strips").value) == ("worst-chunk", 0.2)
    assert "without its thresholds, which cannot be used here" in app.session_state["handed"]["problem"]


# --- files out and in -----------------------------------------------------------------------------------------------


def exported(run: Trace) -> bytes:
    """As the browser saves it."""
    return run.to_json().encode("utf-8", "backslashreplace")


@hypothesis.settings(deadline=None)
@given(facts())
def test_an_exported_run_opens_again_as_it_was(made: Any) -> None:
    assert read_record(exported(made.record())) == made.record()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"PK\x03\x04", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "it has no schema"),
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


# --- on the page ----------------------------------------------------------------------------------------------------


def sharing(run: Trace, url: str | None, why: str) -> None:
    share.draw_share(run, run, PAPER, url, why)


def shared(url: str | None = "http://localhost:8501", why: str = "", **fields: Any) -> AppTest:
    return drawn(sharing, run=recorded(**fields), url=url, why=why)


def told(app: AppTest) -> str:
    return "\n".join(str(element.value) for element in app.markdown).replace("\\", "")


def test_the_link_can_be_copied_and_says_who_can_open_it(here: None) -> None:
    app = shared(edits=Edits(dropped=("p2",)))
    (address,) = [code.value for code in app.code]
    assert address.startswith("http://localhost:8501/?run=a1b2c3d4e5f6&policy=Paper&evaluator=")
    assert "&dropped=" in address and "for whoever sits at this computer" in told(app)
    assert "for whoever can reach box.example" in told(shared("https://box.example/crag"))


@pytest.mark.parametrize(("url", "why"), [(None, ""), ("http://localhost", "Runs are not kept: [off](https://e.x).")])
def test_where_no_link_can_lead_the_reason_stands_in_its_place(url: str | None, why: str) -> None:
    app = shared(url, why)
    assert not app.code and (why or "the address of this page is not known") in told(app).replace("`", "")


def test_files_leave_under_a_harmless_name_with_the_edits_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: dict[str, Callable[[], bytes]] = {}
    monkeypatch.setattr(streamlit, "download_button", lambda label, data, name, *_, **__: saved.update({name: data}))
    run = recorded(id="../\ud800", question="Half \ud800")
    share.draw_share(run, replace(run, edits=Edits(dropped=("p2",))), PAPER, None, "")
    assert set(saved) == {"crag-run-record.json", "crag-run-record.html"}
    record = json.loads(saved["crag-run-record.json"]())
    assert record["question"] == "Half \ud800" and record["edits"]["dropped"] == ["p2"]
    assert b"Half \xef\xbf\xbd" in saved["crag-run-record.html"]()


def importing() -> None:
    from ui.run import share

    share._draw_import()


def test_a_chosen_file_is_opened(here: None) -> None:
    app = AppTest.from_function(importing).run()
    app.file_uploader[0].set_value(("run.json", exported(recorded()), "application/json")).run()
    assert not app.error and not app.exception
    assert app.session_state["handed"]["opening"].question == recorded().question


def test_a_file_that_cannot_be_opened_says_why_as_text() -> None:
    app = AppTest.from_function(importing).run()
    content = json.dumps({**recorded().to_dict(), HOSTILE: 1}).encode()
    app.file_uploader[0].set_value(("run.json", content, "application/json")).run()
    assert "handed" not in app.session_state and not app.exception
    assert "unknown key" in app.error[0].value and "<img" not in app.error[0].value.replace("\\<img", "")
    assert "](https" not in app.error[0].value.replace("\\](", "")
