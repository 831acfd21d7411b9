"""One recorded run, or two side by side with the settings in which they differ, on the History page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted, limit_text, readable, sentence, shortened
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.storage.history.runs import KeptRun
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.trace import RunSettings, Trace
from crag_core.view.record import asked_as
from ui.compare.side_by_side import cost, draw_answer, draw_cost, draw_sentences, given_sentences
from ui.history import history_state
from ui.run import share
from ui.run.verdict import headline
from ui.shell.text import plain, versioned

_LONGEST_QUESTION = 200


def draw_selected(selected: Sequence[KeptRun]) -> None:
    """One run, or two side by side; of more, what can be done."""
    if not selected:
        st.caption("Select a row to see its run, two to compare.")
        return
    if len(selected) > 2:
        st.caption(f"{counted(len(selected), 'run')} selected. Select one to see it, two to compare.")
        return
    found = []
    for run in selected:
        try:
            trace = history_state.load(run)
        except CragError as error:
            _draw_unreadable(run, error)
            return
        if trace is None:
            st.info("This run has been deleted. Press Refresh.", icon=":material/info:")
            return
        found.append(trace)
    if len(found) == 1:
        _draw_one(selected[0], found[0])
    else:
        _draw_pair(selected, found)


def _describe_settings(trace: Trace) -> str:
    """Settings and versions of a run in one line, with their fingerprint."""
    made = trace.settings
    lower, upper, cutoff = (readable(one)[0] for one in made.policy.thresholds)
    message = [
        f"policy {made.policy.title}, lower {lower}, upper {upper}, cut-off {cutoff}",
        f"evaluator {versioned(made.evaluator.title, made.evaluator.version)}",
        f"embedding {made.embedding}",
        f"answer by {versioned(made.writer, made.writer_version)}",
        f"{counted(made.top_k, 'chunk')}, web {made.web_mode}",
        f"settings {trace.fingerprint}",
    ]
    return " · ".join(message)


def _draw_unreadable(run: KeptRun, error: CragError) -> None:
    st.error(
        plain(f"The record of “{shortened(run.question, 80)}” cannot be read. {error}"), icon=":material/error:",
        title="This run cannot be opened",
    )  # fmt: skip
    st.caption("The record is unchanged; a newer version may open it. Delete it above if you do not need it.")


def _draw_one(run: KeptRun, trace: Trace) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(plain(shortened(trace.question, _LONGEST_QUESTION)), anchor=False)
        if asked := asked_as(trace):
            st.caption(plain(shortened(asked, _LONGEST_QUESTION)))
        _draw_verdict(trace)
        st.caption(plain(_describe_settings(trace)))
        whose = f" · asked by {run.asked_by}" if run.asked_by else ""
        edits = len(trace.edits.dropped) + len(trace.edits.pinned)
        changed = f" · {counted(edits, 'chunk')} dropped or pinned" if edits else ""
        st.caption(plain(f"{cost(trace)}{changed}{whose} · kept {history_state.format_time(run)} · run {run.id}"))
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            share.draw_share_of(trace)


def _draw_verdict(trace: Trace) -> None:
    if trace.failure:
        st.markdown(f":red[:material/error:] {plain(f'{trace.failure.summary} {trace.failure.hint}'.strip())}")
    if trace.asks_back:
        st.markdown(f":violet[:material/contact_support: Asks back:] {plain(trace.asks_back)}")
    elif trace.decision is None:
        st.markdown(":gray[:material/pending: No decision.]")
    if trace.decision is None:
        return
    st.markdown(f"**{headline(trace.decision)}**  \n{plain(sentence(trace.decision.reason))}")


# Two of them


def _draw_pair(runs: Sequence[KeptRun], found: Sequence[Trace]) -> None:
    same = found[0].question == found[1].question
    st.subheader("Side by side", anchor=False)
    if same:
        _draw_question(found[0])
    with st.grid(2, min_column_width=330, gap="small") as grid:
        for letter, run, trace in zip("AB", runs, found, strict=True):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                _draw_side(letter, run, trace, not same)
    _draw_settings(found)
    _draw_sentences(found)


def _draw_side(letter: str, run: KeptRun, trace: Trace, has_question: bool) -> None:
    title = plain(trace.settings.policy.title)
    st.markdown(f"**{letter} · {title}** :gray[:small[{plain(history_state.format_time(run))}]]")
    if has_question:
        _draw_question(trace)
    _draw_verdict(trace)
    decision = trace.decision
    if decision is not None:
        graded = counted(sum(grade.score is not None for grade in trace.grades or ()), "graded chunk")
        st.caption(graded if decision.verdict else f"{plain(decision.label)}: nothing graded")
    draw_answer(trace)
    draw_cost(trace, f"history_open_{letter}")


def _draw_question(trace: Trace) -> None:
    st.markdown(f"**{plain(shortened(trace.question, _LONGEST_QUESTION))}**")


def _draw_settings(found: Sequence[Trace]) -> None:
    st.markdown("**Settings that differ**")
    rows = differing(found[0].settings, found[1].settings)
    if not rows:
        st.markdown(f"None, both {found[0].fingerprint}.")
        return
    st.table(
        [{"setting": plain(row.setting), "A": plain(row.first), "B": plain(row.second)} for row in rows],
        border="horizontal", hide_index=True, alt="Settings that differ between the two runs",
    )  # fmt: skip


def _draw_sentences(found: Sequence[Trace]) -> None:
    st.markdown("**Evidence of each answer**")
    lines = given_sentences(found)
    if not lines:
        st.markdown("Neither answer received evidence.")
        return
    counts = Counter(line.held for line in lines)
    st.markdown(
        f"{counted(counts[True, True], 'sentence')} in both, {counts[True, False]} only in A, "
        f"{counts[False, True]} only in B."
    )
    draw_sentences([trace.settings.policy.title for trace in found], lines, "history_only")


# --- settings that differ ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Differing:
    """A setting, and its value in each of the two runs."""

    setting: str
    first: str
    second: str


SETTINGS: dict[str, tuple[str, Callable[[RunSettings], str]]] = {
    "evaluator": ("Evaluator", lambda made: _card(made.evaluator)),
    "strip_evaluator": ("Sentences scored by", lambda made: _card(made.strip_evaluator)),
    "embedding": ("Embedding model", lambda made: made.embedding),
    "writer": ("Model", lambda made: made.writer),
    "writer_version": ("Model version", lambda made: made.writer_version or "unknown"),
    "web_mode": ("Web search", lambda made: made.web_mode),
    "top_k": ("Chunks retrieved", lambda made: str(made.top_k)),
    "prompts": ("Prompt version", lambda made: made.prompts),
    "version": ("Program version", lambda made: made.version),
    "pinned": ("Pinned files", lambda made: counted(len(made.pinned), "file") if made.pinned else "none"),
    "search_too": ("Other documents searched", lambda made: "yes" if made.search_too else "no"),
    "support": ("Answer checked by", lambda made: "word overlap" if made.support == WORDS else made.support),
    "collection": ("Collection", lambda made: made.collection or "all"),
}
"""(title, value in words) of every setting but the policy, which has several."""


def differing(first: RunSettings, second: RunSettings) -> tuple[Differing, ...]:
    found = [*_policies(first.policy, second.policy)]
    for field, (setting, describe) in SETTINGS.items():
        if getattr(first, field) != getattr(second, field):
            one, other = describe(first), describe(second)
            found.append(Differing(setting, one, other if one != other else f"{other}, another one"))
    return tuple(found)


def _policies(first: Policy, second: Policy) -> list[Differing]:
    found = [] if first.name == second.name else [Differing("Policy", first.title, second.title)]
    for setting, one, other in zip(
        ("Lower threshold", "Upper threshold", "Sentence cut-off"), first.thresholds, second.thresholds, strict=True
    ):
        if one != other:
            found.append(Differing(setting, readable(one)[0], readable(other)[0]))
    limits = [limit_text(policy.refinement.top) for policy in (first, second)]
    if limits[0] != limits[1]:
        found.append(Differing("Sentence limit", *limits))
    if first.doubtful is not second.doubtful:
        found.append(Differing("If doubtful", first.doubtful, second.doubtful))
    bare = (policy.with_thresholds(0.0, 1.0, 0.0).with_limit(None) for policy in (first, second))
    rules = [replace(policy.with_doubtful(second.doubtful), presets=()) for policy in bare]
    has_same_rules = rules[0] == rules[1]
    if first.name == second.name and not has_same_rules:
        found.append(Differing("Policy rules", *(f"set {fingerprint(one)[:8]}" for one in (first, second))))
    return found


def _card(card: EvaluatorCard) -> str:
    return versioned(card.title, card.version)
