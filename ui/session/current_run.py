"""State of the run that the Ask page shows, and of the edits to it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st

from crag_core.base.types.edits import Edits
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.pipeline.run import Cooldown
from crag_core.trace.edits import measured
from crag_core.trace.opinions import decided_by
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace
from crag_core.view.run_view import RunView
from ui.session import app_state, fragments
from ui.session.keys import hand, kept, remembered, take

STORY, THRESHOLDS, EVIDENCE, SHARING = "story", "thresholds", "evidence", "sharing"
FIGURES, ADVICE = "figures", "advice"
"""Keys of the fragments that a moved threshold redraws, what is looked at first."""
RUN = "run"
"""Name of the job that does a run, and of its id in the address."""
_MOST_EARLIER = 30


@dataclass
class AskPage:
    """Runs that were opened or asked here, newest `earlier` first, and the one that the run on the page was generated
    from."""

    earlier: tuple[Trace, ...] = ()
    first: Trace | None = None
    is_first_hidden: bool = False


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


def trace() -> Trace | None:
    return st.session_state.get("trace")


def show(found: Trace | None) -> None:
    """Put a run on the page, as it was taken."""
    st.session_state["trace"] = found
    st.session_state["edits"] = found.edits if found else Edits()
    if found:
        st.query_params[RUN] = found.id


def show_grown(found: Trace) -> None:
    """As `show`; where the same run is there already, with less in it, what was changed about it stays."""
    if (shown := trace()) and shown.id == found.id:
        st.session_state["trace"] = found
    else:
        show(found)


def pause() -> Cooldown:
    found: Cooldown = st.session_state.setdefault("pause", Cooldown())
    return found


def view() -> View | None:
    taken = trace()
    if taken is None:
        return None
    # By the evaluator of the sidebar; plain RAG grades nothing, so there it is that of the record. So it is too as long
    # as the thresholds are the record's own and its evaluator is not to be had here.
    choice, known, own = app_state.asked_choice(), app_state.evaluators(), taken.settings
    is_absent = own.evaluator.name not in known and choice.policy.thresholds == own.policy.thresholds
    is_own = choice.policy.is_plain or is_absent
    graded = taken if is_own else decided_by(taken, known[choice.evaluator], choice.model)
    policy, changed = choice.policy, replace(graded, edits=edits())
    return remembered("view", (taken, changed, policy), lambda: view_of(taken, changed, policy))


def view_of(taken: Trace, changed: Trace, policy: Policy) -> View:
    was, routed = reroute(taken, taken.settings.policy), reroute(changed, policy)
    return View(trace=changed, policy=changed.decided_by(policy), routed=routed, taken=taken, was=was)


def edits() -> Edits:
    found: Edits = st.session_state.get("edits", Edits())
    return found


def edit(taken: Trace, changed: Edits) -> None:
    """Put edits of the run on the page in the place of those it has, with their signals."""
    st.session_state["edits"] = measured(taken, changed, app_state.workbench().meter)


def toggle(passage_id: str, where: Literal["dropped", "pinned"]) -> None:
    """For a callback: leave a passage out or pin it, or, where it is so already, take that back."""
    taken, before = trace(), edits()
    if taken is not None:
        ids = {name: [one for one in getattr(before, name) if one != passage_id] for name in ("dropped", "pinned")}
        if passage_id not in getattr(before, where):
            ids[where].append(passage_id)
        edit(taken, Edits(tuple(ids["dropped"]), tuple(ids["pinned"])))
    redraw()


def undo() -> None:
    """For a callback: back to the run as taken: policy, evaluator, thresholds and evidence."""
    taken = trace()
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
    if done:
        app_state.put_marks(lower, upper)
        st.rerun()
    st.session_state["moving"] = lower, upper
    redraw(but=(THRESHOLDS,))


def decide_by(evaluator: str) -> None:
    """For a callback: let another evaluator of the record decide, with the thresholds that suit it."""
    app_state.choose_evaluator(evaluator)
    st.rerun()


def open_place(passage_id: str) -> None:
    """For a callback: show a passage in its document at the next redraw."""
    hand("place", passage_id)


def take_place() -> Passage | None:
    wanted, taken = take("place"), trace()
    if wanted is None or taken is None:
        return None
    return next((passage for passage in taken.every_passage if passage.id == wanted), None)


def open_original(found: Trace) -> None:
    """For a callback: back to the run that the one on the page was generated from."""
    open_run(found)
    st.rerun()


# The answer beside the first


def first_beside() -> Trace | None:
    """The run that the one on the page was generated from, where its answer stands beside."""
    taken, page = trace(), kept(AskPage)
    is_another = page.first is not None and taken is not None and page.first.id != taken.id
    return page.first if is_another and not page.is_first_hidden else None


def hide_first() -> None:
    kept(AskPage).is_first_hidden = True


def set_baseline() -> None:
    """Before a second answer is generated: the run as taken stays beside it."""
    page = kept(AskPage)
    page.first, page.is_first_hidden = page.first or trace(), False


# Earlier runs of this session


def find_earlier(run_id: str) -> Trace | None:
    return next((one for one in kept(AskPage).earlier if one.id == run_id), None)


def remember(found: Trace) -> None:
    page = kept(AskPage)
    page.earlier = (found, *(one for one in page.earlier if one.id != found.id))[:_MOST_EARLIER]


def open_run(found: Trace, *, own_settings: bool = True) -> None:
    """For a callback: show a recorded run as it was taken, or under the sidebar as it stands."""
    kept(AskPage).first = None
    show(found)
    app_state.switch_plain(found)
    if own_settings:
        app_state.use_settings_of(found)
    st.session_state["ask_question"] = found.asked
    remember(found)


def new_conversation() -> None:
    """For a callback: the next question follows none."""
    kept(AskPage).first = None
    show(None)
    st.query_params.pop(RUN, None)
    st.session_state["ask_question"] = ""


def open_later(found: Trace) -> None:
    """Show a run at the next redraw, since the sidebar, which it sets, is drawn already."""
    hand("opening", found)


def open_waiting() -> None:
    """For app.py, before the sidebar is drawn."""
    if found := take("opening"):
        open_run(found)
