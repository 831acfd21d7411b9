"""Parses configurations to compare, such as "paper,upper=0.8,model=ollama/llama3.2" or "plain"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from crag_core.app.choice import Choice, Request, choose
from crag_core.app.workbench import Workbench
from crag_core.base.errors import UnknownName, WrongUse
from crag_core.decision.policy import Doubtful
from crag_core.evaluators.policies import PLAIN, find_policy, load_policies


@dataclass(frozen=True)
class Configuration:
    """`name` is what tables call it."""

    name: str
    choice: Choice


def _whole(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise ValueError(text)
    return int(text)


_WEB = {"auto": "auto", "off": "off"}
_READ: dict[str, tuple[Callable[[str], Any], str]] = {
    "name": (str, ""),
    "evaluator": (str, ""),
    "model": (str, ""),
    "preset": (str, ""),
    "lower": (float, "a number from 0 to 1"),
    "upper": (float, "a number from 0 to 1"),
    "cutoff": (float, "a number from 0 to 1"),
    "sentences": (lambda text: 0 if text == "all" else _whole(text, 10**6), "a whole number from 1, or all"),
    "doubtful": (Doubtful, " or ".join(Doubtful)),
    "web": (_WEB.__getitem__, "auto or off, since there is nobody to ask"),
    "top_k": (lambda text: _whole(text, 20), "a whole number from 1 to 20"),
}
"""How the value of each key is read, and what is expected."""
KEYS = tuple(_READ)


def read_configurations(texts: Sequence[str], workbench: Workbench) -> tuple[Configuration, ...]:
    """In the order given, under different names; `CragError` tells what cannot be used."""
    found = tuple(read_configuration(text, workbench) for text in texts)
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise WrongUse(f"Two configurations are called {name!r}.", hint="Give one another name: paper,name=strict")
    return found


def read_configuration(text: str, workbench: Workbench) -> Configuration:
    """`text` is a policy, or "plain", and what is to be different, as key=value with commas between."""
    policy, *parts = (part.strip() for part in text.split(","))
    if not policy or "=" in policy:
        raise WrongUse(
            f"Expected a configuration such as “paper” or “paper,upper=0.8”, found {text!r}.",
            hint=f"Begin with the name of a policy, or with {PLAIN}.",
        )
    given: dict[str, Any] = {}
    for part in parts:
        key, value = _parse(part, text)
        if key in given:
            raise WrongUse(f"{text!r}: expected {key} once, found {given[key]!r} and {value!r}.")
        given[key] = value
    name = given.pop("name", text.strip())
    if policy == PLAIN:
        return Configuration(name, choose(workbench, Request(**given, plain=True)))
    try:
        find_policy(policy, workbench.config)
    except UnknownName:
        known = (*load_policies(settings=workbench.config)[0], PLAIN)
        raise UnknownName.among("policy", policy, known) from None
    return Configuration(name, choose(workbench, Request(policy, **given)))


def _parse(part: str, text: str) -> tuple[str, Any]:
    key, _, value = (piece.strip() for piece in part.partition("="))
    if not value or key not in KEYS:
        near = () if key in KEYS else get_close_matches(key, KEYS, n=1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise WrongUse(f"{text!r}: expected key=value, found {part!r}.", hint=f"{guess}Keys: {', '.join(KEYS)}.")
    read, expected = _READ[key]
    try:
        return key, read(value)
    except (ValueError, KeyError):
        raise WrongUse(f"{key}: expected {expected}, found {value!r}.") from None
