"""Texts made from texts: what is taken away is gone, what is asked for was there, and the seed decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from crag_core.base.text.sentences import split
from training.everyday import Asked, Everyday, everyday_pairs, in_groups, read_near_misses
from training.exchange import exchange
from training.forms import reword
from training.pairs import with_near_misses
from training.tables import carry_heads
from training.wording import make_question, perturb

PASSAGE = (
    "The Nordland line was founded in 1921 by Ada Berg. Its first boat, the Heron, carried 84 passengers. "
    "The company moved to Tromsø after the storm. Tickets were sold at the harbour office."
)


def made_from(passage: str, seeds: int = 200) -> list:
    spans = split(passage)
    return [made for seed in range(seeds) if (made := make_question(passage, spans, Random(seed)))]


def test_a_made_question_asks_for_a_span_of_the_sentence_it_names() -> None:
    spans = split(PASSAGE)
    found = made_from(PASSAGE)
    assert found
    for made in found:
        start, end = spans[made.sentence]
        assert start <= made.answer[0] < made.answer[1] <= end


def test_a_perturbed_question_asks_for_something_else() -> None:
    asked = "Who founded the Nordland line in 1921, before the largest storm?"
    changed = {perturb(asked, PASSAGE, ["Oslo Harbour"], Random(seed)) for seed in range(60)} - {None}
    assert asked not in changed
    assert any("1921" not in question for question in changed), "another year"
    assert any("Nordland" not in question for question in changed), "another name"
    assert any("after" in question or "smallest" in question for question in changed), "an opposite"


def test_a_question_in_another_wording_keeps_what_limits_it() -> None:
    asked = "How many visitors are not admitted to the harbour office before 1921?"
    forms = {reword(asked, Random(seed)) for seed in range(200)}
    assert len(forms) > 50
    assert all("1921" in form for form in forms)
    assert all("not" in form.lower().split() for form in forms)
    assert any(len(form.split()) <= 7 for form in forms), "as in a search box"


def test_an_exchange_names_both_things_where_another_sentence_does() -> None:
    text = "The Heron sailed to Oslo in May. The captain liked the Falcon."
    made = [exchange("Where did the ship Heron sail?", text, text[:32], ["Ada"], Random(seed)) for seed in range(20)]
    (found,) = {one for one in made if one}
    assert found.question == "Where did the ship Falcon sail?"
    assert found.passage == "The Falcon sailed to Oslo in May. The captain liked the Heron."
    assert found.evidence == "The Falcon sailed to Oslo in May." and found.both_named


DOCUMENT = Everyday(
    "Pool",
    "# Pool\n\nAdults pay nine pounds a visit. "
    + "The water is changed often and kept warm all year round. " * 6
    + "\n\n"
    "Lockers take a coin. " + "Towels hang by the door for all who need them on the day. " * 6,
    (
        Asked(
            ("What do adults pay?", "how much is it", "adult price"),
            "Adults pay nine pounds a visit.",
            True,
            "answered",
        ),
        Asked(("What coin do lockers take?", "which coin", "locker coin"), "Lockers take a coin.", False, "missing"),
    ),
)


def test_everyday_questions_are_answered_only_by_the_chunk_that_holds_the_evidence() -> None:
    other = replace(DOCUMENT, title="Bath", text="Adults here pay the fee of the bath. A coin opens the lockers.")
    for seed in range(20):
        pairs = with_near_misses(everyday_pairs([DOCUMENT, other], lambda text: len(text.split()), Random(seed)))
        for pair in pairs:
            assert (pair.answering == 1.0) == bool(pair.evidence), pair
            assert pair.evidence in pair.passage
            assert (pair.topical == 0.0) == pair.kind.endswith("elsewhere")
        assert {"everyday/answered", "everyday/missing"} <= {pair.kind for pair in pairs}


def lease(flat: str, rent: str) -> Everyday:
    asked = (
        Asked((f"What is the rent of flat {flat}?", f"rent flat {flat}", f"flat {flat} rent"), rent, True, "answered"),
        Asked((f"What is the rent of flat Z{flat}?", "rent other", "other rent"), rent, False, "swapped", twin=0),
    )
    text = f"LEASE OF FLAT {flat}\n\nThe keys are three. The cellar is damp in spring.\n\n{rent} It is due on Monday."
    return Everyday(f"Lease of flat {flat}", text, asked, "leases", f"w1-lease-{flat}")


def test_a_twin_and_a_sibling_stand_against_what_answers() -> None:
    leases = [lease("A4", "The rent is 700."), lease("B7", "The rent is 900."), replace(DOCUMENT, title="Other")]
    assert [len(group) for group in in_groups(leases)] == [2, 1]
    kinds: set[str] = set()
    for seed in range(30):
        pairs = everyday_pairs(leases, lambda text: len(text.split()), Random(seed))
        for pair in (one for one in pairs if "flat" in one.question and one.answering == 1.0):
            for near in pair.against:
                kinds.add(near.kind)
                assert near.answering == 0.0
                if near.kind == "everyday/sibling":
                    assert near.question.split()[0] == pair.question.split()[0] or near.again
                    other = "B7" if "700" in pair.passage else "A4"
                    assert other in near.passage, "what is shown tells that it is about something else"
                if near.kind == "everyday/swapped":
                    assert "FLAT" in near.passage, "without the name it might be that of the other flat"
        assert not [
            one
            for one in pairs
            if one.kind == "everyday/elsewhere" and "flat" in one.question and "FLAT" in one.passage
        ], "a sibling is no other document"
    assert {"everyday/sibling", "everyday/swapped"} <= kinds


def test_every_document_with_near_misses_holds_what_its_questions_look_at(shared_data: Path) -> None:
    documents = read_near_misses(shared_data / "train" / "everyday2")
    assert len(documents) > 1000
    for document in documents:
        assert all(asked.place in document.text and all(asked.wordings) for asked in document.questions), document.file
        assert all(asked.twin is None or document.questions[asked.twin].is_answered for asked in document.questions), (
            document.file
        )


CSV = "Stock of 1 May\n\nno,article,price\n17,ink; blue,4.10\n18,glue,\n19,card,2.50\n\nAsk Ada."


@pytest.mark.parametrize(
    ("text", "line", "became"),
    [
        (CSV, "17,ink; blue,4.10", "no: 17; article: ink; blue; price: 4.10"),
        (CSV, "18,glue,", "no: 18; article: glue"),
        ("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 |  | 6 |", "| 4 |  | 6 |", "a: 4; c: 6"),
    ],
)
def test_rows_carry_their_heads(text: str, line: str, became: str) -> None:
    shown, lines = carry_heads(text)
    assert lines[line] == became and became in shown.split("\n")
    assert "---" not in shown and "no,article" not in shown
