"""docs/security.md holds what it says: every threat of its tables names tests, and each of them is there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

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


def test_the_example_of_a_proxy_refuses_streamlits_own_figures() -> None:
    example = (ROOT / "docs" / "nginx.conf.example").read_text("utf-8")
    assert "return 404;" in example.partition("location = /_stcore/metrics {")[2].partition("}")[0]
