"""One recorded run, or two side by side with the settings in which they differ, on the History page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from crag_core.base.errors import CragError
from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted, limit_text, readable, sentence, shortened
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Doubtful, Policy
from crag_core.storage.history.runs import KeptRun
from crag_core.trace.trace import RunSettings, Trace
from crag_core.view.record import asked_as
from crag_core.view.score_words import reason_of
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
            told = f"The record of “{shortened(run.question, 80)}” cannot be read. {error}"
            st.error(plain(told), icon=":material/error:", title="This run cannot be opened")
            st.caption("The record is unchanged; a newer version may open it. Delete it above if you do not need it.")
            return
        if trace is None:
            st.info("This run has been deleted. Press Refresh.", icon=":material/info:")
            return
        found.append(trace)
    if len(found) == 1:
        _draw_one(selected[0], found[0])
    else:
        _draw_pair(selected, found)


def _draw_one(run: KeptRun, trace: Trace) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(plain(shortened(trace.question, _LONGEST_QUESTION)), anchor=False)
        if asked := asked_as(trace):
            st.caption(plain(shortened(asked, _LONGEST_QUESTION)))
        _draw_verdict(trace)
        made = trace.settings
        lower, upper, cutoff = (readable(one)[0] for one in made.policy.thresholds)
        message = (
            f"policy {made.policy.title}, lower {lower}, upper {upper}, cut-off {cutoff}",
            f"evaluator {versioned(made.evaluator.title, made.evaluator.version)}",
            f"embedding {made.embedding}",
            f"answer by {versioned(made.writer, made.writer_version)}",
            f"{counted(made.top_k, 'chunk')}, web {made.web_mode}",
            f"settings {trace.fingerprint}",
        )
        st.caption(plain(" · ".join(message)))
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
    if trace.decision is not None:
        st.markdown(f"**{headline(trace.decision)}**  \n{plain(sentence(reason_of(trace.decision)))}")


def _draw_pair(runs: Sequence[KeptRun], found: Sequence[Trace]) -> None:
    is_one_question = found[0].question == found[1].question
    st.subheader("Side by side", anchor=False)
    if is_one_question:
        _draw_question(found[0])
    with st.grid(2, min_column_width=330, gap="small") as grid:
        for letter, run, trace in zip("AB", runs, found, strict=True):
            with grid.cell().container(border=True, height="stretch", gap="small"):
                title, when = plain(trace.settings.policy.title), plain(history_state.format_time(run))
                st.markdown(f"**{letter} · {title}** :gray[:small[{when}]]")
                if not is_one_question:
                    _draw_question(trace)
                _draw_verdict(trace)
                if (decision := trace.decision) is not None:
                    graded = counted(sum(grade.score is not None for grade in trace.grades or ()), "graded chunk")
                    st.caption(graded if decision.verdict else f"{plain(decision.label)}: nothing graded")
                draw_answer(trace)
                draw_cost(trace, f"history_open_{letter}")
    st.markdown("**Settings that differ**")
    if rows := differing(found[0].settings, found[1].settings):
        st.table(
            [{"setting": name, "A": plain(one), "B": plain(other)} for name, (one, other) in rows.items()],
            border="horizontal", hide_index=True, alt="Settings that differ between the two runs",
        )  # fmt: skip
    else:
        st.markdown(f"None, both {found[0].fingerprint}.")
    st.markdown("**Evidence of each answer**")
    if lines := given_sentences(found):
        counts = Counter(line.held for line in lines)
        st.markdown(
            f"{counted(counts[True, True], 'sentence')} in both, {counts[True, False]} only in A, "
            f"{counts[False, True]} only in B."
        )
        draw_sentences(lines, "history_only")
    else:
        st.markdown("Neither answer received evidence.")


def _draw_question(trace: Trace) -> None:
    st.markdown(f"**{plain(shortened(trace.question, _LONGEST_QUESTION))}**")


# --- settings that differ ---------------------------------------------------------------------------------------------

_NAMES = {
    "evaluator": "Evaluator",
    "strip_evaluator": "Sentences scored by",
    "embedding": "Embedding model",
    "writer": "Model",
    "writer_version": "Model version",
    "web_mode": "Web search",
    "top_k": "Chunks retrieved",
    "prompts": "Prompt version",
    "version": "Program version",
    "pinned": "Pinned files",
    "search_too": "Other documents searched",
    "support": "Answer checked by",
    "collection": "Collection",
}
"""Of every setting but the policy, which has several."""


def differing(first: RunSettings, second: RunSettings) -> dict[str, tuple[str, str]]:
    """Each setting that differs, by its name on the page, with its values in words."""
    one, other = _policy(first.policy), _policy(second.policy)
    found = {name: (one[name], other[name]) for name in one if one[name] != other[name]}
    if first.policy.name != second.policy.name:
        found.pop("Policy rules", None)
    for field, name in _NAMES.items():
        values = getattr(first, field), getattr(second, field)
        if values[0] != values[1]:
            a, b = map(_worded, values)
            found[name] = (a, b if a != b else f"{b}, another one")
    return found


def _policy(policy: Policy) -> dict[str, str]:
    """What can be set of a policy, and a mark for its rules, whatever was set."""
    lower, upper, cutoff = (readable(one)[0] for one in policy.thresholds)
    rules = replace(policy.with_thresholds(0.0, 1.0, 0.0).with_limit(None).with_doubtful(Doubtful.SHOW), presets=())
    return {
        "Policy": policy.title,
        "Lower threshold": lower,
        "Upper threshold": upper,
        "Sentence cut-off": cutoff,
        "Sentence limit": limit_text(policy.refinement.top),
        "If doubtful": policy.doubtful,
        "Policy rules": f"set {fingerprint(rules)[:8]}",
    }


def _worded(value: object) -> str:
    if isinstance(value, EvaluatorCard):
        return versioned(value.title, value.version)
    if isinstance(value, tuple):
        return counted(len(value), "file") if value else "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or "–"
