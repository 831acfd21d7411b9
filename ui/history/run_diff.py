"""The settings in which two runs differ. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from crag_core.base.serialization import fingerprint
from crag_core.base.text.display import counted
from crag_core.base.types import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.trace import RunSettings
from ui.text import versioned


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
    "writer_version": ("Version of the model", lambda made: made.writer_version or "not known"),
    "web_mode": ("Web search", lambda made: made.web_mode),
    "top_k": ("Chunks read", lambda made: str(made.top_k)),
    "prompts": ("Version of the prompts", lambda made: made.prompts),
    "version": ("Version of the program", lambda made: made.version),
    "pinned": ("Files read whole", lambda made: counted(len(made.pinned), "file") if made.pinned else "none"),
    "search_too": ("Searched beside those files", lambda made: "yes" if made.search_too else "no"),
    "support": ("Answer checked by", lambda made: "its words" if made.support == WORDS else made.support),
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
            found.append(Differing(setting, f"{one:.3f}", f"{other:.3f}"))
    has_same_rules = replace(first.with_thresholds(*second.thresholds), presets=second.presets) == second
    if first.name == second.name and not has_same_rules:
        found.append(Differing("Rules of the policy", *(f"set {fingerprint(one)[:8]}" for one in (first, second))))
    return found


def _card(card: EvaluatorCard) -> str:
    return versioned(card.title, card.version)
