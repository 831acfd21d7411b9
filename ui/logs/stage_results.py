"""The open log: its records by the stage at which they went wrong, as a picture and a table; one record at a time."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from crag_core.base.text.display import clean, counted, shortened
from crag_core.base.types.decisions import Action
from crag_core.evaluators.policies import known_card
from crag_core.experiments.logs.findings import Findings, to_csv
from crag_core.experiments.logs.record import LogRecord, RetrievalLog, passages_of
from crag_core.experiments.logs.stages import MEANS, TITLES, Finding, Judged, Stage, Verdict
from crag_core.pipeline.run import now
from crag_core.report.stages.page import render_stages
from ui.logs import log_state
from ui.logs.log_state import LogsPage
from ui.session import app_state
from ui.session.keys import kept
from ui.shell.text import paragraphs, plain
from ui.tune.charts import GRAY, GREEN, ORANGE, RED

_ROWS_SEEN = 2000
_LONGEST = 1200  # characters of a chunk
_TONES = {Verdict.WRONG: RED, Verdict.DOUBTFUL: ORANGE, Verdict.RIGHT: GREEN, Verdict.PLAUSIBLE: GRAY}
_BADGES = {Verdict.WRONG: "red", Verdict.DOUBTFUL: "orange", Verdict.RIGHT: "green", Verdict.PLAUSIBLE: "gray"}
_WIDTHS = {"Question": 300, "Stage": 140, "Verdict": 80, "Retrieval": 105, "Why": 380, "Row": 60}
ALL = "All"


def draw_findings(log: RetrievalLog, found: tuple[Judged, ...]) -> None:
    policy = app_state.policy()
    st.header("Which stage failed?", anchor=False)
    with st.spinner("Comparing answers with chunks"):
        results = log_state.findings(found, policy)
    st.markdown(_heading(results))
    st.plotly_chart(
        picture(results), config={"displayModeBar": False}, key="log_picture",
        alt="; ".join(f"{stage}: {sum(counts.values())}" for stage, counts in results.stages.items()),
    )  # fmt: skip
    _draw_table(log, results, _draw_filter(results))
    evaluator = known_card(app_state.evaluator()).title  # now: a file is made without a session
    with st.container(horizontal=True):
        for title, content, ending, mime, icon in (
            ("Stages (CSV)", lambda: to_csv(results).encode("utf-8-sig", "replace"), "csv", "text/csv", "download"),
            ("Report (HTML)", lambda: _report(log, results, evaluator), "html", "text/html", "description"),
        ):
            st.download_button(
                title, content, f"{log.name}-stages.{ending}", mime, icon=f":material/{icon}:", on_click="ignore",
                key=f"log_{ending}",
            )  # fmt: skip


def _report(log: RetrievalLog, results: Findings, evaluator: str) -> bytes:
    return render_stages(log.name, results, evaluator, now()).encode("utf-8", "replace")


def _heading(results: Findings) -> str:
    told = "The log does not say what is right, so records are doubtful at most: by scores, and by what of the answer "
    told += "stands in the chunks."
    if results.is_known:
        told = "The thresholds are those of the sidebar. The answer is the log's; chunks and sentences are judged here."
    return f"{counted(len(results.pairs), 'record')} under {plain(results.policy.title)}. {told}"


def picture(results: Findings) -> go.Figure:
    figure = go.Figure()
    stages = list(Stage)
    for verdict in Verdict:
        counts = [results.stages[stage][verdict] for stage in stages]
        if any(counts):
            figure.add_bar(
                y=[TITLES[stage] for stage in stages], x=counts, orientation="h", name=verdict.value,
                marker_color=_TONES[verdict], text=[str(count) if count else "" for count in counts],
                textposition="inside", insidetextanchor="middle", textangle=0,
                hovertemplate="%{y}: %{x} %{data.name}<extra></extra>",
            )  # fmt: skip
    figure.update_layout(
        barmode="stack", height=270, margin={"l": 10, "r": 10, "t": 8, "b": 8}, bargap=0.3, showlegend=True,
        uniformtext={"minsize": 10, "mode": "hide"},
        legend={"orientation": "h", "y": -0.18, "x": 0, "traceorder": "normal"},
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", title=None)
    figure.update_xaxes(title=None, tickformat=",d", showgrid=True, showticklabels=False)
    return figure


def _draw_filter(results: Findings) -> Stage | None:
    counts = {stage: sum(verdicts.values()) for stage, verdicts in results.stages.items()}
    titles = {ALL: f"All {len(results.pairs)}"}
    titles |= {stage.value: f"{TITLES[stage]} {count}" for stage, count in counts.items() if count}
    if st.session_state.get("log_stage") not in titles:
        st.session_state["log_stage"] = ALL
    chosen = st.segmented_control(
        "Stage", list(titles), required=True, key="log_stage", format_func=lambda name: titles[name],
        label_visibility="collapsed",
    )  # fmt: skip
    if chosen is None or chosen == ALL:
        return None
    stage = Stage(chosen)
    st.caption(MEANS[stage])
    return stage


def _draw_table(log: RetrievalLog, results: Findings, stage: Stage | None) -> None:
    order = {one: place for place, one in enumerate((*Verdict, *Stage))}
    chosen = [(record, one) for record, one in results.pairs if stage in (None, one.stage)]
    pairs = sorted(chosen, key=lambda pair: (pair[1].stage is Stage.NONE, order[pair[1].verdict]))  # faults first
    shown = pairs[:_ROWS_SEEN]
    rows = [
        {
            "Question": clean(record.question),
            "Stage": TITLES[one.stage],
            "Verdict": one.verdict.value,
            "Retrieval": one.action.value if one.action else "",
            "Why": clean(one.reason),
            "Answer in the log": clean(shortened(record.answer, 200)),
            "Row": record.row,
        }
        for record, one in shown
    ]
    key = f"log_table_{stage}"
    st.dataframe(
        rows, hide_index=True, selection_mode="single-row", key=key,
        on_select=lambda: _choose(key, [record.id for record, _ in shown]),
        alt="The records with the stage that failed",
        column_config={name: st.column_config.Column(width=width) for name, width in _WIDTHS.items()},
    )  # fmt: skip
    if len(pairs) > len(shown):
        st.caption(f"The first {len(shown)} of {len(pairs)}; choose a stage, or download them all.")
    chosen_one = next((pair for pair in results.pairs if pair[0].id == kept(LogsPage).record), None)
    if chosen_one is not None:
        _draw_record(log, *chosen_one)
    else:
        st.caption("Choose a row to see its chunks and its answer.")


def _choose(key: str, ids: Sequence[str]) -> None:
    """For a callback: the record of the row that is ticked; it stays whatever thresholds do to its stage."""
    rows = [place for place in st.session_state[key]["selection"]["rows"] if place < len(ids)]
    kept(LogsPage).record = ids[rows[0]] if rows else None


def _draw_record(log: RetrievalLog, record: LogRecord, finding: Finding) -> None:
    with st.container(border=True, key="log_record"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(plain(record.question), anchor=False, width="stretch")
            st.button(
                "Open on Ask", on_click=log_state.ask, args=(log, record), icon=":material/forum:", type="primary",
                help="Its chunks are graded, routed and refined as a run, with the log's answer beside ours.",
            )  # fmt: skip
        route = f" :gray-badge[Retrieval: {finding.action}]" if finding.action else ""
        stage = finding.stage.value.capitalize()
        st.markdown(f":{_BADGES[finding.verdict]}-badge[{stage} · {finding.verdict}]{route}  \n{plain(finding.reason)}")
        answer = paragraphs(record.answer) if record.answer else ":gray[none]"
        st.markdown(f"**Answer in the log**\n\n{answer}")
        if record.references:
            st.markdown(f"**Right answer** {plain(' | '.join(record.references))}")
        for number, (one, passage) in enumerate(zip(record.contexts, passages_of(record), strict=True), start=1):
            score = f" · its score in the log {one.score:.2f}" if one.score is not None else ""
            with st.expander(plain(f"{number}. {one.source or 'chunk'}{score}"), expanded=passage.id == finding.chunk):
                st.markdown(paragraphs(shortened(one.text, _LONGEST)))


def draw_policies(found: tuple[Judged, ...]) -> None:
    """What each policy makes of the graded records; no model is asked."""
    rows = []
    for name in app_state.policies():
        with st.spinner("Routing the records"):
            results = log_state.findings(found, app_state.suited(name, app_state.evaluator()))
        stages = {TITLES[stage]: sum(counts.values()) for stage, counts in results.stages.items()}
        routes = {action.value: results.routes[action] for action in Action}
        rows.append({"Policy": results.policy.title, **routes, **stages})
    st.dataframe(rows, hide_index=True, height="content", alt="Routes and stages by policy")
    unaided = "" if app_state.has_model() else " None has a language model here."
    st.caption(f"Each policy with the thresholds that it starts with for this evaluator.{unaided}")
