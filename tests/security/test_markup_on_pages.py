"""Markup from somebody else's record on every page: nothing of it stands unescaped where Streamlit reads Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.types.steps import ModelCall
from crag_core.evaluators import policies
from crag_core.evaluators.policies import policy_text
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet
from tests.report.test_report_hostile import evil_run
from tests.security.pages import PAGES
from tests.ui.conftest import Start, ask, choose, home, job_named, own, press, put_thresholds, shown, start  # noqa: F401  # fixtures among them
from ui.session.labelled_sets import SetInUse

EVIL = (
    "<script>window.pwned=1</script> [click](https://evil.example/a) ![p](http://evil.example/p) :red[boo] "
    ":material/skull: $x^2$ https://evil.example **bold**"
)
RAW = re.compile(r"(?<!\\)\[click\]|(?<!\\)!\[p\]|:red\[boo|:material/skull:|(?<!\\)\$x\^|https?://evil|\*\*bold")
"""What is left of the payload unescaped; `ui.shell.text.plain` puts a backslash into each or makes it code."""
CODE = re.compile(r"(?<!\\)`[^`\n]*`")
"""Markdown in it is text; the browser test looks at it."""
SHOWN_AS_THEY_ARE = {
    "code", "bidi_component", "component_instance", "arrow_data_frame", "dataframe", "plotly_chart", "json", "text",
}  # fmt: skip
"""Elements that show text and read no Markdown; the browser test looks into them."""


def markdown_of(app: AppTest) -> Iterator[tuple[str, str]]:
    """(kind, what goes over the wire) of all elements that read Markdown, without what a user typed into a field."""

    def walk(node: Any) -> Iterator[tuple[str, str]]:
        kind, proto = str(getattr(node, "type", "")), getattr(node, "proto", None)
        if kind == "table":  # whose binary form has bytes that look like Markdown
            yield kind, "\n".join(map(str, (*node.value.columns, *node.value.to_numpy().ravel())))
        elif proto is not None and kind not in SHOWN_AS_THEY_ARE:
            yield kind, _without_typed(kind, proto)
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    yield from walk(app._tree)


def _without_typed(kind: str, proto: Any) -> str:
    """Options of lists to choose from are text too; those of radio buttons and pills are Markdown."""
    proto = type(proto).FromString(proto.SerializeToString())
    if "id" in proto.DESCRIPTOR.fields_by_name:
        proto.ClearField("id")  # a key, which nobody sees
    typed = {"text_input": ("default", "value"), "text_area": ("default", "value")}
    for name in (typed | dict.fromkeys(("selectbox", "multiselect"), ("options", "raw_values"))).get(kind, ()):
        if name in proto.DESCRIPTOR.fields_by_name:
            proto.ClearField(name)
    return json.dumps(str(proto), ensure_ascii=False).encode().decode("unicode_escape", "replace").replace("\\\\", "\\")


def unescaped(app: AppTest) -> list[tuple[str, str]]:
    texts = ((kind, CODE.sub("", text)) for kind, text in markdown_of(app))
    found = ((kind, text, RAW.search(text)) for kind, text in texts)
    return [(kind, text[max(0, hit.start() - 150) : hit.end() + 60]) for kind, text, hit in found if hit]


@pytest.fixture
def evil_home(tmp_path: Path) -> Path:
    """A home whose history holds a hostile run, and whose index holds a document with such a name."""
    workbench = Workbench(Config(home=tmp_path))
    workbench.store.ingest([(f"{EVIL.replace('/', '_')}.md", f"# {EVIL}\n\nHarbour dues: {EVIL}".encode())])
    (tmp_path / "sample-indexed").touch()
    call = ModelCall(EVIL, ((EVIL, EVIL),), EVIL, error=EVIL)
    run = replace(evil_run(EVIL), id="evil-1", calls=(call, call))
    workbench.history.save(run)
    workbench.history.save(replace(run, id="evil-2"))
    return tmp_path


def test_no_page_reads_markup_out_of_a_record_that_it_opens(start: Start, evil_home: Path) -> None:  # noqa: F811
    app = start(CRAG_HOME=str(evil_home))
    app.query_params["run"] = ["evil-1"]
    app.session_state["followed"] = False
    app.session_state["calls_drawer"] = app.session_state["record_drawer"] = True
    labelled = LabelledSet(EVIL, (LabelledQuestion(EVIL, Expected.CORRECT),))
    app.session_state["SetInUse"] = SetInUse(labelled)
    app.session_state["versus_what"] = "Labelled set"
    app.run().run()
    assert not app.exception
    assert any("evil" in text for _, text in markdown_of(app))
    assert unescaped(app) == []
    app.session_state["what_if_pieces"] = True
    put_thresholds(app, (0.1, 0.2)).run()
    assert "Evidence: " in shown(app)
    assert unescaped(app) == []
    for page in PAGES:
        app.switch_page(page).run().run()
        assert not app.exception, page
        assert unescaped(app) == [], page


def test_no_page_reads_markup_out_of_a_log_of_another_system(start: Start, own: Path) -> None:  # noqa: F811
    chunk = {"id": EVIL, "text": f"Harbour dues: {EVIL}", "source": EVIL}
    row = {"question": f"What are harbour dues? {EVIL}", "contexts": [chunk], "answer": EVIL, "ground_truth": EVIL}
    rows = [row, row | {"id": EVIL, EVIL: EVIL}, {"question": EVIL, EVIL: 1}]
    app = choose(start("pages/logs.py", CRAG_HOME=str(own)), evaluator="heuristic")
    app.file_uploader[0].upload(f"{EVIL}.jsonl", "\n".join(map(json.dumps, rows)).encode(), "application/json").run()
    assert not app.exception and "2 records" in shown(app) and "1 row refused" in shown(app)
    assert unescaped(app) == [], "before anything is kept"
    app.selectbox(key="log_shape").set_value("langfuse").run()
    assert not app.exception and unescaped(app) == []
    app.selectbox(key="log_shape").set_value("table").run()
    press(app, "Import 2 records")
    press(app, "Grade 2 records")
    job_named(app, "log_grading").wait()
    app.session_state["LogsPage"].record = "row 1"
    app.session_state["log_policies"] = True
    app.run().run()
    assert not app.exception and "Which stage failed?" in shown(app) and "Answer in the log" in shown(app)
    assert unescaped(app) == []


def test_no_page_reads_markup_out_of_a_policy_file(
    start: Start,  # noqa: F811
    own: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, said = tmp_path / "policies", json.dumps(EVIL)
    folder.mkdir()
    text = policy_text(policies.FOLDER / "paper.toml")
    for key in ("title", "summary", "source", "name", "note"):
        text = re.sub(rf"^{key} = .*$", f"{key} = {said}", text, count=1, flags=re.MULTILINE)
    (folder / "paper.toml").write_text(f"group = {said}\nlabels = [{said}, {said}, {said}]\n{text}")
    (folder / "wrong.toml").write_text(f"{said} = 1\n{text}")
    (folder / f"{EVIL.replace('/', '_')}.toml").write_text("lower =")
    monkeypatch.setattr(policies, "FOLDER", folder)
    app = ask(start(CRAG_HOME=str(own)), "How much does the crane lift?")
    assert "pwned" in shown(app) and "policy wrong" in shown(app)
    for page in PAGES:
        app.switch_page(page).run().run()
        assert not app.exception, page
        assert [one for one in unescaped(app) if one[0] != "html"] == [], page
        assert not any("<script>window" in text for kind, text in markdown_of(app) if kind == "html"), page


def test_a_word_that_streamlit_draws_as_its_logo_is_shown_as_code() -> None:
    from ui.shell.text import plain

    assert plain("a :streamlit: of :streamlit::streamlit:") == "a `:streamlit:` of `:streamlit::streamlit:`"


def test_plotly_reads_no_markup_out_of_the_name_of_a_preset() -> None:
    import numpy as np

    from ui.tune.charts import Point, heat_map

    name = '<a href="http://evil.example">x</a> %{x} \u202eevil'
    axis, all_ = np.array([0.0, 1.0]), np.full((2, 2), True)
    figure = heat_map(axis, np.zeros((2, 2)), all_, all_, [Point(name, 0.3, 0.7, "circle", "#000")], "cost")
    drawn = figure.data[-1]
    for text in (drawn.name, drawn.hovertemplate.replace("<br>", "").replace("<extra></extra>", "")):
        assert "<" not in text and "&#37;{x}" in text and "\u202e" not in text


ADDRESSES = {
    "at http://127.0.0.1:11434.": r"at `http://127.0.0.1:11434`\.",
    "see https://a.example/b?c=d#e)": r"see `https://a.example/b?c=d#e`\)",
    "www.example.org, ann@example.org": r"`www.example.org`\, `ann@example.org`",
    "http://x](https://evil.example)": r"`http://x`\]\(`https://evil.example`\)",
    "`http://x`": r"\``http://x`\`",
    "a@b+c@d": "`a@b+c@d`",
    "http://[::1]:80": r"http\:\/\/\[\:\:1\]\:80",
    "http://x\\": r"`http://x`\\",
}


@pytest.mark.parametrize(("text", "shown"), ADDRESSES.items(), ids=ADDRESSES)
def test_an_address_is_code_that_nothing_in_it_can_end_and_is_copied_as_it_is(text: str, shown: str) -> None:
    from ui.shell.text import plain

    assert plain(text) == shown
    assert all(sign.isprintable() for sign in plain(text))
