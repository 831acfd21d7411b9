"""What Dockerfile, .dockerignore and compose.yaml say, read as far as these tests need it."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import REPOSITORY

DOCKERFILE, IGNORED = REPOSITORY / "Dockerfile", REPOSITORY / ".dockerignore"
COMPOSE, EXAMPLE = REPOSITORY / "compose.yaml", REPOSITORY / "deploy" / "example.env"
_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def instructions() -> list[tuple[str, str]]:
    """(name, the rest) of every instruction, continued lines joined."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def rests(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def words(rest: str) -> list[str]:
    """Of the form that Docker runs without a shell."""
    found: list[str] = json.loads(rest)
    return found


def variables() -> dict[str, str]:
    """What ENV sets."""
    return dict(re.findall(r'(\w+)=("[^"]*"|\S+)', " ".join(rests("ENV"))))


def health_check() -> list[str]:
    return words(rests("HEALTHCHECK")[0].partition(" CMD ")[2])


def is_ignored(path: Path) -> bool:
    """By .dockerignore; of a folder that is let in, all is."""
    name = path.relative_to(REPOSITORY).as_posix()
    ignored = False
    for line in IGNORED.read_text("utf-8").splitlines():
        pattern = line.removeprefix("!")
        if not line or line.startswith("#"):
            continue
        if pattern.startswith("**/"):
            is_met = any(fnmatch.fnmatch(part, pattern[3:]) for part in name.split("/"))
        else:
            is_met = pattern == "*" or name == pattern or name.startswith(f"{pattern}/")
        ignored = not line.startswith("!") if is_met else ignored
    return ignored


def copied() -> Iterator[tuple[Path, str]]:
    """Every file that COPY takes, with its path below the working folder."""
    for rest in rests("COPY"):
        *sources, target = rest.split()
        for source in (REPOSITORY / one for one in sources):
            for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
                if file.is_file() and not is_ignored(file):
                    below = file.relative_to(source) if source.is_dir() else Path(source.name)
                    is_folder = source.is_dir() or target.endswith("/")
                    yield file, (Path(target) / below if is_folder else Path(target)).as_posix()


def make_app_folder(folder: Path) -> None:
    """As the working folder of the image is."""
    for file, name in copied():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / name)


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return found


def variables_of_compose() -> dict[str, str | None]:
    """Every variable that it asks for, with its default; None: it must be set."""
    text = "\n".join(line for line in COMPOSE.read_text("utf-8").splitlines() if not line.lstrip().startswith("#"))
    found = [match for match in _VARIABLE.finditer(text) if match["name"]]
    return {match["name"]: match["rest"] if match["kind"] == "-" else None for match in found}


def filled(text: str, values: Mapping[str, str]) -> str:
    """With `values` in the place of variables, as Docker Compose does it."""

    def fill(match: re.Match[str]) -> str:
        if not match["name"]:
            return "$"
        value = values.get(match["name"], "")
        return value or (match["rest"] or "" if match["kind"] == "-" else "")

    return _VARIABLE.sub(fill, text)


def example() -> dict[str, str]:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()
