"""Names of evaluators that somebody else trained: `hf:NAME`, `hf:NAME@REVISION`, `hf:/a/folder`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crag_core.base.errors import UnknownName
from crag_core.base.types.grades import EvaluatorCard

PREFIX = "hf:"
SHOWN_FORMS = "hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:/a/folder"
PLACEHOLDER = (0.3, 0.7)
"""Where the sliders of an evaluator without calibration stand; no run is started with them."""

_HUB = re.compile(r"([A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?)(?:@([\w./-]{1,100}))?")
_NEVER = re.compile(r"(^|[/@])\.\.(/|$)|\?as=")
_LONGEST = 400


@dataclass(frozen=True)
class ModelName:
    """`source` is a name on the hub, or the whole path of a folder; `revision` a branch, tag or commit of the hub, "":
    the newest."""

    source: str
    revision: str = ""

    @property
    def is_folder(self) -> bool:
        return self.source.startswith("/")

    @property
    def short(self) -> str:
        name = self.source.rpartition("/")[2] if self.is_folder else self.source
        return (name or self.source) + (f"@{self.revision[:12]}" if self.revision else "")

    def __str__(self) -> str:
        return f"{PREFIX}{self.source}{f'@{self.revision}' if self.revision else ''}"


def is_named(evaluator: str) -> bool:
    return evaluator.startswith(PREFIX)


def parse_name(text: str) -> ModelName:
    """Raises `UnknownName` for what cannot be such a name."""
    place = text.removeprefix(PREFIX)
    is_one = is_named(text) and len(text) <= _LONGEST and text.isprintable()
    if is_one and not _NEVER.search(place):
        if place.startswith("/"):
            return ModelName(place.rstrip("/") or "/")
        if found := _HUB.fullmatch(place):
            return ModelName(found[1], found[2] or "")
    raise UnknownName(
        f"Expected an evaluator such as {SHOWN_FORMS}, found {text[:80]!r}.",
        hint="Name a model of the hub, or a folder by its whole path.",
    )


def uncalibrated_card(name: str) -> EvaluatorCard:
    """What is known of it by its name alone; raises `UnknownName` for what is none."""
    found, scale = parse_name(name), "not calibrated: its raw scores mean nothing to a threshold"
    return EvaluatorCard(
        str(found), found.short, scale, *PLACEHOLDER, strip_cutoff=0.5, calls_model=False, cost="no LLM call",
        version="not calibrated",
    )  # fmt: skip
