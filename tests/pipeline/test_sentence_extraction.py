"""Extracted sentences: read from what models reply, and taken only if they stand in the passage word for word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.decision.refine import decompose
from crag_core.pipeline.stages import locate, parse_sentences
from tests.builders import passage


@pytest.mark.parametrize(
    ("reply", "sentences"),
    [
        ('{"sentences": ["Dogs pay half.", "Cats pay nothing."]}', ("Dogs pay half.", "Cats pay nothing.")),
        ('["Dogs pay half."]', ("Dogs pay half.",)),
        ('```json\n{"sentences": ["Dogs pay half."]}\n```', ("Dogs pay half.",)),
        ('Sure!\n{"sentences": [" Dogs pay half. ", "", "  "]}', ("Dogs pay half.",)),
        ('<think>{"sentences": ["No."]}</think>{"sentences": ["Dogs pay half."]}', ("Dogs pay half.",)),
        ('First ["No."]\n</think>{"sentences": ["Dogs pay half."]}', ("Dogs pay half.",)),
        ('{"sentences": ["Dogs pay half.", 7, null]}', ("Dogs pay half.",)),
        ('{"sentences": []}', ()),
        ("[]", ()),
        ("No sentences are relevant.", ()),
        ("There are no relevant sentences.", ()),
        ("None", ()),
        ("- Dogs pay half.\n* Cats pay nothing.\n", ("Dogs pay half.", "Cats pay nothing.")),
        ("“Dogs pay half.”", ("Dogs pay half.",)),
        ("Dogs pay half [1].", ("Dogs pay half [1].",)),
        ("", None),
        ("<think>Dogs pay half.", None),
        ('{"sentences": "Dogs pay half."}', None),
        ('{"lines": ["Dogs pay half."]}', None),
        ('{"sentences": ["Dogs pay', None),
        ('["Dogs pay half."', None),
        ('{"sentences": [1, 2]}', None),
        ("[" * 5000 + "]" * 5000, None),
    ],
)
def test_sentences_in_a_reply(reply: str, sentences: tuple[str, ...] | None) -> None:
    assert parse_sentences(reply) == sentences


@given(st.text() | st.text('{}[]",\n -*sent', max_size=60))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    sentences = parse_sentences(reply)
    assert sentences is None or all(isinstance(sentence, str) for sentence in sentences)


FARES = passage("p1", "Adults pay nine euros.  Dogs\npay half. Cats (small) pay 0.50 euros. The sea is blue.")
STRIPS = decompose(FARES)


def found(*sentences: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    return locate(sentences, FARES.text, STRIPS)


@pytest.mark.parametrize(
    ("sentence", "indexes"),
    [
        ("Adults pay nine euros.", (0,)),
        ("Dogs pay half.", (1,)),
        ("Dogs  pay \n half.", (1,)),
        ("pay nine", (0,)),
        ("Cats (small) pay 0.50 euros.", (2,)),
        ("nine euros. Dogs pay", (0, 1)),
    ],
)
def test_a_sentence_of_the_passage_is_located(sentence: str, indexes: tuple[int, ...]) -> None:
    assert found(sentence) == (indexes, ())


@pytest.mark.parametrize(
    "sentence",
    [
        "Dogs pay nothing.",
        "dogs pay half.",
        "Dogs pay half!",
        "Dogs paid half.",
        "Cats .small. pay 0.50 euros.",
        "a",
        "",
        "   ",
    ],
)
def test_a_sentence_that_is_not_in_the_passage_is_refused(sentence: str) -> None:
    assert found(sentence) == ((), (sentence,))


def test_indexes_are_sorted_and_single() -> None:
    assert found("The sea is blue.", "Dogs pay half.", "The sea", "Free beer.") == ((1, 3), ("Free beer.",))


def test_nothing_asked_nothing_found() -> None:
    assert found() == ((), ())
    assert locate(("Dogs pay half.",), FARES.text, ()) == ((), ())
