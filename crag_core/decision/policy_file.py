"""Reads a policy from TOML; unknown keys are refused, and those that change nothing beside the others."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain
from crag_core.base.types import Action, Handling
from crag_core.decision.policy import Again, Aggregation, Policy, Route, WebQuery, WebUse


def parse_policy(text: str, name: str) -> Policy:
    """Read a policy from TOML; `BadRecord` names the file, the key and what was expected."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # besides syntax errors: numbers and nesting without end
        raise BadRecord(f"Policy {name!r} is not valid TOML: {error}.") from error
    if "name" in data:
        raise BadRecord(f"policy {name}.name: unknown key.", hint="A policy has the name of its file.")
    policy = from_plain(Policy, data | {"name": name}, f"policy {name}")
    _check_effect(policy, data)
    return policy


@dataclass(frozen=True)
class _Rule:
    """`keys` count where `counts`; else, since `lacks`, they change nothing, and `needs` would make them count."""

    keys: tuple[str, ...]
    counts: Callable[[Policy, Route], bool]
    lacks: str
    needs: str


def _some(policy: Policy, holds: Callable[[Route], bool]) -> bool:
    return any(holds(policy.route(action)) for action in Action)


def _may_search(policy: Policy, route: Route) -> bool:
    moves_on = policy.retrieves_from_web and route.re_retrieve is Again.NEXT_STRATEGY
    return route.web is not WebUse.NEVER or moves_on


def _searches(policy: Policy, _: Route) -> bool:
    return _some(policy, lambda route: _may_search(policy, route))


def _refines(policy: Policy, _: Route) -> bool:
    refining = (Handling.REFINE, Handling.EXTRACT)
    return _some(policy, lambda route: route.passages in refining) or (policy.refine_web and _searches(policy, _))


def _retrieves_again(policy: Policy, _: Route) -> bool:
    return _some(policy, lambda route: route.re_retrieve is not None)


_OF_ROUTES = (
    _Rule(
        ("web_below_results",),
        lambda _, route: route.web is WebUse.WHEN_FEW,
        'web is not "when-few" here',
        'web = "when-few"',
    ),
    _Rule(
        ("keep_original_without_web",),
        _may_search,
        "the web is never asked here",
        'web = "always"',
    ),
    _Rule(
        ("drop_below",),
        lambda policy, route: route.passages is not Handling.DISCARD and policy.aggregation != Aggregation.MEAN_OF_KEPT,
        'all chunks are discarded here, or `lower` drops them (aggregation "mean-of-kept")',
        'passages = "whole" or "refine"',
    ),
)
_OF_POLICIES = (
    _Rule(
        ("strips.cutoff", "strips.order", "strips.top", "strips.scorer", "presets.cutoff"),
        _refines,
        "no action refines",
        'passages = "refine" in a route, or refine_web = true',
    ),
    _Rule(
        ("strips.scorer",),
        lambda policy, _: policy.strips.cutoff is not None,
        "there is no cut-off of the file's own",
        "cutoff in [strips]",
    ),
    _Rule(
        ("web_limit", "web_pages", "web_query", "web_seconds", "web_cooldown", "refine_web", "web_on_subject"),
        _searches,
        "no action asks the web",
        'web = "always" or "when-few" in a route',
    ),
    _Rule(
        ("web_query_phrases",),
        lambda policy, _: policy.web_query is WebQuery.PHRASES and _searches(policy, _),
        "the web is not asked for key phrases",
        'web_query = "phrases" and a route that asks the web',
    ),
    _Rule(
        ("web_query_words",),
        lambda policy, _: (
            (policy.web_query is WebQuery.REWRITTEN and _searches(policy, _))
            or _some(policy, lambda route: route.re_retrieve is Again.REFINE)
        ),
        "no query is rewritten",
        'web_query = "rewritten" and a route that asks the web, or re_retrieve = "refine"',
    ),
    _Rule(
        ("weights",),
        lambda policy, _: policy.aggregation is Aggregation.SIGNALS,
        "no signals are weighed",
        'aggregation = "signals"',
    ),
    _Rule(
        ("context_judge",),
        lambda policy, _: policy.judges_together,
        "the chunks are not judged together",
        'aggregation = "whole-context"',
    ),
    _Rule(("loop",), _retrieves_again, "no action retrieves again", "re_retrieve in a route"),
    _Rule(
        ("expansion",),
        lambda policy, _: _some(policy, lambda route: route.expand) or _retrieves_again(policy, _),
        "no question is expanded",
        "expand = true in a route",
    ),
)


def _check_effect(policy: Policy, data: Mapping[str, Any]) -> None:
    """Raises `BadRecord` for a key of `data`, the file of `policy`, that changes nothing, and says what would.

    What switches a thing off (false) may always be said.
    """
    tables: list[tuple[str, Mapping[str, Any], Route, tuple[_Rule, ...]]] = [("", data, policy.correct, _OF_POLICIES)]
    tables += [(action.lower(), data[action.lower()], policy.route(action), _OF_ROUTES) for action in Action]
    for name, table, route, rules in tables:
        for rule in rules:
            for key in rule.keys:
                if any(_given(table, key)) and not rule.counts(policy, route):
                    path = ".".join(filter(None, (f"policy {policy.name}", name, key)))
                    hint = f"It counts with {rule.needs}: set that, or leave the key out."
                    raise BadRecord(f"{path}: no effect, since {rule.lacks}.", hint=hint)


def _given(table: Any, key: str) -> Iterator[bool]:
    """Whether each value under a dotted key is there and not false; a list of tables has several."""
    first, _, rest = key.partition(".")
    if isinstance(table, list):
        for one in table:
            yield from _given(one, key)
    elif isinstance(table, Mapping) and first in table:
        if rest:
            yield from _given(table[first], rest)
        else:
            yield table[first] is not False
