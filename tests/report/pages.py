"""A report taken apart, and runs to report of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bs4 import BeautifulSoup, Tag

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.base.types.web import WebOutcome, WebSearch
from crag_core.decision.policy import Policy
from crag_core.report import render
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from tests.builders import passage, policy, strips_of, trace, web_page
from tests.fakes import QUESTION, Bench, FakeModel


@dataclass(frozen=True)
class Page:
    """The HTML of a report, and ways into it."""

    html: str

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.html, "html.parser")

    def part(self, css: str) -> Tag:
        """The one element that fits."""
        found = self.soup.select(css)
        assert len(found) == 1, f"expected one {css}, found {len(found)}"
        return found[0]

    def told(self, css: str = "body") -> str:
        """What stands there, with single spaces."""
        return said(self.part(css))

    def all_told(self, css: str) -> list[str]:
        return [said(tag) for tag in self.soup.select(css)]

    def head(self, number: str, kind: str = "passage") -> str:
        """The line that a passage is folded under."""
        return said(self.card(number, kind).select("summary")[0])

    def card(self, number: str, kind: str = "passage") -> Tag:
        return self.part(f"details.card:has(> #{kind}-{number})")

    def rows(self, css: str) -> list[str]:
        """Rows of tables, their cells parted by a bar."""
        return [" | ".join(said(cell) for cell in row.find_all(["th", "td"])) for row in self.soup.select(css)]


def said(tag: Tag) -> str:
    for end in tag.find_all("br"):
        end.replace_with(" ")
    return " ".join(tag.get_text().split())


def page_of(run: Trace, of: Policy | None = None) -> Page:
    return Page(render(run, of))


def asked(**bench: Any) -> Trace:
    """A run through the real pipeline with stand-in parts; `FakeModel` judges, rewrites and answers."""
    return Bench(**{"model": FakeModel()} | bench).pipeline.run(QUESTION)


FIRST, SECOND, THIRD = (
    "Dogs pay nine euros. They stay on a lead.",
    "Cats travel free of charge.",
    "# Bread\n\nKnead the dough. Bake it at 220 degrees.",
)
ANSWER = "A dog pays nine euros [1]. Cats are free [2]. Bread is dear."


def documents() -> tuple[Passage, ...]:
    return (
        passage("p1", FIRST, source="fares.pdf", page=3, scores=(("cosine", 0.71),), found_by=("dense",)),
        passage("p2", SECOND, source="cats.txt"),
        passage("p3", THIRD, source="bread.md"),
    )


def recorded(name: str = "paper", *scores: float | None, **fields: Any) -> Trace:
    """A run made by hand: three passages of five sentences, decided, and answered from what was kept."""
    found = documents()
    strips = (
        *strips_of(found[0], ("Dogs pay nine euros.", 0.9), ("They stay on a lead.", 0.1)),
        *strips_of(found[1], ("Cats travel free of charge.", 0.8)),
        *strips_of(found[2], ("# Bread\n\nKnead the dough.", 0.05), ("Bake it at 220 degrees.", None)),
    )
    given = scores or (0.9, 0.5, 0.1)
    grades = tuple(
        Grade(one.id, score, "tells the price", cause="" if score is not None else "no score in the reply")
        for one, score in zip(found, given, strict=True)
    )
    steps = (
        Step("retrieve", "3 chunks", seconds=0.084),
        Step("grade", "3 of 3 chunks graded", seconds=1.25, usage=Usage(3, 100, 20)),
    )
    known = {"passages": found, "grades": grades, "strips": strips, "steps": steps}
    return answered(trace(policy(name), **known | fields))


def answered(run: Trace, text: str = ANSWER) -> Trace:
    """The run with its decision, and an answer that belongs to it."""
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, decision=routed.decision, answer=Answer(text, AnswerState.COMPLETE, "model-7", key))


def found_online(*pages: Passage, **fields: Any) -> WebSearch:
    search = WebSearch(WebOutcome.USED, "dog fare", "rewritten by model-7", "SearXNG", passages=pages)
    return replace(search, **fields)


def two_pages() -> tuple[Passage, ...]:
    return web_page("harbour", "Dogs are welcome on board."), web_page("island", "Tickets are sold at the pier.")


def broken_at(name: str, **fields: Any) -> Trace:
    step = Step(name, "The store is away.", StepState.FAILED, hint="Start it.")
    return trace(policy("paper"), steps=(step,), **fields)
