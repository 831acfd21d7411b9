"""What a draw function puts on a page, without the application around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from streamlit.testing.v1 import AppTest

from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.trace.trace import Trace
from tests.builders import policy, strips_of, trace

TEXT = "A yacht pays 14 pounds. It is due at the office.\n\nThe office opens at eight. Nobody may stand there."
SENTENCES = (
    "A yacht pays 14 pounds.",
    "It is due at the office.",
    "The office opens at eight.",
    "Nobody may stand there.",
)


def a_run(
    count: int = 6, of: str = "worst-chunk", scores: tuple[float, ...] = (0.9, 0.5, 0.2, 0.1), **fields: Any
) -> tuple[Trace, Policy]:
    """`count` passages of four sentences with these scores, all graded 0.5: AMBIGUOUS under most policies."""
    found = tuple(Passage(f"p{n}", TEXT, f"file-{n}.md", scores=(("cosine", 0.7),)) for n in range(1, count + 1))
    strips: list[Strip] = []
    for one in found:
        strips += strips_of(one, *zip(SENTENCES, scores, strict=True))
    grades = tuple(Grade(one.id, 0.5, reason="it names the dues") for one in found)
    chosen = policy(of)
    return trace(chosen, **{"passages": found, "grades": grades, "strips": tuple(strips)} | fields), chosen


def drawn(page: Callable[..., None], **arguments: Any) -> AppTest:
    def script(page, arguments):  # type: ignore[no-untyped-def]  # its source is run, apart from this module
        page(**arguments)

    app = AppTest.from_function(script, default_timeout=30, kwargs={"page": page, "arguments": arguments}).run()
    assert not app.exception
    return app


def parts(app: AppTest, name: str) -> list[dict[str, Any]]:
    """The data of our components of this name, in the order in which they are drawn."""
    found = (element.proto for element in app.get("bidi_component"))
    return [json.loads(proto.json) for proto in found if proto.component_name == name]


def elements(app: AppTest) -> int:
    """How many things the browser has to draw."""

    def count(block: Any) -> int:
        return sum(1 + count(child) if hasattr(child, "children") else 1 for child in block.children.values())

    return count(app.main)


def popovers(app: AppTest) -> list[str]:
    """Their labels, escapes taken out."""

    def walk(block: Any) -> Iterator[str]:
        for child in getattr(block, "children", {}).values():
            if getattr(child, "proto", None) is not None and getattr(child.proto, "popover", None) is not None:
                yield str(child.proto.popover.label).replace("\\", "")
            yield from walk(child)

    return [label for label in walk(app.main) if label]


def said(app: AppTest) -> str:
    """The words of the page outside components, escapes taken out."""
    kinds = ("subheader", "markdown", "caption", "warning", "info")
    return "\n".join(str(element.value) for kind in kinds for element in getattr(app, kind)).replace("\\", "")
