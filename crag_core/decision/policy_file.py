"""Reads policies from TOML and from records, in the present form or an earlier one, and writes the present form."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain
from crag_core.decision.policy import CLASS_RULES, Policy
from crag_core.decision.steps import DISCARD, EXPAND, EXTRACT, KEEP, REFINE, WAYS, read_steps, write_steps

ACTIONS = ("correct", "ambiguous", "incorrect")
_WEB = {f"web_{name}": name for name in ("query", "limit", "pages", "on_subject", "seconds", "cooldown")} | {
    "web_query_words": "words",
    "web_query_phrases": "phrases",
    "refine_web": "refine",
}
_RENAMED = {"ungraded_score": "ungraded", "grade_top": "top"}
_SCORES = {"two-signal": "two_signals"}
_ROUTE: dict[str, tuple[str | bool, ...]] = dict.fromkeys(
    ("label", "passages", "drop_below", "web_below_results", "keep_original_without_web", "expand"), ()
) | {"web": ("always", "never", "when-few"), "re_retrieve": ("refine", "next-strategy", True, False)}
"""Keys of the table of an action in the earlier form, with their values where these are words."""
_TABLES = ("strips", "expansion", "loop")
_GONE = ("second_opinion", "web_when_ungraded", "without_model")
"""Keys of the earlier form that have no successor here; `evaluators.cascade` reads twice."""


def parse_policy(text: str, name: str) -> Policy:
    """Read a policy from TOML; `BadRecord` names the file, the key and what was expected."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # besides syntax errors: numbers and nesting without end
        raise BadRecord(f"Policy {name!r} is not valid TOML: {error}.") from error
    if "name" in data:
        raise BadRecord(f"policy {name}.name: unknown key.", hint="A policy has the name of its file.")
    policy = _policy(upgrade(data) | {"name": name}, f"policy {name}")
    for table, key, why in () if _is_old(data) else _without_effect(policy, data):
        place = f"{table}.{key}" if table else key
        raise BadRecord(f"policy {name}.{place}: has no effect, since {why}.", hint="Leave it out, or add the step.")
    return policy


def _policy(data: dict[str, Any], path: str) -> Policy:
    """`weights` may be a table of names and numbers."""
    weights = data.get("weights")
    return from_plain(Policy, data | ({"weights": list(weights.items())} if isinstance(weights, dict) else {}), path)


def upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """A policy in the present form; one with `aggregation` is of the form before, with a table an action."""
    if not _is_old(data):
        return data | {key: read_steps(data[key]) for key in (*ACTIONS, "skip") if key in data}
    known = {key: value for key, value in data.items() if key not in _GONE}
    routes = {key: _table(known, key) for key in ACTIONS}
    score, strips, expansion, loop = known.pop("aggregation"), *(_table(known, name) for name in _TABLES)
    found: dict[str, Any] = {"score": _SCORES.get(str(score), str(score).replace("-", "_"))}
    found |= {new: known.pop(old) for old, new in _RENAMED.items() if old in known}
    found |= {"at_upper": "AMBIGUOUS"} if known.pop("upper_is_exclusive", False) else {}
    found |= {"at_lower": "INCORRECT"} if known.pop("lower_is_inclusive", False) else {}
    found["web"] = {new: known.pop(old) for old, new in _WEB.items() if old in known}
    found["refinement"] = {"budget" if key == "token_budget" else key: value for key, value in strips.items()}
    found["expansion"] = {"max_chunks" if key == "max_passages" else key: value for key, value in expansion.items()}
    found |= {"max_rounds": loop["max_iterations"]} if "max_iterations" in loop else {}
    rules = dict.fromkeys(CLASS_RULES, True) if known.pop("rounds_by_question", False) else {}
    rules |= _table(known, "fast_path")
    rules = {key: value for key, value in rules.items() if value not in (None, False)}
    found["skip"] = [(key, None if value is True else value) for key, value in rules.items()]
    found["labels"] = [str(routes[key].get("label", key.capitalize())) for key in ACTIONS]
    own = known.pop("own_knowledge", 0) if known.pop("consolidate", False) else None
    abstains = known.pop("doubtful", "show") == "abstain"
    for key, route in routes.items():
        found[key] = _steps_of(key, route, loop)
        found[key] += [("consolidate", own)] if own is not None else []
        found[key] += [("abstain", None)] if abstains and key == "ambiguous" else []
    return known | {key: value for key, value in found.items() if value != {}}


