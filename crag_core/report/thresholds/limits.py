"""What the page of chosen thresholds does not say: whose labels they are, and for what the thresholds hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from crag_core.base.text.display import counted
from crag_core.decision.policy import Policy
from crag_core.experiments.labelled.questions import Origin
from crag_core.experiments.thresholds.threshold_board import ACTIONS
from crag_core.report.thresholds.result import Tuned

_ORIGINS = {
    Origin.UPLOADED: "from a file",
    Origin.FEEDBACK: "from people's feedback on answers",
    Origin.DRAFTED: "drafted by the application",
    Origin.WRITTEN: "written by hand",
}


def limits_of(tuned: Tuned) -> tuple[str, ...]:
    return tuple(_limits(tuned))


def _limits(tuned: Tuned) -> Iterator[str]:
    cases = [case.asked for case in tuned.board.cases]
    origins = Counter(asked.origin for asked in cases)
    came = ", ".join(f"{origins[origin]} {source}" for origin, source in _ORIGINS.items() if origins[origin])
    if cases:
        yield (
            "Whether the documents answer a question is what its label says, and labels are the user's, not the "
            f"truth. Where questions and labels come from: {came}."
        )
    if origins[Origin.DRAFTED]:
        yield (
            "What the application drafted was made from the documents themselves. It may be easier or harder than what "
            "people ask, and its labels count as checked only if somebody has looked them through."
        )
    if apart := sum(bool(asked.without) for asked in cases):
        verb = "is not answered only because the chunks" if apart == 1 else "are not answered only because chunks"
        yield f"{counted(apart, 'question')} {verb} with the answer were left out on purpose."
    yield from _policy_limits(tuned.policy)
    yield (
        "Only the way that a question takes is judged, not whether the answer that is written in the end is right, nor "
        "what the web finds."
    )
    yield (
        f"The cut-off for single sentences, {tuned.preset.cutoff:.3f}, is kept with the preset; nothing on this page "
        "says how good it is."
    )
    yield "The questions, their labels and the documents are not in this file."


def _policy_limits(policy: Policy) -> Iterator[str]:
    again = any(policy.route(action).expand or policy.route(action).re_retrieve for action in ACTIONS)
    more = " This policy may search again and decide again; what comes of that is not counted." if again else ""
    yield f"Only the first search for chunks counts.{more}"


def conditions_of(tuned: Tuned) -> tuple[tuple[str, str], ...]:
    """What the thresholds hold for, in the words of `Conditions.changed`; and the set."""
    preset, made = tuned.preset, tuned.preset.conditions
    version = f", version {made.evaluator_version}" if made.evaluator_version else ""
    found = {
        "The documents": made.corpus and f"as they were with the fingerprint {made.corpus}",
        "The evaluator": f"{made.evaluator}{version}",
        "The language model that grades": made.writer or "none",
        "The prompts": made.prompts or "none",
        "The embedding model": made.embedding,
        "The number of chunks": str(made.top_k),
        "The labelled questions": f"{preset.labelled or '(no name)'}"
        + (f", with the fingerprint {preset.labels}" if preset.labels else ""),
    }
    return tuple((name, value or "not recorded") for name, value in found.items())
