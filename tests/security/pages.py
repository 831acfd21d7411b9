"""Everything that a page sends to the browser, for tests that look for what must not be there."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

PAGES = sorted(
    f"pages/{name}.py"
    for name in ("compare", "documents", "history", "logs", "metrics", "policies", "settings", "tune")
)


def every_word(app: AppTest) -> str:
    """All elements of the page as they go over the wire, with their labels, values, tips and what is in components."""
    words: list[str] = []

    def walk(node: Any) -> None:
        words.append(str(getattr(node, "proto", "")))
        words.append(str(getattr(node, "value", "") if not hasattr(node, "children") else ""))
        for child in getattr(node, "children", {}).values():
            walk(child)

    walk(app._tree)
    return "\n".join(words)
