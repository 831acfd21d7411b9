"""Permissions of signed-in people, and the settings that grant them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase

from crag_core.base.errors import BadRecord, CragError

EVERYBODY, NOBODY = "*", "nobody"
_SHOWN = 3
# Only ASCII letters: by the rules of Unicode the Kelvin sign is a k too, and another's address would become ann's.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_HINT = "Write addresses (ann@example.org), whole domains (@example.org), * for everybody who signs in, or nobody."


class Right(StrEnum):
    """What can be granted. The value is the end of the variable that grants it."""

    ENTER = "enter"
    INDEX = "index"
    TUNE = "tune"
    SEE_HISTORY = "see_history"
    SET_UP = "set_up"

    @property
    def variable(self) -> str:
        return f"CRAG_MAY_{self.value.upper()}"

    @property
    def permission(self) -> str:
        """What it allows, for the sentence "Only ann@example.org may …"."""
        return _PERMISSIONS[self]


_PERMISSIONS = {
    Right.ENTER: "use this application",
    Right.INDEX: "add, move and remove documents",
    Right.TUNE: "grade labelled sets and keep presets",
    Right.SEE_HISTORY: "see the runs of others",
    Right.SET_UP: "see and change the servers",
}


class NotAllowed(CragError):
    """Somebody who is signed in lacks the right to do this."""


@dataclass(frozen=True)
class Grants:
    """Entries of each right, in lower case: addresses, domains beginning with "@", or `EVERYBODY`; none: nobody."""

    entries: Mapping[Right, tuple[str, ...]]

    def allows(self, right: Right, address: str) -> bool:
        """Whether this address has the right; case does not matter. What is no address has none."""
        sent = address.translate(_LOWER)
        return is_address(sent) and any(
            entry == EVERYBODY or sent == entry or (entry.startswith("@") and sent.partition("@")[2] == entry[1:])
            for entry in self.entries[right]
        )

    def who(self, right: Right) -> str:
        """For a sentence: "ann@example.org and everybody of example.net"; of many, the first few."""
        names = [_describe(entry) for entry in self.entries[right]] or [NOBODY]
        if len(names) > _SHOWN:
            names = [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    def refusal(self, right: Right) -> str:
        """The one line for whoever lacks the right."""
        who = self.who(right)
        return f"Nobody may {right.permission} here." if who == NOBODY else f"Only {who} may {right.permission}."


def read_grants(texts: Mapping[Right, str]) -> Grants:
    """From the settings' texts, a right that is missing being everybody's; refuses an entry that can mean nobody.

    Raises `BadRecord` with the variable's name.
    """
    return Grants({right: _read(right.variable, texts.get(right, EVERYBODY)) for right in Right})


def is_address(text: str) -> bool:
    """Whether this can be the address of one person: one "@", a name before it and a domain behind it."""
    name, at, domain = text.partition("@")
    return bool(name and at) and is_domain(domain) and text.isprintable() and not set(text) & set(' ,;<>()"*')


def is_domain(text: str) -> bool:
    return bool(text) and "@" not in text and not text.startswith(".") and not text.endswith(".")


def _read(variable: str, text: str) -> tuple[str, ...]:
    entries = tuple(dict.fromkeys(entry.strip().translate(_LOWER) for entry in text.split(",")))
    for entry in entries:
        if entry in (EVERYBODY, NOBODY):
            if len(entries) > 1:
                raise BadRecord(f"{variable}: expected {entry!r} alone, found it among others in {text!r}.", hint=_HINT)
        elif not is_address(f"ann{entry}" if entry.startswith("@") else entry):
            raise BadRecord(f"{variable}: expected addresses or domains, found {entry!r}.", hint=_HINT)
    return () if entries == (NOBODY,) else entries


def _describe(entry: str) -> str:
    if entry == EVERYBODY:
        return "everybody"
    return f"everybody of {entry[1:]}" if entry.startswith("@") else entry
