"""The story of a run as a page of its own: a single HTML file that plays by itself and needs no network."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from crag_core.base.serialization import to_plain
from crag_core.base.text.display import literal
from crag_core.report import text
from crag_core.view.story.steps import Story

_FOLDER = Path(__file__).parent
_START = """
const data = JSON.parse(document.getElementById("story").textContent);
mount({ parentElement: document, data: { story: data, plays: true } });
"""
_COLOURS = _FOLDER / "page.css"


@cache
def style() -> str:
    return (_FOLDER / "story.css").read_text("utf-8")


@cache
def script() -> str:
    """An ES module whose default export draws `Story` as plain data, as a component of Streamlit does."""
    return (_FOLDER / "story.js").read_text("utf-8")


def render_story(story: Story) -> str:
    """Whatever the record holds shows as text: it is data to the script, and can neither run nor load anything."""
    sheet, code = f"{_COLOURS.read_text('utf-8')}\n{style()}", f"{script()}{_START}"
    allowed = f"default-src 'none'; style-src '{text.allowed(sheet)}'; script-src '{text.allowed(code)}'"
    parts = {
        "policy": f"{allowed}; base-uri 'none'; form-action 'none'",
        "title": escape(literal(f"{story.title} · CRAG Explorer"), quote=False),
        "style": sheet,
        "script": code,
        "data": _data(story),
    }
    page = (_FOLDER / "page.html").read_text("utf-8")
    # At once, so that no part can hold the place of another.
    return re.sub(r"\{\{ (\w+) \}\}", lambda found: parts[found[1]], page)


def _data(story: Story) -> str:
    """JSON that no parser of HTML sees an end or a beginning in."""
    cleaned = _cleaned(to_plain(story))
    dumped = json.dumps(cleaned, ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", dumped)


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cleaned(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return literal(value) if isinstance(value, str) else value
