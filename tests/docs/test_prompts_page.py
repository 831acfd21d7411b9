"""What docs/prompts.md promises: its example is a prompt, and its table is what the code asks of every file."""

from __future__ import annotations

import re

from crag_core.base.prompts.messages import VERSION
from crag_core.base.prompts.templates import ALLOWED, LONGEST, NEEDED, OF_OTHERS, parse_template
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "prompts.md").read_text("utf-8")


def test_the_example_is_a_prompt() -> None:
    (example,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    asked = parse_template(example, "extract", "the example").filled(
        question="Wann?", evidence="Um neun.", evidence_is_data="Daten.", reply="[]"
    )
    assert asked[1] == ("user", "Frage: Wann?\n\nUm neun.")


def test_the_table_holds_every_file_with_its_placeholders() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]
    told = {
        row[0].strip("`").removesuffix(".txt"): [re.findall(r"\{(\w+)\}", cell) for cell in row[2:]] for row in rows
    }
    assert {name: tuple(needed) for name, (needed, _) in told.items()} == NEEDED
    assert {name: tuple(may) for name, (_, may) in told.items()} == ALLOWED


def test_the_rules_are_those_of_the_code() -> None:
    assert f"({', '.join(f'`{{{name}}}`' for name in OF_OTHERS)}) may stand under `[user]` only" in PAGE
    assert f"longer than {LONGEST:,} characters" in PAGE and f"`{VERSION}` as shipped and `{VERSION}+`" in PAGE
