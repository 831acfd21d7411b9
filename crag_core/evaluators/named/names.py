"""Names of evaluators that somebody else trained: `hf:NAME`, `hf:NAME@REVISION`, `hf:/a/folder`, `?as=INTERFACE`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crag_core.base.errors import UnknownName
from crag_core.base.types.grades import EvaluatorCard

PREFIX = "hf:"
ONE_LOGIT, YES_NO, SPAN, PRUNER = "one-logit", "yes-no", "span", "pruner"
KINDS = (ONE_LOGIT, YES_NO, SPAN, PRUNER)
"""The interfaces, by the name that one may be told by."""
SHOWN_FORMS = "hf:OWNER/NAME, hf:OWNER/NAME@REVISION or hf:/a/folder"
PLACEHOLDER = (0.3, 0.7)
"""Where the sliders of an evaluator without calibration stand; no run is started with them."""

_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_REVISION = re.compile(r"[\w./-]{1,100}")
_LONGEST = 400


@dataclass(frozen=True)
class ModelName:
    """`source` is a name on the hub, or the whole path of a folder; `revision` a branch, tag or commit of the hub, "":
    the newest. `told` is the interface that was named, "": the files tell."""

    source: str
    revision: str = ""
    told: str = ""

    @property
    def is_folder(self) -> bool:
        return self.source.startswith("/")

    @property
    def short(self) -> str:
        """As it is shown: of a folder the last part."""
        name = self.source.rpartition("/")[2] if self.is_folder else self.source
        return (name or self.source) + (f"@{self.revision[:12]}" if self.revision else "")

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.source}{at}{f'?as={self.told}' if self.told else ''}"


def is_named(evaluator: str) -> bool:
    """Whether this names a model of somebody else, rightly or not."""
    return evaluator.startswith(PREFIX)


def parse_name(text: str) -> ModelName:
    """Raises `UnknownName` for what cannot be such a name."""
    if not is_named(text) or len(text) > _LONGEST or not text.isprintable():
        raise _wrong(text)
    place, asked, told = text.removeprefix(PREFIX).partition("?as=")
    if asked and told not in KINDS:
        raise UnknownName.among("interface", told, KINDS)
    if ".." in place.split("/"):
        raise _wrong(text)
    if place.startswith("/"):
        return ModelName(place.rstrip("/") or "/", told=told)
    source, at, revision = place.partition("@")
    if not _HUB.fullmatch(source) or ".." in source or (at and not _REVISION.fullmatch(revision)):
        raise _wrong(text)
    return ModelName(source, revision, told)


def _wrong(text: str) -> UnknownName:
    return UnknownName(
        f"Expected an evaluator such as {SHOWN_FORMS}, found {text[:80]!r}.",
        hint=f"Where the files do not tell, add ?as= and one of {', '.join(KINDS)}.",
    )


def uncalibrated_card(name: str) -> EvaluatorCard:
    """What is known of it by its name alone; raises `UnknownName` for what is none."""
    found = parse_name(name)
    lower, upper = PLACEHOLDER
    return EvaluatorCard(
        name=str(found),
        title=found.short,
        scale="not calibrated: its raw scores mean nothing to a threshold",
        lower=lower,
        upper=upper,
        strip_cutoff=0.5,
        calls_model=False,
        cost="no LLM call",
        version="not calibrated",
    )
