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
from crag_core.trace.grounding.citation_check import SUPPORTED, Evidence, lacking

METER = WordSupport(EVALUATOR_FOLDER, frozenset((DATA / "stopwords.txt").read_text("utf-8").split()))

WRONG = (
    ("The channel is fourteen metres deep at the pier.", "The channel is 40 metres deep at the pier."),
    ("The second ferry leaves from the west pier.", "The third ferry leaves from the west pier."),
    ("Two pilots guide each tanker into the harbour.", "Three pilots guide each tanker into the harbour."),
    ("The permit is valid for twenty-five days.", "The permit is valid for 52 days."),
    ("The quay holds 24,530 containers.", "The quay holds 2,453 containers."),
    ("The dredger moved 2.5 million tonnes of sand.", "The dredger moved 2.5 thousand tonnes of sand."),
    ("Dogs may not enter the engine room.", "Dogs may enter the engine room."),
    ("Dogs may enter the engine room.", "Dogs may never enter the engine room."),
    ("Visitors travel without a ticket on Sundays.", "Visitors travel with a ticket on Sundays."),
    ("Hunde dürfen den Maschinenraum nicht betreten.", "Hunde dürfen den Maschinenraum betreten."),
    ("Les chiens ne peuvent pas entrer dans la salle des machines.",
     "Les chiens peuvent entrer dans la salle des machines."),
    ("Los perros no pueden entrar en la sala de máquinas.", "Los perros pueden entrar en la sala de máquinas."),
    ("The lighthouse was built in 1987 by the harbour.", "The lighthouse was built in 1978 by the harbour."),
    ("The permit ends on 12.05.2019 at the latest.", "The permit ends on 13.05.2019 at the latest."),
    ("The permit ends on 2019-05-12 at the latest.", "The permit ends on 2019-06-12 at the latest."),
    ("The fair opens on 3 March in the old town.", "The fair opens on 3 April in the old town."),
    ("The ferry to Vennick leaves at 9:30 from the pier.", "The ferry to Vennick leaves at 9:45 from the pier."),
    ("A berth costs 9.50 pounds a night.", "A berth costs 9 pounds a night."),
)  # fmt: skip

BEYOND = (
    ("The lifeboats are tested every two weeks.", "The lifeboats are tested every two days."),
    ("A berth costs 14 pounds a night.", "A berth costs 14 euros a night."),
    ("Passengers may bring at most three bags on board.", "Passengers may bring at least three bags on board."),
)
"""Rates, units and bounds are words like others, which the page says."""

