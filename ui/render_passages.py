"""Passages and web results as cards: score, reason, retrievers, and every sentence kept or struck out in its place."""

from __future__ import annotations

import re

import streamlit as st

from crag_core.reroute import Reroute
from crag_core.trace import Trace
from crag_core.types import Excerpt, Grade, Origin, Passage, Round, Scores, StripVerdict
from ui.render_signals import draw_two_signals, told_deciding
from ui.text import link, paragraphs, plain

_HEADING = re.compile(r"#{1,6}\s+\S")
_RULE = re.compile(r"[|:\-\s]+$")
_RETRIEVERS = {"cosine": "cosine", "keyword": "keyword (BM25)", "rrf": "rank fusion", "retriever": "retriever"}


def draw_passages(trace: Trace, routed: Reroute) -> None:
    """Every corpus passage that this policy looks at, in the order of finding, and which later retrieval found it."""
    shown = {passage.id for passage in routed.course.looked_at}
    last = {passage.id for passage in routed.course.evidence}
    later = {id_: found for found in reversed(trace.rounds) for id_ in _found_in(found)}
    first = {passage.id for passage in trace.passages or ()}
    ranked = list(enumerate(trace.all_passages, start=1))
    for rank, passage in ranked:
        if passage.id in shown:
            notes = [] if passage.id in first else [f"found by a later retrieval: {' → '.join(later[passage.id].path)}"]
            notes += [] if passage.id in last else ["looked at in an earlier iteration only"]
            draw_passage(passage, rank, trace, routed, "; ".join(notes))
    if left := len(ranked) - len(shown):
        st.caption(f"The record holds {left} more passages, of retrievals that this policy does not ask for.")


def _from_web(trace: Trace) -> tuple[Passage, ...]:
    return trace.web.passages if trace.web else ()


def _found_in(found: Round) -> list[str]:
    return [passage.id for retrieval in found.retrievals for passage in retrieval.passages]


def draw_passage(passage: Passage, rank: int, trace: Trace, routed: Reroute, note: str = "") -> None:
    grade = trace.grade_of(passage.id)
    verdicts = [verdict for verdict in routed.knowledge.verdicts if verdict.strip.passage_id == passage.id]
    numbers = [n for n, excerpt in enumerate(routed.knowledge.excerpts, 1) if excerpt.passage.id == passage.id]
    with st.container(border=True):
        st.subheader(_title(passage, rank), anchor=anchor(passage, rank))
        told = told_deciding(passage, grade, routed.decision)
        decides = f":blue-badge[decides{told}]" if passage.id in routed.decision.deciding else ""
        st.markdown(f"{_use(numbers, verdicts)} {decides}")
        if note:
            st.caption(f":material/replay: {plain(note)}")
        _draw_score(grade, is_compared=routed.decision.topical is None)
        if verdicts:
            st.markdown(marked(verdicts))
        elif any(one.id == passage.id for one in (*routed.course.evidence, *_from_web(trace))):
            st.markdown(paragraphs(passage.text))
        else:
            with st.expander("Its text"):
                st.markdown(paragraphs(passage.text))
        _draw_details(passage, grade, verdicts)


def anchor(passage: Passage, rank: int) -> str:
    """The anchor of a passage's card, which citations lead to."""
    return f"{'web' if passage.origin is Origin.WEB else 'passage'}-{rank}"


def marked(verdicts: list[StripVerdict]) -> str:
    """The passage with its sentences in place: kept ones plain on green, the others struck through in grey."""
    pieces = []
    for verdict in verdicts:
        score = "" if verdict.strip.score is None else f" :small[{verdict.strip.score:.2f}]"
        text = _dressed(verdict.strip.text)
        if verdict.kept:
            pieces.append(f":green-background[{text}]{score}")
        else:
            pieces.append(f":gray[~~{text}~~{score}]")
    return "  \n".join(pieces)


def _dressed(text: str) -> str:
    """A strip in one line; headings that lead it in bold, without their marks, and table rules left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _RULE.match(line.strip())]
    shown = [f"**{plain(line.lstrip('# '))}**" if _HEADING.match(line) else plain(line) for line in lines]
    return " ".join(shown)


def _title(passage: Passage, rank: int) -> str:
    if passage.origin is Origin.WEB:
        return f"{rank} · {link(passage.source, passage.url or '')}"
    page = f", page {passage.page}" if passage.page else ""
    return f"{rank} · {plain(passage.source)}{page}"


def _use(numbers: list[int], verdicts: list[StripVerdict]) -> str:
    if not numbers:
        return ":gray-badge[:material/block: not used]"
    cited = " ".join(f"\\[{number}\\]" for number in numbers)
    kept = sum(verdict.kept for verdict in verdicts)
    how = "whole" if kept == len(verdicts) else f"{kept} of {len(verdicts)} sentences"
    return f":green-badge[:material/check: used, {how}] :gray-badge[cited as {cited}]"


def _draw_score(grade: Grade | None, is_compared: bool) -> None:
    """The score, and both signals where the grade has them; the score alone only where it is what is compared."""
    if grade is None:
        st.markdown(":gray[:material/horizontal_rule: **Not graded** in this run]")
    elif grade.score is None:
        st.markdown(f":orange[:material/warning: **Not graded:** {plain(grade.cause)}]")
    elif both := grade.two_signals:
        if is_compared:
            st.progress(grade.score, f"**{grade.score:.2f}** score")
        draw_two_signals(grade, *both)
    else:
        reason = f" · {plain(grade.reason)}" if grade.reason else ""
        st.progress(grade.score, f"**{grade.score:.2f}**{reason}")


def _draw_details(passage: Passage, grade: Grade | None, verdicts: list[StripVerdict]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if passage.scores:
            st.caption(
                f"Retrieval: {_retrieval(passage.scores)} · found by {plain(', '.join(passage.found_by) or '–')}"
            )
        if verdicts:
            with st.popover("Sentence scores", type="tertiary", icon=":material/table_rows:"):
                st.dataframe(_table(verdicts), hide_index=True, alt="Sentences with score, verdict and reason")
        if grade and (grade.raw or grade.parts):
            with st.popover("Evaluator's record", type="tertiary", icon=":material/data_object:"):
                if grade.parts:
                    parts = [{"part": name, "value": value} for name, value in grade.parts]
                    st.dataframe(parts, hide_index=True, alt="The parts that the score is made of")
                if grade.raw is not None:
                    st.caption("The raw reply, as it came:")
                    st.code(grade.raw or "(empty)", language=None, wrap_lines=True)


def _retrieval(scores: Scores) -> str:
    digits = {"rrf": 4, "keyword": 1}
    return " · ".join(f"{_RETRIEVERS.get(name, plain(name))} {value:.{digits.get(name, 2)}f}" for name, value in scores)


def _table(verdicts: list[StripVerdict]) -> list[dict[str, object]]:
    return [
        {
            "verdict": "kept" if verdict.kept else "struck out",
            "score": verdict.strip.score,
            "sentence": verdict.strip.text,
            "reason": verdict.reason,
        }
        for verdict in verdicts
    ]


def source_line(number: int, excerpt: Excerpt, rank: int) -> str:
    """One entry of the list of sources, leading to the passage's card."""
    passage = excerpt.passage
    page = f", page {passage.page}" if passage.page else ""
    return f"[\\[{number}\\]](#{anchor(passage, rank)}) {plain(passage.source)}{page}"
