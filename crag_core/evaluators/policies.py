"""Loads the policies of `data/policies`, reports those that cannot be used, and suits them to an evaluator."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from crag_core.base.data_files import DATA
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision.policy import Policy
from crag_core.decision.policy_file import parse_policy
from crag_core.evaluators import cards
from crag_core.evaluators.cascade import cascade_card, parse_cascade
from crag_core.evaluators.named.names import is_named, uncalibrated_card
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

DEFAULT = "two-signal"
"""The policy to start with: it routes best of all on the labelled questions (docs/decisions/0011-two-signals.md)."""
FOLDER = DATA / "policies"
OWN_JUDGE = "cross-encoder"
"""Scores the strips of every run, and grades where the evaluator of a policy needs a model that is not there."""
PLAIN = "plain"
"""The name of what corrective policies are compared with: plain RAG, which grades nothing."""
_BASELINES = DATA / "baselines"
_MOST_BYTES = 32 * 1024
"""Of a policy file; those that are shipped have 1,000."""


def load_policies(settings: Any = None) -> tuple[dict[str, Policy], tuple[str, ...]]:
    """(policies by name, the default first and those of a group last, what is wrong with files that cannot be used).

    `settings` have `agent_few`, `agent_cosine` and `agent_iterations`, which the policy `agentic` takes.
    """
    found: dict[str, Policy] = {}
    problems = []
    for path in sorted(FOLDER.glob("*.toml"), key=lambda path: (path.stem != DEFAULT, path.stem)):
        try:
            found[path.stem] = _checked(parse_policy(policy_text(path), path.stem))
        except BadRecord as error:
            problems.append(str(error))
        except (OSError, UnicodeError) as error:
            problems.append(f"Policy {path.stem!r} cannot be read: {error}.")
    if settings and "agentic" in found:
        found["agentic"] = _with_agent_settings(found["agentic"], settings)
    ordered = sorted(found.values(), key=lambda policy: policy.group)
    return {policy.name: policy for policy in ordered}, tuple(problems)


def _checked(policy: Policy) -> Policy:
    try:
        known_card(policy.evaluator)
    except UnknownName as error:
        raise BadRecord(f"policy {policy.name}: {error.message}", hint=error.hint) from error
    return policy


def _with_agent_settings(policy: Policy, settings: Any) -> Policy:
    own = {"few_context": settings.agent_few, "high_vector_score": settings.agent_cosine}
    rules = ((name, own.get(name, argument)) for name, argument in policy.skip)
    skip = tuple(rule for rule in rules if rule != ("few_context", 0))  # 0: always grade
    return replace(policy, skip=skip, max_rounds=settings.agent_iterations)


def find_policy(name: str, settings: Any = None) -> Policy:
    """A policy by name; `UnknownName` lists the known ones, `BadRecord` tells what is wrong with its file."""
    policies, problems = load_policies(settings=settings)
    if name not in policies:
        for problem in problems:
            if problem.startswith((f"policy {name}.", f"policy {name}:", f"Policy {name!r}")):
                raise BadRecord(problem)
        raise UnknownName.among("policy", name, policies)
    return policies[name]


def read_policy(path: Path) -> Policy:
    """A policy of a file of one's own; raises `BadRecord`, which names the file."""
    try:
        return parse_policy(policy_text(path), path.stem)
    except BadRecord as error:
        raise BadRecord(f"In {path}: {error.message}", hint=error.hint) from error
    except (OSError, UnicodeError) as error:
        raise BadRecord(f"The policy {path} cannot be read: {error}.", hint="Give the path of a TOML file.") from error


def policy_text(path: Path) -> str:
    """Raises `BadRecord` for what is no file or too large to be a policy, `OSError` or `UnicodeError` else."""
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, a device has no end
        raise BadRecord(f"Policy {path.stem!r} is no file but a folder, a device or a pipe.", hint="Put a file there.")
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        most = f"at most {_MOST_BYTES // 1024} KB"
        raise BadRecord(f"Policy {path.stem!r} is too large: expected {most}.", hint="Is it a policy file?")
    return content.decode("utf-8-sig")


def plain_rag() -> Policy:
    """Retrieve, then generate. It stands beside the policies, not among them: it has no thresholds to set."""
    return parse_policy((_BASELINES / f"{PLAIN}.toml").read_text("utf-8"), PLAIN)


def suit(policy: Policy, evaluator: str) -> Policy:
    """`policy` with the thresholds and the strip cut-off to start from for `evaluator`; raises `UnknownName`."""
    return policy.with_thresholds_for(known_card(evaluator), known_card(OWN_JUDGE))


def default_evaluator(policy: Policy, model: str) -> str:
    """The evaluator that the policy was described with; where that needs a model and none is there, the first of two
    that does not, or our own."""
    pair = parse_cascade(policy.evaluator)
    names: tuple[str, ...] = (policy.evaluator, *((pair.first,) if pair else ()))
    return next((name for name in names if model != EXTRACTIVE or not known_card(name).calls_model), OWN_JUDGE)


def known_card(name: str) -> EvaluatorCard:
    """What is known of an evaluator wherever it is: of one by name not its thresholds, which a home keeps; raises
    `UnknownName`."""
    if made := cascade_card(name, known_card):
        return made
    if is_named(name):
        return uncalibrated_card(name)
    known = cards()
    if name not in known:
        raise UnknownName.among("evaluator", name, known)
    return known[name]