RIGHT = (
    ("Boats are inspected by the harbour office not more often than every two years.",
     "The harbour office inspects boats at most every 2 years."),
    ("Boats are inspected by the harbour office twice a year.",
     "The harbour office inspects boats two times per year."),
    ("Boats are inspected twice a year by the harbour office.", "The harbour office inspects boats twice yearly."),
    ("The lifeboats are tested every other week.", "The lifeboats are tested every two weeks."),
    ("The lifeboats are tested every 3 months.", "The lifeboats are tested quarterly."),
    ("The lifeboats are tested monthly.", "The lifeboats are tested once a month."),
    ("The engine is cleaned every day by the crew.", "The crew cleans the engine daily."),
    ("A berth costs 14 pounds per night.", "A berth costs £14 a night."),
    ("The ferry to Vennick leaves at nine from pier three.", "The ferry to Vennick leaves at 9 from pier 3."),
    ("The ferry to Vennick leaves at 9 from pier 3.", "The ferry to Vennick leaves at nine from pier three."),
    ("The second ferry leaves from the west pier.", "The 2nd ferry leaves from the west pier."),
    ("The permit is valid for twenty-five days.", "The permit is valid for 25 days."),
    ("The permit is valid for 25 days.", "The permit is valid for twenty-five days."),
    ("The quay holds 24,530 containers.", "The quay holds 24530 containers."),
    ("The dredger moved 2.5 million tonnes of sand.", "The dredger moved 2,500,000 tonnes of sand."),
    ("The office opens at 9:00 on weekdays.", "The office opens at nine on weekdays."),
    ("Passengers may bring no more than three bags on board.", "Passengers may bring at most 3 bags on board."),
    ("Passengers may bring up to three bags on board.", "Passengers may bring at most three bags on board."),
    ("A minimum of thirty minutes is needed to board.", "At least 30 minutes are needed to board."),
    ("Dogs may not enter the engine room.", "Dogs can't enter the engine room."),
    ("Dogs may enter the saloon but not the engine room.", "Dogs may enter the saloon."),
    ("Dogs travel free, cats never do.", "Dogs travel free."),
    ("The gate is used by crew members only.", "Only crew members use the gate."),
    ("The west gate is locked at all times.", "The west gate is always locked."),
    ("The pier is not only long but also wide.", "The pier is long and wide."),
    ("Yachts pay 14 pounds and dinghies 5 pounds a night at berth 32.",
     "No, yachts pay 14 pounds a night at berth 32."),
    ("The islands of Vennick, Ames and Holm belong to the harbour.", "Vennick, Ames and Holm belong to the harbour."),
    ("Vennick, Ames and Holm belong to the harbour.", "Three islands belong to the harbour: Vennick, Ames and Holm."),
    ("Die Boote werden zweimal im Jahr vom Hafenamt geprüft.", "Das Hafenamt prüft die Boote zweimal jährlich."),
    ("Die Fähre fährt jeden Tag um neun nach Vennick.", "Die Fähre fährt täglich um 9 nach Vennick."),
    ("Die Genehmigung gilt fünfundzwanzig Tage.", "Die Genehmigung gilt 25 Tage."),
    ("Passagiere dürfen nicht mehr als drei Taschen mitnehmen.", "Passagiere dürfen höchstens 3 Taschen mitnehmen."),
    ("Les bateaux sont contrôlés deux fois par an par le port.",
     "Les bateaux sont contrôlés 2 fois par an par le port."),
    ("Les passagers ne peuvent pas emporter plus de trois sacs.", "Les passagers peuvent emporter au plus 3 sacs."),
    ("Los barcos se inspeccionan cada dos años en el puerto.", "En el puerto los barcos se inspeccionan cada 2 años."),
    ("El permiso es válido durante cinco semanas.", "El permiso es válido durante 5 semanas."),
    ("The permit ends on 12.05.2019 at the latest.", "The permit ends on the 12th of May 2019 at the latest."),
    ("The permit ends on 12 May 2019 at the latest.", "The permit ends in 2019 at the latest."),
)  # fmt: skip


def score(evidence: str, said: str) -> float:
    (found,) = METER.measure([said], [Piece("p#0", evidence, 1)], Event())
    assert found.score is not None
    return found.score


@pytest.mark.parametrize(("evidence", "said"), WRONG)
def test_the_words_of_what_disagrees_are_found_in_part(evidence: str, said: str) -> None:
    assert score(evidence, said) < SUPPORTED
    assert lacking(said, Evidence((Piece("p#0", evidence, 1),)), ["p#0"]), "and the reader is told what disagrees"


@pytest.mark.parametrize(("evidence", "said"), RIGHT)
def test_what_agrees_is_supported(evidence: str, said: str) -> None:
    assert score(evidence, said) >= SUPPORTED


@pytest.mark.parametrize(("evidence", "said"), BEYOND)
def test_the_words_of_another_rate_unit_or_bound_are_found(evidence: str, said: str) -> None:
    assert score(evidence, said) >= SUPPORTED


def test_the_same_words_without_the_disagreement_would_be_supported() -> None:
    """So these pairs test the agreement, not the words."""
    assert sum(score(evidence, evidence) == 1.0 for evidence, _ in WRONG) == len(WRONG)
