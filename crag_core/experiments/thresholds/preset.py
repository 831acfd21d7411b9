"""A preset: named thresholds with the conditions they were chosen under."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain, to_plain
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import toml
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.labelled.questions import LabelledSet

_GONE = {"promise", "scores", "calibration"}
"""Keys of presets kept by earlier versions, which nothing reads any more."""


@dataclass(frozen=True)
class TunedPreset:
    """`policy` and `conditions` are what the thresholds were chosen for. `labelled` names the set, `questions` is how
    many of it were graded, `labels` its fingerprint. `reason` tells in words how they were chosen. `sentences`: kept
    at most; 0: no limit, None: as the policy has it."""

    name: str
    policy: str
    lower: float
    upper: float
    cutoff: float
    conditions: Conditions
    labelled: str = ""
    labels: str = ""
    questions: int = 0
    created: str = ""
    reason: str = ""
    sentences: int | None = None

    def __post_init__(self) -> None:
        if not all(0.0 <= value <= 1.0 for value in (self.lower, self.upper, self.cutoff)):
            raise ValueError(
                f"expected lower, upper and cutoff in 0..1, found {self.lower}, {self.upper} and {self.cutoff}"
            )
        if self.sentences is not None and self.sentences < 0:
            raise ValueError(f"expected sentences from 0, found {self.sentences}")

    def applied_to(self, policy: Policy) -> Policy:
        """`policy` with these thresholds; `BadRecord` where they were chosen for another, or it may not have them."""
        if policy.name != self.policy:
            raise BadRecord(
                f"The preset {self.name!r} was chosen for the policy {self.policy!r}, not for {policy.name!r}.",
                hint=f"Use it with {self.policy!r}.",
            )
        if not policy.allows(self.lower, self.upper):
            raise BadRecord(
                f"The preset {self.name!r} has lower {self.lower} above upper {self.upper}, but the policy "
                f"{policy.name!r} compares both with one score.",
                hint="Set lower to upper or less in its file.",
            )
        policy = policy.with_thresholds(self.lower, self.upper, self.cutoff)
        return policy if self.sentences is None else policy.with_limit(self.sentences or None)

    def warning(self, now: Conditions) -> str:
        """What has changed since the thresholds were chosen, in one sentence; "" for nothing."""
        changed = self.conditions.changed(now)
        if not changed:
            return ""
        names = " and ".join([", ".join(changed[:-1]), changed[-1]] if changed[1:] else changed)
        return f"Since “{self.name}” was chosen, {names} changed: its thresholds may not fit any more."

    def to_toml(self) -> str:
        """Reads back as the same preset with `parse_preset`; the name is that of the file."""
        plain: dict[str, Any] = to_plain(self)
        conditions = plain.pop("conditions")
        del plain["name"]
        head = [f"{key} = {toml(value)}" for key, value in plain.items() if value is not None]
        rows = [f"{key} = {toml(value)}" for key, value in conditions.items()]
        title = "# Thresholds of CRAG Explorer, chosen with labelled questions."
        return "\n".join([title, *head, "", "[conditions]", *rows, ""])


def preset_of(
    name: str,
    policy: Policy,
    conditions: Conditions,
    labelled: LabelledSet,
    graded: int,
    *,
    reason: str,
    created: str,
) -> TunedPreset:
    """The thresholds of `policy`, with the set that they were chosen on."""
    of_set = (labelled.name, labelled.fingerprint, graded)
    limit = policy.refinement.top or 0
    return TunedPreset(name, policy.name, *policy.thresholds, conditions, *of_set, created, reason, limit)


def parse_preset(text: str, name: str) -> TunedPreset:
    """Raises `BadRecord`, which names the file, the key and what was expected."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"Preset {name!r} is not valid TOML: {error}.") from error
    if "name" in data:
        raise BadRecord(f"preset {name}.name: unknown key.", hint="A preset has the name of its file.")
    known = {key: value for key, value in data.items() if key not in _GONE}
    return from_plain(TunedPreset, known | {"name": name}, f"preset {name}")
