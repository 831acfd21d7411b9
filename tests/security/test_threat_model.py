"""docs/security.md holds what it says: every threat of its tables names tests, and each of them is there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text("utf-8")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
HEAD = "| threat | what stands against it | test |"


def rows(text: str) -> list[tuple[str, str, str]]:
    """(threat, defence, test) of every table of threats."""
    found, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        inside = line.strip() == HEAD or (inside and line.startswith("|"))
        if inside and line.strip() != HEAD and not line.startswith("|---"):
            assert len(cells) == 3, line
            found.append((cells[0], cells[1], cells[2]))
    return found


def problems(row: tuple[str, str, str]) -> list[str]:
    named = [(file, test) for file, test in _NAMED.findall(row[2])]
    if not named:
        return [f"{row[0]}: no test is named"]
    found = [f"{row[0]}: {file} is not there" for file, _ in named if not (ROOT / file).is_file()]
    return found + [
        f"{row[0]}: {file} has no {test}"
        for file, test in named
        if test and (ROOT / file).is_file() and test not in names_in(file)
    ]


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_threat_names_tests_that_exist() -> None:
    assert [problem for row in rows(TEXT) for problem in problems(row)] == []


WANTED = (
    *("documents", "file names", "web snippets", "model replies", "questions", "shared links", "imported runs"),
    *("hidden in a document", "hidden in a web page", "metadata", "redirect", "fetched", "ZIP", "run id", "preset"),
    *("traces", "upload", "question", "runs at once", "pickle", "model file", "supply chain", "other sites", "frame"),
)


@pytest.mark.parametrize("words", WANTED)
def test_nothing_of_the_issue_is_missing(words: str) -> None:
    assert any(words.lower() in " ".join(row).lower() for row in rows(TEXT)), words


def test_a_row_without_a_test_or_with_a_wrong_one_would_be_found() -> None:
    assert problems(("a", "b", "none yet"))
    assert problems(("a", "b", "`tests/security/test_threat_model.py::test_of_nothing`"))
    assert problems(("a", "b", "`tests/security/no_such_file.py::test_x`"))
    assert not problems(("a", "b", "`tests/security/test_threat_model.py::test_nothing_of_the_issue_is_missing`"))


def test_the_server_keeps_its_own_protection_switched_on() -> None:
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["server"]
    assert server["enableXsrfProtection"] is True and server["enableCORS"] is True
    assert server["address"] == "localhost" and not server.get("enableStaticServing")


def test_the_example_of_a_proxy_forbids_frames() -> None:
    """In the block of the pages, whatever the status: a block with a header of its own takes none from around it."""
    example = (ROOT / "docs" / "nginx.conf.example").read_text("utf-8")
    pages = example.partition("location / {")[2].partition("\n    }")[0]
    assert "add_header Content-Security-Policy \"frame-ancestors 'self'\" always;" in pages
    assert "add_header X-Frame-Options SAMEORIGIN always;" in pages


def test_the_example_of_a_proxy_keeps_a_password_and_tells_of_sign_in() -> None:
    example = (ROOT / "docs" / "nginx.conf.example").read_text("utf-8")
    assert "no sign-in" not in example and "CRAG_SIGN_IN=on (docs/sign-in.md" in example
    assert re.search(r"^ *auth_basic_user_file ", example, re.MULTILINE), "sign-in is off unless somebody sets it"
