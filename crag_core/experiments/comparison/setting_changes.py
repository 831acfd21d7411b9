"""The differences between two setups, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from crag_core.decision.policy import Policy
from crag_core.experiments.comparison.setup import Setup
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.same_evaluator import made_by
from crag_core.trace.trace import RunSettings

OTHER_DOCUMENTS = "other documents"
OTHER_VERSION = "another version of the program"


def changes(was: Setup, now: Setup) -> tuple[str, ...]:
    """What `was` had that `now` has not, as "other documents" or "4 passages instead of 6"; () for equal ones."""
    if was.fingerprint == now.fingerprint:
        return ()
    # What has no word of its own, such as a setting that a policy did not know, came with the program.
    return (*_documents(was, now), *_settings(was.settings, now.settings), *_web(was, now)) or (OTHER_VERSION,)


def distance(was: Setup, now: Setup) -> tuple[bool, bool, int]:
    """The smaller, the less they differ: whether passages are graded at all weighs most, then which policy it is."""
    then, present = was.settings.policy, now.settings.policy
    return then.fast_path.always != present.fast_path.always, then.name != present.name, len(changes(was, now))


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
        at = "" if was.fast_path.always else f" with {was.lower:.3f} and {was.upper:.3f}"
        yield f"policy {was.title}{at} instead of {now.title}"
        return
    names = ("lower threshold", "upper threshold", "sentence cut-off")
    for name, then, present in zip(names, was.thresholds, now.thresholds, strict=True):
        if then != present:
            yield f"{name} {then:.3f} instead of {present:.3f}"
    texts = {name: getattr(now, name) for name in ("title", "summary", "source", "evaluator", "presets")}
    if replace(was.with_thresholds(*now.thresholds), **texts) != now:
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
    return "their words" if made.support == WORDS else _model(made.support)


def _model(choice: str) -> str:
    return choice.partition("/")[2] or choice


def _asks_a_model(made: RunSettings) -> bool:
    return made.writer != EXTRACTIVE or made.evaluator.calls_model or made.support != WORDS
