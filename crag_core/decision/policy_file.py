"""Reads policies from TOML and from records, in the present form or an earlier one, and writes the present form."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain
from crag_core.base.text.display import clean
from crag_core.decision.policy import CLASS_RULES, Policy, WebQuery
from crag_core.decision.steps import DISCARD, EXPAND, EXTRACT, KEEP, REFINE, WAYS, read_steps, write_steps

ACTIONS = ("correct", "ambiguous", "incorrect")
_WEB = {f"web_{name}": name for name in ("query", "limit", "pages", "on_subject", "seconds", "cooldown")} | {
    "web_query_words": "words",
    "web_query_phrases": "phrases",
    "refine_web": "refine",
}
_RENAMED = {"ungraded_score": "ungraded", "grade_top": "top"}
_SCORES = {"two-signal": "two_signals"}
_ROUTE = {
    "label", "passages", "drop_below", "web", "web_below_results", "keep_original_without_web", "expand", "re_retrieve",
}  # fmt: skip
_WORDS = {"web": ("always", "never", "when-few"), "re_retrieve": ("refine", "next-strategy", True, False)}
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
    for key, why, needs in () if _is_old(data) else _without_effect(policy, data):
        hint = f"It counts with {needs}: set that, or leave the key out."
        raise BadRecord(f"policy {name}.{key}: no effect, since {why}.", hint=hint)
    return policy


def _policy(data: dict[str, Any], path: str) -> Policy:
    weights = data.get("weights")
    return from_plain(Policy, data | ({"weights": list(weights.items())} if isinstance(weights, dict) else {}), path)


def upgrade(data: dict[str, Any]) -> dict[str, Any]:
    """A policy in the present form; one with `aggregation` is of the form before, with a table an action."""
    if not _is_old(data):
        return data | {key: read_steps(data[key]) for key in (*ACTIONS, "skip") if key in data}
    try:
        return _upgraded(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {clean(str(error))}"
        raise BadRecord(
            f"policy: not of the form that earlier versions wrote ({why}).", hint="Write it as lists of steps."
        ) from error


def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in data.items() if key not in _GONE}
    routes = {key: known.pop(key, None) or {} for key in ACTIONS}
    score, strips, expansion, loop = known.pop("aggregation"), *(known.pop(name, None) or {} for name in _TABLES)
    found: dict[str, Any] = {"score": _SCORES.get(str(score), str(score).replace("-", "_"))}
    found |= {new: known.pop(old) for old, new in _RENAMED.items() if old in known}
    found |= {"at_upper": "AMBIGUOUS"} if known.pop("upper_is_exclusive", False) else {}
    found |= {"at_lower": "INCORRECT"} if known.pop("lower_is_inclusive", False) else {}
    found["web"] = {new: known.pop(old) for old, new in _WEB.items() if old in known}
    found["refinement"] = {"budget" if key == "token_budget" else key: value for key, value in strips.items()}
    found["expansion"] = {"max_chunks" if key == "max_passages" else key: value for key, value in expansion.items()}
    found |= {"max_rounds": loop["max_iterations"]} if "max_iterations" in loop else {}
    rules = dict.fromkeys(CLASS_RULES, True) if known.pop("rounds_by_question", False) else {}
    rules |= known.pop("fast_path", None) or {}
    rules = {key: value for key, value in rules.items() if value not in (None, False)}
    found["skip"] = [(key, None if value is True else value) for key, value in rules.items()]
    found["labels"] = [str(routes[key].get("label", key.capitalize())) for key in ACTIONS]
    own, consolidates = known.pop("own_knowledge", 0), known.pop("consolidate", False)
    abstains = known.pop("doubtful", "show") == "abstain"
    for key, route in routes.items():
        found[key] = _steps_of(key, route, loop)
        found[key] += [("consolidate", own)] if consolidates else []
        found[key] += [("abstain", None)] if abstains and key == "ambiguous" else []
    return known | {key: value for key, value in found.items() if value != {}}


def _is_old(data: dict[str, Any]) -> bool:
    return "aggregation" in data


def _steps_of(action: str, route: dict[str, Any], loop: dict[str, Any]) -> list[tuple[str, Any]]:
    if unknown := route.keys() - _ROUTE:
        raise ValueError(f"{action}: unknown key {min(unknown)!r}")
    for key, words in _WORDS.items():
        if route.get(key) not in (None, *words):
            raise ValueError(f"{action}: unknown word {route[key]!r} for {key}")
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
    """(key, why, what it needs) of what stands in a present-form file and is read by none of its steps."""
    searches = policy.has("web", "web_if_fewer") or any("web" in (s.get("again") or ()) for s in policy.routes.values())
    refines = policy.has(REFINE, EXTRACT) or (policy.web.refine and searches)
    again, query = policy.has("again"), policy.web.query
    refining = (refines, "no step refines", "the step refine or extract, or refine = true in [web]")
    rewriting = 'query = "rewritten" in [web] and the step web, or the step again'
    asking = 'query = "phrases" in [web] and the step web'
    rewrites, asks = again or (searches and query is WebQuery.REWRITTEN), searches and query is WebQuery.PHRASES
    counts = {
        "refinement.budget": (True, "", ""),
        "refinement": refining,
        "presets.cutoff": refining,
        "web.words": (rewrites, "no query is rewritten", rewriting),
        "web.phrases": (asks, "the web is not asked for key phrases", asking),
        "web": (searches, "no step searches the web", "the step web or web_if_fewer"),
        "expansion": (again or policy.has("expand"), "no step expands", "the step expand"),
        "weights": (policy.score == "signals", "no signals are weighed", 'score = "signals"'),
        "context_judge": (policy.judges_together, "the chunks are not judged together", 'score = "whole_context"'),
        "max_rounds": (again, "no step retrieves again", "the step again"),
    }
    for key in _keys(data):
        does, why, needs = counts.get(key) or counts.get(key.partition(".")[0], (True, "", ""))
        if does and key == "refinement.scorer":
            does, why, needs = "cutoff" in data["refinement"], "there is no cut-off of the file's own", "cutoff"
        if not does:
            yield key, why, needs


def _keys(data: dict[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        tables = value if isinstance(value, list) else [value]
        inner = [one for one in tables if isinstance(one, dict)] if key != "weights" else []
        yield from dict.fromkeys(f"{key}.{one}" for table in inner for one in table if table[one] is not False)
        if not inner and value not in (False, {}):
            yield key


def present_form(text: str) -> str:
    """The TOML of a policy that `parse_policy` reads, without its comments, in the present form."""
    policy = upgrade(tomllib.loads(text))
    for place, _, _ in tuple(_without_effect(_policy(policy | {"name": "policy"}, "policy"), policy)):
        table, _, key = place.rpartition(".")
        for one in policy[table] if table == "presets" else [policy[table] if table else policy]:
            one.pop(key, None)
    policy |= {key: write_steps(policy[key]) for key in (*ACTIONS, "skip") if policy.get(key)}
    plain = {key: value for key, value in policy.items() if value not in ([], {}, "") and key != "presets"}
    tables = [(f"[{key}]", value) for key, value in plain.items() if isinstance(value, dict)]
    tables += [("[[presets]]", preset) for preset in policy.get("presets", ())]
    lines = [f"{key} = {toml(value)}" for key, value in policy.items() if key in plain and not isinstance(value, dict)]
    for head, content in tables:
        lines += ["", head, *(f"{key} = {toml(value)}" for key, value in content.items())]
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
