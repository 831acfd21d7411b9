"""What somebody asks for, by options, JSON or a line of text, and the choice under which a run is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from crag_core.base.errors import BadRecord, UnknownName, WrongUse, as_typed
from crag_core.base.serialization import from_texts
from crag_core.base.types.decisions import Action
from crag_core.decision.policy import Doubtful, Policy
from crag_core.evaluators.policies import (
    DEFAULT,
    PLAIN,
    default_evaluator,
    known_card,
    load_policies,
    plain_rag,
)
from crag_core.pipeline.call_budget import Calls, budget
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

if TYPE_CHECKING:
    from crag_core.app.workbench import Workbench
    from crag_core.experiments.thresholds.preset import TunedPreset


@dataclass(frozen=True)
class Choice:
    """What a user chose for one run. `model` is "extractive", "ollama/NAME" or "openai/NAME".

    `pinned` are ids of documents to be read whole; the corpus is searched beside them only with `search_too`.
    `collection` is the one to search, "": all.
    """

    policy: Policy
    evaluator: str
    model: str = EXTRACTIVE
    web: WebMode = WebMode.OFF
    top_k: int = 6
    pinned: tuple[str, ...] = ()
    search_too: bool = False
    collection: str = ""

    def calls_by_action(self, *, condenses: bool = False) -> dict[Action, Calls]:
        """The model calls of a question, by the action that it ends with; `condenses`: it follows others."""
        searched = self.top_k if self.search_too or not self.pinned else 0
        return budget(
            self.policy,
            known_card(self.evaluator),
            len(self.pinned) + searched,
            writer=self.model != EXTRACTIVE,
            searches=self.web is not WebMode.OFF,
            condenses=condenses,
        )


Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Request:
    """What is named. None is left to the policy, to the settings, or to the choice that a service was started with.

    `preset` is one of the policy's file, else a tuned one by name or path. `sentences` 0: no limit.
    """

    policy: str | None = None
    preset: str | None = None
    evaluator: str | None = None
    model: str | None = None
    lower: Share | None = None
    upper: Share | None = None
    cutoff: Share | None = None
    sentences: Annotated[int, Field(ge=0), BeforeValidator(lambda text: 0 if text == "all" else text)] | None = None
    doubtful: Doubtful | None = None
    web: WebMode | None = None
    top_k: Annotated[int, Field(ge=1, le=20)] | None = None
    collection: str | None = None
    plain: bool = False

    @classmethod
    def of(cls, given: object) -> Request:
        """The attributes of these names: of parsed options, or of a request to the service."""
        return cls(**{name: value for name in cls.__match_args__ if (value := getattr(given, name, None)) is not None})


_OF_GRADING = ("policy", "preset", "evaluator", "lower", "upper", "cutoff", "sentences", "doubtful", "web")


def choose(workbench: Workbench, asked: Request, started: Choice | None = None) -> Choice:
    """Raises `CragError` for what cannot be had; a tuned preset brings policy, evaluator and number of chunks."""
    settings = workbench.config
    usual = started or plain_choice(settings.model or EXTRACTIVE, settings.top_k)
    if asked.plain:
        if idle := [name for name in _OF_GRADING if getattr(asked, name) not in (None, WebMode.OFF)]:
            raise WrongUse(
                f"Plain RAG grades nothing and searches no web: {', '.join(idle)} would change nothing.",
                hint="Leave out either.",
            )
        chosen = plain_choice(asked.model or usual.model, usual.top_k)
    else:
        chosen = _judged(workbench, asked, replace(usual, model=asked.model or usual.model), is_default=not started)
        chosen = replace(chosen, policy=with_thresholds(chosen.policy, asked), web=WebMode(asked.web or usual.web))
    return replace(chosen, top_k=asked.top_k or chosen.top_k, collection=asked.collection or usual.collection)


def _judged(workbench: Workbench, asked: Request, usual: Choice, *, is_default: bool) -> Choice:
    name = asked.policy or (DEFAULT if is_default else usual.policy.name)
    is_same = not is_default and name == usual.policy.name
    if is_same and not asked.preset and asked.evaluator in (None, usual.evaluator):
        return usual
    policy = workbench.policy(name)
    if asked.preset and asked.preset not in {one.name for one in policy.presets}:
        tuned = _tuned_preset(workbench, asked.preset, policy)
        with as_typed():
            return _preset_choice(workbench, tuned, asked, usual.model)
    judge = asked.evaluator or (usual.evaluator if is_same else default_evaluator(policy, usual.model))
    suited = workbench.suited(policy, judge)
    return replace(usual, policy=suited.preset(asked.preset) if asked.preset else suited, evaluator=judge)


def plain_choice(model: str, top_k: int) -> Choice:
    plain = plain_rag()
    return Choice(plain, plain.evaluator, model, top_k=top_k)


def with_thresholds(policy: Policy, asked: Any) -> Policy:
    """With `lower`, `upper`, `cutoff`, `sentences` and, where it has it, `doubtful` of `asked`; raises `WrongUse`."""
    try:
        policy = policy.with_thresholds(asked.lower, asked.upper, asked.cutoff)
    except ValueError as error:
        raise WrongUse(f"{error}.", hint="Name both thresholds so that they fit the policy.") from None
    if asked.sentences is not None:
        policy = policy.with_limit(asked.sentences or None)
    return policy.with_doubtful(Doubtful(getattr(asked, "doubtful", None) or policy.doubtful))


def _tuned_preset(workbench: Workbench, name: str, policy: Policy) -> TunedPreset:
    """An unknown name lists those of the policy's file too."""
    try:
        return workbench.find_preset(name)
    except UnknownName:
        if name.endswith(".toml"):  # a file that is not there
            raise
        known = [*(preset.name for preset in policy.presets), *workbench.experiments.preset_names()]
        raise UnknownName.among("preset", name, known, of=f" of policy {policy.name!r}") from None


