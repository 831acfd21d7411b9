"""Earlier results that can stand beside the present configurations, and the settings that differed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crag_core.experiments.comparison.setting_changes import OTHER_DOCUMENTS, OTHER_VERSION, changes, distance
from crag_core.experiments.comparison.setup import KeptSetup, Setup

_LONGEST = 60


@dataclass(frozen=True)
class Earlier:
    """What was run once under a setup that is none of now.

    `name` has the day, and is the only one of that name. `like` is the configuration of now that it differs least from,
    by `differs`. `asked` holds the keys of those questions of the set that it has and that can still be read.
    """

    kept: KeptSetup
    name: str
    like: str
    differs: tuple[str, ...]
    asked: frozenset[str]

    @property
    def has_other_documents(self) -> bool:
        return OTHER_DOCUMENTS in self.differs

    @property
    def remark(self) -> str:
        """For files of figures, which may be read by somebody who does not know the configurations of now."""
        return f"{self.name} is an earlier result, as it was kept. Unlike {self.like}: {', '.join(self.differs)}."


def earlier_results(
    kept: Iterable[KeptSetup],
    keys: Collection[str],
    now: Mapping[str, Setup],
    at: datetime,
    readable: Callable[[KeptSetup], Collection[str]],
) -> tuple[Earlier, ...]:
    """Those of `kept`, in their order, that hold a question with one of `keys` and are none of `now`, which is by name.

    Days are given in the time zone of `at`, that of the machine where it has none, and with the year in other years.
    `readable` gives the keys of the outcomes that this version can read.
    """
    present = {setup.fingerprint for setup in now.values()}
    others = (one for one in kept if one.fingerprint not in present and not one.keys.isdisjoint(keys))
    found = [(one, asked) for one in others if (asked := frozenset(readable(one)).intersection(keys))]
    names = [f"{_named(one.setup)} · {day_of(one.setup.created, at)}" for one, _ in found]
    counts = Counter([*names, *now])
    return tuple(
        Earlier(one, name if counts[name] == 1 else f"{name} · {one.id}", *_nearest(one.setup, now), asked)
        for (one, asked), name in zip(found, names, strict=True)
    )


def listed(beside: Sequence[Earlier]) -> list[dict[str, Any]]:
    """For files of figures, ready for JSON."""
    return [
        {
            "configuration": one.name,
            "id": one.kept.id,
            "created": one.kept.setup.created,
            "unlike": one.like,
            "differs": list(one.differs),
        }
        for one in beside
    ]


def day_of(created: str, at: datetime) -> str:
    """ "12 Nov 14:03"; "undated" for what is no time."""
    try:
        found = datetime.fromisoformat(created).astimezone(at.tzinfo)
    except (ValueError, OverflowError, OSError):
        return "undated"
    year = "" if found.year == at.year else f" {found.year}"
    return f"{found.day} {found:%b}{year} {found:%H:%M}"


def _named(setup: Setup) -> str:
    name = " ".join(setup.name.split()) or setup.settings.policy.title
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _nearest(was: Setup, now: Mapping[str, Setup]) -> tuple[str, tuple[str, ...]]:
    """The first of those that it differs least from."""
    name = min(now, key=lambda one: distance(was, now[one]))
    return name, changes(was, now[name]) or (OTHER_VERSION,)
