"""docs/faults.md names a test for every line, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = [line for line in (ROOT / "docs" / "faults.md").read_text("utf-8").splitlines() if line.startswith("| ")][1:]
FILES = sorted((ROOT / "tests" / "faults").glob("test_*.py"))
NAMED = re.compile(r"`(tests/[\w/]+\.py(?:::test_\w+)?|test_\w+)`")
"""A test of this folder, one of another, or a file of others."""


def names_in(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE))


def test_every_line_names_tests_that_are_there() -> None:
    ours = set().union(*map(names_in, FILES))
    for line in LINES:
        named = NAMED.findall(line.split("|")[-2])
        assert named and len(line.split("|")) == 7, f"five columns, a test in the last: {line}"
        for name in named:
            path, _, test = name.rpartition("::")
            if name.endswith(".py"):
                assert (ROOT / name).is_file(), name
            else:
                assert test in (names_in(ROOT / path) if path else ours), name


def test_every_test_of_a_fault_stands_in_a_line() -> None:
    named = {name.rpartition("::")[2] for line in LINES for name in NAMED.findall(line)}
    ours = {test for path in FILES if path.name != Path(__file__).name for test in names_in(path)}
    assert ours <= named
