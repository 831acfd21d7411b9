"""Every sentence of a run: the picture, the table and how much of the text goes on, drawn only when asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from streamlit.testing.v1 import AppTest

from crag_core.base.types.grades import Grade
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace
from crag_core.view.run_view import view_run
from tests.builders import passage, policy, searched, strips_of, trace, web_page
from tests.ui.drawn import SENTENCES, a_run, drawn, said
from ui.run.passages import draw_strips


def page(run: Trace, policy: Policy) -> None:
    draw_strips(view_run(run, policy))


def opened(run: Trace, policy: Policy) -> AppTest:
    app = drawn(page, run=run, policy=policy)
    app.session_state["strips_drawer"] = True
    return app.run()


def figure(app: AppTest) -> dict[str, Any]:
    (found,) = app.get("plotly_chart")
    spec: dict[str, Any] = json.loads(found.proto.spec)
    return spec


def test_picture_holds_every_sentence_kept_filled_and_struck_hollow_and_the_cutoff() -> None:
    run, chosen = a_run(1, "paper")
    app = opened(run, chosen.with_thresholds(0.3, 0.4, 0.35))
    kept, struck = figure(app)["data"]
    assert (kept["name"], kept["marker"]["symbol"]) == ("kept", ["circle", "circle"])
    assert (struck["name"], struck["marker"]["symbol"]) == ("struck out", ["circle-open", "circle-open"])
    assert sorted([*kept["x"], *struck["x"]]) == [0.1, 0.2, 0.5, 0.9]
    assert kept["y"] + struck["y"] == sorted(kept["y"] + struck["y"]), "in the order of reading"
    assert "cut-off 0.35" in json.dumps(figure(app)["layout"])
    assert "A yacht pays 14 pounds." in kept["hovertext"][0]
    assert said(app) == "2 of 4 sentences kept, 49% of the text. Above the cut-off 0.35: 2."


def test_table_has_score_verdict_and_reason_of_every_sentence() -> None:
    run, chosen = a_run(1, "paper")
    (table,) = opened(run, chosen.with_thresholds(0.3, 0.4, 0.35)).dataframe
    assert list(table.value["sentence"]) == list(SENTENCES)
    assert list(table.value["score"]) == [0.9, 0.5, 0.2, 0.1]
    assert list(table.value["verdict"]) == ["kept", "kept", "struck out", "struck out"]
    assert table.value["reason"][2] == "score 0.20 ≤ cut-off 0.35"
    assert set(table.value["chunk"]) == {"1. file-1.md"}


def test_no_score_in_the_table_reads_as_the_cutoff_that_it_does_not_reach() -> None:
    run, chosen = a_run(1, "paper")
    for score, digits in ((0.5, 2), (0.498, 3), (0.4996, 4), (0.41, 2)):
        strips = tuple(replace(one, score=score if one.score == 0.5 else one.score) for one in run.strips or ())
        (table,) = opened(replace(run, strips=strips), chosen.with_thresholds(0.3, 0.4, 0.5)).dataframe
        assert json.loads(table.proto.columns)["score"]["type_config"]["format"] == f"%.{digits}f"


def test_ungraded_sentence_is_a_cross_and_no_zero() -> None:
    run, chosen = a_run(1, "paper")
    first, *rest = run.strips or ()
    run = replace(run, strips=(replace(first, score=None), *rest))
    app = opened(run, chosen.with_thresholds(0.3, 0.4, 0.35))
    struck = figure(app)["data"][1]
    assert struck["marker"]["symbol"][0] == "x-thin-open" and struck["hovertext"][0].startswith("not graded")
    assert app.dataframe[0].value["score"].isna().sum() == 1


def test_web_sentences_have_their_own_rows_and_markup_is_no_markup() -> None:
    found = web_page("dues", "<b>A</b> yacht pays.")
    run = trace(
        policy("paper"),
        passages=(passage("p1"),),
        grades=(Grade("p1", 0.1),),
        strips=(),
        web=searched(found, strips=strips_of(found, (found.text, 0.9))),
    )
    app = opened(run, policy("paper").with_thresholds(0.4, 0.6, 0.3))
    assert figure(app)["layout"]["yaxis"]["ticktext"] == ["2. dues.example"]
    assert "‹b›A‹/b›" in figure(app)["data"][0]["hovertext"][0]


def test_what_else_strikes_out_is_told() -> None:
    run, chosen = a_run(1, "paper")
    picky = chosen.with_limit(1).with_thresholds(0.3, 0.4, 0.15)
    assert "2 of them struck out: over the 1-sentence limit." in said(opened(run, picky))
