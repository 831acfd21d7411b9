"""Each row of the five descriptions is kept somewhere and held by a test, or differs for a reason (docs/descriptions).

`python -m tests.docs.test_descriptions` writes the tables of docs/descriptions.md again.
"""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docs" / "descriptions").glob("*.toml"))
PAGE = ROOT / "docs" / "descriptions.md"
BEGIN, END = "<!-- begin of what the files of docs/descriptions say -->\n", "<!-- end -->\n"
KEYS = ("id", "says", "here", "kept", "test", "case", "differs")
LONGEST = 15  # words of a quotation

Row = dict[str, Any]
TABLES = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in FILES}
ROWS: dict[str, list[Row]] = {name: table["row"] for name, table in TABLES.items()}
ALL = [row for rows in ROWS.values() for row in rows]


# --- the rows -------------------------------------------------------------------------------------------------------


def test_every_row_has_an_id_of_its_own_and_a_short_quotation() -> None:
    assert list(ROWS) == ["000", "001", "002", "003", "004"]
    assert len({row["id"] for row in ALL}) == len(ALL) >= 215
    for name, rows in ROWS.items():
        for row in rows:
            assert row["id"].startswith(f"{name}-") and set(row) <= set(KEYS), row
            assert 0 < len(row["says"].split()) <= LONGEST, row


def test_every_row_is_kept_and_held_by_a_test_or_differs_for_a_reason() -> None:
    lost = [row["id"] for row in ALL if not (row.get("differs") or {"kept", "test"} <= set(row))]
    assert lost == []


def test_every_place_is_there() -> None:
    assert [f"{row['id']}: {row['kept']}" for row in ALL if "kept" in row and not is_there(row["kept"])] == []


def test_every_test_and_every_golden_case_is_there() -> None:
    assert [f"{row['id']}: {row['test']}" for row in ALL if "test" in row and not is_test(row["test"])] == []
    cases = golden_cases()
    assert [f"{row['id']}: {row['case']}" for row in ALL if "case" in row and row["case"] not in cases] == []


def test_every_quotation_stands_in_its_description(shared_data: Path) -> None:
    folder = shared_data.parent / "seeds"
    if not folder.is_dir():
        pytest.skip("skipped: the descriptions are not at hand")
    for name, rows in ROWS.items():
        (file,) = folder.glob(f"{name}_*.txt")
        text = in_one_line(file.read_text("utf-8"))
        assert [row for row in rows if in_one_line(row["says"]) not in text] == []


def in_one_line(text: str) -> str:
    return " ".join(text.split())


# --- places and tests -----------------------------------------------------------------------------------------------


@cache
def is_there(place: str) -> bool:
    """A file, or "file:name": what a Python file defines, a key of a TOML file, or words of another one."""
    path, _, name = place.partition(":")
    file = ROOT / path
    if not file.exists() or not name:
        return file.exists()
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        return name in defined(ast.parse(text).body)
    return has_key(tomllib.loads(text), name.split(".")) if file.suffix == ".toml" else name in text


def defined(body: Iterable[ast.stmt], within: str = "") -> set[str]:
    """Names that a module or class defines; those of a class as "Class.name"."""
    found = set()
    for one in body:
        if isinstance(one, ast.ClassDef):
            found |= {within + one.name, *defined(one.body, f"{within}{one.name}.")}
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(within + one.name)
        elif isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            found |= {within + name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def has_key(table: Any, keys: list[str]) -> bool:
    """Whether the keys lead somewhere, one within the other; a list holds names and tables, as steps of a policy do."""
    if isinstance(table, list):
        named = [one if isinstance(one, dict) else {str(one): None} for one in table]
        table = {key: value for one in named for key, value in one.items()}
    return not keys or (isinstance(table, dict) and keys[0] in table and has_key(table[keys[0]], keys[1:]))


def is_test(node: str) -> bool:
    path, _, name = node.partition("::")
    return name.startswith("test_") and is_there(f"{path}:{name}")


def golden_cases() -> set[str]:
    files = (ROOT / "tests" / "golden").glob("*.json")
    return {case["name"] for file in files for case in json.loads(file.read_text("utf-8"))["cases"]}


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_lists_every_row_that_differs() -> None:
    assert told() == in_tables(), "write it again: python -m tests.docs.test_descriptions"


def told() -> str:
    return PAGE.read_text("utf-8").split(BEGIN)[1].split(END)[0]


def in_tables() -> str:
    """Every row that differs, a table a description."""
    parts = []
    for name, rows in ROWS.items():
        lines = [f"| {row['id']} | {as_code(row['says'])} | {row['differs']} |" for row in rows if "differs" in row]
        heading = f"\n## {TABLES[name]['title']}\n\n{len(rows)} rows, of which {len(lines)} differ.\n"
        parts += [heading, "| row | it says | we differ, since |", "|---|---|---|", *lines]
    return "\n".join(parts) + "\n\n"


def as_code(text: str) -> str:
    return f"`` {text.replace('|', chr(92) + '|')} ``"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").replace(told(), in_tables()), "utf-8")
