"""Parses configurations to compare, such as "paper,upper=0.8,model=ollama/llama3.2" or "plain"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from crag_core.app.workbench import Choice, Workbench, preset_choice
from crag_core.base.errors import UnknownName, WrongUse, as_typed
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import DEFAULT, PLAIN, default_evaluator, find_policy, load_policies, plain_rag
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE


@dataclass(frozen=True)
class Configuration:
    """`name` is what tables call it."""

    name: str
    choice: Choice


KEYS = (
    "name", "evaluator", "model", "preset", "lower", "upper", "cutoff", "sentences", "doubtful", "web", "top_k",
)  # fmt: skip
_OF_PLAIN = ("name", "model", "top_k")


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
    name, given = _parse(text)
    choice = _choice(name, given, workbench)
    try:
        policy = choice.policy.with_thresholds(*(_number(key, given.get(key)) for key in ("lower", "upper", "cutoff")))
    except ValueError as error:
        raise WrongUse(f"The configuration {text!r} cannot be used: {error}.") from None
    if "sentences" in given:
        policy = policy.with_limit(_limit(given["sentences"]))
    policy = policy.with_doubtful(_doubtful(given.get("doubtful", policy.doubtful)))
    top_k = _count(given["top_k"]) if "top_k" in given else choice.top_k
    chosen = replace(choice, policy=policy, web=_web(given.get("web", WebMode.OFF)), top_k=top_k)
    return Configuration(given.get("name", text.strip()), chosen)


def plain_choice(model: str, top_k: int) -> Choice:
    plain = plain_rag()
    return Choice(plain, plain.evaluator, model, top_k=top_k)


def starting(workbench: Workbench, policy: Policy, evaluator: str, model: str, top_k: int) -> Choice:
    """`policy` with the thresholds to start from for `evaluator`; "": the one that it starts with."""
    judge = evaluator or default_evaluator(policy, model)
    return Choice(workbench.suited(policy, judge), judge, model, top_k=top_k)


def choose(
    workbench: Workbench,
    policy: str | None = None,
    evaluator: str | None = None,
    model: str | None = None,
    preset: str | None = None,
) -> Choice:
    """What options or a configuration name; a preset is one of the policy's file, else a tuned one by name or path."""
    settings = workbench.config
    model = model or settings.model or EXTRACTIVE
    found = find_policy(policy or DEFAULT, settings)
    if preset and preset not in {one.name for one in found.presets}:
        tuned = _tuned_preset(workbench, preset, found)
        with as_typed():
            return preset_choice(workbench, tuned, policy or None, evaluator or None, model)
    choice = starting(workbench, found, evaluator or "", model, settings.top_k)
    return replace(choice, policy=choice.policy.preset(preset)) if preset else choice


def _tuned_preset(workbench: Workbench, name: str, policy: Policy) -> TunedPreset:
    """An unknown name lists those of the policy's file too."""
    try:
        return workbench.find_preset(name)
    except UnknownName:
        if name.endswith(".toml"):  # a file that is not there
            raise
        known = [*(preset.name for preset in policy.presets), *workbench.experiments.preset_names()]
        raise UnknownName.among(f"preset of policy {policy.name!r}", name, known) from None


def _choice(name: str, given: Mapping[str, str], workbench: Workbench) -> Choice:
    settings = workbench.config
    if name == PLAIN:
        if idle := [key for key in KEYS if key in given and key not in _OF_PLAIN]:
            raise WrongUse(
                f"{PLAIN} grades nothing and searches no web: {', '.join(idle)} would change nothing.",
                hint=f"Its keys: {', '.join(_OF_PLAIN)}.",
            )
        return plain_choice(given.get("model") or settings.model or EXTRACTIVE, settings.top_k)
    try:
        find_policy(name, settings)
    except UnknownName:
        raise UnknownName.among("policy", name, (*load_policies(settings=settings)[0], PLAIN)) from None
    return choose(workbench, name, given.get("evaluator"), given.get("model"), given.get("preset"))


def _parse(text: str) -> tuple[str, dict[str, str]]:
    """(the name of the policy, the values by key)"""
    policy, *others = (part.strip() for part in text.split(","))
    if not policy or "=" in policy:
        raise WrongUse(
            f"Expected a configuration such as “paper” or “paper,upper=0.8”, found {text!r}.",
            hint=f"Begin with the name of a policy, or with {PLAIN}.",
        )
    given: dict[str, str] = {}
    for part in others:
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not value or key not in KEYS:
            near = () if key in KEYS else get_close_matches(key, KEYS, n=1)
            guess = f"Did you mean {near[0]}? " if near else ""
            raise WrongUse(f"{text!r}: expected key=value, found {part!r}.", hint=f"{guess}Keys: {', '.join(KEYS)}.")
        if key in given:
            raise WrongUse(f"{text!r}: expected {key} once, found {given[key]!r} and {value!r}.")
        given[key] = value
    return policy, given


def _number(key: str, text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise WrongUse(f"{key}: expected a number from 0 to 1, found {text!r}.") from None


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 20:
        raise WrongUse(f"top_k: expected a whole number from 1 to 20, found {text!r}.")
    return int(text)


def _limit(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise WrongUse(f"sentences: expected a whole number from 1, or all, found {text!r}.")
    return int(text)


def _doubtful(text: str) -> Doubtful:
    if text not in list(Doubtful):
        raise WrongUse(f"doubtful: expected {' or '.join(Doubtful)}, found {text!r}.")
    return Doubtful(text)


def _web(text: str) -> WebMode:
    if text not in (WebMode.AUTO, WebMode.OFF):
        raise WrongUse(f"web: expected auto or off, since there is nobody to ask, found {text!r}.")
    return WebMode(text)
