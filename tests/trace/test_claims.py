"""An answer cut into what it claims: sentences, citations, quotations, numbers and names."""

import pytest

from crag_core.base.text.words import language_of
from crag_core.trace.grounding.claims import (
    claim_of,
    content_of,
    denies,
    is_prose,
    is_quotation,
    sentences,
    spoken,
    stands_in,
    terms_of,
)


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It leaves at nine [1]. Dogs travel free [2].", ["It leaves at nine [1].", "Dogs travel free [2]."]),
        ("It leaves at nine. [1] Dogs travel free. [2]", ["It leaves at nine. [1]", "Dogs travel free. [2]"]),
        ("“Dogs travel free.” [1]\n\n“Cats pay.” [2, 3]", ["“Dogs travel free.” [1]", "“Cats pay.” [2, 3]"]),
        ("It leaves at nine.[1][2] Dogs travel free.", ["It leaves at nine.[1][2]", "Dogs travel free."]),
        ("They travel free (see [1]).\n[2]", ["They travel free (see [1]).\n[2]"]),
        ("[1] It leaves at nine.", ["[1] It leaves at nine."]),
        ("It leaves at nine.\n[1] Dogs travel free.", ["It leaves at nine.", "[1] Dogs travel free."]),
        ("Fares:\n\n- Adults pay [1].\n- Dogs: half", ["Fares:", "- Adults pay [1].", "- Dogs: half"]),
        ("犬は無料です。[1] 猫は箱に入れます。[2]", ["犬は無料です。[1]", "猫は箱に入れます。[2]"]),
        ("[1]", ["[1]"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_a_citation_belongs_to_the_sentence_before_it(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("- **Dogs** travel `free` [1].", "Dogs travel free ."),
        ("3. Pay nine euros [2]", "Pay nine euros"),
        ("# Pets\n\n## On board\nDogs travel free.", "Dogs travel free."),
        ("| Dogs | free |", "Dogs free"),
        ("## Only a heading", ""),
        ("A snake_case name stays", "A snake_case name stays"),
        ("[1]", ""),
    ],
)
def test_a_claim_is_bare_of_marks(sentence: str, claim: str) -> None:
    assert claim_of(sentence) == claim


def test_code_and_the_header_of_a_table_claim_nothing() -> None:
    assert not is_prose("```python\nprint(1)\n```") and not is_prose("| fare | price |\n|---|---|")
    assert is_prose("| Dogs | free |") and is_prose("Dogs travel free.")


@pytest.mark.parametrize(
    ("claim", "text", "stands"),
    [
        ("Dogs travel free of charge.", "Today, dogs travel **free** of charge!", True),
        ("dogs travel free", "Dogs travel free of charge.", False),  # three words may stand anywhere by chance
        ("Dogs travel free at night.", "Dogs travel free of charge at night.", False),
        ("travel free of charge", "Hot dogs travel free of chargers.", False),
        ("フェリーは9時に出発します。", "フェリーは9時に出発します。犬は無料です。", True),
    ],
)
def test_what_stands_word_for_word_is_found(claim: str, text: str, stands: bool) -> None:
    assert stands_in(claim, spoken(text)) is stands


def test_a_quotation_says_that_it_is_one() -> None:
    assert is_quotation("“Dogs pay.” ") and is_quotation("„Hunde“.") and is_quotation('"Dogs"')
    assert not is_quotation("He said “Dogs pay.” and left.") and not is_quotation("Dogs pay.")
    assert stands_in("“Dogs pay.”", spoken("Dogs pay."), at_least=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nine euros", "9 EUROS"),
        ("9.50", "9,50"),
        ("at 09:05", "at 9:05"),
        ("5pm", "5 pm"),
        ("the ferry's", "the ferry"),
        ("Céloron's travels", "Celoron travelled"),
        ("neun Hunde", "9 Hunden"),
        ("a 10-metre yacht", "10 metre yachts a"),
    ],
)
def test_words_are_compared_in_a_common_form(one: str, other: str) -> None:
    assert terms_of(one) == terms_of(other)


@pytest.mark.parametrize("text", ["Not more than 3 dogs.", "No. 32 is here.", "No, it pays.", "Pas plus de 5 sacs."])
def test_a_bound_and_an_abbreviation_deny_nothing(text: str) -> None:
    assert not denies(text)


def test_what_says_nothing_by_itself_has_no_content() -> None:
    stop = frozenset({"to", "the", "it", "is"})
    assert content_of("According to the documents:", stop) == content_of("Yes.", stop) == content_of("—", stop) == {}
    assert content_of("Yes, it is free", stop) == {"free": "free"}


@pytest.mark.parametrize("text", ["Dogs do not pay.", "It isn't free.", "Es ist kein Hund.", "Il n'est pas là."])
def test_a_not_is_seen(text: str) -> None:
    assert denies(text)
    assert not denies("Dogs pay nothing to note.")


# --- language ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The ferry is white and it leaves at nine.", "en"),
        ("Die Fähre ist weiß und fährt um neun Uhr ab.", "de"),
        ("Les chiens voyagent gratuitement dans la cabine et sur le pont.", "fr"),
        ("Los perros viajan gratis en la cabina y por el puente.", "es"),
        ("Köpekler için bir bilet gerekir ve bu çok ucuz.", "tr"),
        ("Dogs.", ""),
        ("Hetfield, Ulrich, Hammett, Trujillo", ""),
        ("Chó được đi miễn phí nếu được giữ bằng dây xích trên tàu phà", "vi"),
        ("Mbwa husafiri bila malipo ikiwa wamefungwa kwa mnyororo ndani kivuko mapema leo hii sana", "?"),
        ("", ""),
    ],
)
def test_a_language_is_told_by_its_little_words(text: str, language: str) -> None:
    assert language_of(text) == language
