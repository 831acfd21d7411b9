"""State of the run that the Ask page shows, and of the edits to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import streamlit as st

from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.trace.edits import measured
from crag_core.trace.opinions import decided_by
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import RunView
from ui.session import app_state, fragments

STORY, THRESHOLDS, EVIDENCE, SHARING = "story", "thresholds", "evidence", "sharing"
FIGURES, ADVICE = "figures", "advice"
"""Keys of the fragments that a moved threshold redraws, what is looked at first."""
_MOST_EARLIER = 30


@dataclass(frozen=True, kw_only=True)
class View(RunView):
    """A run under what was chosen and changed since it was `taken`, which decided as `was`."""

    taken: Trace
    was: Reroute

    @property
    def is_changed(self) -> bool:
        """Whether anything but the record decides now."""
        own = self.taken.decided_by(self.taken.settings.policy)
        before = (self.taken.edits, self.taken.settings.evaluator, own)
        return before != (self.trace.edits, self.trace.settings.evaluator, self.policy)


def view() -> View | None:
    taken: Trace | None = app_state.trace()
    if taken is None:
        return None
    # By the evaluator of the sidebar; plain RAG grades nothing, so there it is that of the record. So it is too as long
    # as the thresholds are the record's own and its evaluator is not to be had here.
    choice, known, own = app_state.asked_choice(), app_state.evaluators(), taken.settings
    is_absent = own.evaluator.name not in known and choice.policy.thresholds == own.policy.thresholds
    is_own = choice.policy.is_plain or is_absent
    graded = taken if is_own else decided_by(taken, known[choice.evaluator], choice.model)
    policy, trace = choice.policy, replace(graded, edits=edits())
    return app_state.remembered("view", (taken, trace, policy), lambda: view_of(taken, trace, policy))


def view_of(taken: Trace, trace: Trace, policy: Policy) -> View:
    was, routed = reroute(taken, taken.settings.policy), reroute(trace, policy)
    return View(trace=trace, policy=trace.decided_by(policy), routed=routed, taken=taken, was=was)


def is_any() -> bool:
    """Whether a run is on the Ask page, under way, about to be opened, or asked for by the address."""
    kept = (st.session_state.get(key) for key in ("trace", "job", "opening"))
    return any(kept) or "run" in st.query_params


def edits() -> Edits:
    kept: Edits = st.session_state.get("edits", Edits())
    return kept


def drop(passage_id: str) -> None:
    """For a callback: leave a passage out, or put it back."""
    _toggle(passage_id, "dropped", "pinned")


def pin(passage_id: str) -> None:
    """For a callback: pin a passage, or unpin it."""
    _toggle(passage_id, "pinned", "dropped")


def _toggle(passage_id: str, where: str, other: str) -> None:
    taken, before = app_state.trace(), edits()
    if taken is not None:
        ids = {name: [one for one in getattr(before, name) if one != passage_id] for name in (where, other)}
        if passage_id not in getattr(before, where):
            ids[where].append(passage_id)
        changed = Edits(tuple(ids["dropped"]), tuple(ids["pinned"]))
        st.session_state["edits"] = measured(taken, changed, app_state.workbench().meter)
    redraw()


def undo() -> None:
    """For a callback: back to the run as taken: policy, evaluator, thresholds and evidence."""
    taken = app_state.trace()
    if taken is not None:
        st.session_state["edits"] = taken.edits
        app_state.use_settings_of(taken)
    st.rerun()


def redraw(but: Collection[str] = ()) -> None:
    """For a callback: redraw what depends on thresholds and evidence; on the Ask and Tune pages nothing else.

    A slider that was not moved by hand takes up what a callback has set only when the whole page is redrawn.
    """
    there = fragments.drawn() - set(but)
    names = [key for key in (STORY, FIGURES, THRESHOLDS, EVIDENCE, SHARING, ADVICE) if key in there]
    st.rerun(names if {STORY, FIGURES} & there else "app")


def slide() -> None:
    """For the sliders of the sidebar, moved by hand: they decide, and no longer a mark in the picture."""
    st.session_state["moving"] = None
    redraw()


def move(lower: float, upper: float, done: bool) -> None:
    """For a callback: put the thresholds elsewhere, with `done` in the sidebar too, which takes the whole page.

    Until then they are held apart: a slider that learns of a value without showing it sends back its old one.
    """
    st.session_state["moving"] = None if done else (lower, upper)
    if done:
        app_state.put_marks(lower, upper)
        st.rerun()
    redraw(but=(THRESHOLDS,))


def decide_by(evaluator: str) -> None:
    """For a callback: let another evaluator of the record decide, with the thresholds that suit it."""
    st.session_state["evaluator"] = evaluator
    app_state.start_thresholds()
    st.rerun()


def open_place(passage_id: str) -> None:
    """For a callback: show a passage in its document at the next redraw."""
    st.session_state["place"] = passage_id


def take_place() -> Passage | None:
    wanted, taken = st.session_state.pop("place", None), app_state.trace()
    if wanted is None or taken is None:
        return None
    return next((passage for passage in taken.every_passage if passage.id == wanted), None)


def open_original(found: Trace) -> None:
    """For a callback: back to the run that the one on the page was generated from."""
    open_run(found)
    st.rerun()


# The answer beside the first


def first() -> Trace | None:
    """The run that the one on the page was generated from."""
    return st.session_state.get("first")


def is_first_beside() -> bool:
    """Whether its answer stands beside that of the run on the page."""
    taken, origin = app_state.trace(), first()
    is_another = origin is not None and taken is not None and origin.id != taken.id
    return is_another and not st.session_state.get("first_hidden")


def hide_first() -> None:
    st.session_state["first_hidden"] = True


def set_baseline() -> None:
    """Before a second answer is generated: the run as taken stays beside it."""
    st.session_state["first"] = first() or app_state.trace()
    st.session_state["first_hidden"] = False


def clear_baseline() -> None:
    st.session_state["first"] = None


# Earlier runs of this session


def earlier() -> tuple[Trace, ...]:
    """Newest first, each question's runs included, the one on the page too."""
    return tuple(st.session_state.get("earlier", ()))


def remember(found: Trace) -> None:
    others = [trace for trace in earlier() if trace.id != found.id]
    st.session_state["earlier"] = [found, *others][:_MOST_EARLIER]


def open_run(found: Trace, *, own_settings: bool = True) -> None:
    """For a callback: show a recorded run as it was taken, or under the sidebar as it stands."""
    clear_baseline()
    app_state.show(found)
    app_state.switch_plain(found)
    if own_settings:
        app_state.use_settings_of(found)
    st.session_state["ask_question"] = found.asked
    remember(found)


def new_conversation() -> None:
    """For a callback: the next question follows none."""
    clear_baseline()
    app_state.show(None)
    st.query_params.pop("run", None)
    st.session_state["ask_question"] = ""


def open_later(found: Trace) -> None:
    """Show a run at the next redraw, since the sidebar, which it sets, is drawn already."""
    st.session_state["opening"] = found


def open_waiting() -> None:
    """For app.py, before the sidebar is drawn."""
    if found := st.session_state.pop("opening", None):
        open_run(found)
