"""Answers with the words of the evidence and another number or "not"; and answers that agree with it.

Each pair is (what the evidence says, what the answer says).
"""

from __future__ import annotations

from threading import Event

import pytest

from crag_core.base.data_files import DATA
from crag_core.base.protocols import Piece
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import SUPPORTED, PieceSet, lacking

METER = WordSupport(EVALUATOR_FOLDER, frozenset((DATA / "stopwords.txt").read_text("utf-8").split()))

WRONG = (
    ("The channel is fourteen metres deep at the pier.", "The channel is 40 metres deep at the pier."),
    ("Two pilots guide each tanker into the harbour.", "Three pilots guide each tanker into the harbour."),
    ("The permit is valid for twenty-five days.", "The permit is valid for 52 days."),
    ("The quay holds 24,530 containers.", "The quay holds 2,453 containers."),
    ("The dredger moved 2.5 million tonnes of sand.", "The dredger moved 2.5 thousand tonnes of sand."),
    ("Dogs may not enter the engine room.", "Dogs may enter the engine room."),
    ("Dogs may enter the engine room.", "Dogs may never enter the engine room."),
    ("Visitors travel without a ticket on Sundays.", "Visitors travel with a ticket on Sundays."),
    ("Hunde dürfen den Maschinenraum nicht betreten.", "Hunde dürfen den Maschinenraum betreten."),
    ("The lighthouse was built in 1987 by the harbour.", "The lighthouse was built in 1978 by the harbour."),
    ("The permit ends on 12.05.2019 at the latest.", "The permit ends on 13.05.2019 at the latest."),
    ("The ferry to Vennick leaves at 9:30 from the pier.", "The ferry to Vennick leaves at 9:45 from the pier."),
    ("A berth costs 9.50 pounds a night.", "A berth costs 9 pounds a night."),
)

BEYOND = (
    ("The lifeboats are tested every two weeks.", "The lifeboats are tested every two days."),
    ("A berth costs 14 pounds a night.", "A berth costs 14 euros a night."),
    ("Passengers may bring at most three bags on board.", "Passengers may bring at least three bags on board."),
)
"""Rates, units and bounds are words like others, which the page says."""

RIGHT = (
    ("Boats are inspected by the harbour office not more often than every two years.",
     "The harbour office inspects boats at most every 2 years."),
    ("Boats are inspected twice a year by the harbour office.", "The harbour office inspects boats twice yearly."),
    ("The lifeboats are tested every other week.", "The lifeboats are tested every two weeks."),
    ("The lifeboats are tested monthly.", "The lifeboats are tested once a month."),
    ("A berth costs 14 pounds per night.", "A berth costs £14 a night."),
    ("The ferry to Vennick leaves at nine from pier three.", "The ferry to Vennick leaves at 9 from pier 3."),
    ("The second ferry leaves from the west pier.", "The 2nd ferry leaves from the west pier."),
    ("The permit is valid for twenty-five days.", "The permit is valid for 25 days."),
    ("The permit is valid for 25 days.", "The permit is valid for twenty-five days."),
    ("The quay holds 24,530 containers.", "The quay holds 24530 containers."),
    ("The office opens at 9:00 on weekdays.", "The office opens at nine on weekdays."),
    ("Passengers may bring no more than three bags on board.", "Passengers may bring at most 3 bags on board."),
    ("Dogs may not enter the engine room.", "Dogs can't enter the engine room."),
    ("Dogs may enter the saloon but not the engine room.", "Dogs may enter the saloon."),
    ("The gate is used by crew members only.", "Only crew members use the gate."),
    ("The pier is not only long but also wide.", "The pier is long and wide."),
    ("Yachts pay 14 pounds and dinghies 5 pounds a night at berth 32.",
     "No, yachts pay 14 pounds a night at berth 32."),
    ("The islands of Vennick, Ames and Holm belong to the harbour.", "Vennick, Ames and Holm belong to the harbour."),
    ("Die Boote werden zweimal im Jahr vom Hafenamt geprüft.", "Das Hafenamt prüft die Boote zweimal jährlich."),
    ("Passagiere dürfen nicht mehr als drei Taschen mitnehmen.", "Passagiere dürfen höchstens 3 Taschen mitnehmen."),
    ("Les bateaux sont contrôlés deux fois par an par le port.",
     "Les bateaux sont contrôlés 2 fois par an par le port."),
    ("The permit ends on 12.05.2019 at the latest.", "The permit ends on the 12th of May 2019 at the latest."),
)  # fmt: skip


def score(evidence: str, said: str) -> float:
    (found,) = METER.measure([said], [Piece("p#0", evidence, 1)], Event())
    assert found.score is not None
    return found.score


@pytest.mark.parametrize(("evidence", "said"), WRONG)
def test_the_words_of_what_disagrees_are_found_in_part(evidence: str, said: str) -> None:
    assert score(evidence, said) < SUPPORTED
    assert lacking(said, PieceSet((Piece("p#0", evidence, 1),)), ["p#0"]), "and the reader is told what disagrees"


@pytest.mark.parametrize(("evidence", "said"), RIGHT)
def test_what_agrees_is_supported(evidence: str, said: str) -> None:
    assert score(evidence, said) >= SUPPORTED


@pytest.mark.parametrize(("evidence", "said"), BEYOND)
def test_the_words_of_another_rate_unit_or_bound_are_found(evidence: str, said: str) -> None:
    assert score(evidence, said) >= SUPPORTED


def test_the_same_words_without_the_disagreement_would_be_supported() -> None:
    """So these pairs test the agreement, not the words."""
    assert sum(score(evidence, evidence) == 1.0 for evidence, _ in WRONG) == len(WRONG)
