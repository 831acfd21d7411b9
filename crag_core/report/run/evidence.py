"""What a card of a report has beside its view: bars, and an address that may be a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from crag_core.base.types import ANSWERING, TOPICAL
from crag_core.decision.policy import Aggregation
from crag_core.report.text import web_address
from crag_core.view.chunk_cards import ChunkCard
from crag_core.view.chunk_text import TextLine, text_lines
from crag_core.view.run_view import RunView


@dataclass(frozen=True)
class Bar:
    """A score as a bar, with the thresholds that it is held against; all in percent."""

    name: str
    value: str
    at: float
    thresholds: tuple[float, ...]


@dataclass(frozen=True)
class Card:
    view: ChunkCard
    bars: tuple[Bar, ...]

    @property
    def address(self) -> str | None:
        return web_address(self.view.passage.url)

    @property
    def is_open(self) -> bool:
        return bool(self.view.cited or self.view.decides or self.view.edit)

    @property
    def parts(self) -> list[tuple[str, float]]:
        """Those of the grade that are no signal of its own."""
        grade = self.view.grade
        return [(name, value) for name, value in grade.parts if name not in (ANSWERING, TOPICAL)] if grade else []

    @cached_property
    def lines(self) -> tuple[TextLine, ...]:
        return text_lines("", self.view.passage.text, self.view.verdicts, "", self.view.sentences.signs)


def cards_of(view: RunView, cards: tuple[ChunkCard, ...]) -> tuple[Card, ...]:
    return tuple(Card(card, tuple(_bars(view, card))) for card in cards)


def _bars(view: RunView, card: ChunkCard) -> Iterator[Bar]:
    """What the decision compares with the thresholds; a weighted sum leaves a passage's own score without any."""
    policy = view.policy
    limits = {"score": (policy.lower, policy.upper), ANSWERING: (policy.upper,), TOPICAL: (policy.lower,)}
    for name, value in card.scores:
        is_compared = (name, value) in card.compared and policy.aggregation is not Aggregation.SIGNALS
        thresholds = tuple(round(100 * one, 1) for one in limits[name]) if is_compared else ()
        yield Bar(name, f"{value:.2f}", round(100 * value, 1), thresholds)
