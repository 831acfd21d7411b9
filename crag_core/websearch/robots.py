"""Whether a robots.txt lets a program read an address (RFC 9309). Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_MOST = 500_000  # characters; the standard asks for as many
_SIGNS = "/*$?&=;:@!'()+,~#[]"


def may_read(robots: str, agent: str, target: str) -> bool:
    """`target` is path and query of the address. The longest rule that matches decides; of two, the one that allows."""
    target = _plain(target)
    matching = ((len(rule), allows) for allows, rule in _rules(robots[:_MOST], agent) if _matches(rule, target))
    return max(matching, default=(0, True))[1]


def _rules(robots: str, agent: str) -> list[tuple[bool, str]]:
    """(allows?, pattern) of the groups for this agent; of those for all where there is none for it."""
    groups: dict[str, list[tuple[bool, str]]] = {}
    agents: list[str] = []
    is_open = False  # whether lines that name agents are still added to the group
    for line in robots.lstrip("\ufeff").splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if key == "user-agent":
            agents = [*(agents if is_open else ()), _product(value)]
            groups.setdefault(agents[-1], [])
            is_open = True
        elif key in ("allow", "disallow"):
            is_open = False
            for name in set(agents) if value else ():
                groups[name].append((key == "allow", _plain(value)))
    return groups.get(_product(agent), groups.get("*", []))


def _product(agent: str) -> str:
    """The name without its version."""
    found = re.match(r"[A-Za-z_-]+", agent)
    return found[0].lower() if found else agent.strip()


def _plain(address: str) -> str:
    """In one way of escaping, whichever it was written in."""
    return quote(unquote(address), safe=_SIGNS)


def _matches(rule: str, target: str) -> bool:
    """The beginning of the target; `*` stands for anything, `$` for its end."""
    first, *others = rule.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    at = len(first)
    last = others.pop() if others else None
    for piece in others:
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    if not rule.endswith("$"):
        return last is None or target.find(last, at) >= 0
    return at == len(target) if last is None else target.endswith(last) and len(target) - len(last) >= at
