"""The support score: what counts as supported, what does not, what cannot be read, and files that are not there."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

import pytest

from crag_core.base.data_files import DATA
from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.protocols import Backing, Piece
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.citation_check import LACKING, SUPPORTED, WEAK, SupportLevel, support_level
from crag_core.trace.grounding.claims import sentences

STOP_WORDS = frozenset((DATA / "stopwords.txt").read_text("utf-8").split())
METER = WordSupport(EVALUATOR_FOLDER, STOP_WORDS)
NEVER = Event()

ENGLISH = (
    Piece("p1#0", "# Timetable\n\nThe ferry to Vennick leaves at nine in the morning from pier 3.", 1),
    Piece("p1#1", "Dogs travel free of charge if they are kept on a leash.", 1),
    Piece("p2#0", "A yacht of up to ten metres pays 14 pounds a night.", 2),
    Piece("p2#1", "Dr. Ames keeps the harbour office on weekdays.", 2),
)
GERMAN = (
    Piece("d1#0", "Hunde fahren kostenlos mit, wenn sie an der Leine geführt werden.", 1),
    Piece("d1#1", "Katzen müssen in einer Transportbox reisen.", 1),
)
JAPANESE = (Piece("j1#0", "フェリーは午前9時にヴェニックに向けて出発します。", 1),)
ARABIC = (Piece("a1#0", "تسافر الكلاب مجانا إذا كانت مقيدة بالحبل", 1),)


def measured(sentence: str, pieces: tuple[Piece, ...] = ENGLISH) -> Backing:
    (found,) = METER.measure([sentence], pieces, NEVER)
    return found


def stands(sentence: str, pieces: tuple[Piece, ...] = ENGLISH) -> SupportLevel:
    return support_level(measured(sentence, pieces).score)


@pytest.mark.parametrize(
    ("sentence", "piece"),
    [
        ("“Dogs travel free of charge if they are kept on a leash.” [1]", "p1#1"),
        ("“Timetable”", "p1#0"),
        ("dogs travel **free of charge**", "p1#1"),
        ("The ferry to Vennick leaves at nine", "p1#0"),
    ],
)
def test_a_quotation_scores_one(sentence: str, piece: str) -> None:
    assert measured(sentence) == Backing(1.0, (piece,))


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("The ferry leaves for Vennick at 9 in the morning [1].", ("p1#0",)),
        ("On a leash, a dog travels free [1].", ("p1#1",)),
        ("- A 10-metre yacht pays £14 a night [2]", ("p2#0",)),
        ("Dogs travel free on a leash, and yachts pay 14 pounds a night.", ("p1#1", "p2#0")),
        ("Pier 3.", ("p1#0",)),
        ("| Dogs | free of charge |", ("p1#1",)),
    ],
)
def test_what_the_evidence_says_in_other_words_is_supported_best_piece_first(
    sentence: str, pieces: tuple[str, ...]
) -> None:
    found = measured(sentence)
    assert found.score is not None and found.score >= SUPPORTED
    assert set(found.pieces) == set(pieces) and len(found.pieces) == len(pieces)


@pytest.mark.parametrize(
    "sentence",
    [
        "A yacht of ten metres pays 99 pounds a night [2].",
        "The ferry to Bergen leaves at nine in the morning from pier 3 [1].",
        "Dogs do not travel free of charge when they are kept on a leash [1].",
        "A yacht of ten metres never pays 14 pounds a night [2].",
    ],
)
def test_a_number_a_name_or_a_not_that_the_evidence_lacks_keeps_it_weak(sentence: str) -> None:
    found = measured(sentence)
    assert found.score == LACKING and found.pieces and support_level(found.score) is SupportLevel.WEAK


@pytest.mark.parametrize(
    "sentence",
    [
        "The captain was born in 1812 in Bergen and loved herring [1].",
        "Bicycles need a ticket of their own.",
        "Scottish.",
        "<script>alert('x')</script>",
    ],
)
def test_what_stands_nowhere_is_supported_by_nothing(sentence: str) -> None:
    found = measured(sentence)
    assert found.score is not None and found.score < WEAK and found.pieces == ()


# --- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "pieces"),
    [
        ("Hunde reisen kostenlos, wenn sie an der Leine sind [1].", ENGLISH),
        ("Hunde reisen kostenlos [1].", ENGLISH),
        ("Les chiens voyagent gratuitement s'ils sont tenus en laisse [1].", ENGLISH),
        ("フェリーは9時に出発します。[1]", ENGLISH),
        ("フェリーは9時に出発します。[1]", JAPANESE),
        ("تسافر الكلاب مجانا [1].", ENGLISH),
        ("Dogs travel free of charge on a leash, which they are kept on.", GERMAN),
        ("Dogs travel free.", ARABIC),
        ("```python\nprint('herring')\n```", ENGLISH),
        ("| fare | price |\n|---|---|", ENGLISH),
        ("According to the documents:", ENGLISH),
        ("Yes.", ENGLISH),
        ("The answer is: 3.1", (Piece("p", "3.1 Full-time staff receive 27 days.", 1),)),
        ("## Herring", ENGLISH),
        ("[1]", ENGLISH),
        ("---", ENGLISH),
        ("", ENGLISH),
    ],
)
def test_what_cannot_be_compared_gets_no_score(sentence: str, pieces: tuple[Piece, ...]) -> None:
    assert measured(sentence, pieces) == Backing(None)


@pytest.mark.parametrize(
    ("sentence", "pieces", "expected"),
    [
        ("Hunde fahren kostenlos, wenn sie an der Leine sind [1].", GERMAN, SupportLevel.SUPPORTED),
        ("Katzen reisen in einer Transportbox.", GERMAN, SupportLevel.SUPPORTED),
        ("Für Pferde ist das Fahren auf der Autobahn verboten.", GERMAN, SupportLevel.NONE),
        ("تسافر الكلاب مجانا بالحبل", ARABIC, SupportLevel.SUPPORTED),
        ("フェリーは午前9時にヴェニックに向けて出発します。[1]", JAPANESE, SupportLevel.SUPPORTED),
    ],
)
def test_an_answer_in_the_language_of_its_evidence_is_measured(
    sentence: str, pieces: tuple[Piece, ...], expected: SupportLevel
) -> None:
    assert stands(sentence, pieces) is expected


# --- size, and files --------------------------------------------------------------------------------------------------


def test_a_hostile_answer_takes_no_longer() -> None:
    for sign in ("[1] ", "x", "not ", "É" * 50 + " ", "1.2.3-"):
        text = sign * (100_000 // len(sign))
        said = [text[start:end] for start, end in sentences(text)]
        start = time.process_time()
        METER.measure(said, ENGLISH, NEVER)
        assert time.process_time() - start < 5


def test_missing_and_broken_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorUnavailable, match=r"expected its file rarity\.json"):
        WordSupport(tmp_path, STOP_WORDS).measure(["Dogs."], ENGLISH, NEVER)
    (tmp_path / "rarity.json").write_text("[]")
    with pytest.raises(EvaluatorUnavailable, match="expected a number of documents"):
        WordSupport(tmp_path, STOP_WORDS).measure(["Dogs."], ENGLISH, NEVER)
