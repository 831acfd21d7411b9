"""The buttons that offer a file, on all pages."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_click_on_a_file_draws_the_page_anew() -> None:
    """A redraw that begins with the click can take the file away before the browser has asked for it."""
    sources = [*sorted((ROOT / "ui").rglob("*.py")), *sorted((ROOT / "pages").glob("*.py")), ROOT / "app.py"]
    offers = [
        (f"{path.name}:{node.lineno}", {one.arg: ast.unparse(one.value) for one in node.keywords})
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("download_button")
    ]
    assert len(offers) >= 8
    assert [where for where, given in offers if given.get("on_click") != "'ignore'"] == []
