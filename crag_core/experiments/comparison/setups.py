"""Setups of a comparison, the differences between two in words, and earlier results beside the present ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from crag_core.base import serialization
from crag_core.base.text.display import limit_text
from crag_core.decision.policy import Policy
from crag_core.trace.grounding.checkers import asks_language_model
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.opinions import made_by
from crag_core.trace.trace import RunSettings, upgraded_settings

OTHER_DOCUMENTS = "other documents"
OTHER_VERSION = "another version of the program"
_LONGEST = 60


@dataclass(frozen=True)
class Setup:
    """`corpus` is the fingerprint of the index. `web`: "" for no search, the fingerprint of an offline web,
    or the names of the providers, whose answers may be others tomorrow. `name` and `created` are for people."""

    settings: RunSettings
    corpus: str
    web: str = ""
    name: str = ""
    created: str = ""

    @property
    def fingerprint(self) -> str:
        return serialization.fingerprint((self.settings, self.corpus, self.web))


def read_setup(plain: Any) -> Setup:
    """A setup from a record of this version or an earlier one; raises `BadRecord`."""
    known = plain | {"settings": upgraded_settings(plain.get("settings"))} if isinstance(plain, dict) else plain
    return serialization.from_plain(Setup, known, "setup")


@dataclass(frozen=True)
class KeptSetup:
    """A setup that outcomes are kept under, with the `keys` of their questions.

    `fingerprint` is the one of then: a version that knows other settings gives the same `setup` another one.
    """

    setup: Setup
    fingerprint: str
    keys: frozenset[str]

    @property
    def id(self) -> str:
        """Short, for people to name it by."""
        return self.fingerprint[:8]


# --- differences in words ---------------------------------------------------------------------------------------------


def changes(was: Setup, now: Setup) -> tuple[str, ...]:
    """What `was` had that `now` has not, as "other documents" or "4 passages instead of 6"; () for equal ones."""
    if was.fingerprint == now.fingerprint:
        return ()
    # What has no word of its own, such as a setting that a policy did not know, came with the program.
    return (*_documents(was, now), *_settings(was.settings, now.settings), *_web(was, now)) or (OTHER_VERSION,)


def distance(was: Setup, now: Setup) -> tuple[bool, bool, int]:
    """The smaller, the less they differ: whether passages are graded at all weighs most, then which policy it is."""
    then, present = was.settings.policy, now.settings.policy
    return then.is_plain != present.is_plain, then.name != present.name, len(changes(was, now))


def _documents(was: Setup, now: Setup) -> Iterator[str]:
    if was.corpus != now.corpus:
        yield OTHER_DOCUMENTS


def _settings(was: RunSettings, now: RunSettings) -> Iterator[str]:
    yield from _policy(was.policy, now.policy)
    yield from _evaluators(was, now)
    if was.writer != now.writer:
        yield f"{_writer(was)} instead of {_writer(now)}"
    elif was.writer_version != now.writer_version and was.writer_version and now.writer_version:
        yield f"{_model(was.writer)} in another version, {was.writer_version}"
    if was.top_k != now.top_k:
        yield f"{was.top_k} {'chunk' if was.top_k == 1 else 'chunks'} instead of {now.top_k}"
    if (was.pinned, was.search_too) != (now.pinned, now.search_too):
        yield "other pinned files"
    if was.collection != now.collection:
        yield f"searched in {_where(was)} instead of {_where(now)}"
    if was.support != now.support:
        yield f"answers checked by {_checker(was)} instead of by {_checker(now)}"
    if was.embedding != now.embedding:
        yield f"embedding model {was.embedding} instead of {now.embedding}"
    if was.prompts != now.prompts and _asks_a_model(was):
        yield "other prompts"
    if was.version != now.version:
        yield f"{OTHER_VERSION}, {was.version}"


def _where(settings: RunSettings) -> str:
    return f"the collection {settings.collection!r}" if settings.collection else "all collections"


def _policy(was: Policy, now: Policy) -> Iterator[str]:
    if was.name != now.name:
        at = "" if was.is_plain else f" with {was.lower:.3f} and {was.upper:.3f}"
        yield f"policy {was.title}{at} instead of {now.title}"
        return
    names = ("lower threshold", "upper threshold", "sentence cut-off")
    for name, then, present in zip(names, was.thresholds, now.thresholds, strict=True):
        if then != present:
            yield f"{name} {then:.3f} instead of {present:.3f}"
    if was.refinement.top != now.refinement.top:
        yield f"{limit_text(was.refinement.top)} instead of {limit_text(now.refinement.top)}"
    if was.doubtful is not now.doubtful:
        yield f"doubtful endings “{was.doubtful}” instead of “{now.doubtful}”"
    told = {name: getattr(now, name) for name in ("title", "summary", "source", "evaluator", "presets")}
    bare = [policy.with_thresholds(0.0, 1.0, 0.0).with_limit(None) for policy in (was, now)]
    if replace(bare[0].with_doubtful(now.doubtful), **told) != bare[1]:
        yield "other rules in the policy"


def _evaluators(was: RunSettings, now: RunSettings) -> Iterator[str]:
    if was.evaluator.name != now.evaluator.name:
        yield f"evaluator {was.evaluator.title} instead of {now.evaluator.title}"
    elif was.evaluator.version != now.evaluator.version:
        yield f"another version of the evaluator {was.evaluator.title}"
        if (was.evaluator.version, now.evaluator.version) == (was.strip_evaluator.version, now.strip_evaluator.version):
            return  # it scores sentences too
    if made_by(was.strip_evaluator) != made_by(now.strip_evaluator):
        yield "another scorer of sentences"


def _web(was: Setup, now: Setup) -> Iterator[str]:
    if bool(was.web) != bool(now.web):
        yield "web search on" if was.web else "web search off"
    elif was.web != now.web:
        yield "another web search"
    elif was.settings.web_mode != now.settings.web_mode:
        yield f"web search “{was.settings.web_mode}”"


def _writer(made: RunSettings) -> str:
    return "quotations" if made.writer == EXTRACTIVE else f"answers by {_model(made.writer)}"


def _checker(made: RunSettings) -> str:
    if asks_language_model(made.support):
        return _model(made.support)
    return "their words" if made.support == WORDS else made.support


def _model(choice: str) -> str:
    return choice.partition("/")[2] or choice


def _asks_a_model(made: RunSettings) -> bool:
    return made.writer != EXTRACTIVE or made.evaluator.calls_model or asks_language_model(made.support)


# --- earlier results --------------------------------------------------------------------------------------------------


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
