"""Replies to the two requests of a consolidation (arXiv 2410.07176), and what is said of it in words."""

import json
from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.knowledge import Consolidated, Consolidation
from crag_core.trace.consolidation import (
    LONGEST,
    conflict_lines,
    in_brief,
    parse_pieces,
    parse_recalled,
    sources_in_words,
)
from crag_core.trace.grounding.claims import claim_of, is_from_memory, sentences
from crag_core.trace.trace import Trace
from tests.builders import policy_file, trace

NO_LIST = "the reply holds no list of passages, or was cut off"


@pytest.mark.parametrize(
    ("reply", "passages"),
    [
        ('{"passages": ["Nine."]}', ("Nine.",)),
        ('{"passages": []}', ()),
        ("<think>at nine?</think>```json\n{'passages': ['Nine.']}\n```", ("Nine.",)),
        ('{"passages": [{"text": " Nine \\n o\'clock. "}]}', ("Nine o'clock.",)),
        ('{"passages": ["One.", "One.", "", 3, null, "Two.", "Three."]}', ("One.", "Two.")),
        (json.dumps({"passages": ["a" * 9000]}), ("a" * LONGEST,)),
    ],
)
def test_what_a_model_knows(reply: str, passages: tuple[str, ...]) -> None:
    assert parse_recalled(reply, 2).listed == passages


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("", "the reply was empty"),
        ("<think>hm", "the reply was empty"),
        ("It leaves at nine.", NO_LIST),
        ('{"passages": ["It leaves', NO_LIST),
        ('{"passages": "It leaves at nine."}', "the passages in the reply are no list"),
        ('{"passages": [1, null]}', "no passage in the reply has a text"),
        ('{"passages": ["a"]} {"passages": ["b"]}', "the reply holds more than one list of passages"),
    ],
)
def test_what_cannot_be_read_has_its_cause(reply: str, cause: str) -> None:
    assert (parse_recalled(reply, 2).listed, parse_recalled(reply, 2).cause) == (None, cause)


def read(*records: dict[str, Any], excerpts: int = 3, own: int = 1) -> tuple[Consolidated, ...] | None:
    return parse_pieces(json.dumps({"passages": records}), excerpts, own).listed


@pytest.mark.parametrize(
    ("sources", "numbers", "memory"),
    [
        (["1", "3", "M1"], (1, 3), (1,)),
        ([3, "1", 1], (1, 3), ()),
        (["[2]", "Document 3", "doc_1"], (1, 2, 3), ()),
        (["memory", "Memory 1"], (), (1,)),
        ("2", (2,), ()),
        (["4", "0", "-1", True, None, 1.5, {"a": 1}, "2"], (2,), ()),
    ],
)
def test_sources_in_whatever_form(sources: Any, numbers: tuple[int, ...], memory: tuple[int, ...]) -> None:
    assert read({"text": "Nine.", "sources": sources}) == (Consolidated("Nine.", numbers, memory),)


def test_contradictions_are_renumbered_and_counted_once_a_pair() -> None:
    found = read(
        {"text": "", "sources": ["1"]},
        {"text": "Nine.", "sources": ["1", "2"], "contradicts": [3, 2, 99]},
        {"text": "Ten.", "sources": ["M1"], "contradicts": [2]},
    )
    assert found is not None and [one.contradicts for one in found] == [(2,), (1,)]
    made = Consolidation(("p1", "p2", "p3"), 1, ("Ten.",), found)
    assert made.conflicts == ((1, 2),) and made.from_memory_alone == (found[1],)
    assert conflict_lines(made, (4, 7, 9)) == ("Conflict: [4] [7] against the model's memory.",)
    assert in_brief(made) == "1 passage from memory, 2 consolidated, 1 conflict"
    assert sources_in_words(replace(found[0], memory=(1,)), (1, 2)) == "[1] [2] and the model's memory"


@pytest.mark.parametrize("piece", [Consolidated("a", (2,)), Consolidated("a", (), (1,)), Consolidated("a", (0,))])
def test_a_record_whose_pieces_name_what_is_not_there_is_refused(piece: Consolidated) -> None:
    made = replace(trace(policy_file("paper")), consolidations=(Consolidation(("p1",), pieces=(piece,)),))
    with pytest.raises(BadRecord, match=r"consolidations\[0\]: a piece names a source that is not there"):
        Trace.from_json(made.to_json())


def test_the_mark_of_memory_belongs_to_its_sentence_and_is_no_part_of_its_claim() -> None:
    text = "It leaves at nine [1]. It costs 4 pounds. (from the model’s memory) Bring a coat [2]."
    said = [text[slice(*one)] for one in sentences(text)]
    assert said == ["It leaves at nine [1].", "It costs 4 pounds. (from the model’s memory)", "Bring a coat [2]."]
    assert [is_from_memory(one) for one in said] == [False, True, False]
    assert claim_of(said[1]) == "It costs 4 pounds."


def test_memory_without_a_number_is_that_of_its_one_passage() -> None:
    told = [read({"text": "Nine.", "sources": ["memory", "1"]}, own=count) for count in (1, 2)]
    assert [one.memory for found in told for one in found or ()] == [(1,), ()]
