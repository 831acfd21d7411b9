"""The wording of prompts from files: parts [system] and [user], with {placeholders} for what the code puts in."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from crag_core.base.data_files import DATA
from crag_core.base.errors import BadRecord, UnknownName
from crag_core.base.prompts.delimiters import harmless

FOLDER = DATA / "prompts"

LONGEST = 8000  # characters of a file: beside it, evidence has to fit into what a model reads at once
_MOST_BYTES = 4 * LONGEST

_JUDGING = "question evidence evidence_is_data reply"
_HOLDS = {
    "judge": _JUDGING,
    "judge-yes-no": _JUDGING,
    "judge-batch": f"{_JUDGING} count?",
    "judge-list": f"{_JUDGING} count?",
    "sufficient": f"{_JUDGING} count?",
    "classify": "question reply",
    "again": "failure",
    "condense": "question history evidence_is_data reply",
    "extract": _JUDGING,
    "check": "statement evidence evidence_is_data reply",
    "rewrite": "question words?",
    "phrases": "question count?",
    "keywords": "question tried words?",
    "rephrase": "question",
    "alone": "question cannot_answer",
    "recall": "question reply count?",
    "consolidate": _JUDGING,
    "consolidated": "question evidence evidence_is_data cannot_answer from_memory",
    "answer": "question evidence evidence_is_data cannot_answer",
}
"""The placeholders of each file; those with ? may be left out."""
NEEDED = {name: tuple(one for one in holds.split() if one[-1] != "?") for name, holds in _HOLDS.items()}
ALLOWED = {name: tuple(one[:-1] for one in holds.split() if one[-1] == "?") for name, holds in _HOLDS.items()}

OF_OTHERS = ("question", "evidence", "history", "statement", "tried", "failure")
"""Text of others, which must not speak as the system does."""

_PLACEHOLDER = re.compile(r"\{(\s*[\w-]{1,40}\s*)\}")
_HEADING = re.compile(r"^\[(system|user)\][ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Template:
    system: str
    user: str

    def filled(self, **values: object) -> tuple[tuple[str, str], ...]:
        """The messages; what is put in is not searched for placeholders."""
        parts = (("system", self.system), ("user", self.user))
        return tuple((role, _filled(text, values)) for role, text in parts if text)


def _filled(text: str, values: Mapping[str, object]) -> str:
    """A paragraph that is one placeholder alone is left out where there is nothing to put in."""
    left = (one for one in text.split("\n\n") if not (found := _PLACEHOLDER.fullmatch(one)) or values[found[1]] != "")
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), "\n\n".join(left))


def read_templates(folder: Path) -> dict[str, Template]:
    """Those that have a file in `folder`, by name; `BadRecord` for a file that cannot be used, or has no use."""
    try:
        files = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix == ".txt"}
    except OSError as error:
        message = f"{folder}: expected a folder of prompts, found none that can be read ({error.strerror})."
        raise BadRecord(message, hint=f"Make it, with files such as {next(iter(NEEDED))}.txt.") from error
    for name, path in files.items():
        if name not in NEEDED:
            unknown = UnknownName.among("prompt", name, NEEDED)
            raise BadRecord(f"{path}: {unknown.message}", hint=f"{unknown.hint} Rename the file, or take it away.")
    return {name: parse_template(_read(files[name]), name, str(files[name])) for name in NEEDED if name in files}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise _too_long(str(path), f"more than {_MOST_BYTES:,} bytes")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise BadRecord(f"{path} cannot be read: {error.strerror}.", hint="Look at its permissions.") from error
    except UnicodeDecodeError as error:
        message = f"{path}: expected text in UTF-8, found another encoding from byte {error.start} on."
        raise BadRecord(message, hint="Save it as UTF-8.") from error


def parse_template(text: str, name: str, place: str) -> Template:
    """The prompt `name` from the text of its file; `BadRecord` names `place`, what was expected and what was found."""
    if len(text) > LONGEST:
        raise _too_long(place, f"{len(text):,}")
    parts = _split(text, place)
    expected = ("user",) if name == "again" else ("system", "user")
    if tuple(parts) != expected:
        raise BadRecord(
            f"{place}: expected the parts {_listed(expected)}, found {_listed(parts) or 'none'}.",
            hint=f"Begin each with a line of its own that says so, as data/prompts/{name}.txt does.",
        )
    for part, wording in parts.items():
        if not wording:
            raise BadRecord(f"{place}: [{part}] is empty.", hint="Write what the model is to be told there.")
        _check_placeholders(part, wording, name, place)
    if missing := [one for one in NEEDED[name] if f"{{{one}}}" not in text]:
        message = f"{place}: {_braced(missing)} is missing; expected each of {_braced(NEEDED[name])}."
        raise BadRecord(message, hint="Put it where that part of the prompt is to stand.")
    if harmless(parts["user"]) != parts["user"]:
        message = f"{place}: [user] holds a tag such as <evidence> or a mark of a chat template; expected none."
        raise BadRecord(message, hint="Take it out: {evidence} brings its own tags.")
    return Template(parts.get("system", ""), parts["user"])


def _split(text: str, place: str) -> dict[str, str]:
    before, *found = _HEADING.split(text)
    if before.strip():
        first = before.strip().splitlines()[0][:40]
        raise BadRecord(
            f"{place}: expected [system] or [user] first, found {first!r}.", hint="Put the heading above it."
        )
    if len(set(found[::2])) < len(found[::2]):
        raise BadRecord(f"{place}: expected each part once, found {_listed(found[::2])}.", hint="Join them.")
    return {part: wording.strip() for part, wording in zip(found[::2], found[1::2], strict=True)}


def _check_placeholders(part: str, wording: str, name: str, place: str) -> None:
    known = (*NEEDED[name], *ALLOWED[name])
    for found in _PLACEHOLDER.findall(wording):
        if found not in known:
            near = get_close_matches(found.strip().lower(), known, n=1)
            guess = f"Did you mean {_braced(near)}? " if near else ""
            raise BadRecord(
                f"{place}: unknown placeholder {{{found}}}.", hint=f"{guess}Known in this prompt: {_braced(known)}."
            )
        if part == "system" and found in OF_OTHERS:
            message = f"{place}: {{{found}}} stands under [system]; expected under [user]."
            raise BadRecord(message, hint="Move it: text of others must not speak as the system does.")


def _too_long(place: str, found: str) -> BadRecord:
    message = f"{place}: expected at most {LONGEST:,} characters, found {found}."
    return BadRecord(message, hint="Shorten it: the evidence has to fit beside it.")


def _listed(parts: Iterable[str]) -> str:
    return " and ".join(f"[{part}]" for part in parts)


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