def _is_old(data: dict[str, Any]) -> bool:
    return "aggregation" in data


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.pop(key, None)
    if not isinstance(found, dict | None):
        raise BadRecord(f"policy.{key}: expected a table, found {type(found).__name__}.")
    return found or {}


def _steps_of(action: str, route: dict[str, Any], loop: dict[str, Any]) -> list[tuple[str, Any]]:
    for key, value in route.items():
        known = _ROUTE.get(key)
        if known is None:
            raise BadRecord(f"policy.{action}.{key}: unknown key.", hint=f"Known: {', '.join(_ROUTE)}.")
        if known and value is not None and value not in known:
            words = ", ".join(str(word) for word in known if isinstance(word, str))
            raise BadRecord(f"policy.{action}.{key}: expected one of {words}, found {str(value)[:60]!r}.")
    chunks = KEEP if route.get("passages") == "whole" else str(route.get("passages", ""))
    steps: list[tuple[str, Any]] = [(chunks, None)]
    if route.get("drop_below") is not None and chunks != DISCARD:
        steps.append(("drop", route["drop_below"]))
    web = route.get("web")
    if web == "always" or (web == "when-few" and chunks == DISCARD):
        steps.append(("web", None))
    elif web == "when-few":
        steps.append(("web_if_fewer", route.get("web_below_results", 3)))
    again = route.get("re_retrieve")
    if route.get("expand"):
        steps.append((EXPAND, None))
    elif again == "refine" or (again is True and action == "ambiguous"):  # true or false in the first schema
        steps.append(("again", None))
    elif again == "next-strategy" or (again is True and action == "incorrect"):
        steps.append(("again", tuple(loop.get("strategies", WAYS))))
    is_with_web = any(name == "web" or (name == "again" and "web" in (ways or ())) for name, ways in steps)
    if route.get("keep_original_without_web") and chunks == DISCARD and is_with_web:
        steps.append(("keep_if_nothing", None))
    return steps


def _without_effect(policy: Policy, data: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(table, key, why) of what stands in a present-form file and is read by none of its steps."""
    refines = policy.has(REFINE, EXTRACT) or policy.web.refine
    searches = policy.has("web", "web_if_fewer") or any("web" in (s.get("again") or ()) for s in policy.routes.values())
    read = {
        "refinement": {"budget"} if not refines else None,
        "web": None if searches else {"words"} if policy.has("again") else set(),
        "expansion": None if policy.has("expand", "again") else set(),
    }
    why = {"refinement": "no step refines", "web": "no step searches the web", "expansion": "no step expands"}
    for table, keys in read.items():
        yield from ((table, key, why[table]) for key in data.get(table, {}) if keys is not None and key not in keys)
    for key, query in {"words": "rewritten", "phrases": "phrases"}.items():
        is_read = policy.web.query == query or (key == "words" and policy.has("again"))
        if searches and key in data.get("web", {}) and not is_read:
            yield "web", key, f"query is {policy.web.query.value!r}"
    if "weights" in data and policy.score != "signals":
        yield "", "weights", f"the score is {policy.score!r}, not 'signals'"
    if "max_rounds" in data and not policy.has("again"):
        yield "", "max_rounds", "no step retrieves again"


def present_form(text: str) -> str:
    """The TOML of a policy that `parse_policy` reads, without its comments, in the present form."""
    policy = upgrade(tomllib.loads(text))
    for table, key, _ in tuple(_without_effect(_policy(policy | {"name": "policy"}, "policy"), policy)):
        del (policy[table] if table else policy)[key]
    policy |= {key: write_steps(policy[key]) for key in (*ACTIONS, "skip") if policy.get(key)}
    plain = {key: value for key, value in policy.items() if value not in ([], {}, "") and key != "presets"}
    tables = [(f"[{key}]", value) for key, value in plain.items() if isinstance(value, dict)]
    tables += [("[[presets]]", preset) for preset in policy.get("presets", ())]
    lines = [f"{key} = {_toml(value)}" for key, value in policy.items() if key in plain and not isinstance(value, dict)]
    for head, content in tables:
        lines += ["", head, *(f"{key} = {_toml(value)}" for key, value in content.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
