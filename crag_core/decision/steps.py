"""The words in which a policy is written: steps of an action, rules that skip grading, and what may stand together."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from crag_core.base.types.decisions import Action
from crag_core.decision.crag import OF_ALL, SKIP, Routing, Steps

KEEP, REFINE, EXTRACT, DISCARD, DOCUMENTS = CHUNKS = ("keep", "refine", "extract", "discard", "documents")
EXPAND = "expand"  # the round that retrieves with an expanded question too, and fuses both
WIDENING = (EXPAND, DOCUMENTS)  # rounds that change the evidence after the decision, which stands
WAYS = ("keyword", "rewritten", "expanded", "web")
"""Ways to retrieve again, in the words of the policy files; the first retrieval is always hybrid."""

_SHARE, _COUNT, _NUMBER, _LIST = "a number in 0..1", "a whole number from 1", "a whole number from 0", "a list of ways"
STEPS: dict[str, str] = {
    **dict.fromkeys(CHUNKS, ""),
    "drop": _SHARE,
    "web": "",
    "web_if_fewer": _COUNT,
    "expand": "",
    "again": _LIST,
    "keep_if_nothing": "",
    "consolidate": _NUMBER,
    "abstain": "",
}
"""Every step with the argument that it takes, "": none. `again` without one: retrieve more with refined keywords."""
RULES: dict[str, str] = dict.fromkeys(SKIP, "") | {"few_context": _COUNT, "high_vector_score": _SHARE}


def read_steps(given: Any) -> Any:
    """A list of names and `{name = argument}` tables as pairs; anything else as it is, for `check_steps` to refuse."""
    if not isinstance(given, list | tuple):
        return given
    pairs: list[Any] = []
    for one in given:
        if isinstance(one, str):
            pairs.append((one, None))
        elif isinstance(one, dict):
            pairs += ((name, tuple(value) if isinstance(value, list) else value) for name, value in one.items())
        else:
            pairs.append(one)
    return pairs


def write_steps(steps: Steps) -> list[Any]:
    return [
        name if value is None else {name: list(value) if isinstance(value, tuple) else value} for name, value in steps
    ]


def check_rules(policy: Routing) -> None:
    _check("skip", policy.skip, RULES)


def check_steps(policy: Routing, action: Action) -> None:
    """ValueError where a step is unknown, has another argument than it takes, or no effect beside the others."""
    key, steps = action.lower(), policy.steps(action)
    _check(key, getattr(policy, action.lower()), STEPS)
    names = list(steps)
    if not names or names[0] not in CHUNKS or sum(name in CHUNKS for name in names) != 1:
        raise ValueError(f"{key} begins with one of {', '.join(CHUNKS)}, found {', '.join(names) or 'no step'}")
    first, ways = names[0], steps.get("again") or ()
    searches = "web" in steps or "web" in ways
    wrong = {
        "drop has no effect: discard drops every chunk": "drop" in steps and first == DISCARD,
        "drop has no effect: lower drops chunks": "drop" in steps and policy.score == "mean_of_kept",
        "web_if_fewer has no effect beside web": "web_if_fewer" in steps and "web" in steps,
        "web_if_fewer has no effect beside discard: write web": "web_if_fewer" in steps and first == DISCARD,
        "expand and again are two ways to retrieve again: keep one": {"expand", "again"} <= steps.keys(),
        f"again needs the score of single chunks; {policy.score} measures one retrieval": (
            "again" in steps and policy.score in OF_ALL
        ),
        "keep_if_nothing needs discard and a web search": (
            "keep_if_nothing" in steps and not (first == DISCARD and searches)
        ),
        "abstain belongs to ambiguous": "abstain" in steps and action is not Action.AMBIGUOUS,
        "documents needs the score whole_context or best": first == DOCUMENTS and policy.score == "signals",
    }
    for what, is_so in wrong.items():
        if is_so:
            raise ValueError(f"{key}: {what}, found {', '.join(names)}")


def _check(key: str, steps: Steps, known: dict[str, str]) -> None:
    for one in steps:
        if not isinstance(one, tuple) or len(one) != 2 or not isinstance(one[0], str):
            raise ValueError(f"{key} is a list of names or of {{name = argument}}, found {str(one)[:60]!r}")
    names = [name for name, _ in steps]
    for name, value in steps:
        if name not in known:
            raise ValueError(f"{key}: {name!r} is no step. {_near(name, known)}")
        if names.count(name) > 1:
            raise ValueError(f"{key}: {name} stands there {names.count(name)} times; once is enough")
        if not _fits(known[name], value):
            wanted = f"{{{name} = {known[name]}}}" if known[name] else f"{name!r} without an argument"
            raise ValueError(f"{key}: expected {wanted}, found {name} = {str(value)[:60]}")
        for way in value if isinstance(value, tuple) else ():
            if way not in WAYS:
                raise ValueError(f"{key}: {str(way)[:60]!r} is no way to retrieve again. {_near(str(way), WAYS)}")


def _fits(kind: str, value: Any) -> bool:
    if kind == _LIST:
        return value is None or (isinstance(value, tuple) and 0 < len(value) == len(set(map(str, value))))
    if kind == _SHARE:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0
    if kind in (_COUNT, _NUMBER):
        return isinstance(value, int) and not isinstance(value, bool) and value >= (kind == _COUNT)
    return value is None


def _near(name: str, known: Iterable[str]) -> str:
    names: Collection[str] = tuple(known)
    near = get_close_matches(name, names, n=1)
    return f"{f'Did you mean {near[0]!r}? ' if near else ''}Known: {', '.join(names)}"