def _preset_choice(workbench: Workbench, preset: TunedPreset, asked: Request, model: str) -> Choice:
    """Raises `BadRecord` where a policy or evaluator is named that it was not chosen for."""
    chosen = preset.applied_to(workbench.policy(asked.policy or preset.policy))
    judge = preset.conditions.evaluator
    if asked.evaluator not in (None, judge):
        raise BadRecord(
            f"The preset {preset.name!r} was chosen for the evaluator {judge!r}, not for {asked.evaluator!r}.",
            hint="Thresholds belong to an evaluator: tune for this one too.",
        )
    known_card(judge)
    return Choice(chosen, judge, model, top_k=preset.conditions.top_k)


# --- as text: "paper,upper=0.8,model=ollama/llama3.2" or "plain" ------------------------------------------------------


@dataclass(frozen=True)
class Configuration:
    """`name` is what tables call it."""

    name: str
    choice: Choice


KEYS = ("name", "evaluator", "model", "preset", "lower", "upper", "cutoff", "sentences", "doubtful", "web", "top_k")


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
    given: dict[str, str] = {}
    for part in parts:
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not value or key not in KEYS:
            near = () if key in KEYS else get_close_matches(key, KEYS, n=1)
            guess = f"Did you mean {near[0]}? " if near else ""
            found = f"unknown key {key!r}" if value else f"expected key=value, found {part!r}"
            raise WrongUse(f"{text!r}: {found}.", hint=f"{guess}Keys: {', '.join(KEYS)}.")
        if key in given:
            raise WrongUse(f"{text!r}: expected {key} once, found {given[key]!r} and {value!r}.")
        given[key] = value
    name = given.pop("name", text.strip())
    is_plain = policy == PLAIN
    if not is_plain:
        try:
            workbench.policy(policy)
        except UnknownName:
            known = (*load_policies(settings=workbench.config)[0], PLAIN)
            raise UnknownName.among("policy", policy, known) from None
    if given.get("web") == WebMode.ASK:
        raise WrongUse(f"{text!r}: web: expected auto or off, found 'ask': there is nobody to ask.")
    try:
        with as_typed():
            asked = from_texts(Request, given)
        asked = replace(asked, policy=None if is_plain else policy, plain=is_plain)
        return Configuration(name, choose(workbench, asked))
    except WrongUse as error:
        raise type(error)(f"{text!r}: {error.message}", hint=error.hint) from None
